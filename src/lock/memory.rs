//! The lock in memory, by the same rules and on a clock that tests set: for simulations, and as the
//! other half of the conformance suite that keeps both stores honest.
//!
//! Handles are cheap clones of one store. A [`Script`] decides the fate of the next commands: a
//! network that loses a request is not told apart from one that loses the reply, except by what the
//! store has done meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::lease::{Holder, OwnerToken};
use super::store::{AcquireReply, Attempt, LockStore, ReleaseReply, RenewReply};
use super::timing::Timing;
use crate::fault::{FaultKind, StoreFault};

/// A server's clock, in milliseconds since 1970, that stands still until it is moved.
#[derive(Debug, Clone, Default)]
pub struct ServerClock(Arc<AtomicI64>);

impl ServerClock {
    /// A clock that shows this instant.
    pub fn at(ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(ms)))
    }

    /// What it shows.
    pub fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves it; backwards too, as the clock of a new primary may.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

/// What happens to one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out and answered.
    Answered,
    /// It is carried out, and nobody hears of it.
    ReplyLost,
    /// It never arrives.
    RequestLost,
    /// It arrives, and the server says no.
    Refused,
}

/// The fates of the next commands, in order; what comes after the last one is answered.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<VecDeque<Fate>>>);

impl Script {
    /// Appends fates.
    pub fn then(&self, fates: impl IntoIterator<Item = Fate>) {
        locked(&self.0).extend(fates);
    }

    /// Forgets the fates that have not come yet.
    pub fn clear(&self) {
        locked(&self.0).clear();
    }

    pub(crate) fn next(&self) -> Fate {
        locked(&self.0).pop_front().unwrap_or(Fate::Answered)
    }
}

/// The migration lock of a database that is no database.
#[derive(Debug, Clone)]
pub struct MemoryLockStore {
    clock: ServerClock,
    document: Arc<Mutex<Option<Map<String, Value>>>>,
    script: Script,
    timing: Timing,
}

impl MemoryLockStore {
    /// A free lock whose leases have this timing.
    pub fn new(clock: ServerClock, timing: Timing) -> Self {
        Self { clock, document: Arc::default(), script: Script::default(), timing }
    }

    /// A handle on the same lock whose commands have fates of their own.
    pub fn handle(&self) -> Self {
        Self { script: Script::default(), ..self.clone() }
    }

    /// What decides the fate of this handle's commands.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Puts any document in the lock's place, whoever could have written it. Dates are
    /// `{"$date": ms}`; `_id` is left out.
    pub fn plant(&self, document: Option<Map<String, Value>>) {
        *locked(&self.document) = document;
    }

    /// The document as it is.
    pub fn document(&self) -> Option<Map<String, Value>> {
        locked(&self.document).clone()
    }

    fn command<T>(
        &self,
        run: impl FnOnce(&mut Option<Map<String, Value>>, i64) -> T,
    ) -> Result<T, Refusal> {
        let mut document = locked(&self.document);
        match self.script.next() {
            Fate::Answered => Ok(run(&mut document, self.clock.now())),
            Fate::ReplyLost => {
                run(&mut document, self.clock.now());
                Err(Refusal::Unknown(lost("the reply was lost")))
            }
            Fate::RequestLost => Err(Refusal::Unknown(lost("the request was lost"))),
            Fate::Refused => Err(Refusal::Refused(refused())),
        }
    }
}

impl LockStore for MemoryLockStore {
    async fn acquire(&self, attempt: &Attempt) -> AcquireReply {
        let reply = self.command(|slot, now| {
            let document = judged(slot.take(), attempt, now);
            let reply = reply_to(&document, attempt, now);
            *slot = Some(document);
            reply
        });
        match reply {
            Ok(reply) => reply,
            Err(Refusal::Unknown(fault)) => AcquireReply::Unknown(fault),
            Err(Refusal::Refused(fault)) => AcquireReply::Refused(fault),
        }
    }

    async fn renew(&self, owner: &OwnerToken) -> RenewReply {
        let reply = self.command(|slot, now| match slot {
            Some(document) if owns(document, owner) => {
                prolong(document, owner, self.timing, now);
                RenewReply::Renewed { beats: integer(document, "beats").unwrap_or_default() }
            }
            Some(_) | None => RenewReply::Gone,
        });
        reply.unwrap_or_else(|refusal| RenewReply::Unknown(refusal.into_fault()))
    }

    async fn release(&self, owner: &OwnerToken) -> ReleaseReply {
        let reply = self.command(|slot, _| match slot.take_if(|lock| owns(lock, owner)) {
            Some(_) => ReleaseReply::Released,
            None => ReleaseReply::NotOurs,
        });
        reply.unwrap_or_else(|refusal| ReleaseReply::Unknown(refusal.into_fault()))
    }

    async fn inspect(&self) -> Result<Option<Holder>, StoreFault> {
        let legacy_ttl = self.timing.legacy_ttl();
        let reply =
            self.command(|slot, now| slot.as_ref().map(|lock| holder(lock, legacy_ttl, now)));
        reply.map_err(Refusal::into_fault)
    }

