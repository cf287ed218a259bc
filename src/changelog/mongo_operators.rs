//! Changes as plain update operators, for servers that take no pipelines. Pure values, no I/O.
//!
//! What a pipeline computes from the entry as it stands is computed here from the entry as it was
//! read, and the condition sees to it that nothing has come in between: every change of ours raises
//! the version, which is named, and so is the run, as an entry that is made anew begins at the first
//! version again. An entry that only 1.x has written has no version, so there all that is remembered
//! is named as it was read.
//!
//! Instants are the primary's, set by the server itself (`$currentDate`). How long a body has run is
//! not to be had this way: where nobody knows it yet, the entry says null.

use mongodb::bson::{Bson, Document, doc};

use super::mongo_change::{Becomes, Change, KEPT, Kind, PAST};

/// An update and what must be true for it.
pub(super) struct Update {
    pub filter: Document,
    pub operators: Document,
}

/// What becomes of the entry that was `seen`: nothing, where none was looked for.
pub(super) fn of(change: &Change, seen: &Document) -> Update {
    let mut operators = Operators::default();
    for (field, becomes) in &change.fields {
        match becomes {
            Becomes::Value(value) => operators.set(field, value.clone()),
            Becomes::Now => operators.set_to_now(field),
            Becomes::Missing => operators.remove(field),
            Becomes::NextVersion => operators.set(field, change.version),
            Becomes::Elapsed => operators.set(field, Bson::Null),
            Becomes::LongerHistory => remember(&mut operators, seen),
        }
    }
    Update { filter: condition(change, seen), operators: operators.into() }
}

/// Brings back how an entry stood before the claim that left it as `claimed`, which is the newest of
/// its history; `None` if that says nothing.
pub(super) fn restore(claimed: &Document, next_version: i64) -> Option<Document> {
    let history = claimed.get_array("history").ok()?;
    let past = history.last()?.as_document()?;
    let mut operators = Operators::default();
    for field in PAST {
        match past.get(field) {
            Some(value) if *value != Bson::Null => operators.set(field, value.clone()),
            Some(_) | None => operators.remove(field),
        }
    }
    if history.len() > 1 {
        operators.pop("history")
    } else {
        operators.remove("history")
    }
    // Versions are never used twice, or a late write could take this state for another.
    operators.set("version", next_version);
    Some(operators.into())
}

fn condition(change: &Change, seen: &Document) -> Document {
    let mut filter = change.filter.clone();
    match change.kind {
        // No entry has nothing of what is to be created, so one that is there is not found, and the
        // insert that follows collides with it.
        Kind::Creates => name(&mut filter, change.fields.iter().map(|(field, _)| *field), seen),
        Kind::Remembers if seen.contains_key("version") => {
            name(&mut filter, std::iter::once("runId"), seen);
        }
        Kind::Remembers => name(&mut filter, PAST.iter().copied().chain(["history"]), seen),
        Kind::Settles => {}
    }
    filter
}

/// Asks for these fields as they were seen, beside what is asked for already.
fn name<'a>(filter: &mut Document, fields: impl Iterator<Item = &'a str>, seen: &Document) {
    for field in fields {
        if !filter.contains_key(field) {
            let as_seen = match seen.get(field) {
                Some(value) => doc! { "$eq": value.clone() },
                None => doc! { "$exists": false },
            };
            filter.insert(field, as_seen);
        }
    }
}

/// Adds how the entry stood to its history.
fn remember(operators: &mut Operators, seen: &Document) {
    let past = |field: &&str| Some(((*field).to_owned(), seen.get(field)?.clone()));
    let past: Document = PAST.iter().filter_map(past).collect();
    match seen.get("history") {
        // What is no history gives way to one.
        Some(other) if other.as_array().is_none() => operators.set("history", vec![past]),
        Some(_) | None => operators.push("history", past, KEPT),
    }
}

/// An update in the making. No field may be in two operators.
#[derive(Default)]
struct Operators {
    set: Document,
    unset: Document,
    current_date: Document,
    push: Document,
    pop: Document,
}

impl Operators {
    fn set(&mut self, field: &str, value: impl Into<Bson>) {
        self.set.insert(field, value);
    }

    fn set_to_now(&mut self, field: &str) {
        self.current_date.insert(field, true);
    }

    fn remove(&mut self, field: &str) {
        self.unset.insert(field, "");
    }

    /// Adds an element and keeps so many of the last.
    fn push(&mut self, field: &str, element: Document, most: i32) {
        self.push.insert(field, doc! { "$each": [element], "$slice": -most });
    }

    /// Takes the last element away.
    fn pop(&mut self, field: &str) {
        self.pop.insert(field, 1);
    }
}

impl From<Operators> for Document {
    fn from(Operators { set, unset, current_date, push, pop }: Operators) -> Self {
        // A server refuses an operator that is about no field.
        [
            ("$set", set),
            ("$unset", unset),
            ("$currentDate", current_date),
            ("$push", push),
            ("$pop", pop),
        ]
        .into_iter()
        .filter(|(_, fields)| !fields.is_empty())
        .map(|(operator, fields)| (operator.to_owned(), Bson::Document(fields)))
        .collect()
    }
}
