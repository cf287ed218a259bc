//! Keeps a lease: carries out what the protocol decides, on a task of its own.
//!
//! The task lives on the runtime's threads, so a migration that blocks the JavaScript event loop for
//! hours does not touch it. It runs from the first acquire to the end of the release, whoever drops
//! what: a [`Lease`] that is dropped is released, an acquire nobody waits for any more too.
//!
//! # Promises
//! - [`LeaseGuard::proof`] answers from the last acknowledged renewal and the local clock alone: it
//!   says no as soon as the trust window has closed, however busy or cut off everything else is.
//!
//! # What it does not promise
//! That the body stops when the lease is lost: [`LeaseGuard::lost`] tells the runner, who does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::lease::Holder;
use super::proof::StillHeld;
use super::protocol::{self, Effect, Ending, Input, LossCause, Notice, State};
use super::store::{Attempt, LockStore};
use super::timing::Mono;
use crate::clock::Clock;
use crate::fault::StoreFault;

/// Where notices go.
pub type NoticeSink = Arc<dyn Fn(Notice) + Send + Sync>;

/// Why there is no lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAcquired {
    /// Somebody else holds the lock.
    Held(Holder),
    /// The server refuses, or could not be asked.
    Failed(StoreFault),
}

/// How a lease ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseEnd {
    /// Given back.
    Released,
    /// Lost before it could be given back.
    Lost(LossCause),
    /// The release found no document of ours: lost, unnoticed until then.
    AlreadyGone,
    /// Nobody knows whether the release arrived; the lock frees itself when the lease expires.
    Unknown(StoreFault),
}

/// What the keeper's task lets others know.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trust {
    /// The acquire is not answered yet.
    Pending,
    Until(Mono),
    Lost(LossCause),
    Over(Ending),
}

impl Trust {
    fn of(state: &State) -> Self {
        match state {
            State::Acquiring(_) => Self::Pending,
            State::Holding(holding) => Self::Until(holding.trusted_until),
            State::Releasing => Self::Over(Ending::Released),
            State::Lost(cause) => Self::Lost(*cause),
            State::Ended(ending) => Self::Over(ending.clone()),
        }
    }
}

/// A lease that is being kept. Dropping it releases it in the background.
#[derive(Debug)]
pub struct Lease {
    guard: LeaseGuard,
    stop: oneshot::Sender<()>,
    task: JoinHandle<State>,
}

/// A view of a lease for those who must not act without it.
#[derive(Clone)]
pub struct LeaseGuard(Guarding);

#[derive(Clone)]
enum Guarding {
    Leased {
        trust: watch::Receiver<Trust>,
        now: Arc<dyn Fn() -> Mono + Send + Sync>,
    },
    /// The user asked for no lock (`noLock`); the entries' preconditions are all there is.
    Unlocked,
}

impl std::fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseGuard").finish_non_exhaustive()
    }
}

impl Lease {
    /// Asks for the lock once and keeps it when it was given.
    ///
    /// # Errors
    /// [`NotAcquired`]: held by somebody else, or no answer within the protocol's patience.
    ///
    /// # Cancellation
    /// Dropping the future gives the lock back if it was taken.
    pub async fn acquire<S: LockStore, C: Clock>(
        store: Arc<S>,
        clock: C,
        attempt: Attempt,
        notices: NoticeSink,
    ) -> Result<Self, NotAcquired> {
        let (trust_in, mut trust) = watch::channel(Trust::Pending);
        let (stop, stopped) = oneshot::channel();
        let now = {
            let clock = clock.clone();
            Arc::new(move || clock.now())
        };
        let wire = Wire { store, clock, attempt, notices, replies: FuturesUnordered::new() };
        let task = tokio::spawn(drive(wire, trust_in, stopped));
        let answer = trust.wait_for(|trust| *trust != Trust::Pending).await;
        let answer = answer.map_or_else(|_| Trust::Over(task_gone()), |answer| answer.clone());
        match answer {
            Trust::Until(_) | Trust::Lost(_) | Trust::Pending => {
                let guard = LeaseGuard(Guarding::Leased { trust, now });
                Ok(Self { guard, stop, task })
            }
            Trust::Over(Ending::Held(holder)) => Err(NotAcquired::Held(holder)),
            Trust::Over(Ending::Failed(fault) | Ending::ReleaseUnknown(fault)) => {
                Err(NotAcquired::Failed(fault))
            }
            Trust::Over(Ending::Released | Ending::AlreadyGone) => {
                Err(NotAcquired::Failed(StoreFault::new(
                    crate::fault::FaultKind::Rejected,
                    "the lock was given back before it was used",
                )))
            }
        }
    }

    /// The view of this lease to hand around.
    pub fn guard(&self) -> &LeaseGuard {
        &self.guard
    }

