//! The connection of the core's own: the lock and the changelog, never a migration's data.
//!
//! It is opened for one run and carries that run's `appName`. Reads go to the primary with majority
//! read concern and writes wait for a majority, whatever the connection string says: a lock that a
//! failover can roll back is none.
//!
//! # Promises
//! - A server that can't be reached fails the first command within 10 s, unless the connection string
//!   asks for more patience.
//! - Nothing of the connection string but host names is ever repeated in a fault.
//!
//! # What it does not promise
//! That a server is there: [`Connection::open`] looks up names and sends nothing; the first command
//! finds out.

use std::time::Duration;

use mongodb::bson::{Document, doc, oid::ObjectId};
use mongodb::error::{
    Error, ErrorKind, RETRYABLE_WRITE_ERROR, TRANSIENT_TRANSACTION_ERROR,
    UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};
use mongodb::options::{
    ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection, Database};

use crate::fault::{FaultKind, StoreFault};

/// How to connect.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The connection string.
    pub uri: String,
    /// The database that is migrated.
    pub db_name: String,
    /// What `$currentOp` and the server's log show of us; wins over the connection string's.
    pub app_name: String,
    /// How long to look for a primary, unless the connection string says.
    pub server_selection_timeout: Duration,
    /// How long one socket may take to connect, unless the connection string says.
    pub connect_timeout: Duration,
    /// The most sockets to have open at once.
    pub max_pool_size: u32,
}

impl ConnectOptions {
    /// The usual patience and a small pool. The busiest user of one is the lock: it has a change
    /// stream open, renews, looks for operations of past runs, and may have an arm to take back.
    pub fn new(
        uri: impl Into<String>,
        db_name: impl Into<String>,
        app_name: impl Into<String>,
    ) -> Self {
        Self {
            uri: uri.into(),
            db_name: db_name.into(),
            app_name: app_name.into(),
            server_selection_timeout: PATIENCE,
            connect_timeout: PATIENCE,
            max_pool_size: 6,
        }
    }
}

/// Why there is no connection.
pub type ConnectFault = StoreFault;

/// A connection to the database that is migrated.
#[derive(Debug, Clone)]
pub struct Connection {
    client: Client,
    database: Database,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Are there multi-document transactions? They need a replica set or a sharded cluster.
    pub transactions: bool,
    /// The primary's address, when the server is a member of a set.
    pub primary: Option<String>,
    /// What made it the primary; another one after every election.
    pub election: Option<ObjectId>,
}

impl Connection {
    /// Prepares a connection; nothing is sent to a server yet.
    ///
    /// # Errors
    /// [`FaultKind::Unusable`] for a connection string that can't be used, [`FaultKind::Unreachable`]
    /// for a `mongodb+srv` name that does not resolve.
    pub async fn open(options: &ConnectOptions) -> Result<Self, ConnectFault> {
        let parsed = ClientOptions::parse(&options.uri).into_future();
        let mut client = match tokio::time::timeout(PATIENCE, parsed).await {
            Ok(parsed) => parsed.map_err(|error| unusable(&error, &options.uri))?,
            Err(_) => return Err(unreachable("the connection string's name can't be looked up")),
        };
        client.app_name = Some(options.app_name.clone());
        client.server_selection_timeout.get_or_insert(options.server_selection_timeout);
        client.connect_timeout.get_or_insert(options.connect_timeout);
        client.heartbeat_freq.get_or_insert(CHECK_INTERVAL);
        client.max_pool_size = Some(options.max_pool_size);
        // A pool that starts empty may be asked to hold more sockets than it is allowed to.
        client.min_pool_size = None;
        client.selection_criteria =
            Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
        client.read_concern = Some(ReadConcern::majority());
        client.write_concern = Some(WriteConcern::majority());
        let client =
            Client::with_options(client).map_err(|error| unusable(&error, &options.uri))?;
        let database = client.database(&options.db_name);
        Ok(Self { client, database })
    }

    /// One collection of the database.
    pub fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
    }

    /// The database that is migrated.
    pub fn database(&self) -> Database {
        self.database.clone()
    }

    /// Asks the primary what it can do.
    ///
    /// # Errors
    /// Whatever keeps the first command from being answered: no server, no permission to connect.
    pub async fn hello(&self) -> Result<Hello, StoreFault> {
        hello(&self.database).await
    }

    /// Closes every socket. Bounded: a server that has gone away keeps nobody waiting.
    pub async fn close(self) {
        drop(self.database);
        // Sockets that outlive the patience are closed with the process; nobody is helped by a fault.
        let _elapsed = tokio::time::timeout(CLOSING_PATIENCE, self.client.shutdown()).await;
    }
}

/// Asks the primary behind this database what it can do.
///
/// # Errors
/// As [`Connection::hello`].
pub async fn hello(database: &Database) -> Result<Hello, StoreFault> {
    greet(database).await.map_err(|error| fault_of(&error))
}

/// As [`hello`], for those who must know whether to ask again.
pub(crate) async fn greet(database: &Database) -> Result<Hello, Error> {
    let reply = database.run_command(doc! { "hello": 1 }).await?;
    let router = reply.get_str("msg").is_ok_and(|text| text == "isdbgrid");
    Ok(Hello {
        transactions: router || reply.contains_key("setName"),
        primary: reply.get_str("primary").ok().map(str::to_owned),
        election: reply.get_object_id("electionId").ok(),
    })
}

