//! The lock in a MongoDB collection: one document, judged and written by the server.
//!
//! Every write waits for a majority; what the server decides is spelled out in `mongo_pipeline`, the
//! acquire in `mongo_acquire`, the fence in `mongo_fence`. A server that refuses update pipelines decides
//! nothing: there we judge what it has, and write in the operators of `mongo_operators` on the condition
//! that it still has it. Which of the two it takes is learned from the first refusal, with the changelog,
//! for as long as the engine lives. A verb gets no longer than a quarter of the TTL, however many commands
//! it takes, so that a connection that died without a word leaves time to ask again over another one.
//!
//! Leases carry the id of the primary's election. It is asked for just before the command: written a
//! little too old it costs a successor some patience, never a holder its lease.
//!
//! Collections are expected to read from the primary with majority read concern, as
//! [`Connection`](crate::connect::Connection) hands them out.

use std::future::Future;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::error::Error;
use mongodb::options::{Acknowledgment, ReturnDocument, UpdateModifications, WriteConcern};
use mongodb::{Collection, Database};

use super::document::integer;
use super::lease::{Holder, OwnerToken, RunId};
use super::mongo_acquire as acquiring;
use super::mongo_fence as fence;
use super::mongo_operators::{self as operators, Moment};
use super::mongo_pipeline::{self as pipeline, LOCK_ID};
use super::mongo_reading as reading;
use super::mongo_unblock::{Of, end_transactions};
use super::mongo_watch as watching;
use super::store::{
    AcquireReply, ArmReply, Arming, Attempt, Interest, LockStore, ReleaseReply, RenewReply,
    UnsettledRun, Wakes,
};
use super::timing::Timing;
use crate::connect::{
    Hello, UpdateForm, fault_of, greet, is_outcome_unknown, no_reply, server_code,
};
use crate::fault::{FaultKind, StoreFault};
use crate::mutant::Mutant;

/// The migration lock of one database.
#[derive(Debug, Clone)]
pub struct MongoLockStore {
    pub(super) collection: Collection<Document>,
    pub(super) timing: Timing,
    pub(super) form: UpdateForm,
}

impl MongoLockStore {
    /// The lock in this collection, with leases of this timing.
    pub fn new(collection: Collection<Document>, timing: Timing, form: UpdateForm) -> Self {
        Self { collection, timing, form }
    }

    pub(super) fn database(&self) -> Database {
        self.collection.client().database(&self.collection.namespace().db)
    }

    pub(super) fn write_concern(&self) -> WriteConcern {
        let timeout = self.timing.write_timeout();
        WriteConcern::builder().w(Acknowledgment::Majority).w_timeout(timeout).build()
    }

    /// How long one verb may take.
    pub(super) fn patience(&self) -> Duration {
        (self.timing.ttl() / 4).max(LEAST_PATIENCE)
    }

    /// Waits for a verb, but not for ever.
    pub(super) async fn answered<T>(
        &self,
        verb: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let patience = self.patience();
        let late = || Err(Failure::Unknown(no_reply(patience)));
        tokio::time::timeout(patience, verb).await.unwrap_or_else(|_| late())
    }

    pub(super) async fn hello(&self) -> Result<Hello, Error> {
        greet(&self.database()).await
    }

    /// The primary's clock, where it does not judge by it itself.
    pub(super) async fn moment(&self) -> Result<Moment, Failure> {
        moment_of(&self.hello().await?)
    }

    /// What a renewal writes, with a new fencing token or without.
    pub(super) fn renewal(
        &self,
        owner: &OwnerToken,
        hello: &Hello,
        fence: Option<i64>,
    ) -> Result<UpdateModifications, Failure> {
        if self.form.is_operators() {
            Ok(operators::renew(owner, self.timing, moment_of(hello)?, fence).into())
        } else {
            Ok(pipeline::renew(owner, self.timing, hello.election, fence).into())
        }
    }

    /// Carries a verb out, and once more when that has taught us the form of updates to use.
    async fn in_its_form<T, V>(&self, verb: impl Fn() -> V) -> Result<T, Failure>
    where
        V: Future<Output = Result<T, Failure>>,
    {
        match verb().await {
            Err(Failure::Refused(fault)) if self.form.learns_from(&fault) => verb().await,
            reply => reply,
        }
    }

    async fn renew_once(&self, owner: &OwnerToken) -> Result<Option<Document>, Failure> {
        let hello = self.hello().await?;
        let mut concern = self.write_concern();
        if Mutant::BeatsW1.is_planted() {
            concern.w = Some(Acknowledgment::Nodes(1));
        }
        let renewed = self
            .collection
            .find_one_and_update(ours(owner), self.renewal(owner, &hello, None)?)
            .return_document(ReturnDocument::After)
            .projection(doc! { "beats": 1 })
            .write_concern(concern);
        Ok(renewed.await?)
    }

    /// Ends what a dead holder may have left open, and what would keep every write waiting.
    async fn unblock(&self, of: Of) {
        let _ = self.answered(end_transactions(self, of)).await;
    }

