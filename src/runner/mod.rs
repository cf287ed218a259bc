//! The sequencer: one run, from the first look at the changelog to the release of the lock.
//!
//! ```text
//! read the changelog ─ nothing to do ─▶ leave (one read, no lock)
//!        │
//! load and check the files, connect the host
//!        │
//! ask for the lock ◀─ held: wait, read the changelog again ─ nothing left ─▶ leave
//!        │
//! clear away what past runs left running, raise the fence
//!        │                                           (`entrance`)
//! read the changelog again, plan again               (only this plan is carried out)
//!        │
//! for each step: claim ─ run ─ settle            (`steps`, `claiming`, `settling`; a mark: `marking`)
//!        │
//! redo: read once more, plan the second half, carry it out
//!        │
//! release
//! ```
//!
//! # Promises
//! - No body runs and nothing is recorded without a lease that is trusted at that moment, unless the
//!   user wants a run to go on without it ([`OnLockLost::Warn`]).
//! - Every problem of the plan is reported before the first body, all of them at once.
//! - The first error is the one reported; what fails after it is attached to it.
//! - Whatever happens between acquire and release, the release is sent.

mod claiming;
mod entrance;
mod foreign;
mod going_on;
mod hooks;
mod marking;
mod names;
mod planning;
mod report;
mod settling;
mod steps;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use entrance::{Entrance, Wait};
pub use report::{Report, ResultStatus, RunError, RunResult, Stopped};

use crate::changelog::entry::Entry;
use crate::changelog::store::ChangelogStore;
use crate::clock::Clock;
use crate::event::{EntryFacts, Event};
use crate::fault::StoreFault;
use crate::host::{Between, Host, ModuleFacts, Wanted};
use crate::lock::guard::LeaseGuard;
use crate::lock::keeper::{Lease, NoticeSink};
use crate::lock::lease::{Identity, OnLockLost, OwnerToken, RunId};
use crate::lock::orphans::Orphans;
use crate::lock::protocol::Notice;
use crate::lock::store::LockStore;
use crate::lock::timing::Timing;
use crate::lock::wait::WaitPolicy;
use crate::metrics::Metrics;
use crate::migration::{Direction, MigrationFile, MigrationName};
use crate::plan::{Plan, Policy, Request, Vantage};

/// One run, as it was asked for.
#[derive(Debug, Clone)]
pub struct Job {
    /// What to do.
    pub request: Request,
    /// How strict to be.
    pub policy: Policy,
    /// The files on disk.
    pub files: Vec<MigrationFile>,
    /// Who we are.
    pub identity: Identity,
    /// How long the lease lasts.
    pub timing: Timing,
    /// What to do about a lock that is held; `None`: take no lock.
    pub lock: Option<WaitPolicy>,
    /// What to do when the lock is lost once bodies may run.
    pub on_lock_lost: OnLockLost,
    /// What the host does between two migrations.
    pub between: Between,
    /// `NODE_ENV`, stored in entries.
    pub environment: String,
    /// The service's name, stored in entries.
    pub service: Option<String>,
}

/// What a run works with.
#[derive(Debug)]
pub struct Runner<G, H, C> {
    changelog: Arc<G>,
    host: Arc<H>,
    clock: C,
    job: Job,
    cancel: Cancel,
    metrics: Arc<Mutex<Metrics>>,
    loaded: HashMap<MigrationName, ModuleFacts>,
    /// Does the server know transactions? Asked when the first step wants one.
    transactions: Option<bool>,
}

/// The lock's place, opened for one run.
#[derive(Debug)]
pub struct Door<L, O> {
    /// Where the lock lives.
    pub lock: Arc<L>,
    /// Where operations of past runs are looked for.
    pub orphans: O,
}

/// How a run hears that it is not wanted any more.
pub type Cancel = watch::Receiver<Wanted>;

/// What a run has in hand while it carries out its plan.
struct Permit<'lease> {
    guard: &'lease LeaseGuard,
    /// `None` without a lock.
    fencing: Option<Fencing>,
}

