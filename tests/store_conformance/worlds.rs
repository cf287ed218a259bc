//! Where the behaviours are tried: a store, and what other programs and passing time do to it.

use std::io::Write;
use std::sync::Once;
use std::time::{Duration, SystemTime};

use mongo_migrate_kit::changelog::entry::{Entry, EntryKey, Status};
use mongo_migrate_kit::changelog::memory::MemoryChangelogStore;
use mongo_migrate_kit::changelog::mongo::MongoChangelogStore;
use mongo_migrate_kit::changelog::store::ChangelogStore;
use mongo_migrate_kit::connect::{ConnectOptions, Connection, UpdateForm};
use mongo_migrate_kit::lock::lease::{Identity, OwnerToken, RunId};
use mongo_migrate_kit::lock::memory::{MemoryLockStore, ServerClock};
use mongo_migrate_kit::lock::mongo::MongoLockStore;
use mongo_migrate_kit::lock::store::{Attempt, LockStore};
use mongo_migrate_kit::lock::timing::Timing;
use mongo_migrate_kit::migration::Namespace;
use mongodb::bson::{Bson, DateTime, Document, doc, oid::ObjectId};
use mongodb::options::{ClientOptions, IndexOptions, WriteConcern};
use mongodb::{Client, Collection, IndexModel};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// A place with a lock in it.
pub trait LockWorld {
    /// Its kind of store.
    type Store: LockStore + Clone;

    /// A handle on the lock.
    fn lock(&self) -> Self::Store;

    /// Puts any document in the lock's place. Dates are `{"$date": ms}`.
    async fn plant(&self, document: Option<Value>);

    /// The lock document, without its `_id`.
    async fn document(&self) -> Option<Map<String, Value>>;

    /// The server's clock.
    async fn now(&self) -> i64;

    /// Makes everything look as if it had been written so much earlier.
    async fn age(&self, by: Duration);

    /// Which election made the primary what it is; `None` where there are none.
    async fn election(&self) -> Option<Value>;

    /// The highest fencing token; 0 before the first.
    async fn token(&self) -> i64;

    /// Runs a fence command as somebody else's transaction would; returns its `n`.
    async fn touch(&self, command: &[u8]) -> u64;
}

/// A place with a changelog in it.
pub trait ChangelogWorld {
    /// Its kind of store.
    type Store: ChangelogStore + Clone;

    /// A handle on the changelog.
    fn changelog(&self) -> Self::Store;

    /// An entry as 1.x leaves it, in batch 3.
    async fn plant_legacy(&self, name: &str, status: &str);

    /// The unique index of 1.x on the bare name.
    async fn index_names(&self, index: &str);

    /// What only a person does.
    async fn remove(&self, key: &EntryKey);

    /// Runs a settlement's command as somebody else's transaction would; returns its `n`.
    async fn apply(&self, command: &[u8]) -> u64;

    /// Can a write take from the entry how long its body has run?
    fn measures(&self) -> bool;
}

/// The stores in memory.
pub struct MemoryWorld {
    clock: ServerClock,
    lock: MemoryLockStore,
    changelog: MemoryChangelogStore,
}

impl MemoryWorld {
    pub fn new() -> Self {
        let clock = ServerClock::at(1_800_000_000_000);
        Self {
            lock: MemoryLockStore::new(clock.clone(), timing()),
            changelog: MemoryChangelogStore::new(clock.clone()),
            clock,
        }
    }
}

impl LockWorld for MemoryWorld {
    type Store = MemoryLockStore;

    fn lock(&self) -> MemoryLockStore {
        self.lock.handle()
    }

    async fn plant(&self, document: Option<Value>) {
        self.lock.plant(document.map(|document| document.as_object().expect("an object").clone()));
    }

    async fn document(&self) -> Option<Map<String, Value>> {
        self.lock.document()
    }

    async fn now(&self) -> i64 {
        self.clock.now()
    }

    async fn age(&self, by: Duration) {
        self.clock.advance(ms(by));
    }

    async fn election(&self) -> Option<Value> {
        Some(json!({ "$oid": format!("{:024x}", self.lock.elections()) }))
    }

    async fn token(&self) -> i64 {
        self.lock.fence().token
    }