    async fn delete(&self, owner: &OwnerToken) -> Result<ReleaseReply, Failure> {
        let mut doubt = None;
        for _ in 0..RELEASE_TRIES {
            let command =
                self.collection.delete_one(ours(owner)).write_concern(self.write_concern());
            match command.await.map_err(Failure::from) {
                // What an earlier try deleted is not there any more.
                Ok(result) if result.deleted_count == 0 && doubt.is_none() => {
                    return Ok(ReleaseReply::NotOurs);
                }
                Ok(_) => return Ok(ReleaseReply::Released),
                Err(Failure::Unknown(fault)) => doubt = Some(fault),
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(self.timing.retry()).await;
        }
        Err(doubt.map_or_else(|| Failure::Unknown(no_reply(self.patience())), Failure::Unknown))
    }
}

impl LockStore for MongoLockStore {
    async fn acquire(&self, attempt: &Attempt) -> AcquireReply {
        let mut collisions = 0;
        loop {
            return match self.answered(self.in_its_form(|| acquiring::acquire(self, attempt))).await
            {
                Ok(reply) => reply,
                // Two upserts met. The same command, sent again, sees what the other one wrote.
                Err(Failure::Collision(_)) if collisions < COLLISION_LIMIT => {
                    collisions += 1;
                    continue;
                }
                Err(Failure::Unknown(fault)) => {
                    self.unblock(Of::TheDead).await;
                    AcquireReply::Unknown(fault)
                }
                Err(Failure::Refused(fault) | Failure::Collision(fault)) => {
                    AcquireReply::Refused(fault)
                }
            };
        }
    }

    async fn renew(&self, owner: &OwnerToken) -> RenewReply {
        match self.answered(self.in_its_form(|| self.renew_once(owner))).await {
            Ok(Some(lock)) => {
                RenewReply::Renewed { beats: integer(&lock, "beats").unwrap_or_default() }
            }
            Ok(None) => RenewReply::Gone,
            // A refusal says nothing about the lease: the last renewal still counts.
            Err(failure) => RenewReply::Unknown(failure.into_fault()),
        }
    }

    async fn arm(&self, owner: &OwnerToken, arming: &Arming) -> ArmReply {
        match self.in_its_form(|| fence::arm(self, owner, arming)).await {
            Ok(Some(token)) => ArmReply::Armed { token },
            Ok(None) => ArmReply::Gone,
            // Two upserts of the first fence met; the next arm sees the other one's.
            Err(Failure::Unknown(fault) | Failure::Collision(fault)) => ArmReply::Unknown(fault),
            Err(Failure::Refused(fault)) => ArmReply::Refused(fault),
        }
    }

    async fn release(&self, owner: &OwnerToken, settled: Option<&RunId>) -> ReleaseReply {
        if let Some(run) = settled {
            fence::settle(self, run).await;
        }
        let reply = self.answered(self.delete(owner)).await;
        reply.unwrap_or_else(|failure| ReleaseReply::Unknown(failure.into_fault()))
    }

    async fn unsettled(&self) -> Result<Vec<UnsettledRun>, StoreFault> {
        self.answered(fence::unsettled(self)).await.map_err(Failure::into_fault)
    }

    fn fence_command(&self, token: i64) -> Vec<u8> {
        fence::command(self.collection.name(), token)
    }

    async fn watch(&self, interest: Interest) -> Result<Wakes, StoreFault> {
        let opening = watching::open(&self.collection, &interest);
        self.answered(opening).await.map_err(Failure::into_fault)
    }

    async fn inspect(&self) -> Result<Option<Holder>, StoreFault> {
        reading::inspect(self).await.map_err(Failure::into_fault)
    }

    async fn force_release(
        &self,
        shown: Option<&OwnerToken>,
    ) -> Result<Option<Holder>, StoreFault> {
        let removed = match reading::remove(self, shown).await {
            Err(failure) if failure.is_out_of_time() => {
                self.unblock(Of::Anyone).await;
                reading::remove(self, shown).await
            }
            removed => removed,
        };
        removed.map_err(Failure::into_fault)
    }
}

/// Why a verb brought no answer.
pub(super) enum Failure {
    Unknown(StoreFault),
    Refused(StoreFault),
    /// A duplicate key: nothing was written.
    Collision(StoreFault),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let fault = fault_of(&error);
        match server_code(&error) {
            Some(DUPLICATE_KEY) => Self::Collision(fault),
            _ if is_outcome_unknown(&error) => Self::Unknown(fault),
            _ => Self::Refused(fault),
        }
    }
}

impl Failure {
    pub(super) fn into_fault(self) -> StoreFault {
        match self {
            Self::Unknown(fault) | Self::Refused(fault) | Self::Collision(fault) => fault,
        }
    }

    /// Did the server give up what it was waiting for?
    fn is_out_of_time(&self) -> bool {
        matches!(self, Self::Unknown(fault) if fault.server_code == Some(OUT_OF_TIME))
    }
}

/// The filter of everything that only the holder may do.
pub(super) fn ours(owner: &OwnerToken) -> Document {
    doc! { "_id": LOCK_ID, "owner": owner.as_str() }
}

pub(super) fn moment_of(hello: &Hello) -> Result<Moment, Failure> {
    Moment::of(hello).ok_or_else(|| {
        let message = "the server takes no update pipelines, and does not tell the time either";
        Failure::Refused(StoreFault::new(FaultKind::Rejected, message))
    })
}

/// How often colliding upserts are sent again. 4.4 reports a collision about once in 140 contested
/// acquires; more than a few in a row mean a foreign unique index, which no repetition cures.
const COLLISION_LIMIT: u32 = 20;

/// How often a release is sent: a change of primary loses one, and its aftermath perhaps another.
const RELEASE_TRIES: u32 = 3;

/// A reply over a healthy connection to a busy server, for leases of a second or two.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

/// How long a write to the lock document may wait before we look for what holds it up.
pub(super) const BLOCKED_PATIENCE: Duration = Duration::from_secs(5);

const OUT_OF_TIME: i32 = 50;
const DUPLICATE_KEY: i32 = 11000;
