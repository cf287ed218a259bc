//! The first look around: has another tool applied already what is pending here?
//!
//! Asked only while the changelog has nothing of our own, so it is over with the first migration that
//! we apply, and an app that is up to date never pays for it.

use super::{RunError, Runner};
use crate::changelog::entry::Entry;
use crate::changelog::store::{ChangelogStore, Expected, Lookout};
use crate::clock::Clock;
use crate::fault::{FaultKind, StoreFault};
use crate::host::Host;
use crate::import::neighbour::{Doubtful, neighbour};
use crate::migration::{Direction, MigrationName};
use crate::plan::{Foreign, Plan, Problem, Vantage};

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// The plan of a run that has just begun: it must not run what another tool has applied, nor
    /// create what the collection can't hold.
    pub(super) async fn first_plan(&self, vantage: Vantage) -> Result<Plan, RunError> {
        let entries = self.entries().await?;
        let plan = self.plan_from(&entries, vantage)?;
        if self.job.policy.foreign == Foreign::Refuse && self.job.request.runs_bodies() {
            self.look_around(&plan, &entries).await?;
        }
        self.check_names(&plan).await?;
        Ok(plan)
    }

    async fn look_around(&self, plan: &Plan, entries: &[Entry]) -> Result<(), RunError> {
        // Entries with an origin were imported or marked: no migration has run here yet.
        let nothing_ours = entries.iter().all(|entry| entry.origin.is_some());
        let names: Vec<MigrationName> = plan
            .steps
            .iter()
            .filter(|step| step.expected == Expected::Absent)
            .map(|step| step.name.clone())
            .collect();
        if plan.direction == Direction::Down || !nothing_ours || names.is_empty() {
            return Ok(());
        }
        let sources = match self.changelog.foreign(Lookout::Everywhere).await {
            Ok(sources) => sources,
            // What we may not look at is not ours to judge.
            Err(StoreFault { kind: FaultKind::Unauthorized, .. }) => return Ok(()),
            Err(fault) => {
                let doing = "looking for other tools' changelogs";
                return Err(RunError::Database { doing, fault });
            }
        };
        let doubtful = if entries.is_empty() { Doubtful::Count } else { Doubtful::Ignore };
        let Some(found) = neighbour(&sources, &self.job.files, &names, doubtful) else {
            return Ok(());
        };
        Err(RunError::Impossible(vec![Problem::ForeignChangelog {
            command: found.command(),
            collection: found.collection,
            tool: found.tool.name(),
            names: found.names.iter().map(ToString::to_string).collect(),
        }]))
    }
}
