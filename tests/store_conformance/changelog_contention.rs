//! Writers that meet: of the same precondition one write is done, and the others learn what is there.

use mongo_migrate_kit::changelog::store::{ChangelogStore, Expected, Outcome, Written};

use crate::changelog::{NAME, applied, claim, claims, done, read, settlement, settles};
use crate::worlds::ChangelogWorld;

on_every_store! {
    of_sixteen_first_claims_one_is_done,
    of_sixteen_claims_of_one_version_one_is_done,
    a_claim_of_what_has_changed_is_a_conflict_that_shows_it,
    a_first_claim_of_what_has_appeared_is_a_conflict_that_shows_it,
    a_write_that_is_sent_again_recognises_itself,
    a_zombies_settlement_changes_nothing,
    an_entry_that_somebody_deleted_is_not_created_again,
}

async fn contend<S: ChangelogStore + Clone>(store: &S, expected: &Expected) -> Vec<Written> {
    let claimants: Vec<_> = (0..16)
        .map(|_| {
            let (store, claim) = (store.clone(), claim(expected.clone()));
            tokio::spawn(async move { claims(&store, &claim).await })
        })
        .collect();
    let mut written = Vec::new();
    for claimant in claimants {
        written.push(claimant.await.expect("a claim does not panic"));
    }
    written
}

fn assert_one_winner(round: usize, written: &[Written]) {
    let done: Vec<_> = written
        .iter()
        .filter_map(|written| match written {
            Written::Done(entry) => Some(entry),
            Written::Conflict(_) | Written::Unknown(_) | Written::Refused(_) => None,
        })
        .collect();
    assert_eq!(done.len(), 1, "round {round}: {written:?}");
    for written in written {
        match written {
            Written::Done(_) => {}
            Written::Conflict(Some(found)) => assert_eq!(found, done[0], "round {round}"),
            other => panic!("round {round}: {other:?}"),
        }
    }
}

async fn of_sixteen_first_claims_one_is_done(world: &impl ChangelogWorld) {
    let store = world.changelog();
    for round in 0..30 {
        assert_one_winner(round, &contend(&store, &Expected::Absent).await);
        let entry = read(&store).await.remove(0);
        world.remove(&entry.key).await;
        assert_eq!(read(&store).await, [], "round {round} left a second entry");
    }
}

async fn of_sixteen_claims_of_one_version_one_is_done(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.plant_legacy(NAME, "reverted").await;
    for round in 0..30 {
        let before = read(&store).await.remove(0);
        assert_one_winner(round, &contend(&store, &Expected::of(Some(&before))).await);
    }
}

async fn a_claim_of_what_has_changed_is_a_conflict_that_shows_it(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let first = claim(Expected::Absent);
    let claimed = done(claims(&store, &first).await);
    let now = done(settles(&store, &settlement(&first, &claimed, applied())).await);

    let late = claim(Expected::of(Some(&claimed)));
    assert_eq!(claims(&store, &late).await, Written::Conflict(Some(now.clone())));
    assert_eq!(read(&store).await, [now]);
}

async fn a_first_claim_of_what_has_appeared_is_a_conflict_that_shows_it(
    world: &impl ChangelogWorld,
) {
    let store = world.changelog();
    let claimed = done(claims(&store, &claim(Expected::Absent)).await);
    let second = claims(&store, &claim(Expected::Absent)).await;
    assert_eq!(second, Written::Conflict(Some(claimed.clone())));
    assert_eq!(read(&store).await, [claimed]);
}

async fn a_write_that_is_sent_again_recognises_itself(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let first = claim(Expected::Absent);
    let claimed = done(claims(&store, &first).await);
    assert_eq!(done(claims(&store, &first).await), claimed);

    let settlement = settlement(&first, &claimed, applied());
    let settled = done(settles(&store, &settlement).await);
    assert_eq!(done(settles(&store, &settlement).await), settled);

    let second = claim(Expected::of(Some(&settled)));
    let again = done(claims(&store, &second).await);
    assert_eq!(done(claims(&store, &second).await), again);
}

async fn a_zombies_settlement_changes_nothing(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let slow = claim(Expected::Absent);
    let interrupted = done(claims(&store, &slow).await);
    let successor = claim(Expected::of(Some(&interrupted)));
    let running = done(claims(&store, &successor).await);

    for outcome in [applied(), Outcome::Reverted] {
        let zombie = settlement(&slow, &interrupted, outcome);
        let written = settles(&store, &zombie).await;
        assert_eq!(written, Written::Conflict(Some(running.clone())));
    }
    let settled = done(settles(&store, &settlement(&successor, &running, applied())).await);
    assert_eq!(read(&store).await, [settled]);
}

async fn an_entry_that_somebody_deleted_is_not_created_again(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let first = claim(Expected::Absent);
    let claimed = done(claims(&store, &first).await);
    world.remove(&claimed.key).await;

    let settlement = settlement(&first, &claimed, applied());
    assert_eq!(settles(&store, &settlement).await, Written::Conflict(None));
    let again = claim(Expected::of(Some(&claimed)));
    assert_eq!(claims(&store, &again).await, Written::Conflict(None));
    assert_eq!(read(&store).await, []);
}
