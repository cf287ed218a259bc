//! The lock in memory, by the same rules and on a clock that tests set: for simulations, and as the
//! other half of the conformance suite that keeps both stores honest.
//!
//! Handles are cheap clones of one store. A [`Script`] decides the fate of the next commands: a
//! network that loses a request is not told apart from one that loses the reply, except by what the
//! store has done meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::document::{holder, integer};
use super::lease::{Holder, OwnerToken, RunId};
use super::memory_document::{self as document, Document, Moment, owns};
use super::rules::Fence;
use super::store::{
    AcquireReply, ArmReply, Arming, Attempt, Interest, LockStore, ReleaseReply, RenewReply,
    UnsettledRun, Wakes,
};
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
    locks: Arc<Mutex<Locks>>,
    script: Script,
    timing: Timing,
    electing: Arc<AtomicBool>,
}

/// The collection of the lock.
#[derive(Debug, Default)]
struct Locks {
    lease: Option<Document>,
    fence: Fence,
    /// How many elections there have been.
    elections: u64,
    watchers: Vec<(Interest, mpsc::Sender<()>)>,
}

impl MemoryLockStore {
    /// A free lock whose leases have this timing.
    pub fn new(clock: ServerClock, timing: Timing) -> Self {
        let (locks, script, electing) = (Arc::default(), Script::default(), Arc::default());
        Self { clock, locks, script, timing, electing }
    }

    /// A handle on the same lock whose commands have fates of their own.
    pub fn handle(&self) -> Self {
        Self { script: Script::default(), electing: Arc::default(), ..self.clone() }
    }

    /// What decides the fate of this handle's commands.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// How many elections there have been.
    pub fn elections(&self) -> u64 {
        locked(&self.locks).elections
    }

    /// Elects another primary.
    pub fn elect(&self) {
        locked(&self.locks).elections += 1;
    }

    /// Elects another primary when this handle's next acquire is under way: after it has asked who
    /// the primary is, and before it is carried out.
    pub fn elect_during_acquire(&self) {
        self.electing.store(true, Ordering::SeqCst);
    }

    /// Puts any document in the lock's place, whoever could have written it. Dates are
    /// `{"$date": ms}`; `_id` is left out.
    pub fn plant(&self, document: Option<Document>) {
        locked(&self.locks).change(|locks| locks.lease = document);
    }

    /// The document as it is.
    pub fn document(&self) -> Option<Document> {
        locked(&self.locks).lease.clone()
    }

    /// The fence as it is.
    pub fn fence(&self) -> Fence {
        locked(&self.locks).fence.clone()
    }

    /// Runs what [`LockStore::fence_command`] returned, at the moment its transaction commits.
    /// Returns the command's `n`.
    pub fn apply_fence_command(&self, command: &[u8]) -> u64 {
        let token = command.try_into().map(i64::from_le_bytes);
        token.map_or(0, |token| locked(&self.locks).fence.touch(token))
    }

    fn command<T>(&self, run: impl FnOnce(&mut Locks, Moment) -> T) -> Result<T, Refusal> {
        let mut locks = locked(&self.locks);
        let moment = Moment { now: self.clock.now(), election: locks.elections };
        match self.script.next() {
            Fate::Answered => Ok(locks.change(|locks| run(locks, moment))),
            Fate::ReplyLost => {
                locks.change(|locks| run(locks, moment));
                Err(Refusal::Unknown(lost("the reply was lost")))
            }
            Fate::RequestLost => Err(Refusal::Unknown(lost("the request was lost"))),
            Fate::Refused => Err(Refusal::Refused(refused())),
        }
    }
}

impl Locks {
    /// Changes the collection and tells those who watch it.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.lease.as_ref().map(|lease| lease.get("owner").cloned());
        let outcome = change(self);
        let after = self.lease.as_ref().map(|lease| lease.get("owner").cloned());
        if before != after {
            let freed = after.is_none();
            self.watchers.retain(|(interest, wake)| {
                let woken = match interest {
                    Interest::Freed => freed,
                    Interest::TakenFrom(owner) => after != Some(Some(json!(owner))),
                };
                // A full channel is a wake that has not been heard yet.
                let told = if woken { wake.try_send(()) } else { Ok(()) };
                !matches!(told, Err(mpsc::error::TrySendError::Closed(())))
            });
        }
        outcome
    }

    /// The lease, if it is this owner's.
    fn owned(&mut self, owner: &OwnerToken) -> Option<&mut Document> {
        self.lease.as_mut().filter(|lease| owns(lease, owner))
    }
}

