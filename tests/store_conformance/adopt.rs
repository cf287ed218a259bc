//! Adopting what another tool has applied: created once, never written over.

use mongo_migrate_kit::changelog::entry::{Entry, Status};
use mongo_migrate_kit::changelog::store::{
    ADOPTER, Adoption, ChangelogStore, Expected, Lookout, Written,
};
use mongo_migrate_kit::lock::guard::LeaseGuard;
use mongo_migrate_kit::migration::{Direction, MigrationName, Namespace};

use crate::changelog::{NAME, applied, claim, claims, done, read, settlement, settles};
use crate::worlds::{ChangelogWorld, identity};

on_every_store! {
    an_adopted_entry_is_applied_as_it_was_recorded,
    an_adoption_without_a_time_gets_the_time_of_the_write,
    an_entry_that_is_there_is_not_adopted_again,
    of_adoptions_at_once_one_is_done,
    an_adopted_entry_reverts_like_any_other,
    namespaces_adopt_the_same_name_each_for_itself,
    a_foreign_changelog_that_is_not_there_is_none,
}

/// 2024-01-01 12:00 UTC.
const APPLIED_AT: i64 = 1_704_110_400_000;

fn adoption(applied_at: Option<i64>) -> Adoption {
    Adoption {
        name: MigrationName::new(NAME).expect("a bare name"),
        batch: 7,
        applied_at,
        checksum: "ab12".to_owned(),
        origin: "migrate-mongo",
        identity: identity(),
    }
}

async fn adopts(store: &impl ChangelogStore, adoption: &Adoption) -> Written {
    let guard = LeaseGuard::unlocked();
    let proof = guard.proof().expect("no lock, no loss");
    store.adopt(&proof, adoption).await
}

async fn an_adopted_entry_is_applied_as_it_was_recorded(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let adoption = adoption(Some(APPLIED_AT));
    let entry = done(adopts(&store, &adoption).await);
    assert_eq!(read(&store).await, std::slice::from_ref(&entry));
    assert_eq!(
        (entry.name.as_str(), &entry.status, entry.version),
        (NAME, &Status::Applied, Some(1))
    );
    assert_eq!(
        (entry.batch, entry.applied_at, entry.duration_ms),
        (Some(7), Some(APPLIED_AT), Some(0))
    );
    assert_eq!(entry.checksum.as_deref(), Some("ab12"));
    assert_eq!(entry.origin.as_deref(), Some("migrate-mongo"));
    assert_eq!(entry.executed_by.as_deref(), Some(ADOPTER));
    assert_eq!(entry.direction, Some(Direction::Up));
    assert_eq!(entry.run_id, Some(adoption.identity.run_id));
}

async fn an_adoption_without_a_time_gets_the_time_of_the_write(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let entry = done(adopts(&store, &adoption(None)).await);
    assert!(entry.applied_at.is_some_and(|at| at > APPLIED_AT), "{entry:?}");
}

async fn an_entry_that_is_there_is_not_adopted_again(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let first = done(adopts(&store, &adoption(Some(APPLIED_AT))).await);
    let mut later = adoption(None);
    later.batch = 9;
    assert_eq!(adopts(&store, &later).await, Written::Conflict(Some(first.clone())));
    assert_eq!(read(&store).await, [first]);
}

async fn of_adoptions_at_once_one_is_done(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let [one, two, three] = [1, 2, 3].map(|hours| adoption(Some(APPLIED_AT + hours)));
    let (a, b, c) =
        tokio::join!(adopts(&store, &one), adopts(&store, &two), adopts(&store, &three));
    let outcomes = [a, b, c];
    let done = outcomes.iter().filter(|outcome| matches!(outcome, Written::Done(_))).count();
    let lost =
        outcomes.iter().filter(|outcome| matches!(outcome, Written::Conflict(Some(_)))).count();
    assert_eq!((done, lost), (1, 2), "{outcomes:?}");
    assert_eq!(read(&store).await.len(), 1);
}

async fn an_adopted_entry_reverts_like_any_other(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let adopted: Entry = done(adopts(&store, &adoption(Some(APPLIED_AT))).await);
    let mut down = claim(Expected::of(Some(&adopted)));
    down.direction = Direction::Down;
    let claimed = done(claims(&store, &down).await);
    let reverted = mongo_migrate_kit::changelog::store::Outcome::Reverted;
    let entry = done(settles(&store, &settlement(&down, &claimed, reverted)).await);
    assert_eq!((&entry.status, entry.batch), (&Status::Reverted, Some(7)));

    let up = claim(Expected::of(Some(&entry)));
    let claimed = done(claims(&store, &up).await);
    let entry = done(settles(&store, &settlement(&up, &claimed, applied())).await);
    assert_eq!(entry.origin, None, "its up has run here: it is imported no more");
}

async fn namespaces_adopt_the_same_name_each_for_itself(world: &impl ChangelogWorld) {
    let store = world.changelog();
    let mut named = adoption(Some(APPLIED_AT));
    named.identity.namespace = Namespace::new(Some("orders".to_owned()));
    done(adopts(&store, &adoption(Some(APPLIED_AT))).await);
    let entry = done(adopts(&store, &named).await);
    assert_eq!(entry.namespace, named.identity.namespace);
    assert_eq!(read(&store).await.len(), 1);
}

async fn a_foreign_changelog_that_is_not_there_is_none(world: &impl ChangelogWorld) {
    let store = world.changelog();
    for lookout in [Lookout::In("changelog"), Lookout::Everywhere] {
        assert_eq!(store.foreign(lookout).await, Ok(Vec::new()));
    }
}