    async fn touch(&self, command: &[u8]) -> u64 {
        self.lock.apply_fence_command(command)
    }
}

impl ChangelogWorld for MemoryWorld {
    type Store = MemoryChangelogStore;

    fn changelog(&self) -> MemoryChangelogStore {
        self.changelog.handle()
    }

    async fn plant_legacy(&self, name: &str, status: &str) {
        let key = EntryKey(json!({ "$oid": ObjectId::new().to_hex() }).to_string());
        self.changelog.plant(Entry {
            name: name.to_owned(),
            status: Status::from_text(status),
            batch: Some(3),
            applied_at: Some(1_700_000_000_000),
            duration_ms: Some(12),
            checksum: Some("c0ffee".to_owned()),
            executed_by: Some("ann".to_owned()),
            ..Entry::blank(key)
        });
    }

    async fn index_names(&self, index: &str) {
        self.changelog.index_names(index);
    }

    async fn remove(&self, key: &EntryKey) {
        self.changelog.remove(key);
    }

    async fn apply(&self, command: &[u8]) -> u64 {
        self.changelog.apply_command(command)
    }

    fn measures(&self) -> bool {
        true
    }
}

/// The stores on a server, in a database of their own.
pub struct MongoWorld {
    /// As the product connects.
    pub connection: Connection,
    /// As anybody else does.
    pub bystander: Client,
    /// Whom fail points are for.
    pub app_name: String,
    pub db_name: String,
    /// Where it is.
    pub uri: String,
    /// How the stores put their updates.
    pub form: UpdateForm,
    /// A server has one fail point of a kind, so those who set it take turns.
    _turn: Option<MutexGuard<'static, ()>>,
}

/// A world on the replica set that the environment names.
pub async fn replica_set() -> Option<MongoWorld> {
    MongoWorld::open("MMK_TEST_MONGO_URI", "").await
}

/// A replica set whose next commands can be made to fail.
pub async fn failing_replica_set(retries: Retries) -> Option<MongoWorld> {
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    // The driver looks again soon at a primary that only pretends to have stepped down.
    let option = match retries {
        Retries::ByTheDriver => "heartbeatFrequencyMS=500",
        Retries::Off => "heartbeatFrequencyMS=500&retryWrites=false",
    };
    let world = MongoWorld::open("MMK_TEST_MONGO_URI", option).await?;
    Some(MongoWorld { _turn: Some(turn), ..world })
}

/// Does the driver send a failed write again by itself?
pub enum Retries {
    /// Once, as is its default.
    ByTheDriver,
    /// Never, as a connection string may ask.
    Off,
}

/// A world on the standalone server that the environment names.
pub async fn standalone() -> Option<MongoWorld> {
    MongoWorld::open("MMK_TEST_STANDALONE_URI", "").await
}

impl MongoWorld {
    /// The same, for stores that put their updates in this form.
    pub fn in_form(self, form: UpdateForm) -> Self {
        Self { form, ..self }
    }

    /// The same, for stores that may use no pipelines.
    pub fn by_operators(self) -> Self {
        self.in_form(UpdateForm::operators())
    }

    async fn open(variable: &str, option: &str) -> Option<Self> {
        let Ok(mut uri) = std::env::var(variable) else {
            report_unset(variable);
            return None;
        };
        if !option.is_empty() {
            uri.push_str(if uri.contains('?') { "&" } else { "?" });
            uri.push_str(option);
        }
        // The stores read what a majority has, so whoever prepares something for them waits for that.
        let mut options = ClientOptions::parse(&uri).await.expect("a usable connection string");
        options.write_concern = Some(WriteConcern::majority());
        let bystander = Client::with_options(options).expect("usable options");
        let run = RunId::random();
        let db_name = format!("mmk_conformance_{}", run.as_str().replace('-', ""));
        let mut options = ConnectOptions::new(&uri, &db_name, run.app_name());
        options.max_pool_size = 16;
        let connection = Connection::open(&options).await.expect("a usable connection string");
        let app_name = run.app_name();
        let form = UpdateForm::default();
        Some(Self { connection, bystander, app_name, db_name, uri, form, _turn: None })
    }

    pub async fn close(self) {
        self.bystander.database(&self.db_name).drop().await.expect("its own database");
        self.connection.close().await;
        self.bystander.shutdown().immediate(true).await;
    }

