//! Two entries in one command: what a settlement and the next claim look like as one update, and what
//! its reply says. Pure values, no I/O. In plain operators there is no such command: nothing in them
//! fails on a condition, so there the two go one after the other.
//!
//! An ordered update stops at the first statement that *fails*, and a statement that matches nothing
//! has not failed. So the settlement's statement matches by `_id` alone, creates what is missing, and
//! looks at what it got: a `$switch` that finds no branch is an error, which stops the command before
//! anything is written. A changed entry and a deleted one end alike, and neither is followed by a
//! claim.
//!
//! Tried on servers 4.4, 5.0 and 6.0, against writers and deleters that come in between.

use mongodb::bson::{Document, doc};

use super::mongo_change::{Change, as_claimed};
use super::mongo_entry::key_of;
use super::mongo_pipeline::{self as pipeline, literal};
use super::store::{ClaimedEntry, Settlement};
use crate::connect::{is_unsettled, refuses_pipelines};
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
    let mut stages = vec![doc! { "$replaceWith": { "$switch": { "branches": [ours] } } }];
    stages.extend(pipeline::of(settle));
    doc! { "q": { "_id": settle.id.clone() }, "u": stages, "upsert": true, "multi": false }
}

fn statement(change: &Change) -> Document {
    doc! {
        "q": change.filter.clone(), "u": pipeline::of(change),
        "upsert": change.creates(), "multi": false,
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
    let (code, message) = (error.get_i32("code").ok(), error.get_str("errmsg").unwrap_or_default());
    let refused = code.is_some_and(|code| refuses_pipelines(code, message));
    let kind = if refused { FaultKind::Incapable } else { kind };
    StoreFault { kind, message: message.to_owned(), server_code: code }
}

/// The entry that a claim leaves behind.
pub(super) fn claimed(claim: &Change) -> ClaimedEntry {
    ClaimedEntry { key: key_of(&claim.id), version: claim.version, run_id: claim.run_id.clone() }
}
