//! The changelog in a MongoDB collection: conditional writes, each one command.
//!
//! What is written and on what condition is spelled out in `mongo_document` and, for two entries at
//! once, in `mongo_advance`; this file sends it and makes sense of the answer. A write whose reply is lost is sent again: its precondition makes that
//! harmless, and what is found there afterwards tells whether the first one arrived.
//!
//! Collections are expected to read from the primary with majority read concern, as
//! [`Connection`](crate::connect::Connection) hands them out.

use std::future::Future;
use std::time::Duration;

use mongodb::Collection;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::options::{Acknowledgment, ReturnDocument, WriteConcern};

use super::entry::Entry;
use super::mongo_advance::{self as advance, Reply, Statement};
use super::mongo_document::{self as document, Change};
use super::mongo_names as names;
use super::store::{
    Adoption, Advance, ChangelogStore, Claim, ClaimedEntry, Claiming, Expected, Mark, NameIndex,
    Settlement, Written,
};
use crate::connect::{UpdateForm, fault_of, hello, is_outcome_unknown, no_reply, server_code};
use crate::fault::StoreFault;
use crate::import::mongo as source;
use crate::import::source::Source;
use crate::lock::proof::StillHeld;
use crate::migration::{MigrationName, Namespace};

/// The changelog of one database.
#[derive(Debug, Clone)]
pub struct MongoChangelogStore {
    collection: Collection<Document>,
    form: UpdateForm,
}

impl MongoChangelogStore {
    /// The changelog in this collection.
    pub fn new(collection: Collection<Document>, form: UpdateForm) -> Self {
        Self { collection, form }
    }

    /// The same collection, its documents as they come from the server.
    fn raw(&self) -> Collection<RawDocumentBuf> {
        self.collection.clone_with_type()
    }

    async fn write(&self, change: &Change) -> Written {
        let mut written = self.try_write(change).await;
        let doubtful = written.is_err();
        for _ in 1..TRIES {
            if written.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            written = self.try_write(change).await;
        }
        match written {
            // An earlier attempt may have been carried out, whatever the last one was told.
            Ok(Written::Refused(fault)) if doubtful => Written::Unknown(fault),
            Ok(written) => written,
            Err(fault) => Written::Unknown(fault),
        }
    }

    /// One attempt; an error leaves its outcome open.
    async fn try_write(&self, change: &Change) -> Result<Written, StoreFault> {
        let filter = change.filter.clone();
        let collection = self.raw();
        let command = collection
            .find_one_and_update(filter, change.pipeline.clone())
            .upsert(change.creates)
            .return_document(ReturnDocument::After)
            .write_concern(majority());
        match answered(command.into_future()).await {
            Ok(Some(found)) => Ok(judged(change, document::entry(&found))),
            Ok(None) => self.look_again(change, None).await,
            Err(Failure::Collision(fault)) => self.look_again(change, Some(fault)).await,
            Err(Failure::Unknown(fault)) => Err(fault),
            Err(Failure::Refused(fault)) => Ok(Written::Refused(fault)),
        }
    }

    /// The write matched nothing, or `collided` with a unique index: what is there instead?
    async fn look_again(
        &self,
        change: &Change,
        collided: Option<StoreFault>,
    ) -> Result<Written, StoreFault> {
        let (collection, by_id) = (self.raw(), doc! { "_id": change.id.clone() });
        for filter in [by_id, change.twin.clone()] {
            let found = answered(collection.find_one(filter).into_future()).await;
            if let Some(found) = found.map_err(Failure::into_fault)? {
                return Ok(judged(change, document::entry(&found)));
            }
        }
        // A foreign unique index may be in the way, such as 1.x's on the bare name.
        Ok(collided.map_or(Written::Conflict(None), Written::Refused))
    }
}

impl MongoChangelogStore {
    /// One attempt at both; an error leaves open what is written.
    async fn try_both(
        &self,
        settlement: &Settlement,
        claim: &Claim,
    ) -> Result<Advance, StoreFault> {
        let (ended, begun) = (document::settle(settlement), document::claim(claim));
        let concern = doc! { "w": "majority", "wtimeout": whole_ms(REPLICATION) };
        let command = advance::command(self.collection.name(), settlement, &ended, &begun, concern);
        let database = self.collection.client().database(&self.collection.namespace().db);
        let reply = match answered(database.run_command(command).into_future()).await {
            Ok(reply) => advance::read(&reply, begun.creates),
            Err(Failure::Unknown(fault)) => return Err(fault),
            Err(Failure::Refused(fault) | Failure::Collision(fault)) => {
                return Ok(Advance::Refused(fault));
            }
        };
        let claiming = match reply {
            Reply::Both => Claiming::Ours(advance::claimed(&begun)),
            Reply::First => Claiming::of(self.look_again(&begun, None).await?, claim),
            Reply::Unsettled(fault) => return Err(fault),
            Reply::Failed(Statement::Claim, fault) if is_collision(&fault) => {
                Claiming::of(self.look_again(&begun, Some(fault)).await?, claim)
            }
            Reply::Failed(Statement::Claim, fault) => Claiming::Refused(fault),
            Reply::Failed(Statement::Settle, fault) => {
                match self.look_again(&ended, None).await? {
                    // An earlier attempt has settled; how far it came with the claim is not known.
                    Written::Done(_) => Claiming::of(self.write(&begun).await, claim),
                    Written::Conflict(Some(found)) if settlement.fits(&found) => {
                        return Ok(Advance::Refused(fault));
                    }
                    Written::Conflict(found) => return Ok(Advance::Conflict(found)),
                    Written::Unknown(fault) | Written::Refused(fault) => return Err(fault),
                }
            }
        };
        Ok(Advance::Settled(claiming))
    }

