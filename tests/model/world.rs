//! Runners, each driven by the real protocol, on one store, over a network that loses, delays and
//! duplicates what it likes.

use std::time::Duration;

use mongo_migrate_kit::fault::{FaultKind, StoreFault};
use mongo_migrate_kit::lock::protocol::{self, Effect, Ending, Fence, Input, Notice, State};
use mongo_migrate_kit::lock::store::{AcquireReply, ArmReply, ReleaseReply, RenewReply, Unmoved};
use mongo_migrate_kit::lock::timing::Mono;
use mongo_migrate_kit::lock::wait::{Looking, Verdict, WaitPolicy, Waiting};

use crate::search::Model;
use crate::store::{Command, Store, ms, run_of};
use crate::{Fault, Rules};

/// Everything at one moment.
#[derive(Clone, Hash)]
pub struct World {
    rules: &'static Rules,
    now_ms: u64,
    store: Store,
    runners: Vec<Runner>,
    network: Vec<Message>,
    /// The token of the last fenced transaction that was committed.
    committed: i64,
    elections_left: u8,
    unlocks_left: u8,
}

#[derive(Clone, Hash)]
struct Runner {
    attempts: u8,
    /// `None` between two attempts.
    state: Option<State>,
    inbox: Option<Input>,
    waiting: Waiting,
    unmoved: Option<Unmoved>,
    asks_at: u64,
    acquired_at: u64,
    wants_fence: bool,
    /// What its bodies are fenced by, whatever has become of the lease.
    token: Option<i64>,
    in_transaction: bool,
    bodies_left: u8,
}

#[derive(Clone, Hash)]
struct Message {
    from: usize,
    /// Its sender still waits for the reply.
    awaited: bool,
    command: Command,
}

/// One thing that can happen; numbers name runners, or messages in their order.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    TimePasses,
    LeaseExpires,
    PrimaryChanges,
    OperatorUnlocks,
    Asks(usize),
    Ticks(usize),
    WantsFence(usize),
    IsNudged(usize),
    Releases(usize),
    /// The request arrives and is carried out.
    Arrives(usize),
    /// The same, and it will arrive again.
    ArrivesTwice(usize),
    IsLost(usize),
    /// The sender gives up on the reply; the request may yet arrive.
    TimesOut(usize),
    HearsReply(usize),
    TouchesFence(usize),
    Commits(usize),
    Aborts(usize),
}
use Action::*;

impl World {
    pub fn new(rules: &'static Rules) -> Self {
        let policy = WaitPolicy::Wait { budget: Some(Duration::from_secs(9_999)), poll: None };
        let runner = Runner {
            attempts: 0,
            state: None,
            inbox: None,
            waiting: Waiting::new(policy, Mono::from_ms(0)),
            unmoved: None,
            asks_at: 0,
            acquired_at: 0,
            wants_fence: false,
            token: None,
            in_transaction: false,
            bodies_left: rules.bodies,
        };
        Self {
            rules,
            now_ms: 0,
            store: Store::new(),
            runners: vec![runner; rules.runners],
            network: Vec::new(),
            committed: 0,
            elections_left: rules.elections,
            unlocks_left: rules.unlocks,
        }
    }

    fn now(&self) -> Mono {
        Mono::from_ms(self.now_ms)
    }

    fn owner(&self, runner: usize) -> String {
        format!("{runner}.{}", self.runners[runner].attempts)
    }

    /// Does this runner have proof that it may act?
    fn trusts(&self, runner: usize) -> bool {
        match &self.runners[runner].state {
            Some(State::Holding(holding)) => {
                let armed = matches!(holding.fence(), Some(Fence::Up(_)));
                self.now() < holding.trusted_until && (armed || !self.rules.proof_needs_fence)
            }
            _ => false,
        }
    }

    fn is_due(&self, runner: usize) -> bool {
        let state = self.runners[runner].state.as_ref();
        state.and_then(protocol::wake_at).is_some_and(|at| at <= self.now())
    }

    /// Feeds the real protocol, and does what it says.
    fn step(&mut self, index: usize, input: Input) {
        let now = self.now();
        let Some(state) = self.runners[index].state.take() else { return };
        let was_acquiring = matches!(state, State::Acquiring(_));
        let late = self.rules.fault == Some(Fault::DeadlineFromReply) && was_acquiring;
        let state = if late { protocol::start(now).0 } else { state };
        let (state, effects) = protocol::step(state, input, now, self.rules.timing());
        if was_acquiring && matches!(state, State::Holding(_)) {
            let moved = matches!(&state, State::Holding(holding) if holding.election_moved);
            self.runners[index].acquired_at = if moved { self.now_ms } else { 0 };
        }
        self.runners[index].state = Some(state);
        for effect in effects {
            self.carry_out(index, effect);
        }
        if let Some(State::Ended(Ending::Held(holder))) = self.runners[index].state.clone() {
            let runner = &mut self.runners[index];
            if self.rules.any_expiry {
                runner.state = None;
                return;
            }
            let verdict = runner.waiting.judge(&holder, Looking::Told, now, 0.0);
            let Verdict::Again { pause, unmoved } = verdict else { return };
            runner.asks_at = self.now_ms + u64::try_from(ms(pause)).expect("not negative");
            runner.unmoved = unmoved;
            runner.state = None;
        } else if self.rules.returns && self.is_through(index) {
            let runner = &mut self.runners[index];
            (runner.state, runner.unmoved, runner.asks_at) = (None, None, self.now_ms);
        }
    }

