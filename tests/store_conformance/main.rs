//! One suite for every store: what the ports promise, asked of the stores in memory always, and of
//! real servers when `MMK_TEST_MONGO_URI` (a replica set) and `MMK_TEST_STANDALONE_URI` name some, as
//! `npm test` always does. Each behaviour is one function; `on_every_store!` makes the tests of it, and
//! `in_both_forms!` of those that only a server has.

/// Makes tests of behaviours: one per behaviour and store.
macro_rules! on_every_store {
    ($($behaviour:ident,)+) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(&crate::worlds::MemoryWorld::new()).await;
            })+
        }
        mod replica_set {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                if let Some(world) = crate::worlds::replica_set().await {
                    super::$behaviour(&world).await;
                    world.close().await;
                }
            })+
        }
        mod replica_set_by_operators {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                if let Some(world) = crate::worlds::replica_set().await {
                    let world = world.by_operators();
                    super::$behaviour(&world).await;
                    world.close().await;
                }
            })+
        }
        mod standalone {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                if let Some(world) = crate::worlds::standalone().await {
                    super::$behaviour(&world).await;
                    world.close().await;
                }
            })+
        }
        mod standalone_by_operators {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                if let Some(world) = crate::worlds::standalone().await {
                    let world = world.by_operators();
                    super::$behaviour(&world).await;
                    world.close().await;
                }
            })+
        }
    };
}

/// Makes tests of behaviours that only a server has: one for each form of updates.
macro_rules! in_both_forms {
    ($($behaviour:ident,)+) => {
        mod by_pipelines {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour(mongo_migrate_kit::connect::UpdateForm::default()).await;
            })+
        }
        mod by_operators {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour(mongo_migrate_kit::connect::UpdateForm::operators()).await;
            })+
        }
    };
}

mod adopt;
mod advance;
mod changelog;
mod changelog_contention;
mod elections;
mod faults;
mod fence;
mod fence_transactions;
mod lock;
mod lock_shapes;
mod mark;
mod names;
mod orphans;
mod plain;
mod plain_changelog;
mod refusing;
mod refusing_changelog;
mod relay;
mod watch;
mod wiretap;
mod worlds;
