//! The lock protocol's promises, under random answers and random time.

use std::time::Duration;

use mongo_migrate_kit::fault::{FaultKind, StoreFault};
use mongo_migrate_kit::lock::lease::{Holder, LossCause};
use mongo_migrate_kit::lock::protocol::{
    self, Effect, Ending, Fence, Holding, Input, Notice, State, step, wake_at,
};
use mongo_migrate_kit::lock::store::{AcquireReply, ArmReply, ReleaseReply, RenewReply};
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
    Input::Acquire(AcquireReply::Acquired { took_over_from: None, election_moved: false })
}

fn renewed() -> Input {
    Input::Renew(RenewReply::Renewed { beats: 1 })
}

fn renewal_unknown() -> Input {
    Input::Renew(RenewReply::Unknown(fault()))
}

fn armed(token: i64) -> Input {
    Input::ArmAnswered(ArmReply::Armed { token })
}

fn arm_unknown() -> Input {
    Input::ArmAnswered(ArmReply::Unknown(fault()))
}

/// The facts of a lease that must still be held.
fn held(state: &State) -> &Holding {
    match state {
        State::Holding(holding) => holding,
        other => panic!("not holding: {other:?}"),
    }
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

#[test]
fn an_arm_is_sent_at_once_and_its_answer_is_a_renewal() {
    let (state, effects) = step(holding(), Input::Arm, at(1_000), timing());
    assert_eq!(effects, [Effect::SendArm]);
    let (state, effects) = step(state, armed(7), at(3_000), timing());
    assert_eq!(effects, [Effect::Announce(Notice::Armed { token: 7 })]);
    assert_eq!(held(&state).fence(), Some(&Fence::Up(7)));
    // From when it was sent, like any other.
    assert_eq!(held(&state).trusted_until, at(10_500));
    assert_eq!(wake_at(&state), Some(at(6_000)));
}

#[test]
fn a_lease_is_not_armed_by_holding_it() {
    assert_eq!(held(&holding()).fence(), None);
}

#[test]
fn an_arm_waits_for_a_renewal_that_is_under_way() {
    let (state, _) = step(holding(), Input::Tick, at(5_000), timing());
    let (state, effects) = step(state, Input::Arm, at(5_100), timing());
    assert_eq!(effects, []);
    let (_, effects) = step(state, renewed(), at(5_200), timing());
    assert_eq!(effects, [Effect::Announce(Notice::Renewed { beats: 1 }), Effect::SendArm]);
}

#[test]
fn an_arm_waits_for_a_renewal_that_is_due() {
    let (state, effects) = step(holding(), Input::Arm, at(5_000), timing());
    assert_eq!(effects, [Effect::SendRenew]);
    let (_, effects) = step(state, renewed(), at(5_100), timing());
    assert_eq!(effects, [Effect::Announce(Notice::Renewed { beats: 1 }), Effect::SendArm]);
}

#[test]
fn a_renewal_waits_for_an_arm_that_is_under_way() {
    let (state, _) = step(holding(), Input::Arm, at(4_900), timing());
    let (state, effects) = step(state, Input::Tick, at(5_000), timing());
    assert_eq!(effects, []);
    let (state, effects) = step(state, arm_unknown(), at(6_000), timing());
    assert_eq!((effects, wake_at(&state)), (vec![], Some(at(5_000))));
    let (_, effects) = step(state, Input::Tick, at(6_000), timing());
    assert_eq!(effects, [Effect::SendRenew]);
}

#[test]
fn an_arm_whose_outcome_is_unknown_is_sent_again_and_starves_no_renewal() {
    let (mut state, mut effects) = step(holding(), Input::Arm, at(100), timing());
    let (mut now, mut arms, mut renewals) = (100, 0, 0);
    while now < 60_000 {
        // Every command takes a while; only renewals come through.
        let answer = match effects.as_slice() {
            [Effect::SendArm] => Some((arm_unknown(), 300)),
            [Effect::SendRenew] => Some((renewed(), 20)),
            [] => None,
            other => panic!("at {now} ms: {other:?}"),
        };
        let (input, at_ms) = match answer {
            Some((input, takes)) => {
                arms += u32::from(input == arm_unknown());
                renewals += u32::from(input == renewed());
                (input, now + takes)
            }
            None => {
                let due = wake_at(&state).expect("something is due");
                (Input::Tick, u64::try_from(due.since(at(0)).as_millis()).expect("an instant"))
            }
        };
        now = at_ms.max(now);
        (state, effects) = step(state, input, at(now), timing());
        effects.retain(|effect| !matches!(effect, Effect::Announce(_)));
        assert!(now < 60_000 || matches!(state, State::Holding(_)));
        assert_eq!(held(&state).fence(), None);
    }
    assert!(arms > 50, "{arms} arms");
    assert!((10..=13).contains(&renewals), "{renewals} renewals");
}

#[test]
fn an_arm_that_finds_no_lock_of_ours_is_the_end() {
    let (state, _) = step(holding(), Input::Arm, at(10), timing());
    let gone = Input::ArmAnswered(ArmReply::Gone);
    let (state, effects) = step(state, gone, at(20), timing());
    assert_eq!(state, State::Lost(LossCause::Superseded));
    assert_eq!(effects, [Effect::Announce(Notice::Lost(LossCause::Superseded))]);
}

#[test]
fn an_arm_that_is_refused_leaves_a_lease_without_a_fence() {
    let (state, _) = step(holding(), Input::Arm, at(10), timing());
    let refused = Input::ArmAnswered(ArmReply::Refused(fault()));
    let (state, effects) = step(state, refused, at(20), timing());
    assert_eq!(effects, []);
    assert_eq!(held(&state).fence(), Some(&Fence::Refused(fault())));
    assert_eq!(wake_at(&state), Some(at(5_000)));
}

#[test]
fn an_arm_that_is_answered_after_the_deadline_arms_nothing() {
    let (state, _) = step(holding(), Input::Arm, at(4_000), timing());
    let (state, _) = step(state, armed(3), at(9_500), timing());
    assert_eq!(state, State::Lost(LossCause::Deadline));
}

#[test]
fn a_nudge_sends_a_renewal_at_once() {
    let (state, effects) = step(holding(), Input::Nudge, at(1_000), timing());
    assert_eq!(effects, [Effect::SendRenew]);
    let (state, _) = step(state, renewed(), at(1_010), timing());
    assert_eq!(wake_at(&state), Some(at(6_000)));
}

#[test]
fn a_nudge_during_a_renewal_sends_another_one_after_it() {
    let (state, _) = step(holding(), Input::Tick, at(5_000), timing());
    let (state, effects) = step(state, Input::Nudge, at(5_010), timing());
    assert_eq!(effects, []);
    let (state, effects) = step(state, renewed(), at(5_020), timing());
    assert_eq!(effects, [Effect::Announce(Notice::Renewed { beats: 1 }), Effect::SendRenew]);
    let (_, effects) = step(state, renewed(), at(5_030), timing());
    assert_eq!(effects, [Effect::Announce(Notice::Renewed { beats: 1 })]);
}

#[test]
fn a_nudge_during_an_arm_sends_a_renewal_after_it() {
    let (state, _) = step(holding(), Input::Arm, at(1_000), timing());
    let (state, _) = step(state, Input::Nudge, at(1_010), timing());
    let (_, effects) = step(state, armed(1), at(1_020), timing());
    assert_eq!(effects, [Effect::Announce(Notice::Armed { token: 1 }), Effect::SendRenew]);
}

#[test]
fn a_nudge_alone_neither_costs_nor_gives_trust() {
    let (state, _) = step(holding(), Input::Nudge, at(1_000), timing());
    let (state, _) = step(state, renewal_unknown(), at(1_500), timing());
    assert_eq!(held(&state).trusted_until, at(9_500));
    assert_eq!(wake_at(&state), Some(at(2_000)));
}

#[test]
fn an_election_during_the_takeover_stays_known() {
    let (state, _) = protocol::start(at(0));
    let moved = AcquireReply::Acquired { took_over_from: None, election_moved: true };
    let (state, _) = step(state, Input::Acquire(moved), at(10), timing());
    assert!(held(&state).election_moved);
    let (state, _) = step(state, Input::Tick, at(5_000), timing());
    let (state, _) = step(state, renewed(), at(5_010), timing());
    assert!(held(&state).election_moved);
}

fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => Just(Input::Tick),
        2 => Just(acquired()),
        1 => Just(Input::Acquire(AcquireReply::Unknown(fault()))),
        1 => Just(Input::Acquire(AcquireReply::Held(Holder::default()))),
        3 => Just(renewed()),
        1 => Just(Input::Renew(RenewReply::Gone)),
        2 => Just(renewal_unknown()),
        1 => Just(Input::Arm),
        2 => (1_i64..9).prop_map(armed),
        1 => Just(arm_unknown()),
        1 => Just(Input::ArmAnswered(ArmReply::Gone)),
        1 => Just(Input::ArmAnswered(ArmReply::Refused(fault()))),
        1 => Just(Input::Nudge),
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
                let asks = [Effect::SendAcquire, Effect::SendRenew, Effect::SendArm];
                asks.contains(effect).then_some(now)
            }));
            let sent = effects.iter().filter(|effect| !matches!(effect, Effect::Announce(_)));
            prop_assert!(sent.count() <= 1, "two commands at once: {effects:?}");
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
