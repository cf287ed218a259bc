//! What others may know of a lease that is being kept: whether they may act, and when it was lost.
//!
//! # Promises
//! - [`LeaseGuard::proof`] answers from the last acknowledged renewal and the local clock alone: it
//!   says no as soon as the trust window has closed, however busy or cut off everything else is.
//!
//! # What it does not promise
//! That the body stops when the lease is lost: [`LeaseGuard::lost`] tells the runner, who does.

use std::sync::Arc;

use tokio::sync::watch;

use super::lease::{LossCause, OnLockLost};
use super::proof::StillHeld;
use super::protocol::{self, Ending, Fence, State};
use super::timing::Mono;

/// What the keeper's task lets others know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// The acquire is not answered yet.
    Pending,
    Held {
        until: Mono,
        fence: Option<Fence>,
        election_moved: bool,
    },
    Lost(LossCause),
    Over(Ending),
}

impl Trust {
    pub(super) fn of(state: &State) -> Self {
        match state {
            State::Acquiring(_) => Self::Pending,
            State::Holding(holding) => {
                let protocol::Holding { trusted_until: until, election_moved, .. } = *holding;
                Self::Held { until, fence: holding.fence().cloned(), election_moved }
            }
            State::Releasing => Self::Over(Ending::Released),
            State::Lost(cause) => Self::Lost(*cause),
            State::Ended(ending) => Self::Over(ending.clone()),
        }
    }
}

/// A view of a lease for those who must not act without it.
#[derive(Clone)]
pub struct LeaseGuard {
    guarding: Guarding,
    on_lost: OnLockLost,
}

#[derive(Clone)]
enum Guarding {
    Leased {
        trust: watch::Receiver<Trust>,
        now: Arc<dyn Fn() -> Mono + Send + Sync>,
    },
    /// The user asked for no lock (`noLock`); the entries' preconditions are all there is.
    Unlocked,
}

impl std::fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseGuard").finish_non_exhaustive()
    }
}

impl LeaseGuard {
    /// The guard of a run that takes no lock at the user's own request.
    pub fn unlocked() -> Self {
        Self { guarding: Guarding::Unlocked, on_lost: OnLockLost::Stop }
    }

    pub(super) fn leased(
        trust: watch::Receiver<Trust>,
        now: Arc<dyn Fn() -> Mono + Send + Sync>,
    ) -> Self {
        Self { guarding: Guarding::Leased { trust, now }, on_lost: OnLockLost::Stop }
    }

    pub(super) fn trust(&self) -> Option<&watch::Receiver<Trust>> {
        match &self.guarding {
            Guarding::Leased { trust, .. } => Some(trust),
            Guarding::Unlocked => None,
        }
    }

    /// The same lease, in the eyes of a run that does this when it is lost.
    ///
    /// # Assumptions
    /// The lease has been armed: [`OnLockLost::Warn`] goes on with what has begun, and begins nothing
    /// without a fence.
    pub fn when_lost(&self, on_lost: OnLockLost) -> Self {
        Self { guarding: self.guarding.clone(), on_lost }
    }

    /// Proof that we may act now: the lease is armed, and trusted at this moment. A run that goes on
    /// after a loss has it as a run without a lock has: its entries' preconditions are all there is.
    pub fn proof(&self) -> Option<StillHeld<'_>> {
        let goes_on = self.on_lost == OnLockLost::Warn;
        let held = match &self.guarding {
            Guarding::Leased { trust, now } => match *trust.borrow() {
                Trust::Held { until, fence: Some(Fence::Up(_)), .. } => goes_on || now() < until,
                Trust::Lost(_) => goes_on,
                Trust::Held { fence: None | Some(Fence::Refused(_)), .. }
                | Trust::Pending
                | Trust::Over(_) => false,
            },
            Guarding::Unlocked => true,
        };
        held.then(StillHeld::vouched)
    }

    /// Returns when the run shall stop because the lease is lost; never returns otherwise.
    pub async fn lost(&self) -> LossCause {
        match self.on_lost {
            OnLockLost::Stop => self.gone().await,
            OnLockLost::Warn => std::future::pending().await,
        }
    }

    /// Returns when the lease is lost, whatever the run does then; never returns otherwise.
    pub async fn gone(&self) -> LossCause {
        if let Some(trust) = self.trust() {
            let mut trust = trust.clone();
            if let Ok(lost) = trust.wait_for(|trust| matches!(trust, Trust::Lost(_))).await
                && let Trust::Lost(cause) = *lost
            {
                return cause;
            }
        }
        std::future::pending().await
    }

    /// Is there a lease that can be lost?
    pub fn is_leased(&self) -> bool {
        self.trust().is_some()
    }

    /// Is the lease known to be lost?
    pub fn is_gone(&self) -> bool {
        self.trust().is_some_and(|trust| matches!(*trust.borrow(), Trust::Lost(_)))
    }

    /// Why the lease can't be trusted, once [`LeaseGuard::proof`] has said no or it is gone.
    pub fn loss(&self) -> LossCause {
        match self.trust().map(|trust| trust.borrow().clone()) {
            Some(Trust::Lost(cause)) => cause,
            Some(Trust::Pending | Trust::Held { .. } | Trust::Over(_)) | None => {
                LossCause::Deadline
            }
        }
    }
}
