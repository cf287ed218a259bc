//! How long to wait for a lock that somebody else holds, and when to doubt that it is held: a pure
//! decision.
//!
//! A wait budget that someone set is a hard cap. The default budget is 30 s with one extension: when
//! it ends, a holder is waited out to the expiry of the lease it has then, however long that lasts, so
//! an app that boots beside a crashed one comes up by itself. A renewal seen by then means a live
//! holder, and the wait ends.
//!
//! Server clocks jump when primaries change. Two rules cover it, both by watching the lease on our own
//! monotonic clock: an expired lease that the server would not give away (it was written under another
//! primary) is taken after a [`Timing::grace`] without a renewal, even by those who don't want to
//! wait; and a lease that was not renewed for a [`Timing::observation`] is taken whatever its expiry
//! says. The command that takes it checks that it still has not moved. Only leases of our own kind
//! count their renewals, so only they are doubted.

use std::time::Duration;

use super::lease::Holder;
use super::store::{Unmoved, Watched};
use super::timing::{Mono, Timing};

/// The budget of a wait that nobody set.
const DEFAULT_BUDGET: Duration = Duration::from_secs(30);
/// Between two looks at the lock, when nobody set it.
const DEFAULT_POLL: Duration = Duration::from_millis(500);
/// Between two looks when the store tells us of a release: for what it can't tell.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);
/// The lease of a holder that doesn't say when it ends: runners of 1.x with their default.
const LEGACY_TTL_MS: i64 = 60_000;
/// How long past a dead holder's expiry its lock may still be seen held: a few looks' worth.
const GRACE_MS: i64 = 2_000;

/// What to do about a lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// How we learn of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looking {
    /// By asking from time to time.
    Polling,
    /// The store tells us.
    Told,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Ask again after this long, doubting a lease that has not moved.
    Again {
        /// How long to wait before.
        pause: Duration,
        /// The lease to doubt.
        unmoved: Option<Unmoved>,
    },
    /// The wait is over.
    GiveUp,
}

/// One wait, from the first refusal on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiting {
    policy: WaitPolicy,
    began: Mono,
    /// The lease that we watch, and since when it has not moved.
    watched: Option<(Lease, Mono)>,
    /// The lease as it was when the default budget ended.
    at_budget_end: Option<(Option<String>, Option<i64>)>,
}

/// A lease of our own kind at one point of its life.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lease {
    owner: String,
    beats: i64,
}

impl Waiting {
    /// A wait that begins.
    pub fn new(policy: WaitPolicy, now: Mono) -> Self {
        Self { policy, began: now, watched: None, at_budget_end: None }
    }

    /// How long it has lasted.
    pub fn lasted(&self, now: Mono) -> Duration {
        now.since(self.began)
    }

    /// Decides after a refusal that arrived `now`. `jitter` is a random number from 0 to 1 that keeps
    /// many waiters from moving in step.
    pub fn judge(&mut self, holder: &Holder, looking: Looking, now: Mono, jitter: f64) -> Verdict {
        let first_refusal = self.watched.is_none();
        let watch = self.watch(holder, now);
        let WaitPolicy::Wait { budget, poll } = self.policy else {
            // Expired, and yet not given away: it may be a crashed one's, so it gets its grace.
            return match watch {
                Some(watch) if first_refusal && holder.expired => {
                    let grace = watch.timing.grace();
                    watch.again(grace)
                }
                Some(_) | None => Verdict::GiveUp,
            };
        };
        let usual = match looking {
            Looking::Polling => poll.unwrap_or(DEFAULT_POLL).mul_f64(0.75 + jitter / 2.0),
            Looking::Told => until_expiry(holder).map_or(LOOK_ANYWAY, |left| {
                LOOK_ANYWAY.min(left + Duration::from_millis(300).mul_f64(jitter))
            }),
        };
        let left = budget.unwrap_or(DEFAULT_BUDGET).saturating_sub(self.lasted(now));
        let pause = if !left.is_zero() {
            // Look once more at the very end of the budget, not a pause earlier.
            usual.min(left)
        } else if budget.is_none() && self.holder_may_be_dead(holder) {
            until_next_beat(holder).map_or(usual, |left| usual.min(left))
        } else {
            return Verdict::GiveUp;
        };
        watch.map_or(Verdict::Again { pause, unmoved: None }, |watch| watch.again(pause))
    }

