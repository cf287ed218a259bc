//! Claims: made when their step's turn comes or, together with the record of the step before, ahead
//! of it (`settling`); and taken back when their body will not begin.
//!
//! A process that dies after a claim and before its body leaves an entry `running` whose body has not
//! begun. The next run treats it as interrupted, as it does one whose body had.

use super::RunError;
use super::steps::Stage;
use crate::changelog::store::{ChangelogStore, Claim, ClaimedEntry, Claiming};
use crate::clock::Clock;
use crate::event::EntryFacts;
use crate::host::Host;
use crate::lock::orphans::Orphans;
use crate::migration::Direction;
use crate::plan::Step;

/// What came of a step's claim.
pub(super) enum Claimed {
    Ours(ClaimedEntry),
    DoneByAnother,
}

impl<G: ChangelogStore, H: Host, C: Clock, O: Orphans> Stage<'_, G, H, C, O> {
    /// Claims a step, or takes up what came of a claim that was made `ahead`.
    pub(super) async fn claim(
        &self,
        step: &Step,
        ahead: Option<Claiming>,
    ) -> Result<Claimed, RunError> {
        let name = step.name.to_string();
        let proof = self.permit.guard.proof().ok_or_else(|| self.lost(None))?;
        let claiming = match ahead {
            Some(claiming) => claiming,
            None => {
                let claim = self.claim_of(step);
                Claiming::of(self.runner.changelog.claim(&proof, &claim).await, &claim)
            }
        };
        match claiming {
            Claiming::Ours(entry) => Ok(Claimed::Ours(entry)),
            Claiming::Conflict(found) => {
                let expected = EntryFacts::expected(&step.expected, step.last_run.as_deref());
                let conflict = self.runner.conflict(name.clone(), expected, found.as_ref(), false);
                let done = self.direction == Direction::Up && found.is_some_and(|e| e.is_applied());
                if done { Ok(Claimed::DoneByAnother) } else { Err(self.explained(conflict, None)) }
            }
            Claiming::Unknown(fault) => Err(RunError::unknown(&name, fault, false)),
            Claiming::Refused(fault) => {
                Err(self.runner.refusal(step, "claiming a migration", fault).await)
            }
        }
    }

    /// Takes back the claim of a step whose body will not begin, as far as that is possible: what
    /// remains looks interrupted, and the next run begins it.
    pub(super) async fn withdraw(&self, step: &Step, ahead: Option<Claiming>) {
        if let (Some(Claiming::Ours(entry)), Some(proof)) = (ahead, self.permit.guard.proof()) {
            let _ = self.runner.changelog.withdraw(&proof, &entry, &step.expected).await;
        }
    }

    pub(super) fn claim_of(&self, step: &Step) -> Claim {
        let job = &self.runner.job;
        Claim {
            name: step.name.clone(),
            expected: step.expected.clone(),
            direction: self.direction,
            batch: step.batch,
            checksum: step.checksum.clone(),
            description: step.exports.as_ref().and_then(|exports| exports.description.clone()),
            identity: job.identity.clone(),
            environment: job.environment.clone(),
            service: job.service.clone(),
        }
    }
}
