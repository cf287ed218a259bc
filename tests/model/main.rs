//! An exhaustive check of the lock protocol: every interleaving of a few runners, within bounds.
//!
//! Runners are driven by the real `protocol::step` and `wait::Waiting`, and the store decides by the
//! real `rules`. What is abstract is the world between them: requests are lost, delayed, duplicated
//! and carried out after their sender has given up on them; leases expire. A runner that crashes or is
//! paused needs no step of its own: nobody is ever made to take one.
//!
//! Two kinds of time. Where *any expiry* is on, a lease may be over at any instant, as under clocks
//! that nobody can trust: there the fence must hold by itself (I1 to I4, I10). Elsewhere time is
//! discrete and the clocks agree, but for a jump of the primary's: there no two runners may trust
//! their leases at once (I6).
//!
//! The numbers of states are those measured when this was written, less a little: a model that shrinks
//! has lost something. Each planted fault proves that the check can see it.

mod search;
mod store;
mod world;

use std::hash::{Hash, Hasher};
use std::time::Duration;

use mongo_migrate_kit::lock::timing::Timing;

use search::{Found, search};
use world::World;

/// The bounds of one check.
#[derive(Debug)]
pub struct Rules {
    runners: usize,
    /// Acquisitions of each runner.
    attempts: u8,
    /// Does a runner that gave the lock back ask for it again?
    returns: bool,
    /// Transactions of each runner.
    bodies: u8,
    /// Requests of each runner that arrive after it has given up on them.
    strays: usize,
    quantum_ms: u64,
    horizon_ms: u64,
    /// May a lease be over at any instant?
    any_expiry: bool,
    /// Does anybody raise the fence?
    arms: bool,
    /// Is nobody slow, and nothing lost?
    healthy: bool,
    nudges: bool,
    elections: u8,
    /// How far the clock of the next primary is ahead.
    jump_ms: i64,
    unlocks: u8,
    /// Does everybody ignore `expiresAt`, and take only what stood still throughout?
    observing: bool,
    /// Is a lease believed in only once it is armed?
    proof_needs_fence: bool,
    fault: Option<Fault>,
}

/// A protocol with one thing left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Bodies don't look at the fence.
    NoTouch,
    /// They read it and don't write to it.
    ReadTouch,
    /// Arming does not look at the lease.
    UncheckedArm,
    /// A release deletes whatever lease there is.
    UnconditionalRelease,
    /// A release forgets the fence.
    ForgetfulFence,
    /// Trust counts from when the reply came.
    DeadlineFromReply,
    /// An expired lease is taken under any election.
    NoElections,
    /// A lease of another election is never taken.
    NoGrace,
}

/// All states of one check have the same bounds.
impl Hash for Rules {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Rules {
    fn timing(&self) -> Timing {
        Timing::new(Duration::from_millis(TTL_MS.unsigned_abs()))
            .expect("eight seconds are a valid TTL")
    }

