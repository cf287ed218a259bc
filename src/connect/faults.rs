//! The driver's errors in our words: what kind each is, whether its command may have been carried out,
//! and a text without credentials.

use std::time::Duration;

use mongodb::error::{
    Error, ErrorKind, RETRYABLE_WRITE_ERROR, TRANSIENT_TRANSACTION_ERROR,
    UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};

use crate::fault::{FaultKind, StoreFault};

/// What kept a command from a usable reply, in words that hold no credentials.
pub fn fault_of(error: &Error) -> StoreFault {
    let (code, message) = (server_code(error), words_of(error));
    let kind = match (error.kind.as_ref(), code) {
        (_, Some(code)) if refuses_pipelines(code, &message) => FaultKind::Incapable,
        (_, Some(13 | 18 | 8000)) => FaultKind::Unauthorized,
        (_, Some(code)) if is_unsettled(code) => FaultKind::Unreachable,
        (ErrorKind::Authentication { .. }, _) => FaultKind::Unauthorized,
        (
            ErrorKind::Io(_)
            | ErrorKind::ConnectionPoolCleared { .. }
            | ErrorKind::ServerSelection { .. }
            | ErrorKind::DnsResolve { .. }
            | ErrorKind::ProxyConnect { .. }
            | ErrorKind::Shutdown,
            _,
        ) => FaultKind::Unreachable,
        _ => FaultKind::Rejected,
    };
    StoreFault { kind, message, server_code: code }
}

/// Does a server say with this that an update must be a document, and no pipeline? Seen of Amazon
/// DocumentDB: "Failed to parse update: field must be of BSON type object"; of MongoDB before 4.2:
/// "BSON field 'update.updates.u' is the wrong type 'array', expected type 'object'".
pub(crate) fn refuses_pipelines(code: i32, message: &str) -> bool {
    let message = message.to_lowercase();
    let says = |word: &str| message.contains(word);
    [FAILED_TO_PARSE, TYPE_MISMATCH].contains(&code) && says("update") && says("object")
}

/// May the command have been carried out, or may it succeed when sent again? An error is an answer
/// only when a server says no in a way that repetition can't change.
pub fn is_outcome_unknown(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Io(_)
        | ErrorKind::ConnectionPoolCleared { .. }
        | ErrorKind::ServerSelection { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::ProxyConnect { .. }
        | ErrorKind::InvalidResponse { .. }
        | ErrorKind::Internal { .. }
        | ErrorKind::Write(WriteFailure::WriteConcernError(_)) => true,
        _ => {
            let labels = [
                RETRYABLE_WRITE_ERROR,
                TRANSIENT_TRANSACTION_ERROR,
                UNKNOWN_TRANSACTION_COMMIT_RESULT,
            ];
            labels.into_iter().any(|label| error.contains_label(label))
                || server_code(error).is_some_and(is_unsettled)
        }
    }
}

/// Does a server that answers with this code leave open whether the write was done or will last?
pub(crate) fn is_unsettled(code: i32) -> bool {
    UNSETTLED_CODES.contains(&code)
}

/// The fault of a command that was given up waiting for.
pub(crate) fn no_reply(waited: Duration) -> StoreFault {
    unreachable(format!("no reply within {} ms", waited.as_millis()))
}

/// The server's code, wherever the driver keeps it.
pub(crate) fn server_code(error: &Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => Some(command.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(failure)) => Some(failure.code),
        ErrorKind::Write(WriteFailure::WriteError(failure)) => Some(failure.code),
        ErrorKind::Authentication { .. } => {
            let source = std::error::Error::source(error)?;
            source.downcast_ref::<Error>().and_then(server_code)
        }
        _ => None,
    }
}

fn words_of(error: &Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => server_words(&command.message, &command.code_name),
        ErrorKind::Write(WriteFailure::WriteConcernError(failure)) => {
            server_words(&failure.message, &failure.code_name)
        }
        ErrorKind::Write(WriteFailure::WriteError(failure)) => {
            server_words(&failure.message, failure.code_name.as_deref().unwrap_or_default())
        }
        ErrorKind::Io(error) => io_words(&error.to_string()),
        ErrorKind::ServerSelection { message, .. } => selection_words(message),
        ErrorKind::Authentication { message, .. }
        | ErrorKind::DnsResolve { message, .. }
        | ErrorKind::InvalidArgument { message, .. }
        | ErrorKind::InvalidTlsConfig { message, .. }
        | ErrorKind::InvalidResponse { message, .. }
        | ErrorKind::IncompatibleServer { message, .. }
        | ErrorKind::ProxyConnect { message, .. } => message.clone(),
        ErrorKind::ConnectionPoolCleared { .. } => "the connection was lost".to_owned(),
        ErrorKind::Shutdown => "the connection is closed".to_owned(),
        _ => "the driver failed in an unexpected way".to_owned(),
    }
}