    /// Watches a lease of our own kind.
    fn watch(&mut self, holder: &Holder, now: Mono) -> Option<Watch> {
        let lease = Lease { owner: holder.owner.clone()?, beats: holder.beats? };
        let ttl = u64::try_from(holder.ttl_ms?).ok().map(Duration::from_millis)?;
        let timing = Timing::new(ttl).ok()?;
        let since = match &self.watched {
            Some((seen, since)) if *seen == lease => *since,
            Some(_) | None => now,
        };
        self.watched = Some((lease.clone(), since));
        Some(Watch { lease, timing, expired: holder.expired, still: now.since(since) })
    }

    fn holder_may_be_dead(&mut self, holder: &Holder) -> bool {
        let seen = (holder.owner.clone(), holder.locked_at);
        let unchanged = *self.at_budget_end.get_or_insert_with(|| seen.clone()) == seen;
        let by_age = holder.locked_at.map(|at| at + LEGACY_TTL_MS);
        // One more look after the expiry must have got the lock, unless someone else was faster.
        unchanged && holder.expires_at.or(by_age).is_some_and(|end| holder.now <= end + GRACE_MS)
    }
}

/// A lease of our own kind that has not moved for a while.
struct Watch {
    lease: Lease,
    /// Of the holder's lease, not of ours.
    timing: Timing,
    expired: bool,
    still: Duration,
}

impl Watch {
    /// Asks again after `pause`, or as soon as the lease may be doubted.
    fn again(self, pause: Duration) -> Verdict {
        let thresholds = [
            (Watched::Grace, self.timing.grace(), self.expired),
            (Watched::Throughout, self.timing.observation(), true),
        ];
        let open = thresholds.into_iter().filter(|(_, _, applies)| *applies);
        let next = open.clone().map(|(_, span, _)| span.saturating_sub(self.still));
        let pause = next.filter(|left| !left.is_zero()).fold(pause, Duration::min);
        let still = self.still + pause;
        let watched =
            open.filter(|(_, span, _)| still >= *span).map(|(watched, ..)| watched).next_back();
        let Lease { owner, beats } = self.lease;
        let unmoved = watched.map(|watched| Unmoved { owner, beats, watched });
        Verdict::Again { pause, unmoved }
    }
}

/// How long the lease lasts unless it is renewed, by the server's own clock.
fn until_expiry(holder: &Holder) -> Option<Duration> {
    let left = u64::try_from(holder.expires_at? - holder.now).ok()?;
    Some(Duration::from_millis(left))
}

