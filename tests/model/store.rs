//! A lock's store without a server: the lease, the fence, and a clock that a test may move. It decides
//! by the functions that the memory store decides by.

use std::time::Duration;

use mongo_migrate_kit::fault::{FaultKind, StoreFault};
use mongo_migrate_kit::lock::lease::{Holder, OwnerToken, RunId};
use mongo_migrate_kit::lock::protocol::Input;
use mongo_migrate_kit::lock::rules::{Fence, Judgement, Kind, Sight, judge};
use mongo_migrate_kit::lock::store::{
    AcquireReply, ArmReply, Arming, ReleaseReply, RenewReply, Unmoved, UnsettledRun, Watched,
};
use mongo_migrate_kit::migration::Namespace;

use crate::{Fault, Rules, TTL_MS};

/// What is stored, and what a server knows.
#[derive(Clone, Hash)]
pub struct Store {
    pub lease: Option<Lease>,
    pub fence: Fence,
    /// The runner whose open transaction has written to the fence.
    pub touched_by: Option<usize>,
    /// How far the primary's clock is ahead of everybody's.
    pub ahead_ms: i64,
    pub election: u8,
    /// How many tokens have been given out.
    pub given: i64,
}

#[derive(Clone, Hash)]
pub struct Lease {
    pub owner: String,
    pub beats: i64,
    pub ends_at: i64,
    /// It is over, whatever the clock says.
    pub over: bool,
    election: u8,
    taken_over: bool,
}

/// A request on its way.
#[derive(Clone, Hash)]
pub enum Command {
    Acquire { owner: String, unmoved: Option<Unmoved>, election: u8 },
    Renew { owner: String },
    Arm { owner: String, settled: Vec<RunId> },
    Release { owner: String },
}

impl Store {
    pub fn new() -> Self {
        let (lease, fence, touched_by) = (None, Fence::default(), None);
        Self { lease, fence, touched_by, ahead_ms: 0, election: 0, given: 0 }
    }

    /// Carries out a command at a moment of the world's time.
    pub fn carry_out(
        &mut self,
        command: &Command,
        world_ms: i64,
        rules: &Rules,
    ) -> Result<Input, String> {
        let now = world_ms + self.ahead_ms;
        Ok(match command {
            Command::Acquire { owner, unmoved, election } => {
                Input::Acquire(self.acquire(owner, unmoved.as_ref(), *election, now, rules))
            }
            Command::Renew { owner } => Input::Renew(match self.owned(owner) {
                Some(lease) => {
                    lease.prolong(now, rules);
                    RenewReply::Renewed { beats: 0 }
                }
                None => RenewReply::Gone,
            }),
            Command::Arm { owner, settled } => {
                Input::ArmAnswered(self.arm(owner, settled, now, rules)?)
            }
            Command::Release { owner } => Input::ReleaseAnswered(self.release(owner, rules)),
        })
    }

    fn owned(&mut self, owner: &str) -> Option<&mut Lease> {
        self.lease.as_mut().filter(|lease| lease.owner == owner)
    }

    fn acquire(
        &mut self,
        owner: &str,
        unmoved: Option<&Unmoved>,
        election: u8,
        now: i64,
        rules: &Rules,
    ) -> AcquireReply {
        let judgement = self.lease.as_ref().map(|lease| {
            let sight = lease.sight(election, now, rules);
            let unmoved = unmoved.filter(|_| rules.fault != Some(Fault::NoGrace));
            judge(sight, &OwnerToken::from_text(owner), unmoved)
        });
        let taken_over = match (judgement, &mut self.lease) {
            (Some(Judgement::Held), Some(lease)) => {
                return AcquireReply::Held(lease.shown(now));
            }
            (Some(Judgement::Ours), Some(lease)) => {
                lease.prolong(now, rules);
                lease.taken_over
            }
            (Some(Judgement::Over), _) => true,
            (None, _) | (_, None) => false,
        };
        if judgement != Some(Judgement::Ours) {
            let ends_at = rules.end_after(now);
            let owner = owner.to_owned();
            let lease = Lease { owner, beats: 0, ends_at, over: false, election, taken_over };
            self.lease = Some(lease);
        }
        let won_under = self.lease.as_ref().map(|lease| lease.election);
        let election_moved = taken_over && won_under != Some(self.election);
        AcquireReply::Acquired { took_over_from: None, election_moved }
    }

