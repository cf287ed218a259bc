//! The lock in a MongoDB collection: one document, judged and written by the server.
//!
//! Every write is one command that waits for a majority; what the server decides is spelled out in
//! `mongo_pipeline`. Replies are waited for no longer than a quarter of the TTL, so that a connection
//! that died without a word leaves time to ask again over another one.
//!
//! Collections are expected to read from the primary with majority read concern, as
//! [`Connection`](crate::connect::Connection) hands them out.

use std::future::Future;
use std::time::Duration;

use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error;
use mongodb::options::{Acknowledgment, ReturnDocument, WriteConcern};

use super::lease::{Holder, OwnerToken};
use super::mongo_pipeline::{self as pipeline, LOCK_ID};
use super::store::{AcquireReply, Attempt, LockStore, ReleaseReply, RenewReply};
use super::timing::Timing;
use crate::connect::{fault_of, is_outcome_unknown, no_reply, server_code};
use crate::fault::{FaultKind, StoreFault};

/// The migration lock of one database.
#[derive(Debug, Clone)]
pub struct MongoLockStore {
    collection: Collection<Document>,
    timing: Timing,
}

impl MongoLockStore {
    /// The lock in this collection, with leases of this timing.
    pub fn new(collection: Collection<Document>, timing: Timing) -> Self {
        Self { collection, timing }
    }

    fn write_concern(&self) -> WriteConcern {
        let timeout = self.timing.write_timeout();
        WriteConcern::builder().w(Acknowledgment::Majority).w_timeout(timeout).build()
    }

    async fn acquire_once(&self, attempt: &Attempt) -> Result<Document, Failure> {
        let command = self
            .collection
            .find_one_and_update(doc! { "_id": LOCK_ID }, pipeline::acquire(attempt))
            .upsert(true)
            .return_document(ReturnDocument::After)
            .projection(pipeline::view(attempt.timing.legacy_ttl()))
            .write_concern(self.write_concern());
        let reply = self.answered(command.into_future()).await?;
        reply.ok_or_else(|| {
            let message = "the server upserted nothing";
            Failure::Unknown(StoreFault::new(FaultKind::Rejected, message))
        })
    }

    async fn answered<T>(
        &self,
        command: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        let patience = (self.timing.ttl() / 4).max(LEAST_PATIENCE);
        match tokio::time::timeout(patience, command).await {
            Ok(reply) => reply.map_err(|error| Failure::of(&error)),
            Err(_) => Err(Failure::Unknown(no_reply(patience))),
        }
    }
}

impl LockStore for MongoLockStore {
    async fn acquire(&self, attempt: &Attempt) -> AcquireReply {
        let mut collisions = 0;
        loop {
            return match self.acquire_once(attempt).await {
                Ok(lock) => acquired_or_held(&lock, &attempt.owner),
                // Two upserts met. The same command, sent again, sees what the other one wrote.
                Err(Failure::Collision(_)) if collisions < COLLISION_LIMIT => {
                    collisions += 1;
                    continue;
                }
                Err(Failure::Unknown(fault)) => AcquireReply::Unknown(fault),
                Err(Failure::Refused(fault) | Failure::Collision(fault)) => {
                    AcquireReply::Refused(fault)
                }
            };
        }
    }

    async fn renew(&self, owner: &OwnerToken) -> RenewReply {
        let command = self
            .collection
            .find_one_and_update(ours(owner), pipeline::renew(owner, self.timing))
            .return_document(ReturnDocument::After)
            .projection(doc! { "beats": 1 })
            .write_concern(self.write_concern());
        match self.answered(command.into_future()).await {
            Ok(Some(lock)) => {
                RenewReply::Renewed { beats: integer(&lock, "beats").unwrap_or_default() }
            }
            Ok(None) => RenewReply::Gone,
            // A refusal says nothing about the lease: the last renewal still counts.
            Err(failure) => RenewReply::Unknown(failure.into_fault()),
        }
    }

    async fn release(&self, owner: &OwnerToken) -> ReleaseReply {
        let command = self.collection.delete_one(ours(owner)).write_concern(self.write_concern());
        match self.answered(command.into_future()).await {
            Ok(result) if result.deleted_count == 0 => ReleaseReply::NotOurs,
            Ok(_) => ReleaseReply::Released,
            Err(failure) => ReleaseReply::Unknown(failure.into_fault()),
        }
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
        let still_shown = match shown {
            Some(owner) => doc! { "$eq": ["$owner", { "$literal": owner.as_str() }] },
            None => doc! { "$ne": [{ "$type": "$owner" }, "string"] },
        };
        let command = self
            .collection
            .find_one_and_delete(doc! { "_id": LOCK_ID, "$expr": still_shown })
            .projection(pipeline::view(self.timing.legacy_ttl()))
            .write_concern(self.write_concern());
        let lock = command.await.map_err(|error| fault_of(&error))?;
        Ok(lock.as_ref().map(holder))
    }
}

/// Why a command brought no document.
enum Failure {
    Unknown(StoreFault),
    Refused(StoreFault),
    /// A duplicate key: nothing was written.
    Collision(StoreFault),
}

impl Failure {
    fn of(error: &Error) -> Self {
        let fault = fault_of(error);
        match server_code(error) {
            Some(DUPLICATE_KEY) => Self::Collision(fault),
            _ if is_outcome_unknown(error) => Self::Unknown(fault),
            _ => Self::Refused(fault),
        }
    }

    fn into_fault(self) -> StoreFault {
        match self {
            Self::Unknown(fault) | Self::Refused(fault) | Self::Collision(fault) => fault,
        }
    }
}

fn ours(owner: &OwnerToken) -> Document {
    doc! { "_id": LOCK_ID, "owner": owner.as_str() }
}

fn acquired_or_held(lock: &Document, owner: &OwnerToken) -> AcquireReply {
    let found = holder(lock);
    if found.owner.as_deref() != Some(owner.as_str()) {
        return AcquireReply::Held(found);
    }
    // The lease that was taken over was over, whatever else it says.
    let took_over_from = lock.get_document("prev").ok().map(|previous| Holder {
        now: found.now,
        expires_at: instant(previous, "expiresAt"),
        expired: true,
        ..holder(previous)
    });
    AcquireReply::Acquired { took_over_from }
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
        expired: lock.get_bool("free").unwrap_or_default(),
    }
}

fn text(document: &Document, field: &str) -> Option<String> {
    document.get_str(field).ok().map(str::to_owned)
}

fn instant(document: &Document, field: &str) -> Option<i64> {
    document.get_datetime(field).ok().map(|instant| instant.timestamp_millis())
}

fn integer(document: &Document, field: &str) -> Option<i64> {
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

/// A reply over a healthy connection to a busy server, for leases of a second or two.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

const DUPLICATE_KEY: i32 = 11000;