    /// Gives the lock back and tells how the lease ended.
    ///
    /// # Cancellation
    /// The release goes on in the background.
    pub async fn release(self) -> LeaseEnd {
        // The task may have ended by itself (lost); then nobody listens.
        let _ = self.stop.send(());
        match self.task.await {
            Ok(State::Lost(cause)) => LeaseEnd::Lost(cause),
            Ok(State::Ended(Ending::Released)) => LeaseEnd::Released,
            Ok(State::Ended(Ending::AlreadyGone)) => LeaseEnd::AlreadyGone,
            Ok(State::Ended(Ending::ReleaseUnknown(fault) | Ending::Failed(fault))) => {
                LeaseEnd::Unknown(fault)
            }
            Ok(
                State::Ended(Ending::Held(_))
                | State::Acquiring(_)
                | State::Holding(_)
                | State::Releasing,
            )
            | Err(_) => LeaseEnd::Unknown(task_fault()),
        }
    }
}

impl LeaseGuard {
    /// The guard of a run that takes no lock at the user's own request.
    pub fn unlocked() -> Self {
        Self(Guarding::Unlocked)
    }

    /// Proof that we may act now, or `None` from the moment the lease can't be trusted any more.
    pub fn proof(&self) -> Option<StillHeld<'_>> {
        let held = match &self.0 {
            Guarding::Leased { trust, now } => match *trust.borrow() {
                Trust::Until(until) => now() < until,
                Trust::Pending | Trust::Lost(_) | Trust::Over(_) => false,
            },
            Guarding::Unlocked => true,
        };
        held.then(StillHeld::vouched)
    }

    /// Returns when the lease is lost; never returns otherwise.
    pub async fn lost(&self) -> LossCause {
        if let Guarding::Leased { trust, .. } = &self.0 {
            let mut trust = trust.clone();
            if let Ok(lost) = trust.wait_for(|trust| matches!(trust, Trust::Lost(_))).await
                && let Trust::Lost(cause) = *lost
            {
                return cause;
            }
        }
        std::future::pending().await
    }

    /// Why the lease can't be trusted, once [`LeaseGuard::proof`] has said no.
    pub fn loss(&self) -> LossCause {
        match &self.0 {
            Guarding::Leased { trust, .. } => match *trust.borrow() {
                Trust::Lost(cause) => cause,
                Trust::Pending | Trust::Until(_) | Trust::Over(_) => LossCause::Deadline,
            },
            Guarding::Unlocked => LossCause::Deadline,
        }
    }
}

type Reply = Pin<Box<dyn Future<Output = Input> + Send>>;

/// The protocol's hands: sends what it wants sent and collects the answers.
struct Wire<S, C> {
    store: Arc<S>,
    clock: C,
    attempt: Attempt,
    notices: NoticeSink,
    replies: FuturesUnordered<Reply>,
}

async fn drive<S: LockStore, C: Clock>(
    mut wire: Wire<S, C>,
    trust: watch::Sender<Trust>,
    mut stopped: oneshot::Receiver<()>,
) -> State {
    let (mut state, mut effects) = protocol::start(wire.clock.now());
    let clock = wire.clock.clone();
    let mut stopping = false;
    loop {
        // Trust first: whoever hears of a notice must already find the guard in agreement with it.
        trust.send_replace(Trust::of(&state));
        wire.carry_out(effects);
        let finished = match state {
            State::Lost(_) => true,
            State::Ended(_) => wire.replies.is_empty(),
            State::Acquiring(_) | State::Holding(_) | State::Releasing => false,
        };
        if finished {
            return state;
        }
        let input = tokio::select! {
            input = wire.reply() => input,
            () = tick(&clock, &state) => Input::Tick,
            _ = &mut stopped, if !stopping => { stopping = true; Input::Release }
        };
        (state, effects) = protocol::step(state, input, wire.clock.now(), wire.attempt.timing);
    }
}

impl<S: LockStore, C: Clock> Wire<S, C> {
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::SendAcquire => self.send(|store, attempt| {
                    Box::pin(async move { Input::Acquire(store.acquire(&attempt).await) })
                }),
                Effect::SendRenew => self.send(|store, attempt| {
                    Box::pin(async move { Input::Renew(store.renew(&attempt.owner).await) })
                }),
                Effect::SendRelease => self.send(|store, attempt| {
                    Box::pin(
                        async move { Input::ReleaseAnswered(store.release(&attempt.owner).await) },
                    )
                }),
                Effect::Announce(notice) => (self.notices)(notice),
            }
        }
    }

    fn send(&mut self, call: impl FnOnce(Arc<S>, Attempt) -> Reply) {
        self.replies.push(call(Arc::clone(&self.store), self.attempt.clone()));
    }

    async fn reply(&mut self) -> Input {
        match self.replies.next().await {
            Some(input) => input,
            None => std::future::pending().await,
        }
    }
}

async fn tick(clock: &impl Clock, state: &State) {
    match protocol::wake_at(state) {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn task_gone() -> Ending {
    Ending::Failed(task_fault())
}

fn task_fault() -> StoreFault {
    StoreFault::new(crate::fault::FaultKind::Rejected, "the heartbeat's task ended unexpectedly")
}