    /// One attempt; an error leaves its outcome open.
    async fn try_withdraw(
        &self,
        claimed: &ClaimedEntry,
        expected: &Expected,
    ) -> Result<(), Failure> {
        let filter = document::as_claimed(&claimed.key, claimed.version, &claimed.run_id);
        match expected {
            Expected::Absent => {
                let command = self.collection.delete_one(filter).write_concern(majority());
                answered(command.into_future()).await.map(|_| ())
            }
            Expected::Present { .. } => {
                let command = self.collection.update_one(filter, advance::restore());
                answered(command.write_concern(majority()).into_future()).await.map(|_| ())
            }
        }
    }
}

impl ChangelogStore for MongoChangelogStore {
    async fn entries(&self, namespace: &Namespace) -> Result<Vec<Entry>, StoreFault> {
        // One command as long as everything fits into one reply.
        let query = self.collection.find(document::of_namespace(namespace)).batch_size(ALL);
        let mut cursor = query.await.map_err(|error| fault_of(&error))?;
        let mut entries = Vec::new();
        while cursor.advance().await.map_err(|error| fault_of(&error))? {
            entries.push(document::entry(cursor.current()));
        }
        Ok(entries)
    }

    async fn transactions(&self) -> Result<bool, StoreFault> {
        let database = self.collection.client().database(&self.collection.namespace().db);
        Ok(hello(&database).await?.transactions)
    }

    async fn claim(&self, _proof: &StillHeld<'_>, claim: &Claim) -> Written {
        self.write(&document::claim(claim)).await
    }

    async fn settle(&self, _proof: &StillHeld<'_>, settlement: &Settlement) -> Written {
        self.write(&document::settle(settlement)).await
    }

    async fn settle_and_claim(
        &self,
        _proof: &StillHeld<'_>,
        settlement: &Settlement,
        claim: &Claim,
    ) -> Advance {
        let mut advance = self.try_both(settlement, claim).await;
        let doubtful = advance.is_err();
        for _ in 1..TRIES {
            if advance.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            advance = self.try_both(settlement, claim).await;
        }
        match advance {
            // An earlier attempt may have been carried out, whatever the last one was told.
            Ok(Advance::Refused(fault)) if doubtful => Advance::Unknown(fault),
            Ok(Advance::Settled(Claiming::Refused(fault))) if doubtful => {
                Advance::Settled(Claiming::Unknown(fault))
            }
            Ok(advance) => advance,
            Err(fault) => Advance::Unknown(fault),
        }
    }

    async fn withdraw(
        &self,
        _proof: &StillHeld<'_>,
        claimed: &ClaimedEntry,
        expected: &Expected,
    ) -> Result<(), StoreFault> {
        let mut withdrawn = self.try_withdraw(claimed, expected).await;
        for _ in 1..TRIES {
            if !matches!(withdrawn, Err(Failure::Unknown(_))) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            withdrawn = self.try_withdraw(claimed, expected).await;
        }
        withdrawn.map_err(Failure::into_fault)
    }

    async fn mark(&self, _proof: &StillHeld<'_>, mark: &Mark) -> Written {
        self.write(&document::mark(mark)).await
    }

    async fn adopt(&self, _proof: &StillHeld<'_>, adoption: &Adoption) -> Written {
        self.write(&document::adopt(adoption)).await
    }

    async fn foreign(&self, among: &[&str]) -> Result<Vec<Source>, StoreFault> {
        let database = self.collection.client().database(&self.collection.namespace().db);
        source::sources(&database, among).await
    }

    async fn name_index(
        &self,
        namespace: &Namespace,
        wanted: &[&MigrationName],
    ) -> Result<Option<NameIndex>, StoreFault> {
        names::index_in_the_way(&self.collection, namespace, wanted).await
    }

    fn settle_command(&self, settlement: &Settlement) -> Vec<u8> {
        let Change { filter, pipeline, .. } = document::settle(settlement);
        let command = doc! {
            "update": self.collection.name(),
            "updates": [{ "q": filter, "u": pipeline, "multi": false }],
        };
        command.to_vec().expect("texts, numbers and constants always have a binary form")
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
    fn into_fault(self) -> StoreFault {
        match self {
            Self::Unknown(fault) | Self::Refused(fault) | Self::Collision(fault) => fault,
        }
    }
}

async fn answered<T>(command: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, command).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) if server_code(&error) == Some(DUPLICATE_KEY) => {
            Err(Failure::Collision(fault_of(&error)))
        }
        Ok(Err(error)) if is_outcome_unknown(&error) => Err(Failure::Unknown(fault_of(&error))),
        Ok(Err(error)) => Err(Failure::Refused(fault_of(&error))),
        Err(_) => Err(Failure::Unknown(no_reply(PATIENCE))),
    }
}

fn judged(change: &Change, entry: Entry) -> Written {
    if change.made(&entry) { Written::Done(entry) } else { Written::Conflict(Some(entry)) }
}

fn is_collision(fault: &StoreFault) -> bool {
    fault.server_code == Some(DUPLICATE_KEY)
}

fn whole_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).w_timeout(REPLICATION).build()
}

/// A changelog write is sent this often before its outcome is reported as unknown.
const TRIES: u32 = 3;

/// Between two of them: long enough for a dropped connection to be replaced.
const PAUSE: Duration = Duration::from_millis(100);

/// How long servers may take to replicate a write: an election takes up to ten seconds.
const REPLICATION: Duration = Duration::from_secs(10);

/// A reply that takes longer than replication may will not come.
const PATIENCE: Duration = Duration::from_secs(15);

/// The largest batch that a server takes.
const ALL: u32 = i32::MAX.unsigned_abs();

const DUPLICATE_KEY: i32 = 11000;