/// What makes a transaction of this run fail once a later run has begun.
#[derive(Debug, Clone)]
struct Fencing {
    token: i64,
    command: Vec<u8>,
}

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// A run that has not begun.
    pub fn new(changelog: Arc<G>, host: Arc<H>, clock: C, job: Job, cancel: Cancel) -> Self {
        let (metrics, loaded) = (Arc::default(), HashMap::new());
        Self { changelog, host, clock, job, cancel, metrics, loaded, transactions: None }
    }

    /// Runs. `open_lock` is called only when there is something to do and a lock is wanted.
    ///
    /// # Errors
    /// [`Stopped`], with what had been done by then.
    ///
    /// # Cancellation
    /// Dropping the future releases the lock in the background; a body that has begun goes on
    /// unobserved, its entry stays `running` and its run stays registered as unsettled.
    pub async fn run<L, O, F>(
        mut self,
        open_lock: impl FnOnce() -> F + Send,
    ) -> Result<Report, Stopped>
    where
        L: LockStore,
        O: Orphans,
        F: Future<Output = Result<Door<L, O>, StoreFault>> + Send,
    {
        let outcome = self.run_uncounted(open_lock).await;
        // The counters went on while the lock was being released.
        let metrics = self.metrics();
        match outcome {
            Ok(report) => Ok(Report { metrics, ..report }),
            Err(stopped) => Err(Stopped { metrics: Some(metrics), ..stopped }),
        }
    }

    async fn run_uncounted<L, O, F>(
        &mut self,
        open_lock: impl FnOnce() -> F + Send,
    ) -> Result<Report, Stopped>
    where
        L: LockStore,
        O: Orphans,
        F: Future<Output = Result<Door<L, O>, StoreFault>> + Send,
    {
        if self.job.lock.is_none() {
            self.warn("NO_LOCK", "Running without a lock (--no-lock) — concurrent runs are unsafe");
        }
        let mut plan = self.first_plan(Vantage::BeforeLock).await?;
        if plan.steps.is_empty() {
            self.warn_of(&plan);
            return Ok(self.nothing_to_do(&plan, Wait::default()));
        }
        if self.job.request.runs_bodies() {
            self.check(&mut plan, Vantage::BeforeLock).await?;
            let app_name = self.job.identity.run_id.app_name();
            let connected = self.host.connect(app_name).await.map_err(RunError::Host)?;
            connected.map_err(RunError::HostConnection)?;
        }
        let Some(policy) = self.job.lock else {
            let unlocked = Permit { guard: &LeaseGuard::unlocked(), fencing: None };
            return self.under_lock(unlocked, None::<&O>, Wait::default()).await;
        };
        let door = open_lock().await;
        let door = door.map_err(|fault| RunError::Database { doing: "opening the lock", fault })?;
        let asked_at = self.clock.now();
        let entered = self.enter(&door.lock, policy).await;
        self.count_wait(match &entered {
            Ok((_, wait)) => wait.ms(),
            Err(_) => whole_ms(self.clock.now().since(asked_at)),
        });
        let (entrance, wait) = entered?;
        match entrance {
            Entrance::NothingLeft(plan) => Ok(self.nothing_to_do(&plan, wait)),
            Entrance::Leased(lease) => {
                let outcome = self.with_lease(&door, &lease, wait).await;
                self.leave(*lease, &door.orphans, outcome).await
            }
        }
    }

    async fn with_lease<L: LockStore, O: Orphans>(
        &mut self,
        door: &Door<L, O>,
        lease: &Lease,
        wait: Wait,
    ) -> Result<Report, Stopped> {
        let token = tokio::select! {
            token = self.make_safe(&*door.lock, &door.orphans, lease) => token?,
            cause = lease.guard().lost() => {
                return Err(RunError::Lost { cause, during: None, settled: true }.into());
            }
            () = self.cancelled() => {
                return Err(RunError::Cancelled { during: None, settled: true }.into());
            }
        };
        let command = door.lock.fence_command(token);
        let guard = lease.guard().when_lost(self.job.on_lock_lost);
        let warning = self.warning_of_loss(guard.clone());
        let permit = Permit { guard: &guard, fencing: Some(Fencing { token, command }) };
        tokio::select! {
            outcome = self.under_lock(permit, Some(&door.orphans), wait) => outcome,
            never = warning => match never {},
        }
    }

    /// Everything that happens while the lock is ours.
    async fn under_lock<O: Orphans>(
        &mut self,
        permit: Permit<'_>,
        orphans: Option<&O>,
        wait: Wait,
    ) -> Result<Report, Stopped> {
        let mut plan = self.plan(Vantage::UnderLock).await?;
        if self.job.request.runs_bodies() {
            self.check(&mut plan, Vantage::UnderLock).await?;
        }
        self.warn_of(&plan);
        let [step, ..] = &plan.steps[..] else {
            return Ok(self.nothing_to_do(&plan, wait));
        };
        let mut results = self.skipped(&plan);
        match &self.job.request {
            Request::Mark { reason, .. } => {
                results.push(self.mark(&permit, step, plan.direction, reason.clone()).await?);
            }
            Request::Redo { .. } => {
                let name = step.name.clone();
                steps::carry_out(self, &permit, orphans, plan, &mut results).await?;
                let again = self.again(&name).await;
                let again = again.map_err(|error| Stopped {
                    results: results.clone(),
                    not_started: vec![name.to_string()],
                    ..error.into()
                })?;
                results.extend(self.skipped(&again));
                steps::carry_out(self, &permit, orphans, again, &mut results).await?;
            }
            Request::Up { .. } | Request::Down { .. } => {
                steps::carry_out(self, &permit, orphans, plan, &mut results).await?;
            }
        }
        Ok(self.report(results, wait))
    }

    /// Returns when the run is told to end.
    async fn cancelled(&self) {
        self.not_wanted(Wanted::Cancelled).await;
    }

    /// Returns when there is nobody left to wait for.
    async fn abandoned(&self) {
        self.not_wanted(Wanted::Abandoned).await;
    }

    async fn not_wanted(&self, at_least: Wanted) {
        let mut cancel = self.cancel.clone();
        if cancel.wait_for(|wanted| *wanted >= at_least).await.is_err() {
            // Nobody is left who could cancel.
            std::future::pending().await
        }
    }

    fn is_cancelled(&self) -> bool {
        *self.cancel.borrow() >= Wanted::Cancelled
    }

    fn skipped(&self, plan: &Plan) -> Vec<RunResult> {
        let reason = match plan.direction {
            Direction::Up => "Already applied",
            Direction::Down => "Already pending",
        };
        plan.skipped
            .iter()
            .map(|name| {
                let name = name.to_string();
                self.emit(Event::MigrationSkipped { name: name.clone(), reason: reason.into() });
                RunResult::skipped(name, reason)
            })
            .collect()
    }

    fn nothing_to_do(&self, plan: &Plan, wait: Wait) -> Report {
        let direction = plan.direction;
        self.emit(Event::Planned { direction, names: Vec::new() });
        self.report(self.skipped(plan), wait)
    }

    fn report(&self, results: Vec<RunResult>, wait: Wait) -> Report {
        let up_to_date = results.iter().all(|result| result.status == ResultStatus::Skipped);
        let (waited, waited_ms, metrics) = (wait.waited, wait.ms(), self.metrics());
        Report { results, up_to_date, waited, waited_ms, metrics }
    }

    fn metrics(&self) -> Metrics {
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_wait(&self, ms: u64) {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).lock_wait_ms = ms;
    }

    /// A write whose precondition did not hold: says so, and what there is instead.
    fn conflict(
        &self,
        name: String,
        expected: EntryFacts,
        found: Option<&Entry>,
        body_ran: bool,
    ) -> RunError {
        let found = found.map(EntryFacts::found);
        self.emit(Event::ClaimConflict {
            name: name.clone(),
            expected: expected.clone(),
            found: found.clone(),
        });
        RunError::Conflict { name, expected, found, body_ran }
    }

    fn warn(&self, code: &'static str, message: &str) {
        let context = serde_json::Value::Null;
        self.emit(Event::Warning { code, message: message.to_owned(), context });
    }

    fn emit(&self, event: Event) {
        emit(&self.metrics, self.host.as_ref(), &event);
    }

    /// The keeper's notices, as events.
    fn notices(&self, owner: OwnerToken) -> NoticeSink {
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&self.host));
        let run_id = self.job.identity.run_id.clone();
        Arc::new(move |notice| {
            emit(&metrics, host.as_ref(), &event_of(notice, &owner, &run_id));
        })
    }
}

