//! Changes as update pipelines: the server computes them from the entry as it stands. Pure values, no
//! I/O.
//!
//! All instants are the primary's (`$$NOW`), and every value of ours goes through `$literal`: a
//! description may begin with a dollar.

use mongodb::bson::{Bson, Document, doc};

use super::mongo_change::{Becomes, Change, KEPT, PAST};

/// What becomes of the entry.
pub(super) fn of(change: &Change) -> Vec<Document> {
    let of_field = |(field, becomes): &(&str, Becomes)| ((*field).to_owned(), expression(becomes));
    let fields = change.fields.iter().map(of_field).collect();
    if change.creates() { create(&change.id, fields) } else { vec![doc! { "$set": fields }] }
}

fn expression(becomes: &Becomes) -> Bson {
    match becomes {
        Becomes::Value(value) => literal(value.clone()).into(),
        Becomes::Now => NOW.into(),
        Becomes::Missing => REMOVED.into(),
        Becomes::NextVersion => next_version().into(),
        Becomes::Elapsed => elapsed().into(),
        Becomes::LongerHistory => longer_history().into(),
    }
}

/// Creates the entry if the upsert found none, and leaves one that is there as it is.
fn create(id: &Bson, mut fields: Document) -> Vec<Document> {
    let missing = doc! { "$eq": ["$$ROOT", literal(doc! { "_id": id.clone() })] };
    fields.insert("_id", literal(id.clone()));
    vec![doc! { "$replaceWith": { "$cond": [missing, fields, "$$ROOT"] } }]
}

/// Adds how the entry stands to its history: in one stage all expressions see it as it was.
fn longer_history() -> Document {
    let past: Document = PAST.iter().map(|f| ((*f).to_owned(), format!("${f}").into())).collect();
    let kept = doc! { "$cond": [{ "$isArray": "$history" }, "$history", []] };
    let longer = doc! { "$concatArrays": [kept, [past]] };
    doc! { "$slice": [longer, -KEPT] }
}

/// Brings back how an entry stood before its claim, which is the newest of its history.
pub(super) fn restore() -> Vec<Document> {
    let last = doc! { "$arrayElemAt": ["$history", -1] };
    let past = |field: &&str| {
        let value = doc! { "$ifNull": [format!("$$past.{field}"), REMOVED] };
        let value = doc! { "$let": { "vars": { "past": last.clone() }, "in": value } };
        ((*field).to_owned(), Bson::Document(value))
    };
    let mut fields: Document = PAST.iter().map(past).collect();
    let older = doc! { "$subtract": [{ "$size": "$history" }, 1] };
    let kept = doc! { "$slice": ["$history", older.clone()] };
    fields.insert("history", doc! { "$cond": [{ "$gt": [older, 0] }, kept, REMOVED] });
    // Versions are never used twice, or a late write could take this state for another.
    fields.insert("version", next_version());
    vec![doc! { "$set": fields }]
}

/// How long the body has run, by the server's clock.
fn elapsed() -> Document {
    let began = doc! { "$eq": [{ "$type": "$startedAt" }, "date"] };
    doc! { "$cond": [began, { "$subtract": [NOW, "$startedAt"] }, Bson::Null] }
}

fn next_version() -> Document {
    doc! { "$add": [{ "$ifNull": ["$version", 0] }, 1] }
}

/// A value of ours, whatever it looks like.
pub(super) fn literal(value: impl Into<Bson>) -> Document {
    doc! { "$literal": value.into() }
}

const NOW: &str = "$$NOW";
const REMOVED: &str = "$$REMOVE";
