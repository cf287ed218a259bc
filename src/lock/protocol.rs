//! The lock protocol of one runner, as a pure state machine.
//!
//! [`step`] consumes a state and an input and returns the next state and what to do about it; it has
//! no clock, no I/O and no memory of its own. The keeper carries the effects out and feeds the
//! answers back. `docs/protocol.md` tells the same story in prose.
//!
//! ```text
//! Acquiring ──held/refused──▶ Ended
//!     │ acquired                 ▲
//!     ▼                          │ release answered
//!  Holding ──release asked──▶ Releasing
//!     │ renewal says gone, or trust ran out
//!     ▼
//!   Lost (for good)
//! ```
//!
//! # Promises
//! - *Holding* is believed at most one trust window past the moment the last acknowledged renewal was
//!   SENT: a reply that took long gives no extra time.
//! - A lost lease stays lost: no later reply revives it, and none of our writes touches the lock again.
//! - An unknown outcome never counts as a renewal, and never as a refusal.
//!
//! # What it does not promise
//! That no write of ours reaches the database after the lease is gone. Writes carry their own
//! preconditions for that.

pub use super::lease::LossCause;

use super::lease::Holder;
use super::store::{AcquireReply, ReleaseReply, RenewReply};
use super::timing::{Mono, Timing};
use crate::fault::StoreFault;

/// How often an acquire whose outcome is unknown is sent again while trust in it could still hold.
const ACQUIRE_ATTEMPTS: u32 = 20;

/// Where a runner stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// An acquire is under way, or is about to be sent again.
    Acquiring(Acquiring),
    /// The lease is ours and trusted.
    Holding(Holding),
    /// The release is under way.
    Releasing,
    /// The lease ended without our asking.
    Lost(LossCause),
    /// Nothing more will happen.
    Ended(Ending),
}

/// The facts of an acquisition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquiring {
    sent_at: Mono,
    attempts: u32,
    retry_at: Option<Mono>,
    /// The lease is not wanted any more, but the answer must be awaited: a release that overtook the
    /// acquire would leave the lock taken by nobody.
    abandoned: bool,
}

/// The facts of a lease that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Until when we may act.
    pub trusted_until: Mono,
    next_beat: Mono,
    in_flight: Option<Mono>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The lock was released.
    Released,
    /// The release found no document of ours: the lease had been lost unnoticed.
    AlreadyGone,
    /// Whether the release was carried out is unknown; the lock expires by itself.
    ReleaseUnknown(StoreFault),
    /// Somebody else holds the lock.
    Held(Holder),
    /// The server refuses, or could not be asked.
    Failed(StoreFault),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// The acquire was answered.
    Acquire(AcquireReply),
    /// The renewal was answered.
    Renew(RenewReply),
    /// The run is over: give the lock back.
    Release,
    /// The release was answered.
    ReleaseAnswered(ReleaseReply),
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send the acquire (again, under the same owner token).
    SendAcquire,
    /// Send a renewal.
    SendRenew,
    /// Send the release.
    SendRelease,
    /// Tell the world.
    Announce(Notice),
}

/// What is worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The lock is ours.
    Acquired {
        /// Whose expired lease was taken over.
        took_over_from: Option<Holder>,
    },
    /// The lease was prolonged.
    Renewed {
        /// How often so far.
        beats: i64,
    },
    /// A renewal brought no answer; another follows.
    RenewalFailed(StoreFault),
    /// The lease is lost.
    Lost(LossCause),
    /// The lock was given back.
    Released,
}

/// The first state, and the acquire to send.
pub fn start(now: Mono) -> (State, Vec<Effect>) {
    let first = Acquiring { sent_at: now, attempts: 1, retry_at: None, abandoned: false };
    (State::Acquiring(first), vec![Effect::SendAcquire])
}

/// When the next [`Input::Tick`] is due, if the state waits for time.
pub fn wake_at(state: &State) -> Option<Mono> {
    match state {
        State::Acquiring(acquiring) => acquiring.retry_at,
        State::Holding(Holding { trusted_until, next_beat, in_flight }) => match in_flight {
            Some(_) => Some(*trusted_until),
            None => Some((*next_beat).min(*trusted_until)),
        },
        State::Releasing | State::Lost(_) | State::Ended(_) => None,
    }
}

/// Advances the protocol by one input.
pub fn step(state: State, input: Input, now: Mono, timing: Timing) -> (State, Vec<Effect>) {
    match state {
        State::Acquiring(acquiring) => step_acquiring(acquiring, input, now, timing),
        State::Holding(holding) => step_holding(holding, input, now, timing),
        State::Releasing => step_releasing(input),
        State::Lost(_) | State::Ended(_) => (state, Vec::new()),
    }
}

