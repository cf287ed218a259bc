//! Listens to what the stores send, and says what of it a server might not know that takes no
//! pipelines.

use std::sync::{Arc, Mutex};

use mongodb::bson::{Bson, Document, doc};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::{ClientOptions, ReadConcern, WriteConcern};
use mongodb::{Client, Collection};

use crate::worlds::MongoWorld;

/// A connection to a world's database, and every command that was sent over it.
pub struct Wiretap {
    client: Client,
    db_name: String,
    sent: Arc<Mutex<Vec<Document>>>,
}

impl Wiretap {
    pub async fn on(world: &MongoWorld) -> Self {
        let sent = Arc::<Mutex<Vec<Document>>>::default();
        let heard = Arc::clone(&sent);
        let mut options = ClientOptions::parse(&world.uri).await.expect("a usable string");
        // As the product's own connection has it.
        options.read_concern = Some(ReadConcern::majority());
        options.write_concern = Some(WriteConcern::majority());
        options.command_event_handler = Some(EventHandler::callback(move |event| {
            if let CommandEvent::Started(started) = event {
                heard.lock().expect("nobody panics here").push(started.command);
            }
        }));
        let client = Client::with_options(options).expect("usable options");
        Self { client, db_name: world.db_name.clone(), sent }
    }

    pub fn collection(&self, name: &str) -> Collection<Document> {
        self.client.database(&self.db_name).collection(name)
    }

    /// Everything that was sent and is not plain. That something was sent is made sure of.
    pub fn oddities(&self) -> Vec<String> {
        let sent = self.sent.lock().expect("nobody panics here");
        assert!(!sent.is_empty(), "nothing was sent");
        sent.iter().flat_map(oddities).collect()
    }

    pub async fn close(self) {
        self.client.shutdown().immediate(true).await;
    }
}

/// What in a command a server might not know that has no pipelines.
pub fn oddities(command: &Document) -> Vec<String> {
    let mut found = Vec::new();
    let modifies = command.contains_key("findAndModify");
    for (field, value) in command {
        match field.as_str() {
            "update" if modifies => no_pipeline(value, &mut found),
            "fields" | "projection" => constant(value, &mut found),
            _ => {}
        }
        // Of the driver's own: `$db`, `$clusterTime`.
        if !field.starts_with('$') {
            look(value, &mut found);
        }
    }
    found.iter().map(|what| format!("{what} in {command}")).collect()
}

fn look(value: &Bson, found: &mut Vec<String>) {
    match value {
        Bson::Document(document) => {
            for (field, value) in document {
                if field == "u" {
                    no_pipeline(value, found);
                }
                if field.starts_with('$') && !PLAIN.contains(&field.as_str()) {
                    found.push(field.clone());
                }
                look(value, found);
            }
        }
        Bson::Array(items) => items.iter().for_each(|item| look(item, found)),
        Bson::String(text) if text.starts_with('$') => found.push(format!("the path {text}")),
        _ => {}
    }
}

fn no_pipeline(update: &Bson, found: &mut Vec<String>) {
    if update.as_array().is_some() {
        found.push("a pipeline".to_owned());
    }
}

fn constant(projection: &Bson, found: &mut Vec<String>) {
    let fields = projection.as_document().into_iter().flatten();
    let computed = fields.filter(|(_, value)| !matches!(value, Bson::Int32(0 | 1)));
    found.extend(computed.map(|(field, _)| format!("a computed {field}")));
}

/// What MongoDB 3.6 knows, as far as it is used.
const PLAIN: [&str; 19] = [
    "$currentDate",
    "$each",
    "$elemMatch",
    "$eq",
    "$exists",
    "$in",
    "$inc",
    "$max",
    "$ne",
    "$not",
    "$or",
    "$pop",
    "$pull",
    "$push",
    "$set",
    "$setOnInsert",
    "$slice",
    "$type",
    "$unset",
];

#[test]
fn whatever_is_not_plain_is_seen_wherever_it_stands() {
    for odd in [
        doc! { "findAndModify": "c", "update": [{ "$set": { "a": 1 } }] },
        doc! { "findAndModify": "c", "update": { "$set": { "a": 1 } }, "fields": { "a": "$b" } },
        doc! { "update": "c", "updates": [{ "q": {}, "u": [{ "$set": { "a": 1 } }] }] },
        doc! { "update": "c", "updates": [{ "q": { "$expr": true }, "u": { "$set": {} } }] },
        doc! { "find": "c", "filter": {}, "projection": { "a": { "$slice": 1 } } },
        doc! { "delete": "c", "deletes": [{ "q": { "a": { "$expr": true } }, "limit": 1 }] },
        doc! { "findAndModify": "c", "update": { "$set": { "a": "$$NOW" } } },
    ] {
        assert!(!oddities(&odd).is_empty(), "{odd}");
    }
}
