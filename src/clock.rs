//! The port to local time. Nothing else in the core reads a clock.
//!
//! [`SystemClock`] counts the time a machine was suspended wherever the system offers that: a laptop
//! that slept through its lease must know. A paused virtual machine whose clock is paused with it is
//! beyond any local clock; only the server's preconditions cover it. [`TokioClock`] follows tokio's
//! clock, which simulations pause.

use std::future::Future;
use std::time::Duration;

use crate::lock::timing::Mono;

/// A monotonic clock that can be waited on.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Mono;

    /// Returns at `at` or soon after it.
    fn sleep_until(&self, at: Mono) -> impl Future<Output = ()> + Send;
}

/// The machine's own clock, suspend time included.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: boot_time::Instant,
}

impl SystemClock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self { origin: boot_time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Mono {
        Mono::from_ms(whole_ms(boot_time::Instant::now().duration_since(self.origin)))
    }

    async fn sleep_until(&self, at: Mono) {
        // Timers stand still while a machine is suspended and this clock does not, so look up often.
        const LOOK_UP: Duration = Duration::from_secs(1);
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_UP)).await;
        }
    }
}

/// Tokio's clock, for simulations under paused time.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Mono {
        Mono::from_ms(whole_ms(self.origin.elapsed()))
    }

    async fn sleep_until(&self, at: Mono) {
        let left = at.since(self.now());
        tokio::time::sleep(left).await;
    }
}

fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
