//! The documents that make a MongoDB server judge and write the lock: pure values, no I/O. For servers
//! that take no pipelines there is `mongo_operators`.
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
//!
//! Being over is not enough for a lease of our own kind: see [`may_be_taken`].

use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, doc, oid::ObjectId};

use super::document::{self, Fact, LAST_DATE_MS, LOCK_VERSION, REMEMBERED, ms};
use super::lease::OwnerToken;
use super::store::{Attempt, Unmoved, Watched};
use super::timing::Timing;
use crate::mutant::Mutant;

/// The one lock of a database.
pub(super) const LOCK_ID: &str = "mmk_lock";

/// The primary's clock, the only one that counts.
pub(super) const NOW: &str = "$$NOW";

/// Takes the lock, in one command, if it is ours already, missing, or over.
///
/// The branches go in this order. *Ours* comes first because an acquire whose reply was lost is sent
/// again. *Missing* must stay unconditional: an upsert that fell through to the default would leave an
/// empty document behind, which runners of 1.x take for a lock held for ever.
///
/// An acquire that finds its own lease leaves the election as it is: it tells under which primary the
/// lease was won.
pub(super) fn acquire(attempt: &Attempt, election: Option<ObjectId>) -> Vec<Document> {
    let Attempt { owner, timing, unmoved, .. } = attempt;
    let id = doc! { "_id": "$_id" };
    let lease = lease(attempt, election);
    let mut missing = is_missing();
    if Mutant::GuardedInsert.is_planted() {
        missing = doc! { "$and": [missing, is("$lockedAt", "date")] };
    }
    let may_be_taken = may_be_taken(timing.legacy_ttl(), election, unmoved.as_ref());
    let remembered = REMEMBERED.map(|field| (field.to_owned(), Bson::from(format!("${field}"))));
    let previous = doc! { "prev": Document::from_iter(remembered) };
    vec![doc! { "$replaceWith": { "$switch": {
        "branches": [
            { "case": { "$eq": ["$owner", literal(owner.as_str())] },
              "then": { "$mergeObjects": ["$$ROOT", prolonged(owner, *timing)] } },
            { "case": missing, "then": { "$mergeObjects": [&id, &lease] } },
            { "case": may_be_taken, "then": { "$mergeObjects": [&id, &lease, previous] } },
        ],
        "default": "$$ROOT",
    } } }]
}

/// Prolongs the lease, and notes the fencing token for those who look, if there is a new one. The
/// filter has made sure that the lease is the owner's.
pub(super) fn renew(
    owner: &OwnerToken,
    timing: Timing,
    election: Option<ObjectId>,
    fence: Option<i64>,
) -> Vec<Document> {
    let mut lease = prolonged(owner, timing);
    if let Some(election) = election {
        lease.insert("electionId", election);
    }
    let noting = fence.map(|token| doc! { "$set": { "fence": literal(token) } });
    std::iter::once(doc! { "$set": lease }).chain(noting).collect()
}

/// What a reader sees of a lock document: the stored fields, and what the server makes of them.
pub(super) fn view(legacy_ttl: Duration) -> Document {
    doc! {
        "_id": 0, "owner": 1, "runId": 1, "namespace": 1, "host": 1, "pid": 1, "executedBy": 1,
        "operation": 1, "acquiredAt": 1, "lockedAt": 1, "ttlMs": 1, "electionId": 1, "prev": 1,
        // Only our own kind counts its renewals.
        "beats": { "$cond": [is_own(), "$beats", Bson::Null] },
        "endsAt": ends_at(legacy_ttl),
        "over": { "$or": [is_missing(), is_over(legacy_ttl)] },
        "now": NOW,
    }
}

/// A user's text as itself: `$$ROOT` is a fine name for a host.
pub(super) fn literal(value: impl Into<Bson>) -> Document {
    doc! { "$literal": value.into() }
}

