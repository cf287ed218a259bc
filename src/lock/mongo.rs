//! The lock in a MongoDB collection: one document, judged and written by the server.
//!
//! Every write waits for a majority; what the server decides is spelled out in `mongo_pipeline`, the
//! fence in `mongo_fence`. A verb gets no longer than a quarter of the TTL, however many commands it
//! takes, so that a connection that died without a word leaves time to ask again over another one.
//!
//! Leases carry the id of the primary's election. It is asked for just before the command: written a
//! little too old it costs a successor some patience, never a holder its lease.
//!
//! Collections are expected to read from the primary with majority read concern, as
//! [`Connection`](crate::connect::Connection) hands them out.

use std::future::Future;
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use mongodb::error::Error;
use mongodb::options::{Acknowledgment, ReturnDocument, WriteConcern};
use mongodb::{Collection, Database};

use super::lease::{Holder, OwnerToken, RunId};
use super::mongo_fence as fence;
use super::mongo_pipeline::{self as pipeline, LOCK_ID};
use super::mongo_unblock::{Of, end_transactions};
use super::mongo_watch as watching;
use super::store::{
    AcquireReply, ArmReply, Arming, Attempt, Interest, LockStore, ReleaseReply, RenewReply,
    UnsettledRun, Wakes,
};
use super::timing::Timing;
use crate::connect::{fault_of, greet, is_outcome_unknown, no_reply, server_code};
use crate::fault::{FaultKind, StoreFault};
use crate::mutant::Mutant;

/// The migration lock of one database.
#[derive(Debug, Clone)]
pub struct MongoLockStore {
    pub(super) collection: Collection<Document>,
    pub(super) timing: Timing,
}

