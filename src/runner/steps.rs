//! Carrying out a plan: for each step claim, run, settle.

use std::future::Future;
use std::time::Duration;

use super::claiming::Claimed;
use super::{Permit, ResultStatus, RunError, RunResult, Runner, Stopped};
use crate::changelog::entry::EntryError;
use crate::changelog::store::{ChangelogStore, ClaimedEntry, Claiming, Outcome};
use crate::clock::Clock;
use crate::event::{Event, Finished};
use crate::host::{BodyCall, BodyReply, HookCall, Host, HostError, StopReason};
use crate::lock::lease::LossCause;
use crate::lock::orphans::Orphans;
use crate::migration::Direction;
use crate::plan::{Plan, Step};

/// The server's code for an operation that somebody has ended.
const INTERRUPTED: i32 = 11601;
/// How long the news of a lost lock may take: a watch or a renewal has told of it by then.
const NEWS_PATIENCE: Duration = Duration::from_secs(1);

/// How long a body or a hook may take to end after it was told to.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Runs every step of a plan; `results` grows as they are done.
pub(super) async fn carry_out<G: ChangelogStore, H: Host, C: Clock, O: Orphans>(
    runner: &Runner<G, H, C>,
    permit: &Permit<'_>,
    orphans: Option<&O>,
    plan: Plan,
    results: &mut Vec<RunResult>,
) -> Result<(), Stopped> {
    let names: Vec<String> = plan.steps.iter().map(|step| step.name.to_string()).collect();
    let direction = plan.direction;
    runner.emit(Event::Planned { direction, names: names.clone() });
    let stage = Stage { runner, permit, orphans, direction, total: names.len() };
    let stopped = |error: RunError, suppressed, results: &[RunResult], begun: usize| Stopped {
        error,
        suppressed,
        results: results.to_vec(),
        not_started: names.iter().skip(begun).cloned().collect(),
        metrics: None,
    };
    let hooked = stage.hook(HookCall::BeforeAll).await;
    hooked.map_err(|failure| stopped(failure.error, failure.suppressed, results, 0))?;
    let mut ahead = None;
    for (index, step) in plan.steps.iter().enumerate() {
        let next = plan.steps.get(index + 1);
        if runner.is_cancelled() {
            stage.withdraw(step, ahead).await;
            let cancelled = RunError::Cancelled { during: None, settled: true };
            return Err(stopped(cancelled, vec![], results, index));
        }
        match stage.step(index, step, next, ahead.take()).await {
            Ok((done, claiming)) => {
                results.push(done);
                ahead = claiming;
            }
            Err(failure) => {
                let suppressed = failure.suppressed;
                return Err(stopped(failure.error, suppressed, results, index + failure.begun));
            }
        }
        if let Some(RunResult { status, file, duration_ms: Some(duration_ms), .. }) = results.last()
            && *status != ResultStatus::Skipped
        {
            let hook = HookCall::AfterEach { name: file.clone(), duration_ms: *duration_ms };
            if let Err(Failure { error, suppressed, .. }) = stage.hook(hook).await {
                if let Some(next) = next {
                    stage.withdraw(next, ahead).await;
                }
                return Err(stopped(error, suppressed, results, index + 1));
            }
        }
    }
    let hooked = stage.hook(HookCall::AfterAll).await;
    hooked.map_err(|failure| stopped(failure.error, failure.suppressed, results, names.len()))
}

/// What all steps of a run share.
pub(super) struct Stage<'a, G, H, C, O> {
    pub(super) runner: &'a Runner<G, H, C>,
    pub(super) permit: &'a Permit<'a>,
    /// Where our own operations are stopped; `None` without a lock.
    orphans: Option<&'a O>,
    pub(super) direction: Direction,
    total: usize,
}

/// Why a step failed. `begun` is 1 if its body had begun, 0 if not.
pub(super) struct Failure {
    pub(super) error: RunError,
    pub(super) suppressed: Vec<RunError>,
    pub(super) begun: usize,
}

impl Failure {
    pub(super) fn before_body(error: RunError) -> Self {
        Self { error, suppressed: vec![], begun: 0 }
    }

    fn after_body(error: RunError) -> Self {
        Self { error, suppressed: vec![], begun: 1 }
    }
}