    /// Has this runner had the lock, and given it back as well as it could?
    fn is_through(&self, index: usize) -> bool {
        let state = self.runners[index].state.as_ref();
        state.is_some_and(|state| match state {
            State::Ended(ending) => {
                !matches!(ending, Ending::Held(_) | Ending::Failed(_)) && self.has_attempts(index)
            }
            State::Acquiring(_) | State::Holding(_) | State::Releasing | State::Lost(_) => false,
        })
    }

    fn has_attempts(&self, index: usize) -> bool {
        self.runners[index].attempts < self.rules.attempts
    }

    fn carry_out(&mut self, index: usize, effect: Effect) {
        let owner = self.owner(index);
        let command = match effect {
            Effect::SendAcquire => {
                let unmoved = self.runners[index].unmoved.clone();
                Command::Acquire { owner, unmoved, election: self.store.election }
            }
            Effect::SendRenew => Command::Renew { owner },
            Effect::SendArm => {
                // What the clean-up before it has found and cleared away.
                let past = self.store.fence.unsettled.iter().map(|run| run.run_id.clone());
                let settled = past.filter(|run| run.as_str() != owner).collect();
                Command::Arm { owner, settled }
            }
            Effect::SendRelease => Command::Release { owner },
            Effect::Announce(Notice::Armed { token }) => {
                self.runners[index].token = Some(token);
                return;
            }
            Effect::Announce(_) => return,
        };
        // A command that supersedes another one leaves it to itself.
        for message in self.network.iter_mut().filter(|message| message.from == index) {
            message.awaited = false;
        }
        self.runners[index].inbox = None;
        self.network.push(Message { from: index, awaited: true, command });
        self.forget_strays(index);
    }

    /// At most one request of each runner is astray: a bound, not a promise.
    fn forget_strays(&mut self, index: usize) {
        let stray = |message: &Message| message.from == index && !message.awaited;
        while self.network.iter().filter(|message| stray(message)).count() > self.rules.strays {
            let oldest = self.network.iter().position(stray).expect("there is one");
            self.network.remove(oldest);
        }
    }

    fn arrives(&mut self, at: usize, again: bool) -> Result<(), String> {
        let Message { from, awaited, command } = self.network[at].clone();
        let world_ms = i64::try_from(self.now_ms).expect("early");
        let reply = self.store.carry_out(&command, world_ms, self.rules)?;
        if again {
            self.network[at].awaited = false;
            self.forget_strays(from);
        } else {
            self.network.remove(at);
        }
        if awaited {
            self.runners[from].inbox = Some(reply);
        }
        Ok(())
    }

    fn touches_fence(&mut self, index: usize) {
        let Some(token) = self.runners[index].token else { return };
        let highest = match self.rules.fault {
            Some(Fault::NoTouch) => true,
            Some(Fault::ReadTouch) => self.store.fence.token == token,
            _ if self.store.touched_by.is_some() => return,
            _ => self.store.fence.touch(token) == 1,
        };
        // Counted here to tell orders apart; how often it was touched makes no other difference.
        self.store.fence.touch = 0;
        if !highest {
            self.runners[index].token = None;
            return;
        }
        self.runners[index].in_transaction = true;
        if !matches!(self.rules.fault, Some(Fault::NoTouch | Fault::ReadTouch)) {
            self.store.touched_by = Some(index);
        }
    }

    fn ends_transaction(&mut self, index: usize) {
        self.runners[index].in_transaction = false;
        self.runners[index].bodies_left -= 1;
        self.store.touched_by.take_if(|by| *by == index);
    }

    fn commits(&mut self, index: usize) -> Result<(), String> {
        let token = self.runners[index].token.expect("a transaction has a token");
        self.ends_transaction(index);
        if token < self.committed || token < self.store.fence.token {
            let newest = self.store.fence.token;
            return Err(format!("I1: token {token} committed after {newest} was given out"));
        }
        self.committed = token;
        Ok(())
    }

    /// What must be true at every moment.
    fn check(&self) -> Result<(), String> {
        let trusting = (0..self.runners.len()).filter(|index| self.trusts(*index));
        if !self.rules.any_expiry && trusting.clone().count() > 1 {
            return Err(format!("I6: {:?} both believe to hold", trusting.collect::<Vec<_>>()));
        }
        for (index, runner) in self.runners.iter().enumerate() {
            let Some(token) = runner.token else { continue };
            let run = run_of(&self.owner(index)).run_id;
            let registered = self.store.fence.unsettled.iter().any(|known| known.run_id == run);
            if !registered && self.store.fence.token <= token {
                return Err(format!("I10: {run} may be running a body unregistered"));
            }
        }
        self.store.can_be_had(self.rules)
    }

