//! A run whose fence can't be raised although its lease is renewed all the while.

use std::time::Duration;

use mongo_migrate_kit::fault::{FaultKind, StoreFault};
use mongo_migrate_kit::lock::lease::{Holder, OwnerToken, RunId};
use mongo_migrate_kit::lock::memory::MemoryLockStore;
use mongo_migrate_kit::lock::store::{
    AcquireReply, ArmReply, Arming, Attempt, Interest, LockStore, ReleaseReply, RenewReply,
    UnsettledRun, Wakes,
};
use mongo_migrate_kit::runner::RunError;
use tokio::time::{Instant, timeout};

use crate::world::{World, job};

/// What an election may take, as the run's own patience has it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A lock of which nobody ever hears whether it was armed.
struct NeverArmed(MemoryLockStore);

impl LockStore for NeverArmed {
    async fn acquire(&self, attempt: &Attempt) -> AcquireReply {
        self.0.acquire(attempt).await
    }

    async fn renew(&self, owner: &OwnerToken) -> RenewReply {
        self.0.renew(owner).await
    }

    async fn arm(&self, _owner: &OwnerToken, _arming: &Arming) -> ArmReply {
        ArmReply::Unknown(StoreFault::new(FaultKind::Unreachable, "the request was lost"))
    }

    async fn release(&self, owner: &OwnerToken, settled: Option<&RunId>) -> ReleaseReply {
        self.0.release(owner, settled).await
    }

    async fn unsettled(&self) -> Result<Vec<UnsettledRun>, StoreFault> {
        self.0.unsettled().await
    }

    fn fence_command(&self, token: i64) -> Vec<u8> {
        self.0.fence_command(token)
    }

    async fn watch(&self, interest: Interest) -> Result<Wakes, StoreFault> {
        self.0.watch(interest).await
    }

    async fn inspect(&self) -> Result<Option<Holder>, StoreFault> {
        self.0.inspect().await
    }

    async fn force_release(
        &self,
        shown: Option<&OwnerToken>,
    ) -> Result<Option<Holder>, StoreFault> {
        self.0.force_release(shown).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_arm_that_never_succeeds_ends_after_its_patience_with_the_lock_released() {
    let world = World::new();
    let began = Instant::now();
    let run = world.begin_on(NeverArmed(world.lock.handle()), job(), 0);
    let process = run.process.clone();
    let ended = timeout(PATIENCE * 2, run.ended()).await.expect("it has an end");
    let stopped = ended.expect_err("it never had a fence");

    let RunError::Database { doing: "raising the fence", fault } = stopped.error else {
        panic!("{:?}", stopped.error);
    };
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(began.elapsed() >= PATIENCE, "an election would have fitted in");
    assert_eq!(process.begun.available_permits(), 0);
    assert!(world.entries().await.is_empty());
    assert_eq!(world.owner(), None, "the lock is released");
}
