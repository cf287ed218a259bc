//! Numbers of one run: a fold over its events.

use serde::Serialize;

use crate::event::Event;

/// What is counted. `docs/protocol.md` says what to alert on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// How long the run waited for the lock.
    pub lock_wait_ms: u64,
    /// Renewals that were acknowledged.
    pub renewals: u64,
    /// Expired leases that were taken over.
    pub takeovers: u64,
    /// Conditional writes whose precondition did not hold.
    pub claim_conflicts: u64,
    /// Operations of an earlier run that were found and stopped.
    pub orphans_killed: u64,
}

impl Metrics {
    /// Counts one event.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::LeaseRenewed { .. } => self.renewals += 1,
            Event::LockAcquired { took_over_from: Some(_), .. } => self.takeovers += 1,
            Event::ClaimConflict { .. } => self.claim_conflicts += 1,
            Event::OrphansFound { operations, .. } => {
                self.orphans_killed += operations.len() as u64
            }
            Event::LockAcquired { .. }
            | Event::LockWaiting { .. }
            | Event::LockArmed { .. }
            | Event::RenewalFailed { .. }
            | Event::LeaseLost { .. }
            | Event::LockReleased
            | Event::Planned { .. }
            | Event::MigrationStarted { .. }
            | Event::MigrationFinished { .. }
            | Event::MigrationMarked { .. }
            | Event::MigrationSkipped { .. }
            | Event::MigrationFailed { .. }
            | Event::Warning { .. } => {}
        }
    }
}
