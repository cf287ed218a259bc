//! What a database says when it does not say yes, free of any driver's types and of secrets.

use serde::Serialize;

/// Why a command brought no usable reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
pub struct StoreFault {
    /// What kind of no it was.
    pub kind: FaultKind,
    /// The server's or the driver's own words, without credentials.
    pub message: String,
    /// The server's error code, when a server answered.
    pub server_code: Option<i32>,
}

/// The kinds of fault that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// What we were told to connect to can't be connected to, whatever the servers do.
    Unusable,
    /// No server could be reached or none of them is a writable primary.
    Unreachable,
    /// The server knows us not, or does not allow us this.
    Unauthorized,
    /// The server does not know updates by pipelines.
    Incapable,
    /// The server refused the command, or answered something that we do not understand.
    Rejected,
}

impl StoreFault {
    /// A fault without a server's code.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), server_code: None }
    }
}
