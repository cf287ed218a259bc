//! The unique index of 1.x on the bare name: whom it keeps out, and that it is found.

use mongo_migrate_kit::changelog::store::{ChangelogStore, Claim, Expected, NameIndex, Written};
use mongo_migrate_kit::migration::{MigrationName, Namespace};

use crate::changelog::{NAME, claim, claims, done};
use crate::worlds::ChangelogWorld;

on_every_store! {
    without_the_index_a_name_of_another_namespace_is_no_obstacle,
    the_index_is_in_the_way_of_a_name_that_another_namespace_has,
    the_index_is_in_the_way_of_the_default_namespace_too,
    a_name_of_our_own_or_of_nobody_is_no_obstacle,
}

/// An entry of 1.x by another name.
const OTHER: &str = "20260102000000-b.js";

fn orders() -> Namespace {
    Namespace::new(Some("orders".to_owned()))
}

fn claim_in(namespace: Namespace) -> Claim {
    let mut claim = claim(Expected::Absent);
    claim.identity.namespace = namespace;
    claim
}

async fn found(store: &impl ChangelogStore, namespace: &Namespace) -> Option<NameIndex> {
    let names = [NAME, OTHER].map(|name| MigrationName::new(name).expect("a bare name"));
    let names: Vec<&MigrationName> = names.iter().collect();
    store.name_index(namespace, &names).await.expect("the indexes can be read")
}

fn of(names: &[&str]) -> Option<NameIndex> {
    let names = names.iter().copied().map(str::to_owned).collect();
    Some(NameIndex { index: "name_1".to_owned(), names })
}

async fn without_the_index_a_name_of_another_namespace_is_no_obstacle(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.plant_legacy(NAME, "applied").await;
    assert_eq!(found(&store, &orders()).await, None);
    done(claims(&store, &claim_in(orders())).await);
}

async fn the_index_is_in_the_way_of_a_name_that_another_namespace_has(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.index_names("name_1").await;
    world.plant_legacy(NAME, "applied").await;
    assert_eq!(found(&store, &orders()).await, of(&[NAME]));
    world.plant_legacy(OTHER, "reverted").await;
    assert_eq!(found(&store, &orders()).await, of(&[NAME, OTHER]));
    let refused = claims(&store, &claim_in(orders())).await;
    assert!(matches!(refused, Written::Refused(_)), "{refused:?}");
}

async fn the_index_is_in_the_way_of_the_default_namespace_too(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.index_names("name_1").await;
    done(claims(&store, &claim_in(orders())).await);
    assert_eq!(found(&store, &Namespace::default()).await, of(&[NAME]));
    let refused = claims(&store, &claim_in(Namespace::default())).await;
    assert!(matches!(refused, Written::Refused(_)), "{refused:?}");
}

async fn a_name_of_our_own_or_of_nobody_is_no_obstacle(world: &impl ChangelogWorld) {
    let store = world.changelog();
    world.index_names("name_1").await;
    assert_eq!(found(&store, &orders()).await, None);
    done(claims(&store, &claim_in(orders())).await);
    assert_eq!(found(&store, &orders()).await, None);
}
