//! The sequencer: one run, from the first look at the changelog to the release of the lock.
//!
//! ```text
//! read the changelog ─ nothing to do ─▶ leave (one read, no lock)
//!        │
//! load and check the files, connect the host
//!        │
//! ask for the lock ◀─ held: wait, read the changelog again ─ nothing left ─▶ leave
//!        │
//! read the changelog again, plan again           (only this plan is carried out)
//!        │
//! for each step: claim ─ run ─ settle            (`steps`)
//!        │
//! release
//! ```
//!
//! # Promises
//! - No body runs and nothing is recorded without a lease that is trusted at that moment.
//! - Every problem of the plan is reported before the first body, all of them at once.
//! - The first error is the one reported; what fails after it is attached to it.
//! - Whatever happens between acquire and release, the release is sent.

mod report;
mod steps;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use report::{Report, ResultStatus, RunError, RunResult, Stopped};

use crate::changelog::entry::Entry;
use crate::changelog::store::ChangelogStore;
use crate::clock::Clock;
use crate::event::Event;
use crate::fault::StoreFault;
use crate::host::{Host, ModuleFacts};
use crate::lock::keeper::{Lease, LeaseEnd, LeaseGuard, NotAcquired, NoticeSink};
use crate::lock::lease::{Identity, OwnerToken};
use crate::lock::protocol::Notice;
use crate::lock::store::{Attempt, LockStore};
use crate::lock::timing::Timing;
use crate::lock::wait::{Verdict, WaitPolicy, Waiting};
use crate::metrics::Metrics;
use crate::migration::{MigrationFile, MigrationName};
use crate::plan::{Inputs, Plan, Policy, Problem, Request, Vantage};

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
    metrics: Arc<Mutex<Metrics>>,
    loaded: HashMap<MigrationName, ModuleFacts>,
    /// Does the server know transactions? Asked when the first step wants one.
    transactions: Option<bool>,
}

/// The lock's answer to a run.
enum Entrance {
    Leased(Box<Lease>),
    /// Somebody else has done it all in the meantime.
    NothingLeft(Plan),
}

