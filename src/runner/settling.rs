//! Records of what a body came to: by themselves, or with the next migration's claim in one command,
//! where nothing of the user's comes between the two.
//!
//! A body has run whenever this is reached, so every error here names its migration.

use super::steps::Stage;
use super::{RunError, Runner};
use crate::changelog::entry::Entry;
use crate::changelog::store::{
    Advance, ChangelogStore, ClaimedEntry, Claiming, Outcome, Settlement, Written,
};
use crate::clock::Clock;
use crate::event::EntryFacts;
use crate::host::{Between, Host};
use crate::lock::orphans::Orphans;
use crate::migration::Direction;
use crate::plan::Step;

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// May the next migration be claimed while this one is being recorded? Not when a hook may still
    /// stop the run in between, not when the run is to end, and only in one command.
    fn claims_ahead(&self) -> bool {
        self.job.between == Between::Nothing
            && !self.is_cancelled()
            && self.changelog.claims_ahead()
    }
}

impl<G: ChangelogStore, H: Host, C: Clock, O: Orphans> Stage<'_, G, H, C, O> {
    /// Records that a body is done, and claims the next migration if that can be done at once.
    pub(super) async fn settle_and_claim(
        &self,
        name: &str,
        entry: &ClaimedEntry,
        outcome: Outcome,
        next: Option<&Step>,
    ) -> Result<Option<Claiming>, RunError> {
        let Some(next) = next.filter(|_| self.runner.claims_ahead()) else {
            return self.settle(name, entry, outcome).await.map(|()| None);
        };
        let proof = self.permit.guard.proof().ok_or_else(|| self.lost(Some(name)))?;
        let (settlement, claim) = (self.settlement(entry, outcome), self.claim_of(next));
        match self.runner.changelog.settle_and_claim(&proof, &settlement, &claim).await {
            Advance::Settled(claiming) => Ok(Some(claiming)),
            Advance::Conflict(found) => Err(self.moved(name, entry, found.as_ref())),
            Advance::Unknown(fault) => Err(RunError::unknown(name, fault, true)),
            Advance::Refused(fault) => Err(RunError::not_recorded(name, fault)),
        }
    }

    /// Records what a body came to.
    pub(super) async fn settle(
        &self,
        name: &str,
        entry: &ClaimedEntry,
        outcome: Outcome,
    ) -> Result<(), RunError> {
        let proof = self.permit.guard.proof().ok_or_else(|| self.lost(Some(name)))?;
        let settlement = self.settlement(entry, outcome);
        match self.runner.changelog.settle(&proof, &settlement).await {
            Written::Done(_) => Ok(()),
            Written::Conflict(found) => Err(self.moved(name, entry, found.as_ref())),
            Written::Unknown(fault) => Err(RunError::unknown(name, fault, true)),
            Written::Refused(fault) => Err(RunError::not_recorded(name, fault)),
        }
    }

    /// The entry is not as the claim left it.
    fn moved(&self, name: &str, entry: &ClaimedEntry, found: Option<&Entry>) -> RunError {
        let expected = EntryFacts::claimed(entry);
        let conflict = self.runner.conflict(name.to_owned(), expected, found, true);
        self.explained(conflict, Some(name))
    }

    /// A transactional body whose settle matched nothing: find out what is there instead.
    pub(super) async fn not_committed(&self, name: &str, entry: &ClaimedEntry) -> RunError {
        if self.permit.guard.proof().is_none() {
            return self.lost(Some(name));
        }
        match self.runner.entries().await {
            Ok(entries) => self.moved(name, entry, entries.iter().find(|now| now.key == entry.key)),
            Err(error) => error,
        }
    }

    pub(super) fn success(&self, duration_ms: Option<i64>) -> Outcome {
        match self.direction {
            Direction::Up => Outcome::Applied { duration_ms },
            Direction::Down => Outcome::Reverted,
        }
    }

    pub(super) fn settlement(&self, entry: &ClaimedEntry, outcome: Outcome) -> Settlement {
        Settlement {
            key: entry.key.clone(),
            version: entry.version,
            run_id: entry.run_id.clone(),
            outcome,
        }
    }
}
