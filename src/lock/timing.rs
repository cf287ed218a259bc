//! The durations of a lease, derived from one number, and the local instants they are compared to.
//!
//! Everything here is local and monotonic. The server's instants (`expiresAt` and its kin) never mix
//! with these: they are compared on the server only.

use std::time::Duration;

/// An instant on this machine's monotonic clock, in milliseconds since an arbitrary origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The instant `ms` milliseconds after the origin.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Mono {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ms))
    }
}

/// Where a lease's durations come from: its TTL, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    ttl: Duration,
}

/// A TTL that no lease can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lease must last at least one second, not {} ms", .0.as_millis())]
pub struct InvalidTtl(pub Duration);

impl Timing {
    /// Derives the timing of a lease that lasts `ttl`.
    ///
    /// # Errors
    /// [`InvalidTtl`] under one second: a renewal is a round trip to a majority of the servers.
    pub fn new(ttl: Duration) -> Result<Self, InvalidTtl> {
        if ttl < Duration::from_secs(1) { Err(InvalidTtl(ttl)) } else { Ok(Self { ttl }) }
    }

    /// How long the server keeps the lease after an acquire or a renewal.
    pub fn ttl(self) -> Duration {
        self.ttl
    }

    /// Between two renewals: half the TTL, so that one may fail, and at most 30 s, so that runners of
    /// 1.x, who judge by `lockedAt` and 60 s, see a fresh lock whatever our TTL is.
    pub fn beat(self) -> Duration {
        (self.ttl / 2).min(Duration::from_secs(30))
    }

    /// Until the next try after a renewal or an acquire whose outcome is unknown.
    pub fn retry(self) -> Duration {
        (self.ttl / 20).clamp(Duration::from_millis(100), Duration::from_millis(500))
    }

    /// How long after SENDING the last acknowledged renewal we may still act. 5 % short of the TTL:
    /// the clocks of two machines drift apart far less than that within one lease.
    pub fn trust_window(self) -> Duration {
        self.ttl * 19 / 20
    }

    /// How long an expired lease of our kind must stand still before it is taken when the primary has
    /// changed since it was written: the new primary's clock may run ahead. As long as its holder may
    /// trust it; a shorter grace would rob a holder that misses its renewals meanwhile.
    pub fn grace(self) -> Duration {
        self.trust_window()
    }

    /// How long a lease of our kind must be seen to stand still before it is taken whatever its
    /// `expiresAt` says. Its holder's own trust window, which needs no server's clock, has closed by
    /// then.
    pub fn observation(self) -> Duration {
        self.ttl * 11 / 10
    }

    /// How long the servers may take to replicate one of our writes to a majority.
    pub fn write_timeout(self) -> Duration {
        (self.ttl / 6).min(Duration::from_secs(5))
    }

    /// A lease that runners of 1.x left behind (they judge by `lockedAt` and their own TTL, 60 s by
    /// default) counts as over after this: never sooner than they would say so themselves.
    pub fn legacy_ttl(self) -> Duration {
        self.ttl.max(Duration::from_secs(60))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ttl_under_one_second_is_refused() {
        let short = Duration::from_millis(999);
        assert_eq!(Timing::new(short), Err(InvalidTtl(short)));
    }

    #[test]
    fn the_default_lease_beats_every_thirty_seconds() {
        let timing = Timing::new(Duration::from_secs(60)).expect("a valid TTL");
        assert_eq!(timing.beat(), Duration::from_secs(30));
        assert_eq!(timing.trust_window(), Duration::from_secs(57));
    }

    proptest! {
        #[test]
        fn a_renewal_can_fail_and_be_tried_again_before_trust_ends(seconds in 1_u64..100_000) {
            let timing = Timing::new(Duration::from_secs(seconds)).expect("a valid TTL");
            prop_assert!(timing.beat() + timing.retry() < timing.trust_window());
            prop_assert!(timing.trust_window() < timing.ttl());
            prop_assert!(timing.write_timeout() < timing.beat());
        }
    }
}
