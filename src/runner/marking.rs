//! A mark: one conditional write under the lock, and no body.

use super::{Permit, ResultStatus, RunError, RunResult, Runner};
use crate::changelog::store::{ChangelogStore, Mark, Verdict, Written};
use crate::clock::Clock;
use crate::event::{EntryFacts, Event, Finished};
use crate::host::Host;
use crate::migration::Direction;
use crate::plan::Step;

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// Writes what a person says of the step's migration.
    pub(super) async fn mark(
        &self,
        permit: &Permit<'_>,
        step: &Step,
        direction: Direction,
        reason: Option<String>,
    ) -> Result<RunResult, RunError> {
        let name = step.name.to_string();
        let job = &self.job;
        let mark = Mark {
            name: step.name.clone(),
            expected: step.expected.clone(),
            verdict: verdict(step, direction),
            reason: reason.clone(),
            identity: job.identity.clone(),
            environment: job.environment.clone(),
            service: job.service.clone(),
        };
        let lost = || RunError::Lost { cause: permit.guard.loss(), during: None, settled: true };
        let proof = permit.guard.proof().ok_or_else(lost)?;
        match self.changelog.mark(&proof, &mark).await {
            Written::Done(_) => Ok(self.marked(name, direction, step.batch, reason)),
            Written::Conflict(found) => {
                let expected = EntryFacts::expected(&step.expected, step.last_run.as_deref());
                Err(self.conflict(name, expected, found.as_ref(), false))
            }
            Written::Unknown(fault) => Err(RunError::unknown(&name, fault, false)),
            Written::Refused(fault) => Err(self.refusal(step, "marking a migration", fault).await),
        }
    }

    fn marked(
        &self,
        file: String,
        direction: Direction,
        batch: Option<i64>,
        reason: Option<String>,
    ) -> RunResult {
        let status = match direction {
            Direction::Up => Finished::Applied,
            Direction::Down => Finished::Reverted,
        };
        let (name, said) = (file.clone(), reason.clone());
        self.emit(Event::MigrationMarked { name, status, reason: said });
        let status = ResultStatus::from(status);
        RunResult {
            file,
            status,
            duration_ms: None,
            batch,
            reason,
            transaction: false,
            attempts: 0,
        }
    }
}

/// A step that has a batch counts as applied from now on.
fn verdict(step: &Step, direction: Direction) -> Verdict {
    let checksum = step.checksum.clone().unwrap_or_default();
    match (direction, step.batch) {
        (Direction::Down, _) => Verdict::Reverted,
        (Direction::Up, Some(batch)) => Verdict::Applied { batch, checksum },
        (Direction::Up, None) => Verdict::Accepted { checksum },
    }
}
