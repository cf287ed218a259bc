//! What dead runs left running: found by their name, stopped, and gone.

use std::time::Duration;

use mongo_migrate_kit::fault::FaultKind;
use mongo_migrate_kit::lock::lease::RunId;
use mongo_migrate_kit::lock::memory_orphans::{MemoryOrphans, Nature};
use mongo_migrate_kit::lock::mongo_orphans::MongoOrphans;
use mongo_migrate_kit::lock::orphans::{Operation, Orphans};
use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, IndexOptions};
use mongodb::{Client, IndexModel};

use crate::worlds::{MongoWorld, replica_set, standalone};

const DOCUMENTS: i32 = 20_000;
/// For what takes moments on an idle machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// A run that dies: dropping its work closes its connections, as the end of its process would.
async fn client_of(world: &MongoWorld, run: &RunId) -> Client {
    let mut options = ClientOptions::parse(&world.uri).await.expect("a usable connection string");
    options.app_name = Some(run.app_name());
    Client::with_options(options).expect("usable options")
}

async fn fill(world: &MongoWorld) {
    let source = world.bystander.database(&world.db_name).collection::<Document>("orders");
    let documents = (0..DOCUMENTS).map(|id| doc! { "_id": id, "stamped": false });
    source.insert_many(documents).await.expect("room");
}

/// Takes a few seconds for every thousand documents.
fn slow_stamp() -> Vec<Document> {
    let heavy = doc! { "$reduce": {
        "input": { "$range": [0, 4_000] }, "initialValue": 0,
        "in": { "$mod": [{ "$add": ["$$value", "$$this", "$_id"] }, 9_973] },
    } };
    vec![doc! { "$set": { "stamped": true, "secret": heavy } }]
}

async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.expect("seen in time")
}

async fn found(orphans: &MongoOrphans, run: &RunId) -> Vec<Operation> {
    orphans.find(run).await.expect("own operations can be seen")
}

async fn appears(orphans: &MongoOrphans, run: &RunId) -> Vec<Operation> {
    until(async || Some(found(orphans, run).await).filter(|found| !found.is_empty())).await
}

async fn vanishes(orphans: &MongoOrphans, run: &RunId) {
    until(async || found(orphans, run).await.is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_outlives_its_client_is_found_and_stopped() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        fill(&world).await;
        let (run, other) = (RunId::random(), RunId::random());
        let orphans = MongoOrphans::new(world.connection.database());
        assert_eq!(found(&orphans, &run).await, []);
        let client = client_of(&world, &run).await;
        let orders = client.database(&world.db_name).collection::<Document>("orders");
        let working = tokio::spawn(async move { orders.update_many(doc! {}, slow_stamp()).await });
        appears(&orphans, &run).await;
        working.abort();
        client.shutdown().immediate(true).await;

        let left = appears(&orphans, &run).await;
        let expected = format!("update {}.orders", world.db_name);
        assert!(left.iter().all(|found| found.description == expected), "{left:?}");
        assert_eq!(found(&orphans, &other).await, []);
        for operation in &left {
            orphans.stop(operation).await.expect("one's own operation");
        }
        vanishes(&orphans, &run).await;
        let orders = world.bystander.database(&world.db_name).collection::<Document>("orders");
        let stamped = orders.count_documents(doc! { "stamped": true }).await.expect("a count");
        assert!(stamped < DOCUMENTS.unsigned_abs().into(), "it ran to its end");
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_transaction_is_found_and_ended() {
    let Some(world) = replica_set().await else { return };
    fill(&world).await;
    let run = RunId::random();
    let orphans = MongoOrphans::new(world.connection.database());
    let client = client_of(&world, &run).await;
    let orders = client.database(&world.db_name).collection::<Document>("orders");
    let mut session = client.start_session().await.expect("a session");
    session.start_transaction().await.expect("transactions");
    let everything = doc! { "$set": { "stamped": true } };
    orders.update_one(doc! { "_id": 1 }, everything).session(&mut session).await.expect("a write");

    let left = appears(&orphans, &run).await;
    assert_eq!(
        left.iter().map(|found| found.description.as_str()).collect::<Vec<_>>(),
        ["open transaction"]
    );
    for operation in &left {
        orphans.stop(operation).await.expect("one's own session");
    }
    vanishes(&orphans, &run).await;
    assert!(session.commit_transaction().await.is_err());
    let stamped = orders.find_one(doc! { "_id": 1 }).await.expect("a read").expect("a document");
    assert!(stamped.get_bool("stamped").is_ok_and(|stamped| !stamped));
    client.shutdown().immediate(true).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_nothing_has_left_nothing() {
    for world in [replica_set().await, standalone().await].into_iter().flatten() {
        let run = RunId::random();
        let client = client_of(&world, &run).await;
        let greeting = client.database("admin").run_command(doc! { "ping": 1 }).await;
        assert!(greeting.is_ok());
        let orphans = MongoOrphans::new(world.connection.database());
        // The driver goes on watching its server meanwhile.
        for _ in 0..20 {
            assert_eq!(found(&orphans, &run).await, []);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.shutdown().immediate(true).await;
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_build_that_nobody_waits_for_is_reported() {
    let Some(world) = replica_set().await else { return };
    fill(&world).await;
    let orphans = MongoOrphans::new(world.connection.database());
    assert_eq!(orphans.unfinished_indexes().await, Ok(vec![]));
    world.hang_index_builds().await;
    let orders = world.bystander.database(&world.db_name).collection::<Document>("orders");
    let named = IndexOptions::builder().name("by_stamp".to_owned()).build();
    let index = IndexModel::builder().keys(doc! { "stamped": 1 }).options(named).build();
    let building = tokio::spawn(async move { orders.create_index(index).await });
    let unfinished = until(async || {
        let found = orphans.unfinished_indexes().await.expect("indexes can be listed");
        Some(found).filter(|found| !found.is_empty())
    });
    let unfinished = unfinished.await;
    world.release_index_builds().await;
    assert_eq!(unfinished, ["orders.by_stamp"]);
    building.await.expect("no panic").expect("an index");
    assert_eq!(orphans.unfinished_indexes().await, Ok(vec![]));
    world.close().await;
}

#[tokio::test]
async fn a_handle_that_names_nothing_is_refused_and_stops_nothing() {
    let Some(world) = replica_set().await else { return };
    let orphans = MongoOrphans::new(world.connection.database());
    for handle in ["", "session", "session x", "everything 1"] {
        let operation = Operation { handle: handle.to_owned(), description: String::new() };
        let fault = orphans.stop(&operation).await.expect_err("no operation");
        assert_eq!(fault.kind, FaultKind::Rejected, "{handle}");
    }
    world.close().await;
}

#[tokio::test]
async fn in_memory_operations_belong_to_their_run_and_some_do_not_listen() {
    let orphans = MemoryOrphans::new();
    let (run, other) = (RunId::random(), RunId::random());
    orphans.plant(&run, "update orders", Nature::Obedient);
    orphans.plant(&run, "createIndexes orders", Nature::Stubborn);
    assert_eq!(orphans.find(&other).await, Ok(vec![]));
    for operation in orphans.find(&run).await.expect("a look") {
        orphans.stop(&operation).await.expect("a word");
    }
    let left = orphans.find(&run).await.expect("a look");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].description, "createIndexes orders");
    orphans.plant_index("orders.by_stamp");
    assert_eq!(orphans.unfinished_indexes().await, Ok(vec!["orders.by_stamp".to_owned()]));
    orphans.forbid();
    assert!(orphans.find(&run).await.is_err());
}
