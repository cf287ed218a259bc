//! The other tools: the shape of their documents, and what one of them says. Pure.
//!
//! | tool | collection | fields |
//! |---|---|---|
//! | migrate-mongo | `changelog` | `fileName, fileHash?, appliedAt, migrationBlock?` |
//! | mongoat | `_migrations` | `version, name, checksum, appliedAt, status` |
//! | ts-migrate-mongoose | `migrations` | `name, state, createdAt, updatedAt?` |
//! | mongo-migrate-ts | `migrations_changelog` | `file, className, timestamp` |
//! | umzug (MongoDBStorage) | `migrations` | `migrationName` |
//! | east (east-mongo) | `_migrations` | `_id`, and nothing else |

use std::fmt;

use super::source::SourceDocument;

/// A tool whose changelog we can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// migrate-mongo.
    MigrateMongo,
    /// mongoat.
    Mongoat,
    /// ts-migrate-mongoose, and migrate-mongoose before it.
    TsMigrateMongoose,
    /// mongo-migrate-ts.
    MongoMigrateTs,
    /// umzug with its MongoDBStorage.
    Umzug,
    /// east with east-mongo.
    East,
}

/// What one document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A migration is applied.
    Applied(Past),
    /// A migration is known and not applied; says why.
    NotApplied(String),
    /// It can't be understood; says why.
    Malformed {
        /// The name, as far as there is one.
        recorded: Option<String>,
        /// What is wrong.
        reason: String,
    },
}

