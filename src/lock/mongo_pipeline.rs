//! The documents that make a MongoDB server judge and write the lock: pure values, no I/O.
//!
//! A filter can't compare with the server's clock in an upsert, so the filter of an acquire is the
//! bare `_id` and the whole decision sits in its update pipeline. Whoever may be in the document is
//! judged by [`ends_at`], and by nothing else, wherever it is asked: one expression decides, shows and
//! explains.
//!
//! | shape | its lease ends |
//! |---|---|
//! | `v` is no number, or above [`LOCK_VERSION`] | never: a later protocol's business |
//! | `leaseOwner` equals `owner`, `expiresAt` is a date | at `expiresAt`: written with the owner by our kind |
//! | `leaseOwner` differs, `lockedAt` is a date | a legacy TTL after `lockedAt`, and not before `expiresAt` |
//! | anything else | never: held until an operator removes it |
//!
//! The second kind is a runner of 1.x, perhaps after it took over one of our leases: it leaves our old,
//! past `expiresAt` in place and refreshes `lockedAt` only. To trust `expiresAt` alone would rob a live
//! runner.

use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, doc};

use super::lease::{Identity, OwnerToken};
use super::store::Attempt;
use super::timing::Timing;

/// The one lock of a database.
pub(super) const LOCK_ID: &str = "mmk_lock";

/// The version of the lock document that this file writes and the highest that it understands.
const LOCK_VERSION: i32 = 2;

/// The primary's clock, the only one that counts.
const NOW: &str = "$$NOW";

/// 9999-12-31: adding a TTL to a later date could overflow on the server and fail the command.
const LAST_DATE_MS: i64 = 253_402_214_400_000;

/// Takes the lock, in one command, if it is ours already, missing, or over.
///
/// The branches go in this order. *Ours* comes first because an acquire whose reply was lost is sent
/// again. *Missing* must stay unconditional: an upsert that fell through to the default would leave an
/// empty document behind, which runners of 1.x take for a lock held for ever.
pub(super) fn acquire(attempt: &Attempt) -> Vec<Document> {
    let Attempt { owner, identity, timing } = attempt;
    let id = doc! { "_id": "$_id" };
    let lease = lease(owner, identity, *timing);
    let previous = doc! { "prev": {
        "owner": "$owner", "runId": "$runId", "namespace": "$namespace", "host": "$host",
        "pid": "$pid", "executedBy": "$executedBy", "acquiredAt": "$acquiredAt",
        "lockedAt": "$lockedAt", "expiresAt": "$expiresAt", "appName": "$appName",
    } };
    vec![doc! { "$replaceWith": { "$switch": {
        "branches": [
            { "case": { "$eq": ["$owner", literal(owner.as_str())] },
              "then": { "$mergeObjects": ["$$ROOT", prolonged(owner, *timing)] } },
            { "case": is_missing(), "then": { "$mergeObjects": [&id, &lease] } },
            { "case": is_over(timing.legacy_ttl()),
              "then": { "$mergeObjects": [&id, &lease, previous] } },
        ],
        "default": "$$ROOT",
    } } }]
}

/// Prolongs the lease. The filter has made sure that it is the owner's.
pub(super) fn renew(owner: &OwnerToken, timing: Timing) -> Vec<Document> {
    vec![doc! { "$set": prolonged(owner, timing) }]
}

/// What a reader sees of a lock document: the stored fields, and what the server makes of them.
pub(super) fn view(legacy_ttl: Duration) -> Document {
    doc! {
        "_id": 0, "owner": 1, "runId": 1, "namespace": 1, "host": 1, "pid": 1, "executedBy": 1,
        "operation": 1, "acquiredAt": 1, "lockedAt": 1, "ttlMs": 1, "beats": 1, "prev": 1,
        "endsAt": ends_at(legacy_ttl),
        "free": { "$or": [is_missing(), is_over(legacy_ttl)] },
        "now": NOW,
    }
}

/// A user's text as itself: `$$ROOT` is a fine name for a host.
fn literal(value: impl Into<Bson>) -> Document {
    doc! { "$literal": value.into() }
}

fn lease(owner: &OwnerToken, identity: &Identity, timing: Timing) -> Document {
    let mut lease = doc! {
        "v": literal(LOCK_VERSION),
        "changelog": literal(&identity.changelog),
        "owner": literal(owner.as_str()),
        "leaseOwner": literal(owner.as_str()),
        "runId": literal(identity.run_id.as_str()),
        "host": literal(&identity.host),
        "pid": literal(i64::from(identity.pid)),
        "executedBy": literal(&identity.user),
        "operation": literal(&identity.operation),
        "acquiredAt": NOW,
        "lockedAt": NOW,
        "expiresAt": { "$add": [NOW, ms(timing.ttl())] },
        "ttlMs": literal(ms(timing.ttl())),
        "beats": literal(0),
        "appName": literal(identity.run_id.app_name()),
    };
    if let Some(namespace) = identity.namespace.name() {
        lease.insert("namespace", literal(namespace));
    }
    lease
}

/// `$max` keeps every promise that was made: a primary whose clock is behind its predecessor's must
/// not shorten a lease.
fn prolonged(owner: &OwnerToken, timing: Timing) -> Document {
    doc! {
        "leaseOwner": literal(owner.as_str()),
        "lockedAt": NOW,
        "expiresAt": { "$max": ["$expiresAt", { "$add": [NOW, ms(timing.ttl())] }] },
        "beats": { "$add": ["$beats", 1] },
    }
}

/// Exactly what an upsert starts from; a document with any other field was written by somebody.
fn is_missing() -> Document {
    doc! { "$eq": ["$$ROOT", literal(doc! { "_id": LOCK_ID })] }
}

fn is_over(legacy_ttl: Duration) -> Document {
    // Null, for "never", sorts below every date: the type must be asked for.
    doc! { "$let": {
        "vars": { "end": ends_at(legacy_ttl) },
        "in": { "$and": [is("$$end", "date"), { "$lte": ["$$end", NOW] }] },
    } }
}

/// When the lease in the document ends; null for never. See the table above.
fn ends_at(legacy_ttl: Duration) -> Document {
    let known = doc! { "$and": [
        { "$in": [{ "$type": "$v" }, ["missing", "int", "long", "double", "decimal"]] },
        // A missing `v` sorts below every number.
        { "$lte": ["$v", LOCK_VERSION] },
    ] };
    let text = is("$owner", "string");
    let ours = doc! { "$eq": ["$leaseOwner", "$owner"] };
    let legacy_readable = doc! { "$and": [
        is("$lockedAt", "date"),
        { "$lt": ["$lockedAt", literal(DateTime::from_millis(LAST_DATE_MS))] },
        { "$in": [{ "$type": "$expiresAt" }, ["missing", "date"]] },
    ] };
    let legacy_end = doc! { "$max": ["$expiresAt", { "$add": ["$lockedAt", ms(legacy_ttl)] }] };
    // Branches are tried in order, so the addition only ever meets a date.
    doc! { "$switch": {
        "branches": [
            { "case": { "$not": [{ "$and": [known, text] }] }, "then": Bson::Null },
            { "case": { "$and": [&ours, is("$expiresAt", "date")] }, "then": "$expiresAt" },
            { "case": ours, "then": Bson::Null },
            { "case": legacy_readable, "then": legacy_end },
        ],
        "default": Bson::Null,
    } }
}

fn is(field: &str, bson_type: &str) -> Document {
    doc! { "$eq": [{ "$type": field }, bson_type] }
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
