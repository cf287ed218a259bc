//! The port to the place where the lock document lives.
//!
//! Every reply has an arm for *unknown*: an error does not mean "not written". A command that timed
//! out may have been carried out, so the protocol sends it again under the same owner token, and the
//! store recognises its own.

use std::future::Future;

use tokio::sync::mpsc;

use super::lease::{Holder, Identity, OwnerToken, RunId};
use super::timing::Timing;
use crate::fault::StoreFault;
use crate::migration::Namespace;

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

    /// Raises the fence and registers the run, if the lock is still this owner's; prolongs the lease.
    fn arm(&self, owner: &OwnerToken, arming: &Arming) -> impl Future<Output = ArmReply> + Send;

    /// Deletes the lock document if it is this owner's, after taking `settled` off the register.
    fn release(
        &self,
        owner: &OwnerToken,
        settled: Option<&RunId>,
    ) -> impl Future<Output = ReleaseReply> + Send;

    /// The register: runs whose operations on the server may have outlived them.
    fn unsettled(&self) -> impl Future<Output = Result<Vec<UnsettledRun>, StoreFault>> + Send;

    /// The command with which a transaction proves that no later run has begun, as BSON. It replies
    /// with `n: 1` while this token is the highest, and conflicts with whoever raises the fence.
    fn fence_command(&self, token: i64) -> Vec<u8>;

    /// Tells when something of interest happens to the lock document.
    ///
    /// # Errors
    /// This store can't tell: a standalone server, or a user who may not watch. Look from time to time.
    fn watch(&self, interest: Interest) -> impl Future<Output = Result<Wakes, StoreFault>> + Send;

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
    /// A lease that we have watched stand still, if there is one.
    pub unmoved: Option<Unmoved>,
}

/// A lease of our kind that did not move while we watched. It is taken only if it still has not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unmoved {
    /// Its owner token.
    pub owner: String,
    /// How often it had been renewed.
    pub beats: i64,
    /// How long we have watched it.
    pub watched: Watched,
}

/// How long a lease has been watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watched {
    /// For [`Timing::grace`]: long enough to believe its expiry after a change of primary.
    Grace,
    /// For [`Timing::observation`]: long enough to take it whatever its expiry says.
    Throughout,
}

/// A run whose operations on the server may outlive it: registered before its first body, taken off
/// the register when every body has settled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnsettledRun {
    /// The run.
    pub run_id: RunId,
    /// Whose history it worked on.
    pub namespace: Namespace,
    /// The collection that holds that history.
    pub changelog: String,
    /// Host name of its machine.
    pub host: Option<String>,
    /// Its process id.
    pub pid: Option<i64>,
}

/// The last step before the first body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arming {
    /// The run to register.
    pub run: UnsettledRun,
    /// Runs whose operations are known to be gone: to be taken off the register.
    pub settled: Vec<RunId>,
}

/// The answer to an arm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArmReply {
    /// The fence stands: nobody with a lower token can commit a fenced transaction any more.
    Armed {
        /// Our fencing token.
        token: i64,
    },
    /// The lock document is not ours any more. Final.
    Gone,
    /// The fence may or may not have been raised; raising it twice does no harm.
    Unknown(StoreFault),
    /// The server will not do this for us.
    Refused(StoreFault),
}

/// Something happened to the lock document. Closed when nobody can tell any more.
pub type Wakes = mpsc::Receiver<()>;

/// What a watcher wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// The lock has become free.
    Freed,
    /// The lock has been taken from this owner.
    TakenFrom(OwnerToken),
}

/// The answer to an acquire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AcquireReply {
    /// The lock is ours.
    Acquired {
        /// Whose expired lease we took over, if there was one.
        took_over_from: Option<Holder>,
        /// The primary changed while we took it over, so its expiry was judged by a clock that the
        /// old holder has not met: give it a [`Timing::grace`] to notice before acting.
        election_moved: bool,
    },
    /// Somebody else has it, or its document is in a shape that must not be taken.
    Held(Holder),
    /// It may or may not be ours.
    Unknown(StoreFault),
    /// The server will not do this for us, however often we ask.
    Refused(StoreFault),
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReleaseReply {
    /// The document is deleted.
    Released,
    /// There was no document of ours.
    NotOurs,
    /// It may or may not be deleted; it expires by itself.
    Unknown(StoreFault),
}