/// What kept a command from a usable reply, in words that hold no credentials.
pub fn fault_of(error: &Error) -> StoreFault {
    let code = server_code(error);
    let kind = match (error.kind.as_ref(), code) {
        (_, Some(13 | 18 | 8000)) => FaultKind::Unauthorized,
        (_, Some(code)) if UNSETTLED_CODES.contains(&code) => FaultKind::Unreachable,
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
    StoreFault { kind, message: words_of(error), server_code: code }
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
                || server_code(error).is_some_and(|code| UNSETTLED_CODES.contains(&code))
        }
    }
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

fn unusable(error: &Error, uri: &str) -> StoreFault {
    let fault = fault_of(error);
    // Here an I/O error is about a certificate's file: nothing has been sent anywhere.
    let kind = match error.kind.as_ref() {
        ErrorKind::DnsResolve { .. } => FaultKind::Unreachable,
        _ => FaultKind::Unusable,
    };
    let reason = without_secrets(&fault.message, uri);
    StoreFault { kind, message: format!("the connection string can't be used: {reason}"), ..fault }
}

/// Masks every word that repeats a part of the connection string which may be a secret.
///
/// A password with an unescaped `/`, `?` or `:` is taken for a port or an option and quoted as such,
/// so this goes by position and not by what a parser makes of it.
fn without_secrets(message: &str, uri: &str) -> String {
    let secrets = secret_parts(uri);
    let leaks = |word: &str| {
        let word = word.to_lowercase();
        secrets.iter().any(|secret| secret.contains(&word) || word.contains(secret.as_str()))
    };
    let masked = message.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.len() >= SHORTEST_SECRET && leaks(bare) { "***" } else { word }
    });
    masked.collect::<Vec<_>>().join(" ")
}

fn secret_parts(uri: &str) -> Vec<String> {
    let after_scheme = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let credentials = match after_scheme.rfind('@') {
        Some(at) => &after_scheme[..at],
        // Without an `@` the hosts may be credentials whose host was forgotten.
        None => after_scheme.split(['/', '?']).next().unwrap_or_default(),
    };
    let query = after_scheme.split_once('?').map_or("", |(_, query)| query);
    let secret_options =
        query.split('&').filter_map(|option| option.split_once('=')).filter_map(|(key, value)| {
            let key = key.to_lowercase();
            let secret = ["password", "properties", "token", "secret"];
            secret.iter().any(|word| key.contains(word)).then_some(value)
        });
    std::iter::once(credentials)
        .chain(secret_options)
        .filter(|part| part.len() >= SHORTEST_SECRET)
        .map(str::to_lowercase)
        .collect()
}

fn unreachable(message: impl Into<String>) -> StoreFault {
    StoreFault::new(FaultKind::Unreachable, message)
}

/// Codes after which nobody knows: the write concern was not met in time (64), the node is no longer
/// or not yet a primary (91, 189, 10058, 10107, 11600, 11602, 13435, 13436), it was interrupted or ran
/// out of time (50, 202, 262, 11601), a network between servers failed (6, 7, 89, 9001), or it
/// collided with another write and may simply be sent again (112).
const UNSETTLED_CODES: [i32; 18] = [
    6, 7, 50, 64, 89, 91, 112, 189, 202, 262, 9001, 10058, 10107, 11600, 11601, 11602, 13435, 13436,
];

/// Eight of the ten seconds within which a missing server must have been reported.
const PATIENCE: Duration = Duration::from_secs(8);

/// A server that the driver has given up on must be looked at again before patience ends; the driver's
/// own interval is 10 s.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A clean end is a courtesy to the server, which notices closed sockets by itself.
const CLOSING_PATIENCE: Duration = Duration::from_secs(2);

/// Shorter pieces of text would mask the words "a" and "to" and give away nothing.
const SHORTEST_SECRET: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal_of(uri: &str) -> StoreFault {
        let options = ConnectOptions::new(uri, "app", "mmk/test");
        Connection::open(&options).await.expect_err("the connection string is bad")
    }

    #[tokio::test]
    async fn a_bad_connection_string_is_rejected_with_its_reason_and_without_its_secrets() {
        for uri in [
            "mongodb://ann:Pa5sw0rd/x@db.example/app",
            "mongodb://ann:Pa5sw0rd:x@db.example/app",
            "mongodb://ann:Pa5%sw0rd@db.example/app",
            "mongodb://ann:Pa5sw0rd?x@db.example/app",
            "mongodb://ann:Pa5sw0rd",
            "\"mongodb://ann:Pa5sw0rd@db.example/app\"",
            "ann:Pa5sw0rd@db.example",
            "mongodb://db.example/?proxyPassword=Pa5sw0rd",
            "mongodb://ann:Pa5sw0rd@db.example/app?w=-1",
        ] {
            let fault = refusal_of(uri).await;
            assert_eq!(fault.kind, FaultKind::Unusable, "{uri}: {fault}");
            assert!(!fault.message.to_lowercase().contains("pa5"), "{uri}: {fault}");
            assert!(!fault.message.contains("sw0rd"), "{uri}: {fault}");
        }
        let fault = refusal_of("mongodb://db.example/?replicaset=rs0&colour=red").await;
        assert!(fault.message.contains("colour"), "{fault}");
    }

    #[tokio::test]
    async fn a_missing_server_is_named_with_the_reason() {
        let mut options = ConnectOptions::new("mongodb://ann:pw@127.0.0.1:1/", "app", "mmk/test");
        options.server_selection_timeout = Duration::from_millis(200);
        let connection = Connection::open(&options).await.expect("a usable connection string");
        let fault = connection.hello().await.expect_err("port 1 has no server");
        assert_eq!(fault.kind, FaultKind::Unreachable);
        assert_eq!(fault.message, "no primary could be reached: 127.0.0.1:1 (connection refused)");
        connection.close().await;
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
