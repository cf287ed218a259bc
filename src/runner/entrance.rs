//! The way in: asking for the lock until it is ours, nothing is left to do, or the wait is over; then
//! clearing away what past runs left on the server, and raising the fence. And the way out.

use std::sync::Arc;
use std::time::Duration;

use super::{Report, RunError, Runner, Stopped, jitter, whole_ms};
use crate::changelog::store::ChangelogStore;
use crate::clock::Clock;
use crate::event::Event;
use crate::fault::{FaultKind, StoreFault};
use crate::host::Host;
use crate::lock::keeper::{Lease, LeaseEnd, NotAcquired, NotArmed};
use crate::lock::lease::{Holder, OnLockLost, OwnerToken, RunId};
use crate::lock::orphans::{Operation, Orphans};
use crate::lock::store::{Arming, Attempt, Interest, LockStore, Unmoved, UnsettledRun, Wakes};
use crate::lock::timing::Mono;
use crate::lock::wait::{Looking, Verdict, WaitPolicy, Waiting};
use crate::migration::Namespace;
use crate::mutant::Mutant;
use crate::plan::{Plan, Vantage};

/// How long operations of past runs may take to end after they were told to.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at them.
const ORPHAN_PAUSE: Duration = Duration::from_millis(100);

/// How long raising the fence may be tried, at the least: an election fits in.
const ARM_PATIENCE: Duration = Duration::from_secs(30);

/// How long operations of our own may take to end after the last body.
const LEAVING_PATIENCE: Duration = Duration::from_secs(5);

/// What to do about operations of our own that outlive their bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    /// The run succeeded: they are wanted, and somebody forgot to wait for them.
    Warn,
    /// It did not: they are not wanted any more.
    Stop,
}

/// The lock's answer to a run.
pub(super) enum Entrance {
    Leased(Box<Lease>),
    /// Somebody else has done it all in the meantime.
    NothingLeft(Plan),
}

/// The lock, if the same holder has it as before. Who has to look again and again looks at this alone
/// until it changes.
async fn still_held(store: &impl LockStore, known: &Option<String>) -> Option<Holder> {
    let holder = store.inspect().await.ok()??;
    (holder.owner == *known && !holder.expired).then_some(holder)
}

/// How long a run has waited for the lock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wait {
    pub(super) waited: bool,
    pub(super) lasted: Duration,
}

impl Wait {
    /// 0 where the lock was free, or was not waited for.
    pub(super) fn ms(self) -> u64 {
        if self.waited { whole_ms(self.lasted) } else { 0 }
    }
}

