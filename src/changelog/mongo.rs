//! The changelog in a MongoDB collection: conditional writes, each one command where the server takes
//! pipelines.
//!
//! What is written and on what condition is spelled out in `mongo_change`. One attempt at it is made
//! by `mongo_attempt`, with pipelines, or by `mongo_plain`, with plain operators once the server has
//! refused a pipeline; this file chooses, and tries again. A write whose reply is lost is sent again:
//! its precondition makes that harmless, and what is found there afterwards tells whether the first one
//! arrived.
//!
//! Collections are expected to read from the primary with majority read concern, as
//! [`Connection`](crate::connect::Connection) hands them out.

use std::time::Duration;

use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::{Collection, Database};

use super::entry::Entry;
use super::mongo_answer::Failure;
use super::mongo_change::{self as change, Change};
use super::mongo_entry as document;
use super::mongo_names as names;
use super::mongo_operators as operators;
use super::mongo_pipeline as pipeline;
use super::store::{
    Adoption, Advance, ChangelogStore, Claim, ClaimedEntry, Claiming, Expected, Lookout, Mark,
    NameIndex, Settlement, Written,
};
use crate::connect::{UpdateForm, fault_of, hello};
use crate::fault::StoreFault;
use crate::import::mongo as source;
use crate::import::source::Source;
use crate::lock::proof::StillHeld;
use crate::migration::{MigrationName, Namespace};

/// The changelog of one database.
#[derive(Debug, Clone)]
pub struct MongoChangelogStore {
    pub(super) collection: Collection<Document>,
    form: UpdateForm,
}

impl MongoChangelogStore {
    /// The changelog in this collection.
    pub fn new(collection: Collection<Document>, form: UpdateForm) -> Self {
        Self { collection, form }
    }

    /// The same collection, its documents as they come from the server.
    pub(super) fn raw(&self) -> Collection<RawDocumentBuf> {
        self.collection.clone_with_type()
    }

    pub(super) fn database(&self) -> Database {
        self.collection.client().database(&self.collection.namespace().db)
    }

    /// Writes, and does not give up at the first lost reply.
    pub(super) async fn write(&self, change: &Change) -> Written {
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
        if !self.form.is_operators() {
            let written = self.try_pipeline(change).await;
            if !matches!(&written, Ok(Written::Refused(fault)) if self.form.learns_from(fault)) {
                return written;
            }
        }
        self.try_operators(change).await
    }

    /// One attempt at both; an error leaves open what is written.
    async fn try_both(
        &self,
        settlement: &Settlement,
        claim: &Claim,
    ) -> Result<Advance, StoreFault> {
        if !self.form.is_operators() {
            let advance = self.try_both_at_once(settlement, claim).await;
            match &advance {
                Ok(Advance::Refused(fault)) if self.form.learns_from(fault) => {}
                Ok(Advance::Settled(Claiming::Refused(fault))) if self.form.learns_from(fault) => {
                    let written = self.write(&change::claim(claim)).await;
                    return Ok(Advance::Settled(Claiming::of(written, claim)));
                }
                _ => return advance,
            }
        }
        Ok(self.one_after_the_other(settlement, claim).await)
    }

    /// One attempt; an error leaves its outcome open.
    async fn try_withdraw(
        &self,
        claimed: &ClaimedEntry,
        expected: &Expected,
    ) -> Result<(), Failure> {
        if *expected == Expected::Absent {
            return self.remove(claimed).await;
        }
        if !self.form.is_operators() {
            let restored = self.restore(claimed).await;
            if !matches!(&restored, Err(Failure::Refused(fault)) if self.form.learns_from(fault)) {
                return restored;
            }
        }
        self.restore_by_operators(claimed).await
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
        Ok(hello(&self.database()).await?.transactions)
    }

    async fn claim(&self, _proof: &StillHeld<'_>, claim: &Claim) -> Written {
        self.write(&change::claim(claim)).await
    }

    async fn settle(&self, _proof: &StillHeld<'_>, settlement: &Settlement) -> Written {
        self.write(&change::settle(settlement)).await
    }

    fn claims_ahead(&self) -> bool {
        !self.form.is_operators()
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
        self.write(&change::mark(mark)).await
    }

    async fn adopt(&self, _proof: &StillHeld<'_>, adoption: &Adoption) -> Written {
        self.write(&change::adopt(adoption)).await
    }

    async fn foreign(&self, lookout: Lookout<'_>) -> Result<Vec<Source>, StoreFault> {
        match lookout {
            Lookout::In(collection) => source::all_of(&self.database(), collection).await,
            Lookout::Everywhere => {
                source::elsewhere(&self.database(), self.collection.name()).await
            }
        }
    }

    async fn name_index(
        &self,
        namespace: &Namespace,
        wanted: &[&MigrationName],
    ) -> Result<Option<NameIndex>, StoreFault> {
        names::index_in_the_way(&self.collection, namespace, wanted).await
    }

    fn settle_command(&self, settlement: &Settlement) -> Vec<u8> {
        let change = change::settle(settlement);
        let (filter, update) = if self.form.is_operators() {
            let plain = operators::of(&change, &Document::new());
            (plain.filter, Bson::from(plain.operators))
        } else {
            (change.filter.clone(), Bson::from(pipeline::of(&change)))
        };
        let command = doc! {
            "update": self.collection.name(),
            "updates": [{ "q": filter, "u": update, "multi": false }],
        };
        command.to_vec().expect("texts, numbers and constants always have a binary form")
    }
}

/// A changelog write is sent this often before its outcome is reported as unknown.
const TRIES: u32 = 3;

/// Between two of them: long enough for a dropped connection to be replaced.
const PAUSE: Duration = Duration::from_millis(100);

/// The largest batch that a server takes.
const ALL: u32 = i32::MAX.unsigned_abs();
