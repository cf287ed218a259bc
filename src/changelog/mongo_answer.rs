//! How long a changelog command is waited for, and what its answer says of it.

use std::future::Future;
use std::time::Duration;

use mongodb::error::Error;
use mongodb::options::{Acknowledgment, WriteConcern};

use crate::connect::{fault_of, is_outcome_unknown, no_reply, server_code};
use crate::fault::StoreFault;

/// Why a command brought no document.
pub(super) enum Failure {
    /// It may have been carried out, or be when it is sent again.
    Unknown(StoreFault),
    /// The server says no.
    Refused(StoreFault),
    /// A duplicate key: nothing was written.
    Collision(StoreFault),
}

impl Failure {
    pub(super) fn into_fault(self) -> StoreFault {
        match self {
            Self::Unknown(fault) | Self::Refused(fault) | Self::Collision(fault) => fault,
        }
    }
}

/// What comes of a command within our patience.
pub(super) async fn answered<T>(
    command: impl Future<Output = Result<T, Error>>,
) -> Result<T, Failure> {
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

pub(super) fn is_collision(fault: &StoreFault) -> bool {
    fault.server_code == Some(DUPLICATE_KEY)
}

/// What every write waits for.
pub(super) fn majority() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).w_timeout(REPLICATION).build()
}

/// How long servers may take to replicate a write: an election takes up to ten seconds.
pub(super) const REPLICATION: Duration = Duration::from_secs(10);

/// A reply that takes longer than replication may will not come.
const PATIENCE: Duration = Duration::from_secs(15);

const DUPLICATE_KEY: i32 = 11000;