    async fn force_release(
        &self,
        shown: Option<&OwnerToken>,
    ) -> Result<Option<Holder>, StoreFault> {
        let legacy_ttl = self.timing.legacy_ttl();
        let still_shown = |lock: &mut Map<String, Value>| {
            lock.get("owner").and_then(Value::as_str) == shown.map(OwnerToken::as_str)
        };
        let reply = self.command(|slot, now| {
            slot.take_if(still_shown).map(|lock| holder(&lock, legacy_ttl, now))
        });
        reply.map_err(Refusal::into_fault)
    }
}

enum Refusal {
    Unknown(StoreFault),
    Refused(StoreFault),
}

impl Refusal {
    fn into_fault(self) -> StoreFault {
        match self {
            Self::Unknown(fault) | Self::Refused(fault) => fault,
        }
    }
}

/// The document after an acquire, whoever has the lock then.
fn judged(found: Option<Map<String, Value>>, attempt: &Attempt, now: i64) -> Map<String, Value> {
    let Some(mut found) = found else { return lease(attempt, now) };
    if owns(&found, &attempt.owner) {
        prolong(&mut found, &attempt.owner, attempt.timing, now);
        return found;
    }
    if !is_free(&found, attempt.timing.legacy_ttl(), now) {
        return found;
    }
    let mut taken = lease(attempt, now);
    if !found.is_empty() {
        taken.insert("prev".to_owned(), Value::Object(found));
    }
    taken
}

fn reply_to(document: &Map<String, Value>, attempt: &Attempt, now: i64) -> AcquireReply {
    let legacy_ttl = attempt.timing.legacy_ttl();
    if !owns(document, &attempt.owner) {
        return AcquireReply::Held(holder(document, legacy_ttl, now));
    }
    let took_over_from = document.get("prev").and_then(Value::as_object).map(|previous| Holder {
        expires_at: instant(previous, "expiresAt"),
        expired: true,
        ..holder(previous, legacy_ttl, now)
    });
    AcquireReply::Acquired { took_over_from }
}

fn lease(attempt: &Attempt, now: i64) -> Map<String, Value> {
    let Attempt { owner, identity, timing } = attempt;
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
    if let Some(namespace) = identity.namespace.name() {
        put("namespace", json!(namespace));
    }
    lease
}

fn prolong(document: &mut Map<String, Value>, owner: &OwnerToken, timing: Timing, now: i64) {
    let promised = instant(document, "expiresAt").unwrap_or(i64::MIN);
    let beats = integer(document, "beats").unwrap_or_default() + 1;
    let mut put = |field: &str, value: Value| document.insert(field.to_owned(), value);
    put("leaseOwner", json!(owner));
    put("lockedAt", date(now));
    put("expiresAt", date(promised.max(now + ms(timing.ttl()))));
    put("beats", json!(beats));
}

fn is_free(document: &Map<String, Value>, legacy_ttl: Duration, now: i64) -> bool {
    document.is_empty() || ends_at(document, legacy_ttl).is_some_and(|end| end <= now)
}

/// When the lease in the document ends; `None` for never. The table is in `mongo_pipeline`.
fn ends_at(document: &Map<String, Value>, legacy_ttl: Duration) -> Option<i64> {
    let known = document.get("v").is_none_or(|v| v.as_f64().is_some_and(|v| v <= 2.0));
    let owner = document.get("owner").filter(|owner| owner.is_string() && known)?;
    if document.get("leaseOwner") == Some(owner) {
        return instant(document, "expiresAt");
    }
    let legacy_end = instant(document, "lockedAt")?.checked_add(ms(legacy_ttl))?;
    match document.get("expiresAt") {
        None => Some(legacy_end),
        Some(_) => instant(document, "expiresAt").map(|end| end.max(legacy_end)),
    }
}

fn holder(lock: &Map<String, Value>, legacy_ttl: Duration, now: i64) -> Holder {
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
        beats: integer(lock, "beats"),
        expired: is_free(lock, legacy_ttl, now),
    }
}

fn owns(document: &Map<String, Value>, owner: &OwnerToken) -> bool {
    document.get("owner").and_then(Value::as_str) == Some(owner.as_str())
}

fn date(ms: i64) -> Value {
    json!({ "$date": ms })
}

fn instant(document: &Map<String, Value>, field: &str) -> Option<i64> {
    document.get(field)?.get("$date")?.as_i64()
}

fn integer(document: &Map<String, Value>, field: &str) -> Option<i64> {
    document.get(field)?.as_i64()
}

fn text(document: &Map<String, Value>, field: &str) -> Option<String> {
    document.get(field)?.as_str().map(str::to_owned)
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// What a lost message looks like from here.
pub(crate) fn lost(message: &str) -> StoreFault {
    StoreFault::new(FaultKind::Unreachable, message)
}

/// What a server's no looks like.
pub(crate) fn refused() -> StoreFault {
    StoreFault::new(FaultKind::Unauthorized, "not authorized")
}

/// No code of ours panics while it holds one of these locks, so a poisoned one is still sound.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
