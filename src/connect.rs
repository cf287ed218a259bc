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

mod faults;
mod update_form;

use std::str::FromStr;
use std::time::Duration;

use mongodb::bson::{Document, doc, oid::ObjectId};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{
    ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, ServerApi, ServerApiVersion,
    WriteConcern,
};
use mongodb::{Client, Collection, Database};

use self::faults::unreachable;
pub use self::faults::{fault_of, is_outcome_unknown};
pub(crate) use self::faults::{is_unsettled, no_reply, refuses_pipelines, server_code};
pub use self::update_form::UpdateForm;
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
    /// The version of the server's API that every command declares.
    pub server_api: Option<String>,
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
            server_api: None,
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
    /// The name of its set.
    pub set_name: Option<String>,
    /// Made when the server's process starts, so no two servers have the same.
    pub process: Option<String>,
    /// What its clock showed, ms since 1970.
    pub now: Option<i64>,
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
        client.server_api = match &options.server_api {
            None => None,
            Some(version) => {
                let version = ServerApiVersion::from_str(version)
                    .map_err(|error| unusable(&error, &options.uri))?;
                Some(ServerApi::builder().version(version).build())
            }
        };
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
        set_name: reply.get_str("setName").ok().map(str::to_owned),
        // A router's says nothing: a cluster has many of them.
        process: reply
            .get_document("topologyVersion")
            .and_then(|version| version.get_object_id("processId"))
            .ok()
            .filter(|_| !router)
            .map(ObjectId::to_hex),
        now: reply.get_datetime("localTime").ok().map(|now| now.timestamp_millis()),
    })
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
}