/// How long a run has waited for the lock.
#[derive(Debug, Clone, Copy, Default)]
struct Wait {
    waited: bool,
    lasted: Duration,
}

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// A run that has not begun.
    pub fn new(changelog: Arc<G>, host: Arc<H>, clock: C, job: Job) -> Self {
        let (metrics, loaded) = (Arc::default(), HashMap::new());
        Self { changelog, host, clock, job, metrics, loaded, transactions: None }
    }

    /// Runs. `open_lock` is called only when there is something to do and a lock is wanted.
    ///
    /// # Errors
    /// [`Stopped`], with what had been done by then.
    ///
    /// # Cancellation
    /// Dropping the future releases the lock in the background; a body that has begun goes on
    /// unobserved and its entry stays `running`.
    pub async fn run<L, F>(
        mut self,
        open_lock: impl FnOnce() -> F + Send,
    ) -> Result<Report, Stopped>
    where
        L: LockStore,
        F: Future<Output = Result<Arc<L>, StoreFault>> + Send,
    {
        if self.job.lock.is_none() {
            self.warn("NO_LOCK", "Running without a lock (--no-lock) — concurrent runs are unsafe");
        }
        let mut plan = self.plan(Vantage::BeforeLock).await?;
        if plan.steps.is_empty() {
            self.warn_of(&plan);
            return Ok(self.nothing_to_do(&plan, Wait::default()));
        }
        self.check(&mut plan, Vantage::BeforeLock).await?;
        let app_name = self.job.identity.run_id.app_name();
        self.host
            .connect(app_name)
            .await
            .map_err(RunError::Host)?
            .map_err(RunError::HostConnection)?;
        let Some(policy) = self.job.lock else {
            return self.under_lock(&LeaseGuard::unlocked(), Wait::default()).await;
        };
        let store = open_lock()
            .await
            .map_err(|fault| RunError::Database { doing: "connecting for the lock", fault })?;
        let (entrance, wait) = self.enter(store, policy).await?;
        match entrance {
            Entrance::NothingLeft(plan) => Ok(self.nothing_to_do(&plan, wait)),
            Entrance::Leased(lease) => {
                let guard = lease.guard().clone();
                let outcome = self.under_lock(&guard, wait).await;
                self.leave(*lease, outcome).await
            }
        }
    }

    /// Asks for the lock until it is ours, nothing is left to do, or the wait is over.
    async fn enter<L: LockStore>(
        &self,
        store: Arc<L>,
        policy: WaitPolicy,
    ) -> Result<(Entrance, Wait), RunError> {
        let began = self.clock.now();
        let mut waiting = Waiting::new(policy);
        let mut announced = None;
        loop {
            let lasted = self.clock.now().since(began);
            let wait = Wait { waited: announced.is_some(), lasted };
            let owner = OwnerToken::random();
            let attempt = Attempt {
                owner: owner.clone(),
                identity: self.job.identity.clone(),
                timing: self.job.timing,
            };
            let notices = self.notices(owner);
            let store = Arc::clone(&store);
            let holder = match Lease::acquire(store, self.clock.clone(), attempt, notices).await {
                Ok(lease) => return Ok((Entrance::Leased(Box::new(lease)), wait)),
                Err(NotAcquired::Held(holder)) => holder,
                Err(NotAcquired::Failed(fault)) => {
                    return Err(RunError::Database { doing: "taking the lock", fault });
                }
            };
            match waiting.judge(&holder, lasted, jitter()) {
                Verdict::GiveUp => {
                    let waited_ms = whole_ms(lasted);
                    return Err(RunError::LockHeld { holder: Box::new(holder), waited_ms });
                }
                Verdict::Again(pause) => {
                    // Once for each holder, not for each look.
                    if announced.as_ref() != Some(&holder.owner) {
                        announced = Some(holder.owner.clone());
                        self.emit(Event::LockWaiting { holder, retry_in_ms: whole_ms(pause) });
                    }
                    self.clock.sleep_until(self.clock.now() + pause).await;
                }
            }
            // Most waiters wait for somebody who does their very work.
            let plan = self.plan(Vantage::BeforeLock).await?;
            if plan.steps.is_empty() {
                let lasted = self.clock.now().since(began);
                return Ok((Entrance::NothingLeft(plan), Wait { waited: true, lasted }));
            }
        }
    }

    /// Everything that happens while the lock is ours.
    async fn under_lock(&mut self, guard: &LeaseGuard, wait: Wait) -> Result<Report, Stopped> {
        let mut plan = self.plan(Vantage::UnderLock).await?;
        self.check(&mut plan, Vantage::UnderLock).await?;
        self.warn_of(&plan);
        if plan.steps.is_empty() {
            return Ok(self.nothing_to_do(&plan, wait));
        }
        let mut results = self.skipped(&plan);
        steps::carry_out(self, guard, plan, &mut results).await?;
        Ok(self.report(results, wait))
    }

    /// Gives the lock back. A failure to do so never hides what came before it.
    async fn leave(
        &self,
        lease: Lease,
        outcome: Result<Report, Stopped>,
    ) -> Result<Report, Stopped> {
        let trouble = match lease.release().await {
            LeaseEnd::Released => None,
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
        // The counters went on while the lock was being released.
        outcome
            .map(|report| Report { metrics: self.metrics(report.metrics.lock_wait_ms), ..report })
    }

    async fn plan(&self, vantage: Vantage) -> Result<Plan, RunError> {
        let entries = self.entries().await?;
        let Job { files, policy, request, .. } = &self.job;
        let inputs = Inputs { files, entries: &entries, policy: *policy, vantage };
        Plan::new(request, inputs).map_err(RunError::Impossible)
    }

    async fn entries(&self) -> Result<Vec<Entry>, RunError> {
        self.changelog
            .entries(&self.job.identity.namespace)
            .await
            .map_err(|fault| RunError::Database { doing: "reading the changelog", fault })
    }

    /// Has the host load what it has not loaded yet, and checks the plan against it.
    async fn check(&mut self, plan: &mut Plan, vantage: Vantage) -> Result<(), RunError> {
        let names: Vec<_> = plan
            .steps
            .iter()
            .filter(|step| !self.loaded.contains_key(&step.name))
            .map(|step| step.name.clone())
            .collect();
        if !names.is_empty() {
            let facts = self.host.load(names).await?;
            self.loaded.extend(facts.into_iter().map(|facts| (facts.name.clone(), facts)));
        }
        let policy = self.job.policy;
        plan.check_exports(&self.loaded, policy, vantage).map_err(RunError::Impossible)?;
        let transactional = plan.steps.iter().filter(|step| step.transactional(policy));
        let names: Vec<_> = transactional.map(|step| step.name.to_string()).collect();
        if names.is_empty() || self.knows_transactions().await? {
            return Ok(());
        }
        Err(RunError::Impossible(vec![Problem::TransactionsUnsupported { names }]))
    }

    async fn knows_transactions(&mut self) -> Result<bool, RunError> {
        if let Some(known) = self.transactions {
            return Ok(known);
        }
        let known = self.changelog.transactions().await.map_err(|fault| RunError::Database {
            doing: "asking the server for transactions",
            fault,
        })?;
        self.transactions = Some(known);
        Ok(known)
    }

    fn skipped(&self, plan: &Plan) -> Vec<RunResult> {
        let reason = "Already applied";
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
        let waited_ms = whole_ms(wait.lasted);
        let waited_ms = if wait.waited { waited_ms } else { 0 };
        let metrics = self.metrics(waited_ms);
        Report { results, up_to_date, waited: wait.waited, waited_ms, metrics }
    }

    fn metrics(&self, lock_wait_ms: u64) -> Metrics {
        let counted = *self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        Metrics { lock_wait_ms, ..counted }
    }

    fn warn_of(&self, plan: &Plan) {
        for warning in &plan.warnings {
            self.emit(Event::Warning {
                code: warning.code,
                message: warning.message.clone(),
                context: serde_json::json!({ "names": warning.names }),
            });
        }
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
        let run_id = self.job.identity.run_id.to_string();
        Arc::new(move |notice| {
            let event = match notice {
                Notice::Acquired { took_over_from } => Event::LockAcquired {
                    owner: owner.as_str().to_owned(),
                    run_id: run_id.clone(),
                    took_over_from: took_over_from.map(|past| past.run_id.unwrap_or_default()),
                },
                Notice::Renewed { beats } => Event::LeaseRenewed { beats },
                Notice::RenewalFailed(fault) => Event::RenewalFailed { message: fault.message },
                Notice::Lost(cause) => Event::LeaseLost { cause },
                Notice::Released => Event::LockReleased,
            };
            emit(&metrics, host.as_ref(), &event);
        })
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
        Self { file, status, duration_ms: None, batch: None, reason, transaction: false }
    }
}