/// A notice of the keeper's, as an event.
pub(crate) fn event_of(notice: Notice, owner: &OwnerToken, run_id: &RunId) -> Event {
    match notice {
        Notice::Acquired { took_over_from } => Event::LockAcquired {
            owner: owner.as_str().to_owned(),
            run_id: run_id.to_string(),
            took_over_from: took_over_from.map(|past| past.run_id.unwrap_or_default()),
        },
        Notice::Armed { token } => Event::LockArmed { fencing_token: token },
        Notice::Renewed { beats } => Event::LeaseRenewed { beats },
        Notice::RenewalFailed(fault) => Event::RenewalFailed { message: fault.message },
        Notice::Lost(cause) => Event::LeaseLost { cause },
        Notice::Released => Event::LockReleased,
    }
}

fn emit(metrics: &Mutex<Metrics>, host: &impl Host, event: &Event) {
    metrics.lock().unwrap_or_else(PoisonError::into_inner).observe(event);
    host.emit(event);
}

/// A random number from 0 to 1.
fn jitter() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl RunResult {
    fn skipped(file: String, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        let status = ResultStatus::Skipped;
        Self {
            file,
            status,
            duration_ms: None,
            batch: None,
            reason,
            transaction: false,
            attempts: 0,
        }
    }
}