    fn arm(
        &mut self,
        owner: &str,
        settled: &[RunId],
        now: i64,
        rules: &Rules,
    ) -> Result<ArmReply, String> {
        match self.owned(owner) {
            Some(lease) => lease.prolong(now, rules),
            None if rules.fault == Some(Fault::UncheckedArm) => {}
            None => return Ok(ArmReply::Gone),
        }
        if self.touched_by.is_some() {
            let conflict = StoreFault::new(FaultKind::Unreachable, "conflict");
            return Ok(ArmReply::Unknown(conflict));
        }
        let arming = Arming { run: run_of(owner), settled: settled.to_vec() };
        let token = self.fence.raise(&OwnerToken::from_text(owner), &arming);
        self.given += 1;
        if token != self.given {
            return Err(format!("I2: token {token} was given out before"));
        }
        match &self.lease {
            Some(lease) if lease.owner != owner && !lease.is_over(now) => {
                Err(format!("I3: {owner} fenced off {}, whose lease is live", lease.owner))
            }
            Some(_) | None => Ok(ArmReply::Armed { token }),
        }
    }

    fn release(&mut self, owner: &str, rules: &Rules) -> ReleaseReply {
        self.fence.settle(&run_of(owner).run_id);
        let ours = self.owned(owner).is_some();
        if ours || rules.fault == Some(Fault::UnconditionalRelease) {
            self.lease = None;
        }
        if ours && rules.fault == Some(Fault::ForgetfulFence) {
            self.fence = Fence::default();
        }
        if ours { ReleaseReply::Released } else { ReleaseReply::NotOurs }
    }

    /// I4: when the dust has settled, does somebody who waits long enough get the lock, and the fence?
    pub fn can_be_had(&self, rules: &Rules) -> Result<(), String> {
        let mut later = self.clone();
        later.touched_by = None;
        let mut unmoved = None;
        if let Some(lease) = &mut later.lease {
            lease.over = true;
            let (owner, beats) = (lease.owner.clone(), lease.beats);
            let watched = if rules.observing { Watched::Throughout } else { Watched::Grace };
            unmoved = Some(Unmoved { owner, beats, watched });
        }
        let election = later.election;
        let reply = later.acquire("patient", unmoved.as_ref(), election, 0, rules);
        let armed = later.arm("patient", &[], 0, rules)?;
        match (reply, armed) {
            (AcquireReply::Acquired { .. }, ArmReply::Armed { .. }) => Ok(()),
            other => Err(format!("I4: nobody can get the lock any more: {other:?}")),
        }
    }
}

impl Lease {
    fn is_over(&self, now: i64) -> bool {
        self.over || self.ends_at <= now
    }

    fn prolong(&mut self, now: i64, rules: &Rules) {
        self.ends_at = self.ends_at.max(rules.end_after(now));
        self.over = false;
        // Only who can tell the time watches a lease.
        self.beats += i64::from(!rules.any_expiry);
    }

    fn sight(&self, election: u8, now: i64, rules: &Rules) -> Sight<'_> {
        let trusting = rules.fault == Some(Fault::NoElections);
        Sight {
            owner: Some(&self.owner),
            kind: Kind::Own,
            beats: Some(self.beats),
            over: self.is_over(now) && !rules.observing,
            same_election: self.election == election || trusting,
        }
    }

    fn shown(&self, now: i64) -> Holder {
        Holder {
            owner: Some(self.owner.clone()),
            beats: Some(self.beats),
            ttl_ms: Some(TTL_MS),
            expires_at: Some(self.ends_at),
            now,
            expired: self.is_over(now),
            ..Holder::default()
        }
    }
}

/// Every acquisition of the model is a run of its own.
pub fn run_of(owner: &str) -> UnsettledRun {
    UnsettledRun {
        run_id: RunId::from_text(owner),
        namespace: Namespace::default(),
        changelog: String::new(),
        host: None,
        pid: None,
    }
}

pub fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).expect("a short span")
}
