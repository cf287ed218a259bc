//! The port to what a dead run left running on the server.
//!
//! A lease ends, but an `updateMany` that its holder had sent goes on to its end, and so does an open
//! transaction until the server's own limit. They carry the run's `appName`, so a later run can find
//! them and have them stopped before it begins.

use std::future::Future;

use super::lease::RunId;
use crate::fault::StoreFault;

/// Finds and stops operations by the run that sent them. Only operations of the same database user
/// can be seen.
pub trait Orphans: Send + Sync + 'static {
    /// What of this run is still going on: operations and open transactions.
    fn find(&self, run: &RunId) -> impl Future<Output = Result<Vec<Operation>, StoreFault>> + Send;

    /// Asks the server to stop one of them. It may take a moment to be gone.
    fn stop(&self, operation: &Operation) -> impl Future<Output = Result<(), StoreFault>> + Send;

    /// Index builds that nobody is waiting for any more, as `collection.index`.
    fn unfinished_indexes(&self) -> impl Future<Output = Result<Vec<String>, StoreFault>> + Send;
}

/// One operation on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What to name when stopping it, as the store understands it.
    pub handle: String,
    /// What it is, for a person: `update orders`.
    pub description: String,
}
