//! How long to wait for a lock that somebody else holds: a pure decision.
//!
//! A wait budget that someone set is a hard cap. The default budget is 30 s with one extension: when
//! it ends, a holder is waited out to the expiry of the lease it has then, however long that lasts, so
//! an app that boots beside a crashed one comes up by itself. A renewal seen by then means a live
//! holder, and the wait ends.

use std::time::Duration;

use super::lease::Holder;

/// The budget of a wait that nobody set.
const DEFAULT_BUDGET: Duration = Duration::from_secs(30);
/// Between two looks at the lock, when nobody set it.
const DEFAULT_POLL: Duration = Duration::from_millis(500);
/// The lease of a holder that doesn't say when it ends: runners of 1.x with their default.
const LEGACY_TTL_MS: i64 = 60_000;
/// How long past a dead holder's expiry its lock may still be seen held: a few looks' worth.
const GRACE_MS: i64 = 2_000;

/// What to do about a lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Stop at once.
    Fail,
    /// Wait for it.
    Wait {
        /// A budget that someone set; `None` for the default and its extension.
        budget: Option<Duration>,
        /// Between two looks; `None` for the default.
        poll: Option<Duration>,
    },
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Look again after this long.
    Again(Duration),
    /// The wait is over.
    GiveUp,
}

/// One wait, from the first refusal on.
#[derive(Debug, Clone)]
pub struct Waiting {
    policy: WaitPolicy,
    /// The holder's last renewal as known when the default budget ended.
    at_budget_end: Option<(Option<String>, Option<i64>)>,
}

impl Waiting {
    /// A wait that begins.
    pub fn new(policy: WaitPolicy) -> Self {
        Self { policy, at_budget_end: None }
    }

    /// Decides after a refusal. `waited` is how long this wait has lasted, `jitter` a random number
    /// from 0 to 1 that keeps many waiters from moving in step.
    pub fn judge(&mut self, holder: &Holder, waited: Duration, jitter: f64) -> Verdict {
        let WaitPolicy::Wait { budget, poll } = self.policy else {
            return Verdict::GiveUp;
        };
        let pause = poll.unwrap_or(DEFAULT_POLL).mul_f64(0.75 + jitter / 2.0);
        let left = budget.unwrap_or(DEFAULT_BUDGET).saturating_sub(waited);
        if !left.is_zero() {
            // Look once more at the very end of the budget, not a pause earlier.
            return Verdict::Again(pause.min(left));
        }
        if budget.is_none() && self.holder_may_be_dead(holder) {
            Verdict::Again(pause)
        } else {
            Verdict::GiveUp
        }
    }

    fn holder_may_be_dead(&mut self, holder: &Holder) -> bool {
        let seen = (holder.owner.clone(), holder.locked_at);
        let unchanged = *self.at_budget_end.get_or_insert_with(|| seen.clone()) == seen;
        let by_age = holder.locked_at.map(|at| at + LEGACY_TTL_MS);
        // One more look after the expiry must have got the lock, unless someone else was faster.
        unchanged && holder.expires_at.or(by_age).is_some_and(|end| holder.now <= end + GRACE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(now: i64, locked_at: i64) -> Holder {
        Holder {
            owner: Some("a".into()),
            locked_at: Some(locked_at),
            expires_at: Some(locked_at + 60_000),
            ttl_ms: Some(60_000),
            now,
            ..Holder::default()
        }
    }

    fn waiting(budget_ms: Option<u64>) -> Waiting {
        let budget = budget_ms.map(Duration::from_millis);
        Waiting::new(WaitPolicy::Wait { budget, poll: None })
    }

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn without_waiting_the_first_refusal_is_the_last() {
        let mut waiting = Waiting::new(WaitPolicy::Fail);
        assert_eq!(waiting.judge(&holder(0, 0), Duration::ZERO, 0.5), Verdict::GiveUp);
    }

    #[test]
    fn a_budget_of_zero_asks_once() {
        assert_eq!(waiting(Some(0)).judge(&holder(0, 0), Duration::ZERO, 0.5), Verdict::GiveUp);
    }

    #[test]
    fn a_budget_that_someone_set_is_a_hard_cap() {
        let mut waiting = waiting(Some(2_000));
        let near_the_end = Duration::from_millis(1_900);
        let last = Verdict::Again(Duration::from_millis(100));
        assert_eq!(waiting.judge(&holder(0, 0), near_the_end, 0.5), last);
        assert_eq!(waiting.judge(&holder(0, 0), seconds(2), 0.5), Verdict::GiveUp);
    }

    #[test]
    fn the_default_budget_waits_out_a_holder_that_stopped_renewing() {
        let mut waiting = waiting(None);
        for second in 30..=60_i64 {
            let waited = Duration::from_secs(u64::try_from(second).expect("not negative"));
            let verdict = waiting.judge(&holder(second * 1_000, 0), waited, 0.5);
            assert!(matches!(verdict, Verdict::Again(_)), "gave up after {second} s");
        }
    }

    #[test]
    fn the_default_budget_ends_when_the_holder_is_seen_to_live() {
        let mut waiting = waiting(None);
        assert!(matches!(waiting.judge(&holder(30_000, 0), seconds(30), 0.5), Verdict::Again(_)));
        assert_eq!(waiting.judge(&holder(30_500, 30_100), seconds(31), 0.5), Verdict::GiveUp);
    }

    #[test]
    fn a_holder_whose_expiry_nobody_can_read_is_not_waited_out() {
        let odd = Holder { expires_at: None, locked_at: None, ..holder(30_000, 0) };
        assert_eq!(waiting(None).judge(&odd, seconds(30), 0.5), Verdict::GiveUp);
    }

    #[test]
    fn pauses_spread_by_a_quarter_either_way() {
        let pause = |jitter| waiting(None).judge(&holder(0, 0), Duration::ZERO, jitter);
        assert_eq!(pause(0.0), Verdict::Again(Duration::from_millis(375)));
        assert_eq!(pause(1.0), Verdict::Again(Duration::from_millis(625)));
    }
}