    pub fn locks(&self) -> Collection<Document> {
        self.bystander.database(&self.db_name).collection("_mmk_locks")
    }

    pub fn entries(&self) -> Collection<Document> {
        self.bystander.database(&self.db_name).collection("_mmk_migrations")
    }

    pub async fn collections(&self) -> Vec<String> {
        let database = self.bystander.database(&self.db_name);
        database.list_collection_names().await.expect("a database can be listed")
    }

    /// Makes this world's next commands of one kind fail.
    pub async fn fail(&self, command: &str, times: i32, mut how: Document) {
        how.insert("failCommands", vec![command]);
        how.insert("appName", &self.app_name);
        let fail_point = doc! {
            "configureFailPoint": "failCommand", "mode": { "times": times }, "data": how,
        };
        let admin = self.bystander.database("admin");
        admin.run_command(fail_point).await.expect("the server was started with test commands");
    }

    /// Ends the failures that have not happened yet.
    pub async fn spare(&self) {
        self.switch("failCommand", "off").await;
    }

    /// Lets index builds on documents begin and not end, on the whole server.
    pub async fn hang_index_builds(&self) {
        self.switch(HANGING_BUILDS, "alwaysOn").await;
    }

    /// Lets them end.
    pub async fn release_index_builds(&self) {
        self.switch(HANGING_BUILDS, "off").await;
    }

    async fn switch(&self, fail_point: &str, mode: &str) {
        let admin = self.bystander.database("admin");
        let switched = admin.run_command(doc! { "configureFailPoint": fail_point, "mode": mode });
        switched.await.expect("the server was started with test commands");
    }
}

impl LockWorld for MongoWorld {
    type Store = MongoLockStore;

    fn lock(&self) -> MongoLockStore {
        let locks = self.connection.collection("_mmk_locks");
        MongoLockStore::new(locks, timing(), self.form.clone())
    }

    async fn plant(&self, document: Option<Value>) {
        let locks = self.locks();
        locks.delete_one(doc! { "_id": LOCK_ID }).await.expect("the lock can be deleted");
        if let Some(Bson::Document(mut document)) = document.as_ref().map(to_bson) {
            document.insert("_id", LOCK_ID);
            locks.insert_one(document).await.expect("the lock can be planted");
        }
    }

    async fn document(&self) -> Option<Map<String, Value>> {
        let found = self.locks().find_one(doc! { "_id": LOCK_ID }).await.expect("a read");
        found.map(|mut found| {
            found.remove("_id");
            found.iter().map(|(field, value)| (field.clone(), to_json(value))).collect()
        })
    }

    async fn now(&self) -> i64 {
        let admin = self.bystander.database("admin");
        let hello = admin.run_command(doc! { "hello": 1 }).await.expect("a greeting");
        hello.get_datetime("localTime").expect("a clock").timestamp_millis()
    }

    async fn age(&self, by: Duration) {
        let earlier = |field: &str| {
            let path = format!("${field}");
            doc! { "$cond": [
                { "$eq": [{ "$type": &path }, "date"] }, { "$subtract": [&path, ms(by)] }, path,
            ] }
        };
        let aged = doc! { "$set": {
            "acquiredAt": earlier("acquiredAt"), "lockedAt": earlier("lockedAt"),
            "expiresAt": earlier("expiresAt"),
        } };
        let everything = doc! { "_id": LOCK_ID };
        self.locks().update_one(everything, vec![aged]).await.expect("dates can be moved");
    }

    async fn election(&self) -> Option<Value> {
        let election = self.connection.hello().await.expect("a greeting").election?;
        Some(json!({ "$oid": election.to_hex() }))
    }

    async fn token(&self) -> i64 {
        let fence = self.locks().find_one(doc! { "_id": "mmk_fence" }).await.expect("a read");
        fence.map_or(0, |fence| fence.get_i64("token").expect("a long"))
    }

    async fn touch(&self, command: &[u8]) -> u64 {
        self.apply(command).await
    }
}

impl ChangelogWorld for MongoWorld {
    type Store = MongoChangelogStore;

    fn changelog(&self) -> MongoChangelogStore {
        let entries = self.connection.collection("_mmk_migrations");
        MongoChangelogStore::new(entries, self.form.clone())
    }