/// How a waiter hears of a release.
enum Ear {
    /// It has not tried to listen yet.
    Unopened,
    Open(Wakes),
    /// This store can't tell.
    Deaf,
}

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// Asks for the lock until it is ours, nothing is left to do, or the wait is over.
    pub(super) async fn enter<L: LockStore>(
        &self,
        store: &Arc<L>,
        policy: WaitPolicy,
    ) -> Result<(Entrance, Wait), RunError> {
        let mut waiting = Waiting::new(policy, self.clock.now());
        let mut announced: Option<Option<String>> = None;
        let mut ear = Ear::Unopened;
        let mut unmoved = None;
        let mut seen = None;
        loop {
            let asked = match seen.take() {
                Some(holder) => Err(NotAcquired::Held(holder)),
                None => self.ask(store, unmoved.take()).await,
            };
            let holder = match asked {
                Ok(lease) => {
                    let lasted = waiting.lasted(self.clock.now());
                    let wait = Wait { waited: announced.is_some(), lasted };
                    return Ok((Entrance::Leased(Box::new(lease)), wait));
                }
                Err(NotAcquired::Held(holder)) => holder,
                Err(NotAcquired::Failed(fault)) => {
                    return Err(RunError::Database { doing: "taking the lock", fault });
                }
            };
            let now = self.clock.now();
            let looking = match ear {
                Ear::Open(_) => Looking::Told,
                Ear::Unopened | Ear::Deaf => Looking::Polling,
            };
            let Verdict::Again { pause, unmoved: doubt } =
                waiting.judge(&holder, looking, now, jitter())
            else {
                let wait = Wait { waited: announced.is_some(), lasted: waiting.lasted(now) };
                let waited_ms = wait.ms();
                return Err(RunError::LockHeld { holder: Box::new(holder), waited_ms });
            };
            // Once for each holder, not for each look.
            if announced.as_ref() != Some(&holder.owner) {
                announced = Some(holder.owner.clone());
                let holder = self.naming_its_migration(holder).await?;
                self.emit(Event::LockWaiting { holder, retry_in_ms: whole_ms(pause) });
            }
            if let (Ear::Unopened, WaitPolicy::Wait { .. }) = (&ear, policy) {
                let opened = store.watch(Interest::Freed).await;
                ear = opened.map_or(Ear::Deaf, Ear::Open);
                // What happened before the watch stood is found by asking again at once.
                if let Ear::Open(_) = ear {
                    continue;
                }
            }
            unmoved = doubt;
            self.rest(&mut ear, self.clock.now() + pause).await?;
            if let (Ear::Deaf, None, Some(known)) = (&ear, &unmoved, &announced) {
                seen = still_held(&**store, known).await;
            }
            if seen.is_some() {
                continue;
            }
            // Most waiters wait for somebody who does their very work.
            let plan = self.plan(Vantage::BeforeLock).await?;
            if plan.steps.is_empty() {
                let wait = Wait { waited: true, lasted: waiting.lasted(self.clock.now()) };
                return Ok((Entrance::NothingLeft(plan), wait));
            }
        }
    }

    async fn ask<L: LockStore>(
        &self,
        store: &Arc<L>,
        unmoved: Option<Unmoved>,
    ) -> Result<Lease, NotAcquired> {
        let owner = OwnerToken::random();
        let attempt = Attempt {
            owner: owner.clone(),
            identity: self.job.identity.clone(),
            timing: self.job.timing,
            unmoved,
        };
        let notices = self.notices(owner);
        Lease::acquire(Arc::clone(store), self.clock.clone(), attempt, notices).await
    }

    /// Waits until `until`, a release, or the end of the user's patience.
    async fn rest(&self, ear: &mut Ear, until: Mono) -> Result<(), RunError> {
        let heard = async {
            match ear {
                Ear::Open(wakes) => wakes.recv().await,
                Ear::Unopened | Ear::Deaf => std::future::pending().await,
            }
        };
        let woken = tokio::select! {
            () = self.clock.sleep_until(until) => Some(()),
            heard = heard => heard,
            () = self.cancelled() => {
                return Err(RunError::Cancelled { during: None, settled: true });
            }
        };
        if woken.is_none() {
            *ear = Ear::Deaf;
        }
        Ok(())
    }

    async fn naming_its_migration(&self, holder: Holder) -> Result<Holder, RunError> {
        // The holder's history, which need not be ours.
        let namespace = Namespace::new(holder.namespace.clone());
        let entries = self.changelog.entries(&namespace).await;
        let entries = entries
            .map_err(|fault| RunError::Database { doing: "reading the changelog", fault })?;
        Ok(crate::status::naming_its_migration(holder, &entries))
    }

    /// Clears away what past runs left on the server, and raises the fence.
    pub(super) async fn make_safe<L: LockStore>(
        &self,
        store: &L,
        orphans: &impl Orphans,
        lease: &Lease,
    ) -> Result<i64, RunError> {
        let job = &self.job;
        if lease.election_moved() {
            // A live holder may have been judged by a clock it never met: let it find out first.
            self.clock.sleep_until(self.clock.now() + job.timing.grace()).await;
        }
        let past = self.unsettled(store).await?;
        let mut settled = Vec::new();
        for run in past.iter().filter(|run| run.run_id != job.identity.run_id) {
            if !Mutant::NoCleanup.is_planted() {
                self.clear_away(orphans, run).await?;
            }
            settled.push(run.run_id.clone());
        }
        if !settled.is_empty() {
            self.report_unfinished_indexes(orphans).await;
        }
        let run = UnsettledRun {
            run_id: job.identity.run_id.clone(),
            namespace: job.identity.namespace.clone(),
            changelog: job.identity.changelog.clone(),
            host: Some(job.identity.host.clone()),
            pid: Some(i64::from(job.identity.pid)),
        };
        let patience = job.timing.ttl().max(ARM_PATIENCE);
        let until = self.clock.now() + patience;
        let armed = tokio::select! {
            armed = lease.arm(Arming { run, settled }) => armed,
            // The lease may be renewed all the while: it alone would never end this.
            () = self.clock.sleep_until(until) => Err(NotArmed::Refused(StoreFault::new(
                FaultKind::Unreachable,
                format!("no attempt has succeeded within {} s", patience.as_secs()),
            ))),
        };
        armed.map_err(|not| match not {
            NotArmed::Lost(cause) => RunError::Lost { cause, during: None, settled: true },
            NotArmed::Refused(fault) => RunError::Database { doing: "raising the fence", fault },
        })
    }

    /// The register. A reply that got lost is no reason to give up a lease that is being renewed.
    async fn unsettled<L: LockStore>(&self, store: &L) -> Result<Vec<UnsettledRun>, RunError> {
        let until = self.clock.now() + ORPHAN_PATIENCE;
        loop {
            match store.unsettled().await {
                Ok(past) => return Ok(past),
                Err(fault) if fault.kind == FaultKind::Unreachable && self.clock.now() < until => {
                    self.clock.sleep_until(self.clock.now() + ORPHAN_PAUSE).await;
                }
                Err(fault) => return Err(RunError::Database { doing: "reading the fence", fault }),
            }
        }
    }

    /// Finds and stops what one past run left running. Bounded.
    async fn clear_away(&self, orphans: &impl Orphans, run: &UnsettledRun) -> Result<(), RunError> {
        let until = self.clock.now() + ORPHAN_PATIENCE;
        let mut told: Vec<Operation> = Vec::new();
        loop {
            let left = match orphans.find(&run.run_id).await {
                Ok(left) => left,
                Err(fault) => return self.wait_blindly(run, &fault).await,
            };
            if left.is_empty() {
                return Ok(());
            }
            let new: Vec<_> = left.iter().filter(|found| !told.contains(found)).cloned().collect();
            if !new.is_empty() {
                let operations = new.iter().map(|found| found.description.clone()).collect();
                let run_id = run.run_id.to_string();
                self.emit(Event::OrphansFound { run_id, operations });
                told.extend(new);
            }
            for operation in &left {
                // One that can't be stopped is found again; the patience decides.
                let _ = orphans.stop(operation).await;
            }
            if self.clock.now() >= until {
                let operations = left.into_iter().map(|found| found.description).collect();
                return Err(RunError::Orphans { run_id: run.run_id.to_string(), operations });
            }
            self.clock.sleep_until(self.clock.now() + ORPHAN_PAUSE).await;
        }
    }

    /// We may not look: say so, and give what may be running the time of one lease.
    async fn wait_blindly(&self, run: &UnsettledRun, fault: &StoreFault) -> Result<(), RunError> {
        let span = self.job.timing.ttl().min(ORPHAN_PATIENCE);
        self.warn(
            "ORPHANS_UNSEEN",
            &format!(
                "Can't look for what run {} left running on the server ({fault}); waiting {} s",
                run.run_id,
                span.as_secs()
            ),
        );
        self.clock.sleep_until(self.clock.now() + span).await;
        Ok(())
    }

    async fn report_unfinished_indexes(&self, orphans: &impl Orphans) {
        let found = orphans.unfinished_indexes().await.unwrap_or_default();
        if !found.is_empty() {
            let context = serde_json::json!({ "indexes": found });
            let message = format!(
                "Index builds of an interrupted run go on, and dropIndexes ends them: {}",
                found.join(", ")
            );
            self.emit(Event::Warning { code: "UNFINISHED_INDEXES", message, context });
        }
    }

    /// Gives the lock back. A failure to do so never hides what came before it.
    pub(super) async fn leave(
        &self,
        lease: Lease,
        orphans: &impl Orphans,
        outcome: Result<Report, Stopped>,
    ) -> Result<Report, Stopped> {
        // A body that has ended may have left writes behind that go on without it. Only when nothing
        // goes on is there nothing for a later run to look for.
        let settled = match &outcome {
            Ok(_) => self.left_nothing(orphans, Leftovers::Warn).await,
            Err(Stopped { error: RunError::Lost { .. }, .. }) => false,
            Err(stopped) => {
                stopped.error.settled() && self.left_nothing(orphans, Leftovers::Stop).await
            }
        };
        let settled = settled.then(|| self.job.identity.run_id.clone());
        let trouble = match lease.release(settled).await {
            LeaseEnd::Released => None,
            // A run that goes on without it has been saying so all the time.
            LeaseEnd::Lost(_) if self.job.on_lock_lost == OnLockLost::Warn => None,
            LeaseEnd::Lost(_) | LeaseEnd::AlreadyGone => {
                Some("the lock was not ours any more when it was to be released".to_owned())
            }
            LeaseEnd::Unknown(fault) => Some(format!(
                "the lock may not be released ({fault}); it frees itself when the lease expires"
            )),
        };
        let already_said = matches!(&outcome, Err(Stopped { error: RunError::Lost { .. }, .. }));
        if let (Some(message), false) = (trouble, already_said) {
            self.warn("LOCK_RELEASE_FAILED", &message);
        }
        outcome
    }

    /// Is nothing of our own run going on on the server? What is gets a few seconds to end.
    async fn left_nothing(&self, orphans: &impl Orphans, leftovers: Leftovers) -> bool {
        let own = &self.job.identity.run_id;
        let until = self.clock.now() + LEAVING_PATIENCE;
        let mut warned = false;
        loop {
            let Ok(left) = orphans.find(own).await else { return false };
            if left.is_empty() {
                return true;
            }
            match leftovers {
                Leftovers::Stop => {
                    for operation in &left {
                        // One that can't be stopped is found again; the patience decides.
                        let _ = orphans.stop(operation).await;
                    }
                }
                Leftovers::Warn if warned => {}
                Leftovers::Warn => {
                    warned = true;
                    self.warn_of_leftovers(left);
                }
            }
            if self.clock.now() >= until {
                return false;
            }
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now() + ORPHAN_PAUSE) => {}
                () = self.abandoned() => return false,
            }
        }
    }

    fn warn_of_leftovers(&self, left: Vec<Operation>) {
        let operations: Vec<String> = left.into_iter().map(|found| found.description).collect();
        let message = format!(
            "Migrations ended while operations of theirs were still running: {}. Is an await missing?",
            operations.join(", ")
        );
        let context = serde_json::json!({ "operations": operations });
        self.emit(Event::Warning { code: "OPERATIONS_LEFT", message, context });
    }

    /// Stops what our own run has left running on the server. Best effort: what remains is found by
    /// the next run, which the register sends looking.
    pub(super) async fn stop_own_operations(&self, orphans: &impl Orphans) {
        let own: &RunId = &self.job.identity.run_id;
        for operation in orphans.find(own).await.unwrap_or_default() {
            let _ = orphans.stop(&operation).await;
        }
    }
}
