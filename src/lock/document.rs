//! The lock document: what a lease says of itself, and how any document in the lock's place is read.
//!
//! Documents are BSON on a server and JSON in memory. Both are written from [`lease`] and read through
//! [`Fields`], so there is one judgement wherever no server judges. What it comes to is the table in
//! `mongo_pipeline`, where it is put to servers that judge by themselves; one conformance suite holds
//! both to the same answers.

use std::time::Duration;

use super::lease::Holder;
use super::rules::{Judgement, Kind, Sight, judge};
use super::store::Attempt;

/// One field of a document, as far as a lock is judged by it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field<'document> {
    Missing,
    Text(&'document str),
    Whole(i64),
    Fraction(f64),
    /// Milliseconds since 1970.
    Instant(i64),
    /// Null, a list, or whatever else nobody of ours writes.
    Other,
}

/// A document that is read.
pub(super) trait Fields {
    fn field(&self, name: &str) -> Field<'_>;

    /// Is there nothing in it but its `_id`?
    fn is_bare(&self) -> bool;
}

/// What a lease says in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    Text(String),
    Int(i32),
    Long(i64),
    /// When the lease is written.
    Now,
    /// When it ends.
    End,
}

/// Everything that a new lease says, but for the election under which it is written.
pub(super) fn lease(attempt: &Attempt) -> Vec<(&'static str, Fact)> {
    let Attempt { owner, identity, timing, .. } = attempt;
    let text = |text: &str| Fact::Text(text.to_owned());
    let mut lease = vec![
        ("v", Fact::Int(LOCK_VERSION)),
        ("changelog", text(&identity.changelog)),
        ("owner", text(owner.as_str())),
        ("leaseOwner", text(owner.as_str())),
        ("runId", text(identity.run_id.as_str())),
        ("host", text(&identity.host)),
        ("pid", Fact::Long(i64::from(identity.pid))),
        ("executedBy", text(&identity.user)),
        ("operation", text(&identity.operation)),
        ("acquiredAt", Fact::Now),
        ("lockedAt", Fact::Now),
        ("expiresAt", Fact::End),
        ("ttlMs", Fact::Long(ms(timing.ttl()))),
        ("beats", Fact::Int(0)),
        ("appName", text(&identity.run_id.app_name())),
    ];
    if let Some(namespace) = identity.namespace.name() {
        lease.push(("namespace", text(namespace)));
    }
    lease
}

/// Whose the lock is, by a clock that shows `now`, under the election of the document or another.
pub(super) fn judged(
    document: &dyn Fields,
    attempt: &Attempt,
    now: i64,
    same_election: bool,
) -> Judgement {
    let sight = Sight {
        owner: text(document, "owner"),
        kind: kind(document),
        beats: integer(document, "beats"),
        over: is_over(document, attempt.timing.legacy_ttl(), now),
        same_election,
    };
    judge(sight, &attempt.owner, attempt.unmoved.as_ref())
}

/// What anybody is shown of a lock, by a clock that shows `now`.
pub(super) fn holder(lock: &dyn Fields, legacy_ttl: Duration, now: i64) -> Holder {
    let stored = stored(lock);
    Holder {
        expires_at: ends_at(lock, legacy_ttl),
        now,
        // Only our own kind counts its renewals.
        beats: stored.beats.filter(|_| kind(lock) == Kind::Own),
        expired: is_over(lock, legacy_ttl, now),
        ..stored
    }
}

/// What is shown of a holder whose lease was taken over, from the field `prev`.
pub(super) fn previous(previous: &dyn Fields, now: i64) -> Holder {
    // It was over, whatever else it says.
    let expires_at = instant(previous, "expiresAt");
    Holder { expires_at, now, expired: true, ..stored(previous) }
}

/// What a document says by itself, whoever judges the rest.
pub(super) fn stored(lock: &dyn Fields) -> Holder {
    let owned = |field| text(lock, field).map(str::to_owned);
    Holder {
        owner: owned("owner"),
        run_id: owned("runId"),
        namespace: owned("namespace"),
        host: owned("host"),
        pid: integer(lock, "pid"),
        user: owned("executedBy"),
        operation: owned("operation"),
        acquired_at: instant(lock, "acquiredAt"),
        locked_at: instant(lock, "lockedAt"),
        ttl_ms: integer(lock, "ttlMs"),
        beats: integer(lock, "beats"),
        ..Holder::default()
    }
}

pub(super) fn text<'document>(
    document: &'document dyn Fields,
    name: &str,
) -> Option<&'document str> {
    match document.field(name) {
        Field::Text(text) => Some(text),
        _ => None,
    }
}

pub(super) fn instant(document: &dyn Fields, name: &str) -> Option<i64> {
    match document.field(name) {
        Field::Instant(ms) => Some(ms),
        _ => None,
    }
}

pub(super) fn integer(document: &dyn Fields, name: &str) -> Option<i64> {
    match document.field(name) {
        Field::Whole(number) => Some(number),
        // The conversion saturates, and numbers of this size are nobody's process id.
        Field::Fraction(number) if number.fract() == 0.0 => Some(number as i64),
        _ => None,
    }
}

pub(super) fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn is_over(document: &dyn Fields, legacy_ttl: Duration, now: i64) -> bool {
    document.is_bare() || ends_at(document, legacy_ttl).is_some_and(|end| end <= now)
}

/// When the lease in the document ends; `None` for never.
fn ends_at(document: &dyn Fields, legacy_ttl: Duration) -> Option<i64> {
    if !is_readable(document) {
        return None;
    }
    if kind(document) == Kind::Own {
        return instant(document, "expiresAt");
    }
    let locked_at = instant(document, "lockedAt").filter(|at| *at < LAST_DATE_MS)?;
    let legacy_end = locked_at.saturating_add(ms(legacy_ttl));
    match document.field("expiresAt") {
        Field::Missing => Some(legacy_end),
        Field::Instant(end) => Some(end.max(legacy_end)),
        _ => None,
    }
}

/// Was the lease written by our kind, and by nobody since?
fn kind(document: &dyn Fields) -> Kind {
    let own = is_readable(document) && document.field("leaseOwner") == document.field("owner");
    if own { Kind::Own } else { Kind::Foreign }
}

/// Does it say in a version that we know whose it is?
fn is_readable(document: &dyn Fields) -> bool {
    let known = match document.field("v") {
        Field::Missing => true,
        Field::Whole(version) => version <= i64::from(LOCK_VERSION),
        Field::Fraction(version) => version <= f64::from(LOCK_VERSION),
        Field::Text(_) | Field::Instant(_) | Field::Other => false,
    };
    known && text(document, "owner").is_some()
}

/// What a lease that takes over another keeps of it under `prev`.
pub(super) const REMEMBERED: [&str; 10] = [
    "owner",
    "runId",
    "namespace",
    "host",
    "pid",
    "executedBy",
    "acquiredAt",
    "lockedAt",
    "expiresAt",
    "appName",
];

/// The version of the lock document that is written and the highest that is understood.
pub(super) const LOCK_VERSION: i32 = 2;

/// 9999-12-31: adding a TTL to a later date could overflow on a server and fail the command.
pub(super) const LAST_DATE_MS: i64 = 253_402_214_400_000;
