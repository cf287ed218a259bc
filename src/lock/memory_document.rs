//! The lock document of the memory store, field by field as the server writes it: JSON, with dates as
//! `{"$date": ms}` and elections as `{"$oid": hex}`. Pure values.

use serde_json::{Map, Value, json};

use super::document::{self, Fact, Field, Fields, REMEMBERED, instant, integer, ms, text};
use super::lease::OwnerToken;
use super::rules::Judgement;
use super::store::{AcquireReply, Attempt};
use super::timing::Timing;

/// A document without its `_id`.
pub(super) type Document = Map<String, Value>;

/// What a server knows when it judges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: i64,
    /// Which election made the primary what it is.
    pub(super) election: u64,
}

impl Fields for Document {
    fn field(&self, name: &str) -> Field<'_> {
        match self.get(name) {
            None => Field::Missing,
            Some(Value::String(text)) => Field::Text(text),
            Some(Value::Number(number)) => {
                let whole = number.as_i64().map(Field::Whole);
                whole.or(number.as_f64().map(Field::Fraction)).unwrap_or(Field::Other)
            }
            Some(Value::Object(fields)) => {
                let date = fields.get("$date").and_then(Value::as_i64);
                date.map_or(Field::Other, Field::Instant)
            }
            Some(Value::Null | Value::Bool(_) | Value::Array(_)) => Field::Other,
        }
    }

    fn is_bare(&self) -> bool {
        self.is_empty()
    }
}

/// The document after an acquire, whoever has the lock then.
pub(super) fn judged(found: Option<Document>, attempt: &Attempt, moment: Moment) -> Document {
    let Some(mut found) = found else { return lease(attempt, moment) };
    let same_election = found.get("electionId") == Some(&election_id(moment.election));
    match document::judged(&found, attempt, moment.now, same_election) {
        Judgement::Ours => {
            prolong(&mut found, &attempt.owner, attempt.timing, moment.now);
            found
        }
        Judgement::Held => found,
        Judgement::Over => {
            let mut taken = lease(attempt, moment);
            if !found.is_bare() {
                found.retain(|field, _| REMEMBERED.contains(&field.as_str()));
                taken.insert("prev".to_owned(), Value::Object(found));
            }
            taken
        }
    }
}

/// What the asker is told; `after` is the election once the command has been carried out.
pub(super) fn reply_to(
    lock: &Document,
    attempt: &Attempt,
    moment: Moment,
    after: u64,
) -> AcquireReply {
    if !owns(lock, &attempt.owner) {
        let legacy_ttl = attempt.timing.legacy_ttl();
        return AcquireReply::Held(document::holder(lock, legacy_ttl, moment.now));
    }
    let previous = lock.get("prev").and_then(Value::as_object);
    let took_over_from = previous.map(|previous| document::previous(previous, moment.now));
    let election_moved =
        took_over_from.is_some() && lock.get("electionId") != Some(&election_id(after));
    AcquireReply::Acquired { took_over_from, election_moved }
}

fn lease(attempt: &Attempt, moment: Moment) -> Document {
    let value = |fact| match fact {
        Fact::Text(text) => json!(text),
        Fact::Int(number) => json!(number),
        Fact::Long(number) => json!(number),
        Fact::Now => date(moment.now),
        Fact::End => date(moment.now + ms(attempt.timing.ttl())),
    };
    let facts = document::lease(attempt).into_iter();
    let mut lease: Document = facts.map(|(field, fact)| (field.to_owned(), value(fact))).collect();
    lease.insert("electionId".to_owned(), election_id(moment.election));
    lease
}

/// A renewal, under whatever primary.
pub(super) fn renew(document: &mut Document, owner: &OwnerToken, timing: Timing, moment: Moment) {
    prolong(document, owner, timing, moment.now);
    document.insert("electionId".to_owned(), election_id(moment.election));
}

fn prolong(document: &mut Document, owner: &OwnerToken, timing: Timing, now: i64) {
    let promised = instant(document, "expiresAt").unwrap_or(i64::MIN);
    let beats = integer(document, "beats").unwrap_or_default() + 1;
    let mut put = |field: &str, value: Value| document.insert(field.to_owned(), value);
    put("leaseOwner", json!(owner));
    put("lockedAt", date(now));
    put("expiresAt", date(promised.max(now + ms(timing.ttl()))));
    put("beats", json!(beats));
}

pub(super) fn owns(document: &Document, owner: &OwnerToken) -> bool {
    text(document, "owner") == Some(owner.as_str())
}

fn election_id(election: u64) -> Value {
    json!({ "$oid": format!("{election:024x}") })
}

fn date(ms: i64) -> Value {
    json!({ "$date": ms })
}