/// A migration that another tool has applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Its name as that tool has it: a file name, with or without an extension.
    pub recorded: String,
    /// When it was applied; `None` when the tool keeps no times.
    pub applied_at: Option<i64>,
    /// Its place in the order of application; equal places go by name.
    pub order: i64,
    /// SHA-256 of the file that was applied.
    pub hash: Option<String>,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::MigrateMongo,
        Self::Mongoat,
        Self::TsMigrateMongoose,
        Self::MongoMigrateTs,
        Self::Umzug,
        Self::East,
    ];

    /// The name of its npm package; stored as `origin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MigrateMongo => "migrate-mongo",
            Self::Mongoat => "mongoat",
            Self::TsMigrateMongoose => "ts-migrate-mongoose",
            Self::MongoMigrateTs => "mongo-migrate-ts",
            Self::Umzug => "umzug",
            Self::East => "east",
        }
    }

    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Where it keeps its changelog unless told otherwise.
    pub fn collection(self) -> &'static str {
        match self {
            Self::MigrateMongo => "changelog",
            Self::Mongoat | Self::East => "_migrations",
            Self::TsMigrateMongoose | Self::Umzug => "migrations",
            Self::MongoMigrateTs => "migrations_changelog",
        }
    }

    /// The collections of all of them, each once.
    pub fn collections() -> Vec<&'static str> {
        let mut names: Vec<_> = Self::ALL.into_iter().map(Self::collection).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The extension of files whose name is recorded without one.
    pub fn extension(self) -> &'static str {
        match self {
            Self::TsMigrateMongoose => ".ts",
            Self::MigrateMongo
            | Self::Mongoat
            | Self::MongoMigrateTs
            | Self::Umzug
            | Self::East => ".js",
        }
    }

    /// The tools whose shape at least one of these documents has.
    pub fn detect(documents: &[SourceDocument]) -> Vec<Self> {
        let wrote = |tool: &Self| documents.iter().any(|document| tool.recognizes(document));
        Self::ALL.into_iter().filter(wrote).collect()
    }

    /// Has the document the fields that only this tool's have?
    pub fn recognizes(self, document: &SourceDocument) -> bool {
        match self {
            Self::MigrateMongo => document.has("fileName"),
            // Our own entries have a `version` too, but a number.
            Self::Mongoat => document.text("version").is_some() && document.has("name"),
            Self::TsMigrateMongoose => document.has("state") && document.has("createdAt"),
            Self::MongoMigrateTs => document.has("className"),
            Self::Umzug => document.has("migrationName"),
            Self::East => document.fields.len() == 1 && document.text("_id").is_some(),
        }
    }

    /// Reads one document.
    pub fn read(self, document: &SourceDocument) -> Reading {
        match self {
            Self::MigrateMongo => migrate_mongo(document),
            Self::Mongoat => mongoat(document),
            Self::TsMigrateMongoose => ts_migrate_mongoose(document),
            Self::MongoMigrateTs => mongo_migrate_ts(document),
            Self::Umzug => umzug(document),
            Self::East => east(document),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn migrate_mongo(document: &SourceDocument) -> Reading {
    let Some(name) = usable(document, "fileName") else { return nameless(document, "fileName") };
    let Some(applied_at) = document.instant("appliedAt") else {
        return timeless(document, name, "appliedAt");
    };
    Reading::Applied(Past {
        recorded: name.to_owned(),
        applied_at: Some(applied_at),
        // All migrations of one run share a block, and ran in the order of their names.
        order: document.number("migrationBlock").unwrap_or(applied_at),
        hash: usable(document, "fileHash").map(str::to_owned),
    })
}

fn mongoat(document: &SourceDocument) -> Reading {
    let (Some(version), Some(name)) = (usable(document, "version"), usable(document, "name"))
    else {
        let field = if usable(document, "version").is_none() { "version" } else { "name" };
        return nameless(document, field);
    };
    let whole = name.starts_with(version);
    let recorded = if whole { name.to_owned() } else { format!("{version}_{name}") };
    match document.text("status") {
        Some("applied") => {}
        Some("failed") => return Reading::NotApplied(format!("{recorded} failed there")),
        Some(_) | None => return stateless(document, &recorded, "status"),
    }
    let Some(applied_at) = document.instant("appliedAt") else {
        return timeless(document, &recorded, "appliedAt");
    };
    let hash = usable(document, "checksum").map(str::to_owned);
    Reading::Applied(Past { recorded, applied_at: Some(applied_at), order: applied_at, hash })
}

fn ts_migrate_mongoose(document: &SourceDocument) -> Reading {
    let Some(name) = usable(document, "name") else { return nameless(document, "name") };
    // The time of creation is the first half of the file's name.
    let Some(created_at) = document.instant("createdAt") else {
        return timeless(document, name, "createdAt");
    };
    let recorded = format!("{created_at}-{name}");
    match document.text("state") {
        Some("up") => {}
        Some("down") => return Reading::NotApplied(format!("{recorded} is not applied there")),
        Some(_) | None => return stateless(document, &recorded, "state"),
    }
    let applied_at = document.instant("updatedAt").unwrap_or(created_at);
    Reading::Applied(Past { recorded, applied_at: Some(applied_at), order: applied_at, hash: None })
}

fn mongo_migrate_ts(document: &SourceDocument) -> Reading {
    let Some(path) = usable(document, "file") else { return nameless(document, "file") };
    // Older versions stored absolute paths.
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let Some(applied_at) = document.instant("timestamp") else {
        return timeless(document, name, "timestamp");
    };
    let recorded = name.to_owned();
    Reading::Applied(Past { recorded, applied_at: Some(applied_at), order: applied_at, hash: None })
}

fn umzug(document: &SourceDocument) -> Reading {
    let Some(name) = usable(document, "migrationName") else {
        return nameless(document, "migrationName");
    };
    // It keeps no time, but the driver gave the document an ObjectId when it was logged.
    let applied_at = document.made_at();
    let order = applied_at.unwrap_or_default();
    Reading::Applied(Past { recorded: name.to_owned(), applied_at, order, hash: None })
}

fn east(document: &SourceDocument) -> Reading {
    let Some(name) = usable(document, "_id") else { return nameless(document, "_id") };
    Reading::Applied(Past { recorded: name.to_owned(), applied_at: None, order: 0, hash: None })
}

fn usable<'a>(document: &'a SourceDocument, field: &str) -> Option<&'a str> {
    document.text(field).filter(|text| !text.trim().is_empty())
}

fn nameless(document: &SourceDocument, field: &str) -> Reading {
    let reason = format!("without a usable {field} ({})", document.shown(field));
    Reading::Malformed { recorded: None, reason }
}

fn timeless(document: &SourceDocument, recorded: &str, field: &str) -> Reading {
    let reason = format!("without a usable {field} ({})", document.shown(field));
    Reading::Malformed { recorded: Some(recorded.to_owned()), reason }
}

fn stateless(document: &SourceDocument, recorded: &str, field: &str) -> Reading {
    let reason = format!("with an unknown {field} ({})", document.shown(field));
    Reading::Malformed { recorded: Some(recorded.to_owned()), reason }
}
