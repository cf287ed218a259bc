//! Carrying out a plan: for each step claim, run, settle.

use std::time::Duration;

use super::{Permit, ResultStatus, RunError, RunResult, Runner, Stopped};
use crate::changelog::entry::{Entry, EntryError};
use crate::changelog::store::{ChangelogStore, Claim, Outcome, Settlement, Written};
use crate::clock::Clock;
use crate::event::{EntryFacts, Event, Finished};
use crate::host::{BodyCall, BodyReply, HookCall, Host, HostError, StopReason};
use crate::lock::lease::LossCause;
use crate::lock::orphans::Orphans;
use crate::migration::Direction;
use crate::plan::{Plan, Step};

/// How long a body may take to end after it was told to.
const GRACE: Duration = Duration::from_secs(5);

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
    };
    stage.hook(HookCall::BeforeAll).await.map_err(|error| stopped(error, vec![], results, 0))?;
    for (index, step) in plan.steps.into_iter().enumerate() {
        if runner.is_cancelled() {
            let cancelled = RunError::Cancelled { during: None, settled: true };
            return Err(stopped(cancelled, vec![], results, index));
        }
        match stage.step(index, &step).await {
            Ok(done) => results.push(done),
            Err(failure) => {
                let suppressed = failure.suppressed;
                return Err(stopped(failure.error, suppressed, results, index + failure.begun));
            }
        }
        if let Some(RunResult { status, file, duration_ms: Some(duration_ms), .. }) = results.last()
            && *status != ResultStatus::Skipped
        {
            let hook = HookCall::AfterEach { name: file.clone(), duration_ms: *duration_ms };
            let hooked = stage.hook(hook).await;
            hooked.map_err(|error| stopped(error, vec![], results, index + 1))?;
        }
    }
    let hooked = stage.hook(HookCall::AfterAll).await;
    hooked.map_err(|error| stopped(error, vec![], results, names.len()))
}

/// What all steps of a run share.
struct Stage<'a, G, H, C, O> {
    runner: &'a Runner<G, H, C>,
    permit: &'a Permit<'a>,
    /// Where our own operations are stopped; `None` without a lock.
    orphans: Option<&'a O>,
    direction: Direction,
    total: usize,
}

/// Why a step failed. `begun` is 1 if its body had begun, 0 if not.
struct Failure {
    error: RunError,
    suppressed: Vec<RunError>,
    begun: usize,
}

impl Failure {
    fn before_body(error: RunError) -> Self {
        Self { error, suppressed: vec![], begun: 0 }
    }

    fn after_body(error: RunError) -> Self {
        Self { error, suppressed: vec![], begun: 1 }
    }
}

