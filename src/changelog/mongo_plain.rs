//! One attempt at each changelog write by plain operators, for servers that take no pipelines.
//!
//! What is to be remembered or brought back is read first, and the write asks for the entry as it was
//! read. One that finds it changed reads it again, a few times.
//!
//! # Promises
//! What the port promises of conditional writes, as with pipelines.
//!
//! # What it does not promise
//! - That a settlement and a claim reach the server together: they are two commands, and a run may end
//!   between them.
//! - That a person's hand on an entry, which raises no version, is noticed between read and write. The
//!   fields that a change is not about are left alone in any case.

use std::future::IntoFuture;

use mongodb::bson::Document;

use super::mongo::MongoChangelogStore;
use super::mongo_answer::{Failure, answered, majority};
use super::mongo_change::{self as change, Change, Kind, left_by};
use super::mongo_operators::{self as operators, Update};
use super::store::{Advance, Claim, ClaimedEntry, Claiming, Settlement, Written};
use crate::fault::{FaultKind, StoreFault};

impl MongoChangelogStore {
    /// Changes one entry; an error leaves the outcome open.
    pub(super) async fn try_operators(&self, change: &Change) -> Result<Written, StoreFault> {
        if change.kind != Kind::Remembers {
            return self.send_plain(change, &Document::new()).await;
        }
        for _ in 0..LOOKS {
            let seen = match self.find(&change.filter).await {
                Ok(Some(seen)) => seen,
                Ok(None) => break,
                Err(Failure::Refused(fault)) => return Ok(Written::Refused(fault)),
                Err(failure) => return Err(failure.into_fault()),
            };
            let written = self.send_plain(change, &seen).await?;
            // What is there may be as expected all the same, if it is not as it was seen.
            if !matches!(written, Written::Conflict(Some(_))) {
                return Ok(written);
            }
        }
        self.look_again(change, None).await
    }

    /// Settles, and claims if that is done.
    pub(super) async fn one_after_the_other(
        &self,
        settlement: &Settlement,
        claim: &Claim,
    ) -> Advance {
        match self.write(&change::settle(settlement)).await {
            Written::Done(_) => {
                let written = self.write(&change::claim(claim)).await;
                Advance::Settled(Claiming::of(written, claim))
            }
            Written::Conflict(found) => Advance::Conflict(found),
            Written::Unknown(fault) => Advance::Unknown(fault),
            Written::Refused(fault) => Advance::Refused(fault),
        }
    }

    /// Brings an entry back to how it stood before its claim; an error leaves the outcome open.
    pub(super) async fn restore_by_operators(&self, claimed: &ClaimedEntry) -> Result<(), Failure> {
        let Some(found) = self.find(&left_by(claimed)).await? else { return Ok(()) };
        let Some(before) = operators::restore(&found, claimed.version + 1) else {
            let message = "the entry does not say how it stood before its claim";
            return Err(Failure::Refused(StoreFault::new(FaultKind::Rejected, message)));
        };
        let command = self.collection.update_one(left_by(claimed), before);
        answered(command.write_concern(majority()).into_future()).await.map(|_| ())
    }

    async fn send_plain(&self, change: &Change, seen: &Document) -> Result<Written, StoreFault> {
        let Update { filter, operators } = operators::of(change, seen);
        self.send(change, filter, operators).await
    }

    async fn find(&self, filter: &Document) -> Result<Option<Document>, Failure> {
        answered(self.collection.find_one(filter.clone()).into_future()).await
    }
}

/// An entry is read this often for one write. Only one without a version can change unnoticed by the
/// first look, and only 1.x or a person changes it.
const LOOKS: u32 = 4;