    /// Is everybody as quick as a healthy process over a healthy network?
    fn is_quiet(&self) -> bool {
        let busy = self.runners.iter().any(|runner| runner.inbox.is_some());
        let due = (0..self.runners.len()).any(|index| self.is_due(index));
        self.network.is_empty() && !busy && !due
    }

    fn runner_actions(&self, index: usize, actions: &mut Vec<Action>) {
        let runner = &self.runners[index];
        if runner.in_transaction {
            actions.extend([Commits(index), Aborts(index)]);
        } else if runner.token.is_some() && runner.bodies_left > 0 {
            actions.push(TouchesFence(index));
        }
        if runner.inbox.is_some() {
            actions.push(HearsReply(index));
        }
        match &runner.state {
            None if self.has_attempts(index) && self.now_ms >= runner.asks_at => {
                actions.push(Asks(index));
            }
            Some(State::Holding(holding)) => {
                let grace = u64::try_from(ms(self.rules.timing().grace())).expect("positive");
                let patient = !holding.election_moved || self.now_ms >= runner.acquired_at + grace;
                if !runner.wants_fence && patient && self.rules.arms {
                    actions.push(WantsFence(index));
                }
                if !runner.in_transaction {
                    actions.push(Releases(index));
                }
                if self.rules.nudges {
                    actions.push(IsNudged(index));
                }
            }
            None | Some(_) => {}
        }
        if self.is_due(index) {
            actions.push(Ticks(index));
        }
    }
}

impl Model for World {
    type Action = Action;

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        let may_advance = !self.rules.healthy || self.is_quiet();
        if self.now_ms < self.rules.horizon_ms && may_advance {
            actions.push(TimePasses);
        }
        let live = self.store.lease.as_ref().is_some_and(|lease| !lease.over);
        if self.rules.any_expiry && live {
            actions.push(LeaseExpires);
        }
        if self.elections_left > 0 {
            actions.push(PrimaryChanges);
        }
        if self.unlocks_left > 0 && self.store.lease.is_some() {
            actions.push(OperatorUnlocks);
        }
        for index in 0..self.runners.len() {
            self.runner_actions(index, &mut actions);
        }
        for (at, message) in self.network.iter().enumerate() {
            actions.push(Arrives(at));
            if self.rules.healthy {
                continue;
            }
            if message.awaited {
                actions.push(TimesOut(at));
                actions.push(ArrivesTwice(at));
            } else {
                actions.push(IsLost(at));
            }
        }
        actions
    }

    fn apply(&mut self, action: Action) -> Result<(), String> {
        match action {
            TimePasses => self.now_ms += self.rules.quantum_ms,
            LeaseExpires => self.store.lease.as_mut().expect("a lease").over = true,
            PrimaryChanges => {
                self.elections_left -= 1;
                self.store.election += 1;
                self.store.ahead_ms += self.rules.jump_ms;
            }
            OperatorUnlocks => {
                self.unlocks_left -= 1;
                self.store.lease = None;
            }
            Asks(index) => {
                self.runners[index].attempts += 1;
                self.runners[index].wants_fence = false;
                let (state, effects) = protocol::start(self.now());
                self.runners[index].state = Some(state);
                for effect in effects {
                    self.carry_out(index, effect);
                }
            }
            Ticks(index) => self.step(index, Input::Tick),
            WantsFence(index) => {
                self.runners[index].wants_fence = true;
                self.step(index, Input::Arm);
            }
            IsNudged(index) => self.step(index, Input::Nudge),
            Releases(index) => {
                // Every body has settled, and none follows.
                self.runners[index].token = None;
                self.step(index, Input::Release);
            }
            Arrives(at) => self.arrives(at, false)?,
            ArrivesTwice(at) => self.arrives(at, true)?,
            IsLost(at) => drop(self.network.remove(at)),
            TimesOut(at) => {
                let Message { from, command, .. } = self.network[at].clone();
                self.network[at].awaited = false;
                self.forget_strays(from);
                self.step(from, unanswered(&command));
            }
            HearsReply(index) => {
                let reply = self.runners[index].inbox.take().expect("a reply");
                self.step(index, reply);
            }
            TouchesFence(index) => self.touches_fence(index),
            Commits(index) => self.commits(index)?,
            Aborts(index) => self.ends_transaction(index),
        }
        // In which order requests were sent makes no difference to a network.
        self.network.sort_by_key(|message| (message.from, message.awaited));
        self.check()
    }
}

fn unanswered(command: &Command) -> Input {
    let fault = StoreFault::new(FaultKind::Unreachable, "no reply");
    match command {
        Command::Acquire { .. } => Input::Acquire(AcquireReply::Unknown(fault)),
        Command::Renew { .. } => Input::Renew(RenewReply::Unknown(fault)),
        Command::Arm { .. } => Input::ArmAnswered(ArmReply::Unknown(fault)),
        Command::Release { .. } => Input::ReleaseAnswered(ReleaseReply::Unknown(fault)),
    }
}
