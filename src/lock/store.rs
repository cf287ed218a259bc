//! The port to the place where the lock document lives.
//!
//! Every reply has an arm for *unknown*: an error does not mean "not written". A command that timed
//! out may have been carried out, so the protocol sends it again under the same owner token, and the
//! store recognises its own.

use std::future::Future;

use super::lease::{Holder, Identity, OwnerToken};
use super::timing::Timing;
use crate::fault::StoreFault;

/// Where the lock lives. One lock per store.
///
/// # Guarantees
/// Of any number of concurrent acquires with different owner tokens on a free lock, exactly one is
/// [`AcquireReply::Acquired`]. A live lease and a document in an unknown shape are never taken. The
/// clock that judges is the server's.
///
/// # Assumptions
/// Every reply other than `Unknown` is final: a majority of the servers has it.
pub trait LockStore: Send + Sync + 'static {
    /// Takes the lock if it is free, expired, or already this owner's.
    fn acquire(&self, attempt: &Attempt) -> impl Future<Output = AcquireReply> + Send;

    /// Prolongs the lease of this owner.
    fn renew(&self, owner: &OwnerToken) -> impl Future<Output = RenewReply> + Send;

    /// Deletes the lock document if it is this owner's.
    fn release(&self, owner: &OwnerToken) -> impl Future<Output = ReleaseReply> + Send;

    /// Reads the lock document, whoever wrote it.
    fn inspect(&self) -> impl Future<Output = Result<Option<Holder>, StoreFault>> + Send;

    /// Deletes the lock document if its owner is still the one that was `shown` to the operator
    /// (`None`: shown without a readable owner), and returns what was deleted.
    fn force_release(
        &self,
        shown: Option<&OwnerToken>,
    ) -> impl Future<Output = Result<Option<Holder>, StoreFault>> + Send;
}

/// One request for the lock. Sent again unchanged when its outcome is unknown.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The fresh token of this acquisition.
    pub owner: OwnerToken,
    /// What to write about ourselves.
    pub identity: Identity,
    /// How long the lease shall last.
    pub timing: Timing,
}

/// The answer to an acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireReply {
    /// The lock is ours.
    Acquired {
        /// Whose expired lease we took over, if there was one.
        took_over_from: Option<Holder>,
    },
    /// Somebody else has it, or its document is in a shape that must not be taken.
    Held(Holder),
    /// It may or may not be ours.
    Unknown(StoreFault),
    /// The server will not do this for us, however often we ask.
    Refused(StoreFault),
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewReply {
    /// The lease now lasts a TTL longer.
    Renewed {
        /// How often it has been renewed.
        beats: i64,
    },
    /// The lock document is not ours any more. Final.
    Gone,
    /// It may or may not have been renewed.
    Unknown(StoreFault),
}

/// The answer to a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The document is deleted.
    Released,
    /// There was no document of ours.
    NotOurs,
    /// It may or may not be deleted; it expires by itself.
    Unknown(StoreFault),
}
