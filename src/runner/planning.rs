//! What a run is going to do: the plan, from a fresh look at the changelog, and the files behind it,
//! loaded and checked.

use serde_json::json;

use super::{Job, RunError, Runner, Stopped};
use crate::changelog::entry::Entry;
use crate::changelog::store::ChangelogStore;
use crate::clock::Clock;
use crate::event::Event;
use crate::host::Host;
use crate::migration::MigrationName;
use crate::plan::{Inputs, Plan, Problem, Vantage};

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// What [`Runner::run`] would do, found out without a lock: the names in the order of the run.
    /// Loads and checks the files, and writes nothing.
    ///
    /// # Errors
    /// What would stop the run before its first body.
    pub async fn rehearse(mut self, vantage: Vantage) -> Result<Vec<MigrationName>, Stopped> {
        let mut plan = self.first_plan(vantage).await?;
        self.check(&mut plan, vantage).await?;
        self.warn_of(&plan);
        Ok(plan.steps.into_iter().map(|step| step.name).collect())
    }

    pub(super) async fn plan(&self, vantage: Vantage) -> Result<Plan, RunError> {
        self.plan_from(&self.entries().await?, vantage)
    }

    pub(super) fn plan_from(&self, entries: &[Entry], vantage: Vantage) -> Result<Plan, RunError> {
        let Job { files, policy, request, .. } = &self.job;
        let inputs = Inputs { files, entries, policy: *policy, vantage };
        Plan::new(request, inputs).map_err(RunError::Impossible)
    }

    /// The plan of a redo's second half.
    pub(super) async fn again(&mut self, name: &MigrationName) -> Result<Plan, RunError> {
        let entries = self.entries().await?;
        let Job { files, policy, .. } = &self.job;
        let vantage = Vantage::UnderLock;
        let inputs = Inputs { files, entries: &entries, policy: *policy, vantage };
        let mut plan = Plan::again(name, inputs).map_err(RunError::Impossible)?;
        self.check(&mut plan, vantage).await?;
        self.warn_of(&plan);
        Ok(plan)
    }

    pub(super) async fn entries(&self) -> Result<Vec<Entry>, RunError> {
        self.changelog
            .entries(&self.job.identity.namespace)
            .await
            .map_err(|fault| RunError::Database { doing: "reading the changelog", fault })
    }

    /// Has the host load what it has not loaded yet, and checks the plan against it.
    pub(super) async fn check(
        &mut self,
        plan: &mut Plan,
        vantage: Vantage,
    ) -> Result<(), RunError> {
        let names: Vec<_> = plan
            .steps
            .iter()
            .filter(|step| !self.loaded.contains_key(&step.name))
            .map(|step| step.name.clone())
            .collect();
        if !names.is_empty() {
            let facts = tokio::select! {
                facts = self.host.load(names) => facts?,
                // A file may wait at its top level for what never comes.
                () = self.cancelled() => {
                    return Err(RunError::Cancelled { during: None, settled: true });
                }
            };
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

    pub(super) fn warn_of(&self, plan: &Plan) {
        for warning in &plan.warnings {
            self.emit(Event::Warning {
                code: warning.code,
                message: warning.message.clone(),
                context: json!({ "names": warning.names }),
            });
        }
    }
}