/// How long until a live holder must have renewed once more; `None` when it should have by now.
///
/// Runners of 1.x renew twice in a TTL, and at least every 30 s; ours renew more often.
fn until_next_beat(holder: &Holder) -> Option<Duration> {
    let between = (holder.ttl_ms.unwrap_or(LEGACY_TTL_MS) / 2).min(30_000);
    let left = u64::try_from(holder.locked_at? + between + 1_000 - holder.now).ok()?;
    Some(Duration::from_millis(left)).filter(|left| !left.is_zero())
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
            beats: Some(locked_at),
            expired: now >= locked_at + 60_000,
            now,
            ..Holder::default()
        }
    }

    fn waiting(budget_ms: Option<u64>) -> Waiting {
        let budget = budget_ms.map(Duration::from_millis);
        Waiting::new(WaitPolicy::Wait { budget, poll: None }, Mono::from_ms(0))
    }

    fn polling(waiting: &mut Waiting, holder: &Holder, at_ms: u64) -> Verdict {
        waiting.judge(holder, Looking::Polling, Mono::from_ms(at_ms), 0.5)
    }

    fn pause(verdict: &Verdict) -> Option<u64> {
        match verdict {
            Verdict::Again { pause, .. } => u64::try_from(pause.as_millis()).ok(),
            Verdict::GiveUp => None,
        }
    }

    fn doubt(verdict: Verdict) -> Option<Watched> {
        match verdict {
            Verdict::Again { unmoved, .. } => unmoved.map(|unmoved| unmoved.watched),
            Verdict::GiveUp => None,
        }
    }

    #[test]
    fn without_waiting_the_first_refusal_is_the_last() {
        let mut waiting = Waiting::new(WaitPolicy::Fail, Mono::from_ms(0));
        assert_eq!(polling(&mut waiting, &holder(0, 0), 5), Verdict::GiveUp);
    }

    #[test]
    fn even_without_waiting_an_expired_lease_that_was_not_given_away_gets_its_grace() {
        let mut waiting = Waiting::new(WaitPolicy::Fail, Mono::from_ms(0));
        let first = polling(&mut waiting, &holder(60_000, 0), 5);
        assert_eq!(pause(&first), Some(57_000));
        assert_eq!(doubt(first), Some(Watched::Grace));
        assert_eq!(polling(&mut waiting, &holder(117_000, 116_000), 57_005), Verdict::GiveUp);
    }

    #[test]
    fn a_budget_of_zero_asks_once() {
        assert_eq!(polling(&mut waiting(Some(0)), &holder(0, 0), 0), Verdict::GiveUp);
    }

    #[test]
    fn a_budget_that_someone_set_is_a_hard_cap() {
        let mut waiting = waiting(Some(2_000));
        assert_eq!(pause(&polling(&mut waiting, &holder(0, 0), 1_900)), Some(100));
        assert_eq!(polling(&mut waiting, &holder(0, 0), 2_000), Verdict::GiveUp);
    }

    #[test]
    fn the_default_budget_waits_out_a_holder_that_stopped_renewing() {
        let mut waiting = waiting(None);
        for second in 30..=60 {
            let holder = holder(second * 1_000, 0);
            let at_ms = u64::try_from(second).expect("not negative") * 1_000;
            let verdict = polling(&mut waiting, &holder, at_ms);
            assert!(pause(&verdict).is_some(), "gave up after {second} s");
        }
    }

    #[test]
    fn the_default_budget_ends_when_the_holder_is_seen_to_live() {
        let mut waiting = waiting(None);
        assert!(pause(&polling(&mut waiting, &holder(30_000, 0), 30_000)).is_some());
        assert_eq!(polling(&mut waiting, &holder(30_500, 30_100), 31_000), Verdict::GiveUp);
    }

    #[test]
    fn who_is_told_of_a_release_looks_for_the_beat_that_a_live_holder_owes() {
        let told = |waiting: &mut Waiting, holder: &Holder, at_ms| {
            pause(&waiting.judge(holder, Looking::Told, Mono::from_ms(at_ms), 0.0))
        };
        let mut waiting = waiting(None);
        assert_eq!(told(&mut waiting, &holder(30_000, 20_000), 30_000), Some(21_000));
        let mut dead = waiting.clone();
        assert_eq!(told(&mut waiting, &holder(51_000, 40_000), 51_000), None);
        assert_eq!(told(&mut dead, &holder(51_000, 20_000), 51_000), Some(29_000));
    }

    #[test]
    fn a_holder_whose_expiry_nobody_can_read_is_not_waited_out() {
        let odd = Holder { expires_at: None, locked_at: None, ..holder(30_000, 0) };
        assert_eq!(polling(&mut waiting(None), &odd, 30_000), Verdict::GiveUp);
    }

    #[test]
    fn pauses_spread_by_a_quarter_either_way() {
        let look = |jitter| {
            let verdict =
                waiting(None).judge(&holder(0, 0), Looking::Polling, Mono::from_ms(0), jitter);
            pause(&verdict)
        };
        assert_eq!((look(0.0), look(1.0)), (Some(375), Some(625)));
    }

    #[test]
    fn who_is_told_of_a_release_looks_again_only_when_the_lease_ends() {
        let mut waiting = waiting(Some(600_000));
        let verdict = waiting.judge(&holder(50_000, 0), Looking::Told, Mono::from_ms(0), 0.0);
        assert_eq!(pause(&verdict), Some(10_000));
    }

    #[test]
    fn a_lease_that_stood_still_for_the_whole_observation_is_doubted_whatever_its_expiry_says() {
        let mut waiting = waiting(Some(600_000));
        let far = |now| Holder { expires_at: Some(9_000_000), expired: false, ..holder(now, 0) };
        assert_eq!(doubt(polling(&mut waiting, &far(0), 0)), None);
        let last = polling(&mut waiting, &far(65_900), 65_900);
        assert_eq!((pause(&last), doubt(last)), (Some(100), Some(Watched::Throughout)));
    }

    #[test]
    fn a_renewal_starts_the_observation_afresh() {
        let mut waiting = waiting(Some(600_000));
        polling(&mut waiting, &holder(0, 0), 0);
        polling(&mut waiting, &holder(30_000, 30_000), 30_000);
        assert_eq!(doubt(polling(&mut waiting, &holder(70_000, 30_000), 70_000)), None);
    }
}