fn step_acquiring(
    acquiring: Acquiring,
    input: Input,
    now: Mono,
    timing: Timing,
) -> (State, Vec<Effect>) {
    match input {
        Input::Acquire(AcquireReply::Acquired { .. }) if acquiring.abandoned => {
            (State::Releasing, vec![Effect::SendRelease])
        }
        Input::Acquire(AcquireReply::Acquired { took_over_from }) => {
            let holding = Holding::since(acquiring.sent_at, timing);
            let (state, mut effects) = step_holding(holding, Input::Tick, now, timing);
            effects.insert(0, Effect::Announce(Notice::Acquired { took_over_from }));
            (state, effects)
        }
        Input::Acquire(AcquireReply::Held(holder)) => (State::Ended(Ending::Held(holder)), vec![]),
        Input::Acquire(AcquireReply::Refused(fault)) => {
            (State::Ended(Ending::Failed(fault)), vec![])
        }
        Input::Acquire(AcquireReply::Unknown(fault)) => {
            if acquiring.abandoned || acquiring.attempts >= ACQUIRE_ATTEMPTS {
                // It may have been written: take back what we can, once.
                (State::Ended(Ending::Failed(fault)), vec![Effect::SendRelease])
            } else {
                let retry_at = Some(now + timing.retry());
                (State::Acquiring(Acquiring { retry_at, ..acquiring }), vec![])
            }
        }
        Input::Tick if acquiring.retry_at.is_some_and(|at| at <= now) => {
            let attempts = acquiring.attempts + 1;
            let again = Acquiring { sent_at: now, attempts, retry_at: None, abandoned: false };
            (State::Acquiring(again), vec![Effect::SendAcquire])
        }
        Input::Release if acquiring.retry_at.is_some() => {
            (State::Releasing, vec![Effect::SendRelease])
        }
        Input::Release => (State::Acquiring(Acquiring { abandoned: true, ..acquiring }), vec![]),
        Input::Tick | Input::Renew(_) | Input::ReleaseAnswered(_) => {
            (State::Acquiring(acquiring), vec![])
        }
    }
}

impl Holding {
    fn since(sent_at: Mono, timing: Timing) -> Self {
        Self {
            trusted_until: sent_at + timing.trust_window(),
            next_beat: sent_at + timing.beat(),
            in_flight: None,
        }
    }
}

fn step_holding(holding: Holding, input: Input, now: Mono, timing: Timing) -> (State, Vec<Effect>) {
    // First of all: a reply that comes after the trust window closed must not open it again.
    if now >= holding.trusted_until && !matches!(input, Input::Release) {
        return lose(LossCause::Deadline);
    }
    match (input, holding.in_flight) {
        (Input::Release, _) => (State::Releasing, vec![Effect::SendRelease]),
        (Input::Tick, None) if now >= holding.next_beat => {
            (State::Holding(Holding { in_flight: Some(now), ..holding }), vec![Effect::SendRenew])
        }
        (Input::Renew(RenewReply::Renewed { beats }), Some(sent_at)) => (
            State::Holding(Holding::since(sent_at, timing)),
            vec![Effect::Announce(Notice::Renewed { beats })],
        ),
        (Input::Renew(RenewReply::Gone), _) => lose(LossCause::Superseded),
        (Input::Renew(RenewReply::Unknown(fault)), _) => (
            State::Holding(Holding { in_flight: None, next_beat: now + timing.retry(), ..holding }),
            vec![Effect::Announce(Notice::RenewalFailed(fault))],
        ),
        (
            Input::Tick
            | Input::Renew(RenewReply::Renewed { .. })
            | Input::Acquire(_)
            | Input::ReleaseAnswered(_),
            _,
        ) => (State::Holding(holding), vec![]),
    }
}

fn step_releasing(input: Input) -> (State, Vec<Effect>) {
    match input {
        Input::ReleaseAnswered(ReleaseReply::Released) => {
            (State::Ended(Ending::Released), vec![Effect::Announce(Notice::Released)])
        }
        Input::ReleaseAnswered(ReleaseReply::NotOurs) => {
            (State::Ended(Ending::AlreadyGone), vec![])
        }
        Input::ReleaseAnswered(ReleaseReply::Unknown(fault)) => {
            (State::Ended(Ending::ReleaseUnknown(fault)), vec![])
        }
        Input::Tick | Input::Acquire(_) | Input::Renew(_) | Input::Release => {
            (State::Releasing, vec![])
        }
    }
}

fn lose(cause: LossCause) -> (State, Vec<Effect>) {
    (State::Lost(cause), vec![Effect::Announce(Notice::Lost(cause))])
}
