//! Calling the user's hooks. One is told to stop as a body is, and no more than a body can it keep a
//! run that has lost its lock, or was cancelled, from ending.

use super::steps::{Failure, Stage};
use super::{RunError, Runner};
use crate::changelog::store::ChangelogStore;
use crate::clock::Clock;
use crate::host::{Acknowledged, HookCall, Host, HostGone, StopReason};
use crate::lock::orphans::Orphans;

impl<G: ChangelogStore, H: Host, C: Clock, O: Orphans> Stage<'_, G, H, C, O> {
    /// Calls a hook and waits for it, unless or until the run is to end: then for [`GRACE`] at most.
    ///
    /// [`GRACE`]: super::steps::GRACE
    pub(super) async fn hook(&self, call: HookCall) -> Result<(), Failure> {
        let (hook, name) = match &call {
            HookCall::BeforeAll => ("beforeAll", None),
            HookCall::BeforeEach { name } => ("beforeEach", Some(name.clone())),
            HookCall::AfterEach { name, .. } => ("afterEach", Some(name.clone())),
            HookCall::AfterAll => ("afterAll", None),
            HookCall::OnError { name, .. } => ("onError", Some(name.clone())),
        };
        let failed = |error| RunError::Hook { hook, name: name.clone(), error };
        let Runner { host, .. } = self.runner;
        let calling = host.hook(call);
        tokio::pin!(calling);
        let reason = tokio::select! {
            done = &mut calling => {
                let done = done.map_err(|gone| Failure::before_body(gone.into()))?;
                return done.map_err(|error| Failure::before_body(failed(error)));
            }
            cause = self.permit.guard.lost() => StopReason::LeaseLost(cause),
            () = self.runner.cancelled() => StopReason::Cancelled,
        };
        let ended: Option<Result<Acknowledged, HostGone>> = self.told(reason, &mut calling).await;
        let stopped = |settled| match reason {
            StopReason::LeaseLost(cause) => RunError::Lost { cause, during: name.clone(), settled },
            StopReason::Cancelled => RunError::Cancelled { during: name.clone(), settled },
        };
        match ended {
            Some(Ok(Ok(()))) => Ok(()),
            // Why it was to stop is the news, and what it then threw comes after.
            Some(Ok(Err(error))) => Err(Failure {
                suppressed: vec![failed(error)],
                ..Failure::before_body(stopped(true))
            }),
            Some(Err(gone)) => Err(Failure::before_body(gone.into())),
            None => Err(Failure::before_body(stopped(false))),
        }
    }
}
