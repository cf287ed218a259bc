//! One attempt at each changelog write: what both forms of updates share, and what pipelines do in one
//! command that operators can't.

use std::future::IntoFuture;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::options::{ReturnDocument, UpdateModifications};

use super::entry::Entry;
use super::mongo::MongoChangelogStore;
use super::mongo_advance::{self as advance, Reply, Statement};
use super::mongo_answer::{Failure, REPLICATION, answered, is_collision, majority};
use super::mongo_change::{self as change, Change, left_by};
use super::mongo_entry::entry;
use super::mongo_pipeline as pipeline;
use super::store::{Advance, Claim, ClaimedEntry, Claiming, Settlement, Written};
use crate::fault::StoreFault;

impl MongoChangelogStore {
    /// Changes one entry; an error leaves the outcome open.
    pub(super) async fn try_pipeline(&self, change: &Change) -> Result<Written, StoreFault> {
        self.send(change, change.filter.clone(), pipeline::of(change)).await
    }

    /// Sends a change in either form, on this condition; an error leaves the outcome open.
    pub(super) async fn send(
        &self,
        change: &Change,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> Result<Written, StoreFault> {
        let collection = self.raw();
        let command = collection
            .find_one_and_update(filter, update)
            .upsert(change.creates())
            .return_document(ReturnDocument::After)
            .write_concern(majority());
        match answered(command.into_future()).await {
            Ok(Some(found)) => Ok(judged(change, entry(&found))),
            Ok(None) => self.look_again(change, None).await,
            Err(Failure::Collision(fault)) => self.look_again(change, Some(fault)).await,
            Err(Failure::Unknown(fault)) => Err(fault),
            Err(Failure::Refused(fault)) => Ok(Written::Refused(fault)),
        }
    }

    /// The write matched nothing, or `collided` with a unique index: what is there instead?
    pub(super) async fn look_again(
        &self,
        change: &Change,
        collided: Option<StoreFault>,
    ) -> Result<Written, StoreFault> {
        let (collection, by_id) = (self.raw(), doc! { "_id": change.id.clone() });
        for filter in [by_id, change.twin.clone()] {
            let found = answered(collection.find_one(filter).into_future()).await;
            if let Some(found) = found.map_err(Failure::into_fault)? {
                return Ok(judged(change, entry(&found)));
            }
        }
        // A foreign unique index may be in the way, such as 1.x's on the bare name.
        Ok(collided.map_or(Written::Conflict(None), Written::Refused))
    }

    /// Settles and claims in one command; an error leaves open what is written.
    pub(super) async fn try_both_at_once(
        &self,
        settlement: &Settlement,
        claim: &Claim,
    ) -> Result<Advance, StoreFault> {
        let (ended, begun) = (change::settle(settlement), change::claim(claim));
        let concern = doc! { "w": "majority", "wtimeout": whole_ms(REPLICATION) };
        let command = advance::command(self.collection.name(), settlement, &ended, &begun, concern);
        let reply = match answered(self.database().run_command(command).into_future()).await {
            Ok(reply) => advance::read(&reply, begun.creates()),
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

    /// Removes an entry that a claim has created; an error leaves the outcome open.
    pub(super) async fn remove(&self, claimed: &ClaimedEntry) -> Result<(), Failure> {
        let command = self.collection.delete_one(left_by(claimed));
        answered(command.write_concern(majority()).into_future()).await.map(|_| ())
    }

    /// Has the server bring an entry back to how it stood before its claim; an error leaves the outcome
    /// open.
    pub(super) async fn restore(&self, claimed: &ClaimedEntry) -> Result<(), Failure> {
        let command = self.collection.update_one(left_by(claimed), pipeline::restore());
        answered(command.write_concern(majority()).into_future()).await.map(|_| ())
    }
}

fn judged(change: &Change, entry: Entry) -> Written {
    if change.made(&entry) {
        return Written::Done(entry);
    }
    change.renamed(&entry).map_or(Written::Conflict(Some(entry)), Written::Refused)
}

fn whole_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