/// Servers repeat a whole command, session and signature included, to say that it is not allowed.
fn server_words(message: &str, code_name: &str) -> String {
    match message.split_once(" to execute command { ") {
        Some((subject, command)) => {
            let name = command.split(':').next().unwrap_or_default();
            format!("{subject} to execute {name}")
        }
        None if message.is_empty() => code_name.to_owned(),
        None => message.to_owned(),
    }
}

fn io_words(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or(text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The driver describes the whole topology in one text; what helps are addresses and reasons.
fn selection_words(message: &str) -> String {
    let mut servers: Vec<String> = message.split("{ Address: ").skip(1).map(server_state).collect();
    servers.sort();
    if servers.is_empty() {
        return "no server fits the connection string: is the replica set's name right?".to_owned();
    }
    format!("no primary could be reached: {}", servers.join(", "))
}

fn server_state(description: &str) -> String {
    let (address, rest) = description.split_once(", Type: ").unwrap_or((description, ""));
    let reason = match rest.split_once("Error: ") {
        Some((_, error)) => {
            let error = error.split(", labels: ").next().unwrap_or(error);
            let error = error.strip_prefix("Kind: ").unwrap_or(error);
            io_words(error.strip_prefix("I/O error: ").unwrap_or(error))
        }
        None => match rest.split([',', ' ']).next().unwrap_or_default() {
            "Unknown" | "" => "no answer yet".to_owned(),
            "RsSecondary" => "a secondary".to_owned(),
            other => format!("of type {other}"),
        },
    };
    format!("{address} ({reason})")
}

pub(super) fn unreachable(message: impl Into<String>) -> StoreFault {
    StoreFault::new(FaultKind::Unreachable, message)
}

const FAILED_TO_PARSE: i32 = 9;
const TYPE_MISMATCH: i32 = 14;

/// Codes after which nobody knows: the write concern was not met in time (64), the node is no longer
/// or not yet a primary (91, 189, 10058, 10107, 11600, 11602, 13435, 13436), it was interrupted or ran
/// out of time (50, 202, 262, 11601), a network between servers failed (6, 7, 89, 9001), or it
/// collided with another write and may simply be sent again (112).
const UNSETTLED_CODES: [i32; 18] = [
    6, 7, 50, 64, 89, 91, 112, 189, 202, 262, 9001, 10058, 10107, 11600, 11601, 11602, 13435, 13436,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_update_pipelines_is_told_from_one_that_refuses_something_else() {
        for (code, message) in [
            (9, "Failed to parse update: field must be of BSON type object"),
            (14, "BSON field 'update.updates.u' is the wrong type 'array', expected type 'object'"),
            (9, "'update' must be an object"),
        ] {
            assert!(refuses_pipelines(code, message), "{message}");
        }
        for (code, message) in [
            (13, "not authorized on app to execute command { update: \"_mmk_locks\", ... object }"),
            (9, "unknown operator: $replaceWith"),
            (11000, "E11000 duplicate key error collection: app._mmk_locks"),
            (121, "Document failed validation: update of an object"),
        ] {
            assert!(!refuses_pipelines(code, message), "{message}");
        }
    }

    #[test]
    fn a_set_without_a_primary_is_described_member_by_member() {
        let message = "Server selection timeout: None of the available servers suitable. Topology: \
            { Type: ReplicaSetNoPrimary, Servers: [ { Address: a:1, Type: RsSecondary, Average RTT: \
            1ms }, { Address: b:2, Type: Unknown, Error: Kind: I/O error: timed out, labels: {} } ] }";
        assert_eq!(
            selection_words(message),
            "no primary could be reached: a:1 (a secondary), b:2 (timed out)"
        );
    }

    #[test]
    fn a_refused_command_is_not_repeated_whole() {
        let message = "not authorized on app to execute command { find: \"x\", lsid: { id: 1 } }";
        assert_eq!(server_words(message, "Unauthorized"), "not authorized on app to execute find");
    }
}
