//! The names that a run would give to entries: may the collection hold them?
//!
//! Asked before anything else by a run of a named namespace that would create entries: 1.x leaves a
//! unique index behind that lets each name in once, whatever its namespace. The default namespace does
//! not ask, as almost all collections are its own; there, and when the name was taken meanwhile, the
//! refused write is explained.

use super::{RunError, Runner};
use crate::changelog::store::{ChangelogStore, Expected, NameIndex};
use crate::clock::Clock;
use crate::fault::{FaultKind, StoreFault};
use crate::host::Host;
use crate::migration::MigrationName;
use crate::plan::{Plan, Problem, Step};

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// Refuses a plan whose entries can't all be created.
    ///
    /// # Errors
    /// The names that are taken, and the index that says so.
    pub(super) async fn check_names(&self, plan: &Plan) -> Result<(), RunError> {
        let identity = &self.job.identity;
        let created = plan.steps.iter().filter(|step| step.expected == Expected::Absent);
        let names: Vec<&MigrationName> = created.map(|step| &step.name).collect();
        if identity.namespace.name().is_none() || names.is_empty() {
            return Ok(());
        }
        match self.changelog.name_index(&identity.namespace, &names).await {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(RunError::name_taken(found, &identity.changelog)),
            // Who may not look finds out by the write.
            Err(StoreFault { kind: FaultKind::Unauthorized, .. }) => Ok(()),
            Err(fault) => Err(RunError::Database { doing: "looking for taken names", fault }),
        }
    }

    /// Why the server refused to write the entry of a step.
    pub(super) async fn refusal(
        &self,
        step: &Step,
        doing: &'static str,
        fault: StoreFault,
    ) -> RunError {
        let identity = &self.job.identity;
        if step.expected == Expected::Absent {
            let found = self.changelog.name_index(&identity.namespace, &[&step.name]).await;
            if let Ok(Some(found)) = found {
                return RunError::name_taken(found, &identity.changelog);
            }
        }
        RunError::Database { doing, fault }
    }
}

impl RunError {
    /// The index keeps entries out of this changelog.
    pub(crate) fn name_taken(NameIndex { index, names }: NameIndex, changelog: &str) -> Self {
        let collection = changelog.to_owned();
        Self::Impossible(vec![Problem::NameTaken { index, collection, names }])
    }
}
