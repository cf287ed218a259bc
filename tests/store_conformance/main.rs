//! One suite for every store: what the ports promise, asked of the stores in memory always, and of
//! real servers when `MMK_TEST_MONGO_URI` (a replica set) and `MMK_TEST_STANDALONE_URI` name some, as
//! `npm test` always does. Each behaviour is one function; `on_every_store!` makes the tests of it.

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
        mod standalone {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                if let Some(world) = crate::worlds::standalone().await {
                    super::$behaviour(&world).await;
                    world.close().await;
                }
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
mod lock;
mod lock_shapes;
mod mark;
mod names;
mod orphans;
mod watch;
mod worlds;
