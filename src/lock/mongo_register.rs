//! The fence document and the register of unsettled runs in it, as both forms of updates write it and
//! as it is read: pure values, no I/O.

use mongodb::bson::{Bson, DateTime, Document, doc};

use super::document::{integer, text};
use super::lease::{OwnerToken, RunId};
use super::mongo_pipeline::{NOW, literal};
use super::store::{Arming, UnsettledRun};
use crate::migration::Namespace;

/// Beside the lock, in the same collection.
pub(super) const FENCE_ID: &str = "mmk_fence";

/// The next token, with our run in the register and the settled ones off it: a pipeline.
pub(super) fn raised(owner: &OwnerToken, arming: &Arming) -> Vec<Document> {
    let register = doc! { "$cond": [{ "$isArray": "$unsettled" }, "$unsettled", []] };
    let staying = doc! { "$filter": {
        "input": register,
        "cond": { "$not": [{ "$in": ["$$this.runId", literal(leaving(arming))] }] },
    } };
    let entry = entry(&arming.run, NOW.into(), |value| literal(value).into());
    vec![doc! { "$set": {
        "token": { "$add": [{ "$toLong": { "$ifNull": ["$token", 0] } }, 1_i64] },
        "owner": literal(owner.as_str()),
        "at": NOW,
        "unsettled": { "$concatArrays": [staying, [entry]] },
    } }]
}

/// What must come before [`raised_plainly`]: filters with their updates, which take runs off the
/// register and away what is no register. One update can't take from a list and add to it.
pub(super) fn cleared(arming: &Arming) -> [(Document, Document); 2] {
    let leaving = doc! { "runId": { "$in": leaving(arming) } };
    let no_list = doc! { "$exists": true, "$not": { "$type": "array" } };
    [
        (
            doc! { "_id": FENCE_ID, "unsettled": { "$elemMatch": &leaving } },
            doc! { "$pull": { "unsettled": leaving } },
        ),
        (doc! { "_id": FENCE_ID, "unsettled": no_list }, doc! { "$unset": { "unsettled": "" } }),
    ]
}

/// The next token, with our run in the register: in operators.
pub(super) fn raised_plainly(owner: &OwnerToken, arming: &Arming, now: i64) -> Document {
    let entry = entry(&arming.run, DateTime::from_millis(now).into(), |value| value);
    doc! {
        "$inc": { "token": 1_i64 },
        "$set": { "owner": owner.as_str() },
        "$currentDate": { "at": true },
        "$push": { "unsettled": entry },
    }
}

/// An entry of the register, read; nothing for one that nobody could have left running anything.
pub(super) fn unsettled_run(entry: &Document) -> Option<UnsettledRun> {
    let owned = |field| text(entry, field).map(str::to_owned);
    Some(UnsettledRun {
        run_id: RunId::from_text(owned("runId")?),
        namespace: Namespace::new(owned("namespace")),
        changelog: owned("changelog")?,
        host: owned("host"),
        pid: integer(entry, "pid"),
    })
}

/// Ours too: an arm that is sent again registers once.
fn leaving(arming: &Arming) -> Vec<&str> {
    let settled = arming.settled.iter().map(RunId::as_str);
    settled.chain([arming.run.run_id.as_str()]).collect()
}

fn entry(run: &UnsettledRun, at: Bson, value: fn(Bson) -> Bson) -> Document {
    let mut entry = doc! {
        "runId": value(run.run_id.as_str().into()),
        "changelog": value(run.changelog.as_str().into()),
        "at": at,
    };
    let namespace = run.namespace.name().map(Bson::from);
    let host = run.host.as_deref().map(Bson::from);
    let optional = [("namespace", namespace), ("host", host), ("pid", run.pid.map(Bson::from))];
    for (field, known) in optional {
        if let Some(known) = known {
            entry.insert(field, value(known));
        }
    }
    entry
}
