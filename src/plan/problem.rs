//! What stands in the way of a plan, and what is only worth saying.

use crate::event::Unfinished;
use crate::host::HostError;

/// Something that makes a run impossible. Nothing has run when one of these is reported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// A named file is not in the migrations directory.
    #[error("no migration file is named \"{}\"", name.escape_debug())]
    UnknownFile {
        /// What was asked for.
        name: String,
        /// What is there.
        available: Vec<String>,
    },
    /// A file that the plan needs is not on disk.
    #[error("the file of \"{}\" is missing", name.escape_debug())]
    FileMissing {
        /// The migration.
        name: String,
    },
    /// A file can't be used: it does not load, or does not export what it must.
    #[error("{}", error.message)]
    Unusable {
        /// The file.
        name: String,
        /// What the host found.
        error: HostError,
    },
    /// The server knows no transactions.
    #[error(
        "transactions need a replica set or a sharded cluster, and this server is neither: {}",
        list(names)
    )]
    TransactionsUnsupported {
        /// The migrations that want one.
        names: Vec<String>,
    },
    /// There is no `down`.
    #[error("\"{}\" has no down, so it can't be reverted", name.escape_debug())]
    Irreversible {
        /// The migration.
        name: String,
    },
    /// Two files differ only in their extension.
    #[error("\"{}\" and \"{}\" are the same migration twice", first.escape_debug(), second.escape_debug())]
    TwoExtensions {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A pending file and an applied one that is gone differ only in their extension.
    #[error("\"{}\" was applied as \"{}\"", name.escape_debug(), applied.escape_debug())]
    AppliedUnderAnother {
        /// The pending file.
        name: String,
        /// The changelog's name.
        applied: String,
    },
    /// Applied files were edited since.
    #[error("{} changed since applied: {}", files(names), list(names))]
    Edited {
        /// The migrations.
        names: Vec<String>,
    },
    /// Applied files are gone.
    #[error("{} of applied migrations missing: {}", files(names), list(names))]
    Gone {
        /// The migrations.
        names: Vec<String>,
    },
    /// Pending files sort before applied ones.
    #[error("out of order: {} {} before the applied \"{}\"", list(names), sorts(names), latest.escape_debug())]
    OutOfOrder {
        /// The pending migrations.
        names: Vec<String>,
        /// The last applied one.
        latest: String,
    },
    /// A migration to revert is not applied.
    #[error("\"{}\" is not applied", name.escape_debug())]
    NotApplied {
        /// What was asked for.
        name: String,
        /// What is applied.
        applied: Vec<String>,
    },
    /// No applied migration is in that batch.
    #[error("no applied migration is in batch {batch}")]
    NoSuchBatch {
        /// What was asked for.
        batch: i64,
        /// The batches there are.
        batches: Vec<i64>,
    },
    /// A migration did not finish last time, and somebody must look before it runs again.
    #[error("\"{}\" {} last time and needs a look before it runs again", name.escape_debug(), ended(*unfinished))]
    NeedsALook {
        /// The migration.
        name: String,
        /// How it ended.
        unfinished: Unfinished,
    },
    /// Another tool has applied what is pending here.
    #[error(
        "{tool} has applied {} already, as \"{}\" says: `{command}` takes its history over",
        few(names),
        collection.escape_debug()
    )]
    ForeignChangelog {
        /// Where it says so.
        collection: String,
        /// The tool.
        tool: &'static str,
        /// What imports it.
        command: String,
        /// The pending migrations.
        names: Vec<String>,
    },
    /// Another namespace has the name, and an index lets it in only once.
    #[error(
        "another namespace has an entry for {}, and the unique index \"{}\" of \"{}\" lets each name in \
         once only: `{}` drops it",
        few(names),
        index.escape_debug(),
        collection.escape_debug(),
        drop_index(collection, index)
    )]
    NameTaken {
        /// The index.
        index: String,
        /// The changelog.
        collection: String,
        /// The migrations.
        names: Vec<String>,
    },
    /// A `down` was interrupted: neither applied nor reverted.
    #[error("the down of \"{}\" was interrupted: it is neither applied nor reverted", name.escape_debug())]
    InterruptedDown {
        /// The migration.
        name: String,
    },
}

impl Problem {
    /// The public error code.
    pub fn code(&self) -> &str {
        match self {
            Self::UnknownFile { .. } | Self::FileMissing { .. } => "MIGRATION_FILE_NOT_FOUND",
            Self::Unusable { error, .. } => {
                error.code.as_deref().unwrap_or("MIGRATION_LOAD_FAILED")
            }
            Self::TransactionsUnsupported { .. } => "TRANSACTIONS_UNSUPPORTED",
            Self::Irreversible { .. } => "MIGRATION_IRREVERSIBLE",
            Self::TwoExtensions { .. } | Self::AppliedUnderAnother { .. } => {
                "MIGRATION_INVALID_NAME"
            }
            Self::Edited { .. } => "CHECKSUM_MISMATCH",
            Self::Gone { .. } => "MIGRATION_FILE_NOT_FOUND",
            Self::OutOfOrder { .. } => "MIGRATION_OUT_OF_ORDER",
            Self::NotApplied { .. } => "NOT_APPLIED",
            Self::NoSuchBatch { .. } => "INVALID_ARGUMENT",
            Self::NeedsALook { .. } | Self::InterruptedDown { .. } => "MIGRATION_INTERRUPTED",
            Self::ForeignChangelog { .. } => "FOREIGN_CHANGELOG",
            Self::NameTaken { .. } => "NAMESPACE_INDEX",
        }
    }
}

/// Something worth saying that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Stable name of the kind.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// The migrations it is about.
    pub names: Vec<String>,
}

/// What drops an index, to be typed into the shell of MongoDB.
pub(crate) fn drop_index(collection: &str, index: &str) -> String {
    format!(
        "db.getCollection(\"{}\").dropIndex(\"{}\")",
        collection.escape_debug(),
        index.escape_debug()
    )
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

/// The first few: a whole history would hide what to do about it.
fn few(names: &[String]) -> String {
    const FEW: usize = 3;
    match names.get(FEW..) {
        None | Some([]) => list(names),
        Some(more) => format!("{} and {} more", list(&names[..FEW]), more.len()),
    }
}

fn files(names: &[String]) -> &'static str {
    if names.len() == 1 { "a file" } else { "files" }
}

fn sorts(names: &[String]) -> &'static str {
    if names.len() == 1 { "sorts" } else { "sort" }
}

fn ended(unfinished: Unfinished) -> &'static str {
    match unfinished {
        Unfinished::Interrupted => "was interrupted",
        Unfinished::Failed => "failed",
    }
}
