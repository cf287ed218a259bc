//! Keeps a lease: carries out what the protocol decides, on a task of its own.
//!
//! The task lives on the runtime's threads, so a migration that blocks the JavaScript event loop for
//! hours does not touch it. It runs from the first acquire to the end of the release, whoever drops
//! what: a [`Lease`] that is dropped is released, an acquire nobody waits for any more too.
//!
//! What others may know of it, they ask its [`LeaseGuard`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::guard::{LeaseGuard, Trust};
use super::lease::{Holder, LossCause, RunId};
use super::protocol::{self, Effect, Ending, Fence, Input, Notice, State};
use super::store::{Arming, Attempt, Interest, LockStore, Wakes};
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

/// A lease that is being kept. Dropping it releases it in the background.
#[derive(Debug)]
pub struct Lease {
    guard: LeaseGuard,
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<State>,
}

/// What the owner of a lease wants of its task.
#[derive(Debug)]
enum Order {
    Arm(Arming),
    Release { settled: Option<RunId> },
}

/// Why the fence does not stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotArmed {
    /// The lease was lost first.
    Lost(LossCause),
    /// The server will not do it.
    Refused(StoreFault),
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
        let (orders, orders_in) = mpsc::unbounded_channel();
        let now = {
            let clock = clock.clone();
            Arc::new(move || clock.now())
        };
        let wire = Wire::new(store, clock, attempt, notices);
        let task = tokio::spawn(drive(wire, trust_in, orders_in));
        let answer = trust.wait_for(|trust| *trust != Trust::Pending).await;
        let answer = answer.map_or_else(|_| Trust::Over(task_gone()), |answer| answer.clone());
        match answer {
            Trust::Held { .. } | Trust::Lost(_) | Trust::Pending => {
                let guard = LeaseGuard::leased(trust, now);
                Ok(Self { guard, orders, task })
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

    /// Did the primary change while the lease was taken over?
    pub fn election_moved(&self) -> bool {
        let moved = |trust: &Trust| matches!(trust, Trust::Held { election_moved: true, .. });
        self.guard.trust().is_some_and(|trust| moved(&trust.borrow()))
    }

    /// Raises the fence, and returns our fencing token. Until then there is no [`LeaseGuard::proof`].
    ///
    /// # Errors
    /// [`NotArmed`].
    pub async fn arm(&self, arming: Arming) -> Result<i64, NotArmed> {
        let Some(trust) = self.guard.trust() else {
            return Err(NotArmed::Refused(task_fault()));
        };
        // The task may have ended by itself (lost); then nobody listens, and the trust says so.
        let _ = self.orders.send(Order::Arm(arming));
        let mut trust = trust.clone();
        let settled = |trust: &Trust| !matches!(trust, Trust::Held { fence: None, .. });
        match trust.wait_for(settled).await.as_deref() {
            Ok(Trust::Held { fence: Some(Fence::Up(token)), .. }) => Ok(*token),
            Ok(Trust::Held { fence: Some(Fence::Refused(fault)), .. }) => {
                Err(NotArmed::Refused(fault.clone()))
            }
            Ok(Trust::Lost(cause)) => Err(NotArmed::Lost(*cause)),
            Ok(Trust::Pending | Trust::Held { fence: None, .. } | Trust::Over(_)) | Err(_) => {
                Err(NotArmed::Refused(task_fault()))
            }
        }
    }

    /// Gives the lock back and tells how the lease ended. `settled` names the run to take off the
    /// register of unsettled runs: every body of it has ended.
    ///
    /// # Cancellation
    /// The release goes on in the background.
    pub async fn release(self, settled: Option<RunId>) -> LeaseEnd {
        // As above: a task that has ended by itself hears nothing more.
        let _ = self.orders.send(Order::Release { settled });
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

type Reply = Pin<Box<dyn Future<Output = Input> + Send>>;

/// The protocol's hands: sends what it wants sent and collects the answers.
struct Wire<S, C> {
    store: Arc<S>,
    clock: C,
    attempt: Attempt,
    notices: NoticeSink,
    replies: FuturesUnordered<Reply>,
    /// What the next arm shall register.
    arming: Option<Arming>,
    /// The run that the release shall take off the register.
    settled: Option<RunId>,
    watch: Watch,
}

/// Our eye on the lock document, beside the renewals.
enum Watch {
    /// Not opened yet, or closed by the server: worth a try.
    Closed,
    Opening(Pin<Box<dyn Future<Output = Result<Wakes, StoreFault>> + Send>>),
    Open(Wakes),
    /// This store can't tell.
    Blind,
}

async fn drive<S: LockStore, C: Clock>(
    mut wire: Wire<S, C>,
    trust: watch::Sender<Trust>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> State {
    let (mut state, mut effects) = protocol::start(wire.clock.now());
    let clock = wire.clock.clone();
    let mut listening = true;
    loop {
        // Trust first: whoever hears of a notice must already find the guard in agreement with it.
        trust.send_if_modified(|known| {
            let now = Trust::of(&state);
            let changed = *known != now;
            *known = now;
            changed
        });
        wire.carry_out(effects);
        let finished = match state {
            State::Lost(_) => true,
            State::Ended(_) => wire.replies.is_empty(),
            State::Acquiring(_) | State::Holding(_) | State::Releasing => false,
        };
        if finished {
            return state;
        }
        let holding = matches!(state, State::Holding(_));
        let input = tokio::select! {
            Some(input) = wire.replies.next() => input,
            () = tick(&clock, &state) => Input::Tick,
            () = wire.watch.event(), if holding => Input::Nudge,
            order = orders.recv(), if listening => match order {
                Some(Order::Arm(arming)) => { wire.arming = Some(arming); Input::Arm }
                Some(Order::Release { settled }) => {
                    listening = false;
                    wire.settled = settled;
                    Input::Release
                }
                // The lease was dropped. Nobody vouches for its bodies.
                None => { listening = false; Input::Release }
            },
        };
        (state, effects) = protocol::step(state, input, wire.clock.now(), wire.attempt.timing);
    }
}

impl<S: LockStore, C: Clock> Wire<S, C> {
    fn new(store: Arc<S>, clock: C, attempt: Attempt, notices: NoticeSink) -> Self {
        let replies = FuturesUnordered::new();
        let (arming, settled, watch) = (None, None, Watch::Closed);
        Self { store, clock, attempt, notices, replies, arming, settled, watch }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::SendAcquire => self.send(|store, attempt| {
                    Box::pin(async move { Input::Acquire(store.acquire(&attempt).await) })
                }),
                Effect::SendRenew => self.send(|store, attempt| {
                    Box::pin(async move { Input::Renew(store.renew(&attempt.owner).await) })
                }),
                Effect::SendArm => {
                    let Some(arming) = self.arming.clone() else { continue };
                    self.send(|store, attempt| {
                        Box::pin(async move {
                            Input::ArmAnswered(store.arm(&attempt.owner, &arming).await)
                        })
                    });
                }
                Effect::SendRelease => {
                    let settled = self.settled.clone();
                    self.send(|store, attempt| {
                        Box::pin(async move {
                            let reply = store.release(&attempt.owner, settled.as_ref()).await;
                            Input::ReleaseAnswered(reply)
                        })
                    });
                }
                Effect::Announce(notice) => {
                    if matches!(notice, Notice::Armed { .. } | Notice::Renewed { .. }) {
                        self.open_watch();
                    }
                    (self.notices)(notice);
                }
            }
        }
    }

    fn send(&mut self, call: impl FnOnce(Arc<S>, Attempt) -> Reply) {
        self.replies.push(call(Arc::clone(&self.store), self.attempt.clone()));
    }

    fn open_watch(&mut self) {
        if let Watch::Closed = self.watch {
            let store = Arc::clone(&self.store);
            let interest = Interest::TakenFrom(self.attempt.owner.clone());
            let (clock, opens_at) = (self.clock.clone(), self.clock.now() + UNWATCHED);
            self.watch = Watch::Opening(Box::pin(async move {
                clock.sleep_until(opens_at).await;
                store.watch(interest).await
            }));
        }
    }
}

impl Watch {
    /// Returns when something has happened to the lock document, or may have unseen.
    async fn event(&mut self) {
        loop {
            match self {
                Self::Closed | Self::Blind => std::future::pending().await,
                Self::Opening(opening) => match opening.await {
                    Ok(wakes) => {
                        *self = Self::Open(wakes);
                        // It may have happened before the watch stood.
                        return;
                    }
                    Err(_) => *self = Self::Blind,
                },
                Self::Open(wakes) => {
                    if wakes.recv().await.is_none() {
                        *self = Self::Closed;
                    }
                    return;
                }
            }
        }
    }
}

async fn tick(clock: &impl Clock, state: &State) {
    match protocol::wake_at(state) {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Most runs are over sooner than a watch pays: for this long, the renewals are all there is.
const UNWATCHED: Duration = Duration::from_millis(500);

fn task_gone() -> Ending {
    Ending::Failed(task_fault())
}

fn task_fault() -> StoreFault {
    StoreFault::new(crate::fault::FaultKind::Rejected, "the heartbeat's task ended unexpectedly")
}
