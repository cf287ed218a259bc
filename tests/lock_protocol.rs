//! The lock protocol's promises, under random answers and random time.

use std::time::Duration;

use mongo_migrate_kit::fault::{FaultKind, StoreFault};
use mongo_migrate_kit::lock::lease::Holder;
use mongo_migrate_kit::lock::protocol::{
    self, Effect, Ending, Input, LossCause, Notice, State, step, wake_at,
};
use mongo_migrate_kit::lock::store::{AcquireReply, ReleaseReply, RenewReply};
use mongo_migrate_kit::lock::timing::{Mono, Timing};
use proptest::prelude::*;

fn timing() -> Timing {
    Timing::new(Duration::from_secs(10)).expect("ten seconds are a valid TTL")
}

fn at(ms: u64) -> Mono {
    Mono::from_ms(ms)
}

fn fault() -> StoreFault {
    StoreFault::new(FaultKind::Unreachable, "no answer")
}

fn acquired() -> Input {
    Input::Acquire(AcquireReply::Acquired { took_over_from: None })
}

fn renewed() -> Input {
    Input::Renew(RenewReply::Renewed { beats: 1 })
}

/// A lease whose acquire was sent at 0 and answered at once.
fn holding() -> State {
    let (state, _) = protocol::start(at(0));
    step(state, acquired(), at(0), timing()).0
}

#[test]
fn the_trust_window_counts_from_when_the_acquire_was_sent() {
    let (state, _) = protocol::start(at(0));
    let (state, _) = step(state, acquired(), at(4_000), timing());
    let State::Holding(holding) = state else { panic!("the lock was given") };
    assert_eq!(holding.trusted_until, at(9_500));
}

#[test]
fn a_lease_that_arrives_after_its_own_trust_window_is_lost_at_once() {
    let (state, _) = protocol::start(at(0));
    let (state, effects) = step(state, acquired(), at(9_500), timing());
    assert_eq!(state, State::Lost(LossCause::Deadline));
    assert!(effects.contains(&Effect::Announce(Notice::Lost(LossCause::Deadline))));
}

#[test]
fn the_first_renewal_is_due_at_half_the_ttl() {
    let state = holding();
    assert_eq!(wake_at(&state), Some(at(5_000)));
    let (_, effects) = step(state, Input::Tick, at(5_000), timing());
    assert_eq!(effects, [Effect::SendRenew]);
}

#[test]
fn a_renewal_without_an_answer_is_sent_again_soon_and_never_counts() {
    let (state, _) = step(holding(), Input::Tick, at(5_000), timing());
    let unknown = Input::Renew(RenewReply::Unknown(fault()));
    let (state, _) = step(state, unknown, at(6_000), timing());
    assert_eq!(wake_at(&state), Some(at(6_500)));
    let State::Holding(holding) = state else { panic!("still trusted") };
    assert_eq!(holding.trusted_until, at(9_500));
}

#[test]
fn an_answer_after_the_deadline_does_not_revive_the_lease() {
    let (state, _) = step(holding(), Input::Tick, at(5_000), timing());
    let (state, _) = step(state, renewed(), at(9_500), timing());
    assert_eq!(state, State::Lost(LossCause::Deadline));
    let (state, effects) = step(state, renewed(), at(9_600), timing());
    assert_eq!((state, effects), (State::Lost(LossCause::Deadline), vec![]));
}

#[test]
fn a_renewal_that_finds_no_lock_of_ours_is_the_end() {
    let (state, _) = step(holding(), Input::Tick, at(5_000), timing());
    let (state, _) = step(state, Input::Renew(RenewReply::Gone), at(5_010), timing());
    assert_eq!(state, State::Lost(LossCause::Superseded));
    let (_, effects) = step(state, Input::Release, at(5_020), timing());
    assert_eq!(effects, []);
}

#[test]
fn a_held_lock_ends_the_attempt_with_its_holder() {
    let (state, _) = protocol::start(at(0));
    let holder = Holder { pid: Some(41), ..Holder::default() };
    let held = Input::Acquire(AcquireReply::Held(holder.clone()));
    assert_eq!(step(state, held, at(5), timing()).0, State::Ended(Ending::Held(holder)));
}

#[test]
fn an_acquire_without_an_answer_is_repeated_and_finally_taken_back() {
    let (mut state, _) = protocol::start(at(0));
    let mut now = 0;
    let mut sent = 1;
    loop {
        let unknown = Input::Acquire(AcquireReply::Unknown(fault()));
        let (next, effects) = step(state, unknown, at(now), timing());
        if let State::Ended(ending) = next {
            assert_eq!(ending, Ending::Failed(fault()));
            assert_eq!(effects, [Effect::SendRelease]);
            break;
        }
        now += 500;
        let (next, effects) = step(next, Input::Tick, at(now), timing());
        assert_eq!(effects, [Effect::SendAcquire]);
        sent += 1;
        state = next;
    }
    assert_eq!(sent, 20);
}

#[test]
fn an_abandoned_acquire_is_released_only_after_its_answer() {
    let (state, _) = protocol::start(at(0));
    let (state, effects) = step(state, Input::Release, at(1), timing());
    assert_eq!(effects, []);
    let (state, effects) = step(state, acquired(), at(2), timing());
    assert_eq!((state, effects), (State::Releasing, vec![Effect::SendRelease]));
}

fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => Just(Input::Tick),
        2 => Just(acquired()),
        1 => Just(Input::Acquire(AcquireReply::Unknown(fault()))),
        1 => Just(Input::Acquire(AcquireReply::Held(Holder::default()))),
        3 => Just(renewed()),
        1 => Just(Input::Renew(RenewReply::Gone)),
        2 => Just(Input::Renew(RenewReply::Unknown(fault()))),
        1 => Just(Input::Release),
        1 => Just(Input::ReleaseAnswered(ReleaseReply::Released)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn trust_never_outlives_the_window_of_an_acknowledged_send(
        steps in proptest::collection::vec((any_input(), 0_u64..4_000), 1..60)
    ) {
        let (mut state, first) = protocol::start(at(0));
        let mut now = 0;
        // What the wire has seen: the send times that an answer may still refer to.
        let mut sends = vec![0];
        prop_assert_eq!(first, [Effect::SendAcquire]);
        let mut lost = false;
        for (input, pause) in steps {
            now += pause;
            let (next, effects) = step(state, input, at(now), timing());
            if lost {
                prop_assert!(effects.is_empty(), "acted after the loss: {effects:?}");
            }
            sends.extend(effects.iter().filter_map(|effect| {
                matches!(effect, Effect::SendAcquire | Effect::SendRenew).then_some(now)
            }));
            if let State::Holding(holding) = &next {
                let window = timing().trust_window();
                prop_assert!(
                    sends.iter().any(|sent| at(*sent) + window == holding.trusted_until),
                    "trust counts from no send: {holding:?}"
                );
                prop_assert!(at(now) < holding.trusted_until);
                prop_assert!(wake_at(&next) <= Some(holding.trusted_until));
            }
            lost = matches!(next, State::Lost(_));
            state = next;
        }
    }
}