    /// When a lease ends that is granted or renewed now.
    fn end_after(&self, now: i64) -> i64 {
        if self.any_expiry { i64::MAX } else { now + TTL_MS }
    }
}

const TTL_MS: i64 = 8_000;

/// Untrusted clocks, two runners.
const FENCING: Rules = Rules {
    runners: 2,
    attempts: 1,
    returns: true,
    bodies: 1,
    strays: 0,
    quantum_ms: 4_000,
    horizon_ms: 0,
    any_expiry: true,
    arms: true,
    healthy: false,
    nudges: false,
    elections: 0,
    jump_ms: 0,
    unlocks: 0,
    observing: false,
    proof_needs_fence: true,
    fault: None,
};

/// Clocks that agree, over a bad network.
const TIMED: Rules = Rules {
    runners: 2,
    attempts: 1,
    returns: true,
    bodies: 0,
    strays: 0,
    quantum_ms: 4_000,
    horizon_ms: 16_000,
    any_expiry: false,
    arms: false,
    healthy: false,
    nudges: false,
    elections: 0,
    jump_ms: 0,
    unlocks: 0,
    observing: false,
    proof_needs_fence: false,
    fault: None,
};

/// Quick processes over a quick network, and a primary whose successor's clock is ahead.
const JUMPING: Rules = Rules {
    attempts: 2,
    arms: true,
    healthy: true,
    quantum_ms: 2_000,
    elections: 1,
    jump_ms: TTL_MS,
    proof_needs_fence: true,
    returns: false,
    ..TIMED
};

/// More than any check here needs.
const LIMIT: usize = 3_000_000;

fn sound(name: &str, rules: &'static Rules, at_least: usize) {
    match search(World::new(rules), LIMIT) {
        Found::Sound { states } => {
            report(&format!("{name}: {states} states"));
            assert!(states >= at_least, "only {states} states: what is not checked any more?");
        }
        Found::Broken { promise, way } => panic!("{promise}\n  {}", way.join("\n  ")),
    }
}

fn broken(rules: &'static Rules, expected: &str) {
    match search(World::new(rules), LIMIT) {
        Found::Sound { states } => panic!("{:?} was not found in {states} states", rules.fault),
        Found::Broken { promise, way } => {
            report(&format!("{:?}: {promise}, after {} steps", rules.fault, way.len()));
            assert!(promise.starts_with(expected), "{promise}\n  {}", way.join("\n  "));
        }
    }
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture, and when a test fails")]
fn report(line: &str) {
    println!("{line}");
}

#[test]
fn fenced_effects_commit_in_token_order_although_requests_arrive_late_and_twice() {
    const RULES: Rules = Rules { strays: 1, unlocks: 1, ..FENCING };
    sound("two runners, late requests, an unlock", &RULES, 317_000);
}

#[test]
fn fenced_effects_commit_in_token_order_over_several_acquisitions() {
    const RULES: Rules = Rules { attempts: 2, unlocks: 1, ..FENCING };
    sound("two runners, two acquisitions each, an unlock", &RULES, 411_000);
}

#[test]
fn fenced_effects_commit_in_token_order_over_retries_and_renewals() {
    const RULES: Rules = Rules { horizon_ms: 4_000, unlocks: 1, ..FENCING };
    sound("two runners, retries and renewals, an unlock", &RULES, 69_000);
}

#[test]
fn fenced_effects_commit_in_token_order_among_three() {
    const RULES: Rules = Rules { runners: 3, ..FENCING };
    sound("three runners", &RULES, 410_000);
}

#[test]
fn no_two_trust_their_leases_at_once_while_clocks_agree() {
    const RULES: Rules = Rules { attempts: 2, horizon_ms: 12_000, ..TIMED };
    sound("two runners in time, two acquisitions each", &RULES, 409_000);
}

#[test]
fn no_two_trust_their_leases_at_once_although_requests_arrive_late_and_twice() {
    const RULES: Rules = Rules { strays: 1, horizon_ms: 12_000, ..TIMED };
    sound("two runners in time, late requests", &RULES, 433_000);
}

#[test]
fn no_two_trust_their_leases_at_once_while_they_raise_the_fence() {
    const RULES: Rules = Rules { arms: true, horizon_ms: 12_000, ..TIMED };
    sound("two runners in time, arming", &RULES, 110_000);
}

#[test]
fn no_healthy_holder_is_robbed_when_the_clock_of_the_next_primary_is_ahead() {
    sound("two healthy runners, a jump of a whole TTL", &JUMPING, 325_000);
}

#[test]
fn who_takes_only_what_stood_still_throughout_robs_nobody_whatever_the_clock_does() {
    const RULES: Rules = Rules { observing: true, elections: 1, jump_ms: TTL_MS, ..TIMED };
    sound("two runners in time, observing, a jump of a whole TTL", &RULES, 265_000);
}

#[test]
fn no_holder_is_robbed_although_it_misses_its_renewals_while_the_clock_jumps() {
    const RULES: Rules = Rules { healthy: false, horizon_ms: 8_000, ..JUMPING };
    sound("two runners in time, one of them silent, a jump of a whole TTL", &RULES, 2_089_000);
}

#[test]
fn every_planted_fault_is_found() {
    const NO_TOUCH: Rules = Rules { fault: Some(Fault::NoTouch), ..FENCING };
    const READ_TOUCH: Rules = Rules { fault: Some(Fault::ReadTouch), ..FENCING };
    const UNCHECKED_ARM: Rules = Rules { fault: Some(Fault::UncheckedArm), ..FENCING };
    const FORGETFUL: Rules = Rules { fault: Some(Fault::ForgetfulFence), ..FENCING };
    const FROM_REPLY: Rules = Rules { fault: Some(Fault::DeadlineFromReply), ..TIMED };
    const UNCONDITIONAL: Rules =
        Rules { attempts: 2, fault: Some(Fault::UnconditionalRelease), ..TIMED };
    const NO_ELECTIONS: Rules = Rules { fault: Some(Fault::NoElections), ..JUMPING };
    const NO_GRACE: Rules = Rules { fault: Some(Fault::NoGrace), ..JUMPING };
    broken(&NO_TOUCH, "I1");
    broken(&READ_TOUCH, "I1");
    broken(&UNCHECKED_ARM, "I3");
    broken(&FORGETFUL, "I2");
    broken(&FROM_REPLY, "I6");
    broken(&UNCONDITIONAL, "I6");
    broken(&NO_ELECTIONS, "I6");
    broken(&NO_GRACE, "I4");
}
