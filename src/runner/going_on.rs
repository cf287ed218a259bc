//! A run that goes on after its lease is lost, because its user wants it to.
//!
//! What it may still do is [`LeaseGuard::proof`]'s to say; what it says meanwhile is said here.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use super::{Runner, emit};
use crate::changelog::store::ChangelogStore;
use crate::clock::Clock;
use crate::event::Event;
use crate::host::Host;
use crate::lock::guard::LeaseGuard;

impl<G: ChangelogStore, H: Host, C: Clock> Runner<G, H, C> {
    /// Says again at every beat of a lease that is gone that it is. The first time is the keeper's.
    pub(super) fn warning_of_loss(
        &self,
        guard: LeaseGuard,
    ) -> impl Future<Output = Infallible> + use<G, H, C> {
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&self.host));
        let (clock, beat) = (self.clock.clone(), self.job.timing.beat());
        async move {
            let cause = guard.gone().await;
            loop {
                clock.sleep_until(clock.now() + beat).await;
                let message = LOST_STILL.to_owned();
                let context = serde_json::json!({ "cause": cause });
                emit(&metrics, &*host, &Event::Warning { code: "LOCK_LOST", message, context });
            }
        }
    }
}

/// What a run says that goes on without its lease.
const LOST_STILL: &str =
    "Lost the migration lock mid-run (renewal failed) — another run may have started";