fn lease(attempt: &Attempt, election: Option<ObjectId>) -> Document {
    let value = |fact| match fact {
        Fact::Text(text) => literal(text).into(),
        Fact::Int(number) => literal(number).into(),
        Fact::Long(number) => literal(number).into(),
        Fact::Now => Bson::from(NOW),
        Fact::End => end(attempt.timing).into(),
    };
    let facts = document::lease(attempt).into_iter();
    let mut lease: Document = facts.map(|(field, fact)| (field.to_owned(), value(fact))).collect();
    if let Some(election) = election {
        lease.insert("electionId", election);
    }
    lease
}

/// When a lease ends that is written now.
fn end(timing: Timing) -> Document {
    doc! { "$add": [NOW, ms(timing.ttl())] }
}

/// `$max` keeps every promise that was made: a primary whose clock is behind its predecessor's must
/// not shorten a lease.
fn prolonged(owner: &OwnerToken, timing: Timing) -> Document {
    doc! {
        "leaseOwner": literal(owner.as_str()),
        "lockedAt": NOW,
        "expiresAt": { "$max": ["$expiresAt", end(timing)] },
        "beats": { "$add": ["$beats", 1] },
    }
}

/// Exactly what an upsert starts from; a document with any other field was written by somebody.
fn is_missing() -> Document {
    doc! { "$eq": ["$$ROOT", literal(doc! { "_id": LOCK_ID })] }
}

/// May somebody else's lease be taken over? Over by the primary's clock, when that is a clock which
/// the holder has met; otherwise only when it has stood still under our eyes. Runners of 1.x write
/// neither elections nor beats, so there the clock has to do. `rules::judge` says the same.
fn may_be_taken(
    legacy_ttl: Duration,
    election: Option<ObjectId>,
    unmoved: Option<&Unmoved>,
) -> Document {
    let same_election = doc! { "$eq": [{ "$ifNull": ["$electionId", Bson::Null] }, election] };
    let known_clock = doc! { "$or": [{ "$not": [is_own()] }, same_election] };
    let by_the_clock = |believed: Document| doc! { "$and": [is_over(legacy_ttl), believed] };
    let Some(Unmoved { owner, beats, watched }) = unmoved else { return by_the_clock(known_clock) };
    let still = doc! { "$and": [
        is_own(),
        { "$eq": ["$owner", literal(owner)] },
        { "$eq": ["$beats", literal(*beats)] },
    ] };
    match watched {
        Watched::Grace => by_the_clock(doc! { "$or": [known_clock, still] }),
        Watched::Throughout => doc! { "$or": [by_the_clock(known_clock), still] },
    }
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
    let ours = doc! { "$eq": ["$leaseOwner", "$owner"] };
    let legacy_readable = doc! { "$and": [
        is("$lockedAt", "date"),
        { "$lt": ["$lockedAt", literal(DateTime::from_millis(LAST_DATE_MS))] },
        { "$in": [{ "$type": "$expiresAt" }, ["missing", "date"]] },
    ] };
    let mut legacy_end = doc! { "$max": ["$expiresAt", { "$add": ["$lockedAt", ms(legacy_ttl)] }] };
    if Mutant::ExpiresOnly.is_planted() {
        legacy_end = doc! { "$ifNull": ["$expiresAt", legacy_end] };
    }
    // Branches are tried in order, so the addition only ever meets a date.
    doc! { "$switch": {
        "branches": [
            { "case": { "$not": [is_readable()] }, "then": Bson::Null },
            { "case": { "$and": [&ours, is("$expiresAt", "date")] }, "then": "$expiresAt" },
            { "case": ours, "then": Bson::Null },
            { "case": legacy_readable, "then": legacy_end },
        ],
        "default": Bson::Null,
    } }
}

/// Was the lease written by our kind, and by nobody since?
fn is_own() -> Document {
    doc! { "$and": [is_readable(), { "$eq": ["$leaseOwner", "$owner"] }] }
}

/// Does it say in a version that we know whose it is?
fn is_readable() -> Document {
    doc! { "$and": [
        { "$in": [{ "$type": "$v" }, ["missing", "int", "long", "double", "decimal"]] },
        // A missing `v` sorts below every number.
        { "$lte": ["$v", LOCK_VERSION] },
        is("$owner", "string"),
    ] }
}

fn is(field: &str, bson_type: &str) -> Document {
    doc! { "$eq": [{ "$type": field }, bson_type] }
}
