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
//!     │ renewal or arm says gone, or trust ran out
//!     ▼
//!   Lost (for good)
//! ```
//!
//! A lease that is held is *unarmed* at first: what past runs left on the server is cleared away while
//! it is renewed. Only *arming* raises the fence, and only an armed lease may run bodies. Renewals and
//! arms write the same document, so there is never more than one of them under way.
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

use super::lease::{Holder, LossCause};
use super::store::{AcquireReply, ArmReply, ReleaseReply, RenewReply};
use super::timing::{Mono, Timing};
use crate::fault::StoreFault;

/// How often an acquire whose outcome is unknown is sent again while trust in it could still hold.
const ACQUIRE_ATTEMPTS: u32 = 20;

/// Where a runner stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acquiring {
    sent_at: Mono,
    attempts: u32,
    retry_at: Option<Mono>,
    /// The lease is not wanted any more, but the answer must be awaited: a release that overtook the
    /// acquire would leave the lock taken by nobody.
    abandoned: bool,
}

/// The facts of a lease that is ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holding {
    /// Until when we may act.
    pub trusted_until: Mono,
    /// The primary changed while the lease was taken over.
    pub election_moved: bool,
    next_beat: Mono,
    /// When the command that is under way was sent.
    in_flight: Option<Mono>,
    arming: Arming,
    /// Something happened to the lock document while a command was under way.
    nudged: bool,
}

/// How far the fence is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Arming {
    Unarmed,
    Wanted { send_at: Mono },
    Done(Fence),
}

/// What came of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fence {
    /// It stands, with this fencing token.
    Up(i64),
    /// It can't be raised.
    Refused(StoreFault),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// The acquire was answered.
    Acquire(AcquireReply),
    /// The renewal was answered.
    Renew(RenewReply),
    /// The past is cleared away: raise the fence.
    Arm,
    /// The arm was answered.
    ArmAnswered(ArmReply),
    /// Something happened to the lock document: find out what.
    Nudge,
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
    /// Raise the fence.
    SendArm,
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
    /// The fence stands.
    Armed {
        /// Our fencing token.
        token: i64,
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
        State::Holding(Holding { trusted_until, next_beat, in_flight, arming, .. }) => {
            let due = match (in_flight, arming) {
                (Some(_), _) => *trusted_until,
                (None, Arming::Wanted { send_at }) => (*next_beat).min(*send_at),
                (None, Arming::Unarmed | Arming::Done(_)) => *next_beat,
            };
            Some(due.min(*trusted_until))
        }
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
        Input::Acquire(AcquireReply::Acquired { took_over_from, election_moved }) => {
            let holding = Holding { election_moved, ..Holding::since(acquiring.sent_at, timing) };
            let (state, mut effects) = step_holding(holding, Input::Tick, now, timing);
            let notice = Notice::Acquired { took_over_from };
            effects.insert(0, Effect::Announce(notice));
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
        Input::Tick
        | Input::Renew(_)
        | Input::Arm
        | Input::ArmAnswered(_)
        | Input::Nudge
        | Input::ReleaseAnswered(_) => (State::Acquiring(acquiring), vec![]),
    }
}

impl Holding {
    fn since(sent_at: Mono, timing: Timing) -> Self {
        Self {
            trusted_until: sent_at + timing.trust_window(),
            election_moved: false,
            next_beat: sent_at + timing.beat(),
            in_flight: None,
            arming: Arming::Unarmed,
            nudged: false,
        }
    }

    /// What came of the arm, once it is answered.
    pub fn fence(&self) -> Option<&Fence> {
        match &self.arming {
            Arming::Done(fence) => Some(fence),
            Arming::Unarmed | Arming::Wanted { .. } => None,
        }
    }

    /// An acknowledged renewal of the lease, sent at `sent_at`.
    fn prolonged(self, sent_at: Mono, arming: Arming, timing: Timing) -> Self {
        let election_moved = self.election_moved;
        let fresh = Self { arming, election_moved, ..Self::since(sent_at, timing) };
        // The command may have been carried out before what nudged us happened: ask once more.
        if self.nudged { Self { next_beat: sent_at, ..fresh } } else { fresh }
    }

    /// Sends what is due, if nothing is under way.
    fn send_due(self, now: Mono) -> (State, Vec<Effect>) {
        // Renewals go first: an arm may have to wait for a zombie's transaction.
        let due = match self.arming {
            _ if self.in_flight.is_some() => None,
            _ if now >= self.next_beat => Some(Effect::SendRenew),
            Arming::Wanted { send_at } if now >= send_at => Some(Effect::SendArm),
            Arming::Unarmed | Arming::Wanted { .. } | Arming::Done(_) => None,
        };
        match due {
            Some(effect) => {
                let in_flight = Some(now);
                (State::Holding(Self { in_flight, nudged: false, ..self }), vec![effect])
            }
            None => (State::Holding(self), vec![]),
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
        (Input::Tick, _) => holding.send_due(now),
        (Input::Arm, _) => {
            Holding { arming: Arming::Wanted { send_at: now }, ..holding }.send_due(now)
        }
        (Input::Nudge, None) => Holding { next_beat: now, ..holding }.send_due(now),
        (Input::Nudge, Some(_)) => (State::Holding(Holding { nudged: true, ..holding }), vec![]),
        (Input::Renew(RenewReply::Renewed { beats }), Some(sent_at)) => {
            let arming = holding.arming.clone();
            let (state, effects) = holding.prolonged(sent_at, arming, timing).send_due(now);
            (state, announcing(Notice::Renewed { beats }, effects))
        }
        (Input::ArmAnswered(ArmReply::Armed { token }), Some(sent_at)) => {
            let armed = holding.prolonged(sent_at, Arming::Done(Fence::Up(token)), timing);
            let (state, effects) = armed.send_due(now);
            (state, announcing(Notice::Armed { token }, effects))
        }
        (Input::Renew(RenewReply::Gone) | Input::ArmAnswered(ArmReply::Gone), _) => {
            lose(LossCause::Superseded)
        }
        (Input::Renew(RenewReply::Unknown(fault)), _) => {
            let next_beat = now + timing.retry();
            let state = State::Holding(Holding { in_flight: None, next_beat, ..holding });
            (state, vec![Effect::Announce(Notice::RenewalFailed(fault))])
        }
        (Input::ArmAnswered(ArmReply::Unknown(_)), _) => {
            let arming = Arming::Wanted { send_at: now + timing.retry() };
            (State::Holding(Holding { in_flight: None, arming, ..holding }), vec![])
        }
        (Input::ArmAnswered(ArmReply::Refused(fault)), _) => {
            let arming = Arming::Done(Fence::Refused(fault));
            (State::Holding(Holding { in_flight: None, arming, ..holding }), vec![])
        }
        (
            Input::Renew(RenewReply::Renewed { .. })
            | Input::ArmAnswered(ArmReply::Armed { .. })
            | Input::Acquire(_)
            | Input::ReleaseAnswered(_),
            _,
        ) => (State::Holding(holding), vec![]),
    }
}

fn announcing(notice: Notice, mut effects: Vec<Effect>) -> Vec<Effect> {
    effects.insert(0, Effect::Announce(notice));
    effects
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
        Input::Tick
        | Input::Acquire(_)
        | Input::Renew(_)
        | Input::Arm
        | Input::ArmAnswered(_)
        | Input::Nudge
        | Input::Release => (State::Releasing, vec![]),
    }
}

fn lose(cause: LossCause) -> (State, Vec<Effect>) {
    (State::Lost(cause), vec![Effect::Announce(Notice::Lost(cause))])
}