impl MongoLockStore {
    /// The lock in this collection, with leases of this timing.
    pub fn new(collection: Collection<Document>, timing: Timing) -> Self {
        Self { collection, timing }
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

    async fn election(&self) -> Result<Option<ObjectId>, Error> {
        Ok(greet(&self.database()).await?.election)
    }

    async fn acquire_once(&self, attempt: &Attempt) -> Result<AcquireReply, Failure> {
        let election = self.election().await?;
        let reply = self
            .collection
            .find_one_and_update(doc! { "_id": LOCK_ID }, pipeline::acquire(attempt, election))
            .upsert(true)
            .return_document(ReturnDocument::After)
            .projection(pipeline::view(attempt.timing.legacy_ttl()))
            .max_time(self.patience().min(BLOCKED_PATIENCE))
            .write_concern(self.write_concern())
            .await?;
        let lock = reply.ok_or_else(|| {
            let message = "the server upserted nothing";
            Failure::Unknown(StoreFault::new(FaultKind::Rejected, message))
        })?;
        let found = holder(&lock);
        if found.owner.as_deref() != Some(attempt.owner.as_str()) {
            return Ok(AcquireReply::Held(found));
        }
        let took_over_from = previous(&lock, &found);
        let election_moved = match took_over_from {
            Some(_) => self.has_moved_since(&lock).await?,
            None => false,
        };
        Ok(AcquireReply::Acquired { took_over_from, election_moved })
    }

    /// Was there an election since shortly before this lease was won?
    async fn has_moved_since(&self, lock: &Document) -> Result<bool, Failure> {
        // The lock is ours by now, so a refusal to answer refuses nothing.
        let now = self.election().await.map_err(|error| Failure::Unknown(fault_of(&error)))?;
        Ok(now != lock.get_object_id("electionId").ok())
    }

    /// Ends what a dead holder may have left open, and what would keep every write waiting.
    async fn unblock(&self, of: Of) {
        let _ = self.answered(async { Ok(end_transactions(self, of).await?) }).await;
    }

    async fn remove(&self, shown: Option<&OwnerToken>) -> Result<Option<Document>, Error> {
        let still_shown = match shown {
            Some(owner) => doc! { "$eq": ["$owner", { "$literal": owner.as_str() }] },
            None => doc! { "$ne": [{ "$type": "$owner" }, "string"] },
        };
        self.collection
            .find_one_and_delete(doc! { "_id": LOCK_ID, "$expr": still_shown })
            .projection(pipeline::view(self.timing.legacy_ttl()))
            .max_time(BLOCKED_PATIENCE)
            .write_concern(self.write_concern())
            .await
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
            return match self.answered(self.acquire_once(attempt)).await {
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
        let renewal = async {
            let election = self.election().await?;
            let mut concern = self.write_concern();
            if Mutant::BeatsW1.is_planted() {
                concern.w = Some(Acknowledgment::Nodes(1));
            }
            let renewed = self
                .collection
                .find_one_and_update(ours(owner), pipeline::renew(owner, self.timing, election))
                .return_document(ReturnDocument::After)
                .projection(doc! { "beats": 1 })
                .write_concern(concern)
                .await?;
            Ok(renewed)
        };
        match self.answered(renewal).await {
            Ok(Some(lock)) => {
                RenewReply::Renewed { beats: integer(&lock, "beats").unwrap_or_default() }
            }
            Ok(None) => RenewReply::Gone,
            // A refusal says nothing about the lease: the last renewal still counts.
            Err(failure) => RenewReply::Unknown(failure.into_fault()),
        }
    }

    async fn arm(&self, owner: &OwnerToken, arming: &Arming) -> ArmReply {
        match fence::arm(self, owner, arming).await {
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
        let query = self
            .collection
            .find_one(doc! { "_id": LOCK_ID })
            .projection(pipeline::view(self.timing.legacy_ttl()));
        let lock = query.await.map_err(|error| fault_of(&error))?;
        Ok(lock.as_ref().map(holder))
    }

    async fn force_release(
        &self,
        shown: Option<&OwnerToken>,
    ) -> Result<Option<Holder>, StoreFault> {
        let removed = match self.remove(shown).await {
            Err(error) if server_code(&error) == Some(OUT_OF_TIME) => {
                self.unblock(Of::Anyone).await;
                self.remove(shown).await
            }
            removed => removed,
        };
        Ok(removed.map_err(|error| fault_of(&error))?.as_ref().map(holder))
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
    fn into_fault(self) -> StoreFault {
        match self {
            Self::Unknown(fault) | Self::Refused(fault) | Self::Collision(fault) => fault,
        }
    }
}

/// The filter of everything that only the holder may do.
pub(super) fn ours(owner: &OwnerToken) -> Document {
    doc! { "_id": LOCK_ID, "owner": owner.as_str() }
}

/// Whose lease this one took over, if it took over one.
fn previous(lock: &Document, found: &Holder) -> Option<Holder> {
    let previous = lock.get_document("prev").ok()?;
    let expires_at = instant(previous, "expiresAt");
    // It was over, whatever else it says.
    Some(Holder { now: found.now, expires_at, expired: true, ..holder(previous) })
}

fn holder(lock: &Document) -> Holder {
    Holder {
        owner: text(lock, "owner"),
        run_id: text(lock, "runId"),
        namespace: text(lock, "namespace"),
        host: text(lock, "host"),
        pid: integer(lock, "pid"),
        user: text(lock, "executedBy"),
        operation: text(lock, "operation"),
        running: None,
        acquired_at: instant(lock, "acquiredAt"),
        locked_at: instant(lock, "lockedAt"),
        expires_at: instant(lock, "endsAt"),
        now: instant(lock, "now").unwrap_or_default(),
        ttl_ms: integer(lock, "ttlMs"),
        beats: integer(lock, "beats"),
        expired: lock.get_bool("over").unwrap_or_default(),
    }
}

pub(super) fn text(document: &Document, field: &str) -> Option<String> {
    document.get_str(field).ok().map(str::to_owned)
}

fn instant(document: &Document, field: &str) -> Option<i64> {
    document.get_datetime(field).ok().map(|instant| instant.timestamp_millis())
}

pub(super) fn integer(document: &Document, field: &str) -> Option<i64> {
    match document.get(field)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        // The conversion saturates, and numbers of this size are nobody's process id.
        Bson::Double(number) if number.fract() == 0.0 => Some(*number as i64),
        _ => None,
    }
}

/// How often colliding upserts are sent again. 4.4 reports a collision about once in 140 contested
/// acquires; more than a few in a row mean a foreign unique index, which no repetition cures.
const COLLISION_LIMIT: u32 = 20;

/// How often a release is sent: a change of primary loses one, and its aftermath perhaps another.
const RELEASE_TRIES: u32 = 3;

/// A reply over a healthy connection to a busy server, for leases of a second or two.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

/// How long a write to the lock document may wait before we look for what holds it up.
const BLOCKED_PATIENCE: Duration = Duration::from_secs(5);

const OUT_OF_TIME: i32 = 50;
const DUPLICATE_KEY: i32 = 11000;