impl<G: ChangelogStore, H: Host, C: Clock, O: Orphans> Stage<'_, G, H, C, O> {
    async fn step(&self, index: usize, step: &Step) -> Result<RunResult, Failure> {
        let name = step.name.to_string();
        let before = HookCall::BeforeEach { name: name.clone() };
        self.hook(before).await.map_err(Failure::before_body)?;
        let entry = match self.claim(step).await.map_err(Failure::before_body)? {
            Claimed::Ours(entry) => entry,
            Claimed::DoneByAnother => {
                let reason = "Applied by another run";
                self.runner
                    .emit(Event::MigrationSkipped { name: name.clone(), reason: reason.into() });
                return Ok(RunResult::skipped(name, reason));
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
            BodyReply::Done { duration_ms } => {
                if !transaction {
                    let outcome = self.success(Some(duration_ms));
                    self.settle(&name, &entry, outcome).await.map_err(Failure::after_body)?;
                }
                Ok(self.finished(step, duration_ms, transaction))
            }
            BodyReply::Threw { error, .. } => {
                Err(self.threw(&name, &entry, error, transaction).await)
            }
            BodyReply::Fenced { .. } => Err(Failure::after_body(RunError::Lost {
                cause: LossCause::Fenced,
                during: Some(name),
                settled: true,
            })),
            BodyReply::Conflict { .. } => {
                Err(Failure::after_body(self.conflict(&name, &entry).await))
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

    async fn claim(&self, step: &Step) -> Result<Claimed, RunError> {
        let job = &self.runner.job;
        let claim = Claim {
            name: step.name.clone(),
            expected: step.expected.clone(),
            direction: self.direction,
            batch: step.batch,
            checksum: step.checksum.clone(),
            description: step.exports.as_ref().and_then(|exports| exports.description.clone()),
            identity: job.identity.clone(),
            environment: job.environment.clone(),
            service: job.service.clone(),
        };
        let name = step.name.to_string();
        let proof = self.permit.guard.proof().ok_or_else(|| self.lost(None))?;
        match self.runner.changelog.claim(&proof, &claim).await {
            Written::Done(entry) => Ok(Claimed::Ours(entry)),
            Written::Conflict(found) => {
                let expected = EntryFacts::expected(&step.expected, step.last_run.as_deref());
                let conflict = self.runner.conflict(name.clone(), expected, found.as_ref(), false);
                let done = self.direction == Direction::Up && found.is_some_and(|e| e.is_applied());
                if done { Ok(Claimed::DoneByAnother) } else { Err(conflict) }
            }
            Written::Unknown(fault) => Err(RunError::OutcomeUnknown {
                name,
                reason: fault.message,
                cause_id: None,
                body_ran: false,
            }),
            Written::Refused(fault) => {
                Err(RunError::Database { doing: "claiming a migration", fault })
            }
        }
    }

    /// Runs the body, unless or until the lease is lost.
    async fn run_body(
        &self,
        step: &Step,
        entry: &Entry,
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
        self.runner.host.abort(reason);
        let until = self.runner.clock.now() + GRACE;
        let ending = async {
            tokio::select! {
                reply = &mut body => Some(reply),
                () = self.runner.clock.sleep_until(until) => None,
                () = self.runner.abandoned() => None,
            }
        };
        // What the body has sent is still running on the server; it shall end together with it.
        let (settled, ()) = tokio::join!(ending, async {
            if let StopReason::LeaseLost(_) = reason {
                self.stop_operations().await;
            }
        });
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
                self.stop_operations().await;
                Err(Failure::after_body(RunError::Cancelled { during, settled: false }))
            }
        }
    }

    async fn stop_operations(&self) {
        if let Some(orphans) = self.orphans {
            self.runner.stop_own_operations(orphans).await;
        }
    }

    /// Records what a body came to.
    async fn settle(&self, name: &str, entry: &Entry, outcome: Outcome) -> Result<(), RunError> {
        let proof = self.permit.guard.proof().ok_or_else(|| self.lost(Some(name)))?;
        let settlement = self.settlement(entry, outcome);
        match self.runner.changelog.settle(&proof, &settlement).await {
            Written::Done(_) => Ok(()),
            Written::Conflict(found) => Err(self.runner.conflict(
                name.to_owned(),
                EntryFacts::found(entry),
                found.as_ref(),
                true,
            )),
            Written::Unknown(fault) => Err(RunError::OutcomeUnknown {
                name: name.to_owned(),
                reason: fault.message,
                cause_id: None,
                body_ran: true,
            }),
            Written::Refused(fault) => {
                Err(RunError::Database { doing: "recording a migration", fault })
            }
        }
    }

    /// A body that threw: record it, tell the hook, and let nothing hide what it threw.
    async fn threw(
        &self,
        name: &str,
        entry: &Entry,
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
            Ok(()) => failed,
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
        suppressed.extend(self.hook(hook).await.err());
        Failure { error: failed, suppressed, begun: 1 }
    }

    /// A transactional body whose settle matched nothing: find out what is there instead.
    async fn conflict(&self, name: &str, entry: &Entry) -> RunError {
        if self.permit.guard.proof().is_none() {
            return self.lost(Some(name));
        }
        match self.runner.entries().await {
            Ok(entries) => {
                let found = entries.iter().find(|now| now.key == entry.key);
                self.runner.conflict(name.to_owned(), EntryFacts::found(entry), found, true)
            }
            Err(error) => error,
        }
    }

    fn finished(&self, step: &Step, duration_ms: i64, transaction: bool) -> RunResult {
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
        });
        let duration_ms = Some(duration_ms);
        RunResult { file, status: status.into(), duration_ms, batch, reason: None, transaction }
    }

    fn success(&self, duration_ms: Option<i64>) -> Outcome {
        match self.direction {
            Direction::Up => Outcome::Applied { duration_ms },
            Direction::Down => Outcome::Reverted,
        }
    }

    fn settlement(&self, entry: &Entry, outcome: Outcome) -> Settlement {
        Settlement {
            key: entry.key.clone(),
            version: entry.version.unwrap_or_default(),
            run_id: self.runner.job.identity.run_id.clone(),
            outcome,
        }
    }

    fn lost(&self, during: Option<&str>) -> RunError {
        let cause: LossCause = self.permit.guard.loss();
        RunError::Lost { cause, during: during.map(str::to_owned), settled: true }
    }

    async fn hook(&self, call: HookCall) -> Result<(), RunError> {
        let (hook, name) = match &call {
            HookCall::BeforeAll => ("beforeAll", None),
            HookCall::BeforeEach { name } => ("beforeEach", Some(name.clone())),
            HookCall::AfterEach { name, .. } => ("afterEach", Some(name.clone())),
            HookCall::AfterAll => ("afterAll", None),
            HookCall::OnError { name, .. } => ("onError", Some(name.clone())),
        };
        let done = self.runner.host.hook(call).await?;
        done.map_err(|error| RunError::Hook { hook, name, error })
    }
}

enum Claimed {
    Ours(Entry),
    DoneByAnother,
}
