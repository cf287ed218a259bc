//! The lock document of the memory store, field by field as the server writes it: JSON, with dates as
//! `{"$date": ms}` and elections as `{"$oid": hex}`. Pure values.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::lease::{Holder, OwnerToken};
use super::rules::{Judgement, Kind, Sight, judge};
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

/// The document after an acquire, whoever has the lock then.
pub(super) fn judged(found: Option<Document>, attempt: &Attempt, moment: Moment) -> Document {
    let Some(mut found) = found else { return lease(attempt, moment) };
    if found.is_empty() {
        return lease(attempt, moment);
    }
    match judge(sight(&found, attempt.timing, moment), &attempt.owner, attempt.unmoved.as_ref()) {
        Judgement::Ours => {
            prolong(&mut found, &attempt.owner, attempt.timing, moment.now);
            found
        }
        Judgement::Held => found,
        Judgement::Over => {
            let mut taken = lease(attempt, moment);
            taken.insert("prev".to_owned(), Value::Object(found));
            taken
        }
    }
}

/// What the asker is told; `after` is the election once the command has been carried out.
pub(super) fn reply_to(
    document: &Document,
    attempt: &Attempt,
    moment: Moment,
    after: u64,
) -> AcquireReply {
    let legacy_ttl = attempt.timing.legacy_ttl();
    if !owns(document, &attempt.owner) {
        return AcquireReply::Held(holder(document, legacy_ttl, moment.now));
    }
    let took_over_from = document.get("prev").and_then(Value::as_object).map(|previous| Holder {
        expires_at: instant(previous, "expiresAt"),
        expired: true,
        beats: None,
        ttl_ms: None,
        ..holder(previous, legacy_ttl, moment.now)
    });
    let election_moved =
        took_over_from.is_some() && document.get("electionId") != Some(&election_id(after));
    AcquireReply::Acquired { took_over_from, election_moved }
}

fn sight(document: &Document, timing: Timing, moment: Moment) -> Sight<'_> {
    Sight {
        owner: document.get("owner").and_then(Value::as_str),
        kind: kind(document),
        beats: integer(document, "beats"),
        over: is_over(document, timing.legacy_ttl(), moment.now),
        same_election: document.get("electionId") == Some(&election_id(moment.election)),
    }
}

fn lease(attempt: &Attempt, moment: Moment) -> Document {
    let Attempt { owner, identity, timing, .. } = attempt;
    let now = moment.now;
    let mut lease = Map::new();
    let mut put = |field: &str, value: Value| lease.insert(field.to_owned(), value);
    put("v", json!(2));
    put("changelog", json!(identity.changelog));
    put("owner", json!(owner));
    put("leaseOwner", json!(owner));
    put("runId", json!(identity.run_id));
    put("host", json!(identity.host));
    put("pid", json!(identity.pid));
    put("executedBy", json!(identity.user));
    put("operation", json!(identity.operation));
    put("acquiredAt", date(now));
    put("lockedAt", date(now));
    put("expiresAt", date(now + ms(timing.ttl())));
    put("ttlMs", json!(ms(timing.ttl())));
    put("beats", json!(0));
    put("appName", json!(identity.run_id.app_name()));
    put("electionId", election_id(moment.election));
    if let Some(namespace) = identity.namespace.name() {
        put("namespace", json!(namespace));
    }
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

fn is_over(document: &Document, legacy_ttl: Duration, now: i64) -> bool {
    document.is_empty() || ends_at(document, legacy_ttl).is_some_and(|end| end <= now)
}

/// When the lease in the document ends; `None` for never. The table is in `mongo_pipeline`.
fn ends_at(document: &Document, legacy_ttl: Duration) -> Option<i64> {
    if !is_readable(document) {
        return None;
    }
    if kind(document) == Kind::Own {
        return instant(document, "expiresAt");
    }
    let legacy_end = instant(document, "lockedAt")?.checked_add(ms(legacy_ttl))?;
    match document.get("expiresAt") {
        None => Some(legacy_end),
        Some(_) => instant(document, "expiresAt").map(|end| end.max(legacy_end)),
    }
}

fn is_readable(document: &Document) -> bool {
    document.get("v").is_none_or(|v| v.as_f64().is_some_and(|v| v <= 2.0))
        && document.get("owner").is_some_and(Value::is_string)
}

fn kind(document: &Document) -> Kind {
    let own = is_readable(document) && document.get("leaseOwner") == document.get("owner");
    if own { Kind::Own } else { Kind::Foreign }
}

pub(super) fn holder(lock: &Document, legacy_ttl: Duration, now: i64) -> Holder {
    Holder {
        owner: text(lock, "owner"),
        run_id: text(lock, "runId"),
        namespace: text(lock, "namespace"),
        host: text(lock, "host"),
        pid: integer(lock, "pid"),
        user: text(lock, "executedBy"),
        operation: text(lock, "operation"),
        running: None,
        acquired_at: instant(lock, "acquiredAt"),
        locked_at: instant(lock, "lockedAt"),
        expires_at: ends_at(lock, legacy_ttl),
        now,
        ttl_ms: integer(lock, "ttlMs"),
        beats: integer(lock, "beats").filter(|_| kind(lock) == Kind::Own),
        expired: is_over(lock, legacy_ttl, now),
    }
}

pub(super) fn owns(document: &Document, owner: &OwnerToken) -> bool {
    document.get("owner").and_then(Value::as_str) == Some(owner.as_str())
}

fn election_id(election: u64) -> Value {
    json!({ "$oid": format!("{election:024x}") })
}

fn date(ms: i64) -> Value {
    json!({ "$date": ms })
}

fn instant(document: &Document, field: &str) -> Option<i64> {
    document.get(field)?.get("$date")?.as_i64()
}

pub(super) fn integer(document: &Document, field: &str) -> Option<i64> {
    document.get(field)?.as_i64()
}

fn text(document: &Document, field: &str) -> Option<String> {
    document.get(field)?.as_str().map(str::to_owned)
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