impl LockStore for MemoryLockStore {
    async fn acquire(&self, attempt: &Attempt) -> AcquireReply {
        let electing = self.electing.swap(false, Ordering::SeqCst);
        let reply = self.command(|locks, moment| {
            locks.elections += u64::from(electing);
            let document = document::judged(locks.lease.take(), attempt, moment);
            let reply = document::reply_to(&document, attempt, moment, locks.elections);
            locks.lease = Some(document);
            reply
        });
        match reply {
            Ok(reply) => reply,
            Err(Refusal::Unknown(fault)) => AcquireReply::Unknown(fault),
            Err(Refusal::Refused(fault)) => AcquireReply::Refused(fault),
        }
    }

    async fn renew(&self, owner: &OwnerToken) -> RenewReply {
        let reply = self.command(|locks, moment| match locks.owned(owner) {
            Some(lease) => {
                document::renew(lease, owner, self.timing, moment);
                RenewReply::Renewed { beats: integer(lease, "beats").unwrap_or_default() }
            }
            None => RenewReply::Gone,
        });
        reply.unwrap_or_else(|refusal| RenewReply::Unknown(refusal.into_fault()))
    }

    async fn arm(&self, owner: &OwnerToken, arming: &Arming) -> ArmReply {
        let reply = self.command(|locks, moment| {
            if locks.owned(owner).is_none() {
                return ArmReply::Gone;
            }
            let token = locks.fence.raise(owner, arming);
            if let Some(lease) = locks.owned(owner) {
                document::renew(lease, owner, self.timing, moment);
                lease.insert("fence".to_owned(), json!(token));
            }
            ArmReply::Armed { token }
        });
        match reply {
            Ok(reply) => reply,
            Err(Refusal::Unknown(fault)) => ArmReply::Unknown(fault),
            Err(Refusal::Refused(fault)) => ArmReply::Refused(fault),
        }
    }

    async fn release(&self, owner: &OwnerToken, settled: Option<&RunId>) -> ReleaseReply {
        let mut doubt = None;
        for _ in 0..RELEASE_TRIES {
            let reply = self.command(|locks, _| {
                if let Some(run) = settled {
                    locks.fence.settle(run);
                }
                locks.lease.take_if(|lease| owns(lease, owner)).is_some()
            });
            match reply {
                // What an earlier try deleted is not there any more.
                Ok(false) if doubt.is_none() => return ReleaseReply::NotOurs,
                Ok(_) => return ReleaseReply::Released,
                Err(Refusal::Unknown(fault)) => doubt = Some(fault),
                Err(Refusal::Refused(fault)) => return ReleaseReply::Unknown(fault),
            }
        }
        ReleaseReply::Unknown(doubt.unwrap_or_else(|| lost("the reply was lost")))
    }

    async fn unsettled(&self) -> Result<Vec<UnsettledRun>, StoreFault> {
        let reply = self.command(|locks, _| locks.fence.unsettled.clone());
        reply.map_err(Refusal::into_fault)
    }

    fn fence_command(&self, token: i64) -> Vec<u8> {
        token.to_le_bytes().to_vec()
    }

    async fn watch(&self, interest: Interest) -> Result<Wakes, StoreFault> {
        let reply = self.command(|locks, _| {
            let (wake, wakes) = mpsc::channel(1);
            locks.watchers.push((interest, wake));
            wakes
        });
        reply.map_err(Refusal::into_fault)
    }

    async fn inspect(&self) -> Result<Option<Holder>, StoreFault> {
        let legacy_ttl = self.timing.legacy_ttl();
        let reply = self.command(|locks, Moment { now, .. }| {
            locks.lease.as_ref().map(|lease| holder(lease, legacy_ttl, now))
        });
        reply.map_err(Refusal::into_fault)
    }

    async fn force_release(
        &self,
        shown: Option<&OwnerToken>,
    ) -> Result<Option<Holder>, StoreFault> {
        let legacy_ttl = self.timing.legacy_ttl();
        let still_shown = |lease: &mut Document| {
            lease.get("owner").and_then(Value::as_str) == shown.map(OwnerToken::as_str)
        };
        let reply = self.command(|locks, Moment { now, .. }| {
            locks.lease.take_if(still_shown).map(|lease| holder(&lease, legacy_ttl, now))
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

/// As often as its sibling.
const RELEASE_TRIES: u32 = 3;

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
