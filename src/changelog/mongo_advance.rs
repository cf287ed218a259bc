//! Two entries in one command: what a settlement and the next claim look like as one update, what its
//! reply says, and how a claim is taken back. Pure values, no I/O.
//!
//! An ordered update stops at the first statement that *fails*, and a statement that matches nothing
//! has not failed. So the settlement's statement matches by `_id` alone, creates what is missing, and
//! looks at what it got: a `$switch` that finds no branch is an error, which stops the command before
//! anything is written. A changed entry and a deleted one end alike, and neither is followed by a
//! claim.
//!
//! Tried on servers 4.4, 5.0 and 6.0, against writers and deleters that come in between.

use mongodb::bson::{Bson, Document, doc};

use super::mongo_document::{Change, PAST, REMOVED, as_claimed, key_of, literal, next_version};
use super::store::{ClaimedEntry, Settlement};
use crate::connect::is_unsettled;
use crate::fault::{FaultKind, StoreFault};
use crate::mutant::Mutant;

/// The update that settles, and claims only if it has settled.
pub(super) fn command(
    collection: &str,
    settlement: &Settlement,
    settle: &Change,
    claim: &Change,
    write_concern: Document,
) -> Document {
    let first = if Mutant::NoPrecondition.is_planted() {
        statement(settle)
    } else {
        settle_or_stop(settlement, settle)
    };
    doc! {
        "update": collection,
        "updates": [first, statement(claim)],
        "ordered": true,
        "writeConcern": write_concern,
    }
}

fn settle_or_stop(settlement: &Settlement, settle: &Change) -> Document {
    let Settlement { key, version, run_id, .. } = settlement;
    let claimed = as_claimed(key, *version, run_id);
    let same = claimed
        .into_iter()
        .map(|(field, value)| doc! { "$eq": [format!("${field}"), literal(value)] })
        .collect::<Vec<_>>();
    let ours = doc! { "case": { "$and": same }, "then": "$$ROOT" };
    let mut pipeline = vec![doc! { "$replaceWith": { "$switch": { "branches": [ours] } } }];
    pipeline.extend(settle.pipeline.iter().cloned());
    doc! { "q": { "_id": settle.id.clone() }, "u": pipeline, "upsert": true, "multi": false }
}

fn statement(change: &Change) -> Document {
    doc! {
        "q": change.filter.clone(), "u": change.pipeline.clone(),
        "upsert": change.creates, "multi": false,
    }
}

/// What the reply to the two statements says.
pub(super) enum Reply {
    /// Both are written.
    Both,
    /// The first is written; the second matched nothing, or left what is there as it is.
    First,
    /// This statement failed, and so did nothing; what stands before it is written.
    Failed(Statement, StoreFault),
    /// What is written may be rolled back.
    Unsettled(StoreFault),
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Settle,
    Claim,
}

/// Reads the reply to [`command`]; `creates` says whether its claim creates an entry.
pub(super) fn read(reply: &Document, creates: bool) -> Reply {
    // First: what stands before a statement that failed may be rolled back, too.
    if let Ok(error) = reply.get_document("writeConcernError") {
        return Reply::Unsettled(fault(error, FaultKind::Unreachable));
    }
    if let Some(error) = reply.get_array("writeErrors").ok().and_then(|errors| errors.first()) {
        let error = error.as_document().cloned().unwrap_or_default();
        let statement = match error.get_i32("index") {
            Ok(1) => Statement::Claim,
            Ok(_) | Err(_) => Statement::Settle,
        };
        return match error.get_i32("code") {
            Ok(code) if is_unsettled(code) => {
                Reply::Unsettled(fault(&error, FaultKind::Unreachable))
            }
            Ok(_) | Err(_) => Reply::Failed(statement, fault(&error, FaultKind::Rejected)),
        };
    }
    let claimed = if creates {
        // One that is there is matched as well, and left as it is.
        reply.get_array("upserted").is_ok_and(|created| !created.is_empty())
    } else {
        reply.get_i32("n").is_ok_and(|n| n == 2)
    };
    if claimed { Reply::Both } else { Reply::First }
}

fn fault(error: &Document, kind: FaultKind) -> StoreFault {
    let message = error.get_str("errmsg").unwrap_or_default();
    StoreFault { kind, message: message.to_owned(), server_code: error.get_i32("code").ok() }
}

/// The entry that a claim leaves behind.
pub(super) fn claimed(claim: &Change) -> ClaimedEntry {
    ClaimedEntry { key: key_of(&claim.id), version: claim.version, run_id: claim.run_id.clone() }
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