impl<G: ChangelogStore, H: Host, C: Clock, O: Orphans> Stage<'_, G, H, C, O> {
    /// One step, which may be claimed `ahead` already; what comes of the `next` one's claim, if it was
    /// made together with the record of this one.
    async fn step(
        &self,
        index: usize,
        step: &Step,
        next: Option<&Step>,
        ahead: Option<Claiming>,
    ) -> Result<(RunResult, Option<Claiming>), Failure> {
        let name = step.name.to_string();
        let before = HookCall::BeforeEach { name: name.clone() };
        if let Err(failure) = self.hook(before).await {
            self.withdraw(step, ahead).await;
            return Err(failure);
        }
        let entry = match self.claim(step, ahead).await.map_err(Failure::before_body)? {
            Claimed::Ours(entry) => entry,
            Claimed::DoneByAnother => {
                let reason = "Applied by another run";
                self.runner
                    .emit(Event::MigrationSkipped { name: name.clone(), reason: reason.into() });
                return Ok((RunResult::skipped(name, reason), None));
            }
        };
        self.runner.emit(Event::MigrationStarted {
            name: name.clone(),
            direction: self.direction,
            position: index + 1,
            total: self.total,
            rerun_of: step.rerun_of,
            forced: step.forced,
        });
        let transaction = step.transactional(self.runner.job.policy);
        let reply = self.run_body(step, &entry, transaction).await?;
        match reply {
            BodyReply::Done { duration_ms, attempts } => {
                let mut claiming = None;
                if !transaction {
                    let outcome = self.success(Some(duration_ms));
                    let settled = self.settle_and_claim(&name, &entry, outcome, next).await;
                    claiming = settled.map_err(Failure::after_body)?;
                }
                Ok((self.finished(step, duration_ms, transaction, attempts), claiming))
            }
            BodyReply::Threw { error, .. } => {
                if error.context["code"] == INTERRUPTED {
                    self.await_news().await;
                }
                Err(self.threw(&name, &entry, error, transaction).await)
            }
            BodyReply::Fenced { .. } => Err(Failure::after_body(RunError::Lost {
                cause: LossCause::Fenced,
                during: Some(name),
                settled: true,
            })),
            BodyReply::Conflict { .. } => {
                Err(Failure::after_body(self.not_committed(&name, &entry).await))
            }
            BodyReply::Unknown { error, .. } => {
                Err(Failure::after_body(RunError::OutcomeUnknown {
                    name,
                    reason: error.message,
                    cause_id: Some(error.cause_id),
                    body_ran: true,
                }))
            }
        }
    }

    /// Runs the body, unless or until the lease is lost.
    async fn run_body(
        &self,
        step: &Step,
        entry: &ClaimedEntry,
        transaction: bool,
    ) -> Result<BodyReply, Failure> {
        let settle = transaction.then(|| {
            let settlement = self.settlement(entry, self.success(None));
            self.runner.changelog.settle_command(&settlement)
        });
        let fencing = self.permit.fencing.as_ref();
        let body = self.runner.host.run(BodyCall {
            name: step.name.clone(),
            direction: self.direction,
            run_id: self.runner.job.identity.run_id.to_string(),
            fencing_token: fencing.map(|fencing| fencing.token),
            settle,
            fence: fencing.map(|fencing| fencing.command.clone()),
        });
        tokio::pin!(body);
        let reason = tokio::select! {
            reply = &mut body => return reply.map_err(|gone| Failure::after_body(gone.into())),
            cause = self.permit.guard.lost() => StopReason::LeaseLost(cause),
            () = self.runner.cancelled() => StopReason::Cancelled,
        };
        let settled = self.told(reason, &mut body).await;
        let during = Some(step.name.to_string());
        match (reason, settled) {
            (StopReason::LeaseLost(cause), settled) => {
                let settled = settled.is_some();
                Err(Failure::after_body(RunError::Lost { cause, during, settled }))
            }
            // A body that ends when it is told to ends as any other does.
            (StopReason::Cancelled, Some(reply)) => {
                reply.map_err(|gone| Failure::after_body(gone.into()))
            }
            (StopReason::Cancelled, None) => {
                Err(Failure::after_body(RunError::Cancelled { during, settled: false }))
            }
        }
    }

    /// Tells what is running of the user's to stop; what came of it, if it ends in time.
    pub(super) async fn told<T>(
        &self,
        reason: StopReason,
        work: &mut (impl Future<Output = T> + Unpin),
    ) -> Option<T> {
        self.runner.host.abort(reason);
        let until = self.runner.clock.now() + GRACE;
        let ending = async {
            tokio::select! {
                reply = work => Some(reply),
                () = self.runner.clock.sleep_until(until) => None,
                () = self.runner.abandoned() => None,
            }
        };
        // What it has sent is still running on the server; it shall end together with it.
        let (ended, ()) = tokio::join!(ending, async {
            if let StopReason::LeaseLost(_) = reason {
                self.stop_operations().await;
            }
        });
        if let (StopReason::Cancelled, None) = (reason, &ended) {
            self.stop_operations().await;
        }
        ended
    }

    async fn stop_operations(&self) {
        if let Some(orphans) = self.orphans {
            self.runner.stop_own_operations(orphans).await;
        }
    }

    /// Somebody has ended an operation of the body's. Whoever took the lock over does that before it
    /// begins, and can be faster than the news that the lock is gone.
    async fn await_news(&self) {
        if !self.permit.guard.is_leased() {
            return;
        }
        let until = self.runner.clock.now() + NEWS_PATIENCE;
        tokio::select! {
            _ = self.permit.guard.gone() => {}
            () = self.runner.clock.sleep_until(until) => {}
        }
    }

    /// A body that threw: record it, tell the hook, and let nothing hide what it threw.
    async fn threw(
        &self,
        name: &str,
        entry: &ClaimedEntry,
        error: HostError,
        transaction: bool,
    ) -> Failure {
        let noted = EntryError { name: error.name.clone(), message: error.message.clone() };
        let outcome = match self.direction {
            Direction::Up => Outcome::UpFailed(noted),
            Direction::Down => Outcome::DownFailed(noted),
        };
        let mut suppressed = Vec::new();
        let recorded = self.settle(name, entry, outcome).await;
        let described = serde_json::to_value(&error).ok();
        let cause_id = error.cause_id;
        let failed = RunError::Migration {
            name: name.to_owned(),
            direction: self.direction,
            error,
            transaction,
        };
        let failed = match recorded {
            Ok(()) if self.runner.is_cancelled() => {
                suppressed.push(failed);
                RunError::Cancelled { during: Some(name.to_owned()), settled: true }
            }
            Ok(()) => {
                // It may have failed because another run has stopped its operations.
                suppressed.extend(self.permit.guard.is_gone().then(|| self.lost(Some(name))));
                failed
            }
            // Without the lease the failure says little: the loss is the news.
            Err(lost @ RunError::Lost { .. }) => {
                suppressed.push(failed);
                lost
            }
            Err(other) => {
                suppressed.push(other);
                failed
            }
        };
        self.runner.emit(Event::MigrationFailed {
            name: name.to_owned(),
            direction: self.direction,
            error: described,
        });
        let hook = HookCall::OnError { name: name.to_owned(), cause_id };
        suppressed.extend(self.hook(hook).await.err().map(|failure| failure.error));
        Failure { error: failed, suppressed, begun: 1 }
    }

    fn finished(
        &self,
        step: &Step,
        duration_ms: i64,
        transaction: bool,
        attempts: u32,
    ) -> RunResult {
        let status = match self.direction {
            Direction::Up => Finished::Applied,
            Direction::Down => Finished::Reverted,
        };
        let batch = step.batch.filter(|_| self.direction == Direction::Up);
        let file = step.name.to_string();
        let name = file.clone();
        self.runner.emit(Event::MigrationFinished {
            name,
            status,
            duration_ms,
            batch,
            transaction,
            attempts,
        });
        RunResult {
            file,
            status: status.into(),
            duration_ms: Some(duration_ms),
            batch,
            reason: None,
            transaction,
            attempts,
        }
    }

    /// An entry that another run has moved while ours went on without its lease: the loss is the
    /// news. The conflict has been told as an event.
    pub(super) fn explained(&self, conflict: RunError, during: Option<&str>) -> RunError {
        if self.permit.guard.is_gone() { self.lost(during) } else { conflict }
    }

    pub(super) fn lost(&self, during: Option<&str>) -> RunError {
        let cause: LossCause = self.permit.guard.loss();
        RunError::Lost { cause, during: during.map(str::to_owned), settled: true }
    }
}