    async fn plant_legacy(&self, name: &str, status: &str) {
        let entry = doc! {
            "name": name, "batch": 3, "status": status, "duration": 12, "checksum": "c0ffee",
            "appliedAt": DateTime::from_millis(1_700_000_000_000), "environment": "development",
            "executedBy": "ann",
        };
        self.entries().insert_one(entry).await.expect("an entry can be planted");
    }

    async fn index_names(&self, index: &str) {
        let options = IndexOptions::builder().name(index.to_owned()).unique(true).build();
        let index = IndexModel::builder().keys(doc! { "name": 1 }).options(options).build();
        self.entries().create_index(index).await.expect("an index can be made");
    }

    async fn remove(&self, key: &EntryKey) {
        let id: Bson = serde_json::from_str(&key.0).expect("a key is extended JSON");
        self.entries().delete_one(doc! { "_id": id }).await.expect("an entry can be deleted");
    }

    async fn apply(&self, command: &[u8]) -> u64 {
        let mut command = Document::from_reader(command).expect("a command is BSON");
        command.insert("writeConcern", doc! { "w": "majority" });
        let reply = self.bystander.database(&self.db_name).run_command(command).await;
        let n = reply.expect("the command is well-formed").get_i32("n").expect("a count");
        n.unsigned_abs().into()
    }

    fn measures(&self) -> bool {
        !self.form.is_operators()
    }
}

/// One minute, the default.
pub fn timing() -> Timing {
    Timing::new(Duration::from_secs(60)).expect("a minute is a valid TTL")
}

pub fn identity() -> Identity {
    Identity {
        run_id: RunId::random(),
        namespace: Namespace::default(),
        changelog: "_mmk_migrations".to_owned(),
        host: "build-1".to_owned(),
        pid: 41,
        user: "deploy".to_owned(),
        operation: "up".to_owned(),
    }
}

pub fn attempt() -> Attempt {
    Attempt { owner: OwnerToken::random(), identity: identity(), timing: timing(), unmoved: None }
}

pub fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).expect("a short span")
}

pub fn local_now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    ms(since)
}

/// Past the capture of passing tests' output: a suite that ran by half must not look whole.
fn report_unset(variable: &str) {
    static MONGO: Once = Once::new();
    static STANDALONE: Once = Once::new();
    let once = if variable.contains("STANDALONE") { &STANDALONE } else { &MONGO };
    once.call_once(|| {
        let line = format!("NOT RUN against a server: {variable} is not set (npm test sets it)\n");
        // A closed stderr leaves nobody to tell.
        let _told = std::io::stderr().write_all(line.as_bytes());
    });
}

fn to_bson(value: &Value) -> Bson {
    match value {
        Value::Object(fields) => {
            let date = fields.get("$date").and_then(Value::as_i64).map(DateTime::from_millis);
            let id = fields.get("$oid").and_then(Value::as_str).map(ObjectId::parse_str);
            let id = id.map(|id| Bson::ObjectId(id.expect("twelve bytes in hex")));
            date.map(Bson::DateTime).or(id).unwrap_or_else(|| {
                let fields = fields.iter().map(|(field, value)| (field.clone(), to_bson(value)));
                Bson::Document(fields.collect())
            })
        }
        Value::Array(items) => Bson::Array(items.iter().map(to_bson).collect()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Bson::Int64(whole),
            None => Bson::Double(number.as_f64().expect("a number")),
        },
        Value::String(text) => Bson::String(text.clone()),
        Value::Bool(flag) => Bson::Boolean(*flag),
        Value::Null => Bson::Null,
    }
}

fn to_json(value: &Bson) -> Value {
    match value {
        Bson::DateTime(instant) => json!({ "$date": instant.timestamp_millis() }),
        Bson::Document(fields) => {
            fields.iter().map(|(field, value)| (field.clone(), to_json(value))).collect()
        }
        Bson::Array(items) => items.iter().map(to_json).collect(),
        other => serde_json::to_value(other).expect("BSON has a JSON form"),
    }
}

const LOCK_ID: &str = "mmk_lock";

const HANGING_BUILDS: &str = "hangAfterSettingUpIndexBuild";
