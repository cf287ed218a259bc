//! What a foreign changelog comes to: entries to write, and documents that are left out with the
//! reason. Pure.
//!
//! Every migration gets a batch of its own, in the order in which it was applied, as 1.x numbers
//! them: the other tool's runs are over, and `down` takes back one at a time.

use std::collections::HashMap;

use serde::Serialize;

use super::folder::Folder;
use super::source::SourceDocument;
use super::tool::{Past, Reading, Tool};
use crate::changelog::entry::Entry;
use crate::migration::{MigrationFile, MigrationName};

/// What the intake is decided from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Who wrote the source.
    pub tool: Tool,
    /// All documents of the source.
    pub documents: &'a [SourceDocument],
    /// The files on disk.
    pub files: &'a [MigrationFile],
    /// The entries of our namespace in the target.
    pub entries: &'a [Entry],
    /// The user's wishes.
    pub wishes: Wishes,
}

/// How to take a history in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Whose checksum is stored when the file differs from the recorded one.
    pub trust: Trust,
    /// What becomes of a migration whose file is not here.
    pub missing: MissingFiles,
    /// What becomes of a target with a history of its own.
    pub target: Target,
}

/// Whose checksum to store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// The file's, as it is now.
    #[default]
    Files,
    /// The recorded one.
    Source,
}

/// What becomes of a migration whose file is not here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingFiles {
    /// It becomes an entry like any other.
    #[default]
    Adopt,
    /// It is left out: several apps may have shared one changelog.
    LeaveOut,
}

/// What becomes of a target with a history of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Target {
    /// It is refused.
    #[default]
    MustBeFresh,
    /// It is added to.
    MayBeInUse,
}

/// What a changelog comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intake {
    /// The entries to write, in order.
    pub rows: Vec<Row>,
    /// How many of its migrations have an entry already.
    pub already_there: usize,
    /// What is left out.
    pub rejected: Vec<Rejected>,
    /// Files that are not what the source says was applied, and are accepted as they are now.
    pub changed: Vec<String>,
}

/// One entry to write. Serialises to 1.x's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// File name.
    pub file: MigrationName,
    /// Its batch.
    pub batch: i64,
    /// When it was applied, ms since 1970; `None` when the source keeps no times.
    pub applied_at: Option<i64>,
    /// SHA-256, lower-case hex; empty when there is nothing to compare with.
    pub checksum: String,
    /// Where the checksum comes from.
    pub checksum_source: ChecksumSource,
}

/// Where a checksum comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumSource {
    /// The source.
    Reused,
    /// The file on disk.
    Recomputed,
    /// Neither: there is no file, and the source has none.
    Missing,
}

/// A document that becomes no entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// Its `_id`, for a person to find it by.
    pub id: String,
    /// The kind of reason.
    pub why: Why,
    /// The reason in words; holds names as they were found.
    pub reason: String,
    /// The file that the next `up` will run although this document may say that it was applied.
    pub file: Option<String>,
}

/// Why a document becomes no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// It can't be understood.
    Malformed,
    /// The other tool says that the migration is not applied.
    NotApplied,
    /// A later document is about the same file.
    Superseded,
    /// The file is not here, and such are to be left out.
    NoFile,
}

/// The target has entries, and none of them came from this source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetInUse {
    /// How many.
    pub entries: usize,
}

/// Decides what the source comes to.
///
/// # Errors
/// [`TargetInUse`], unless it was allowed or nothing is left to write.
pub fn decide(inputs: Inputs<'_>) -> Result<Intake, TargetInUse> {
    let Inputs { tool, entries, wishes, .. } = inputs;
    let folder = Folder::of(inputs.files);
    let mut intake = Intake::default();
    let found = read_all(inputs, &folder, &mut intake.rejected);
    let known: HashMap<MigrationName, &Entry> =
        entries.iter().filter_map(|entry| Some((named(entry)?, entry))).collect();
    let (there, fresh): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| known.contains_key(&found.name));
    intake.already_there = there.len();
    let mut fresh: Vec<Found<'_>> = fresh
        .into_iter()
        .filter(|found| {
            let kept = wishes.missing == MissingFiles::Adopt || found.file.is_some();
            if !kept {
                let reason = format!("{} is not in the migrations directory", found.name);
                intake.rejected.push(Rejected::of(found.document, Why::NoFile, reason));
            }
            kept
        })
        .collect();
    fresh.sort_by(|a, b| {
        a.past.order.cmp(&b.past.order).then_with(|| a.name.cmp_code_units(&b.name))
    });
    let ours = |found: &Found<'_>| known[&found.name].origin.as_deref() == Some(tool.name());
    let is_repeat = there.iter().any(ours);
    if !fresh.is_empty()
        && !entries.is_empty()
        && !is_repeat
        && wishes.target == Target::MustBeFresh
    {
        return Err(TargetInUse { entries: entries.len() });
    }
    let base = entries.iter().filter_map(|entry| entry.batch).max().unwrap_or(0);
    for (batch, found) in (base.saturating_add(1)..).zip(&fresh) {
        let row = found.row(batch, wishes.trust);
        if found.is_changed() && row.checksum_source == ChecksumSource::Recomputed {
            intake.changed.push(row.file.to_string());
        }
        intake.rows.push(row);
    }
    Ok(intake)
}

fn named(entry: &Entry) -> Option<MigrationName> {
    MigrationName::new(&entry.name).ok()
}

/// A migration that the source says is applied.
#[derive(Debug)]
struct Found<'a> {
    name: MigrationName,
    past: Past,
    file: Option<&'a MigrationFile>,
    document: &'a SourceDocument,
}

impl Found<'_> {
    fn row(&self, batch: i64, trust: Trust) -> Row {
        let recorded = self.past.hash.clone();
        let (checksum, checksum_source) = match (recorded, self.file) {
            (Some(hash), Some(_)) if trust == Trust::Source || !self.is_changed() => {
                (hash, ChecksumSource::Reused)
            }
            (_, Some(file)) => (file.checksum.as_str().to_owned(), ChecksumSource::Recomputed),
            (Some(hash), None) => (hash, ChecksumSource::Reused),
            (None, None) => (String::new(), ChecksumSource::Missing),
        };
        let (file, applied_at) = (self.name.clone(), self.past.applied_at);
        Row { file, batch, applied_at, checksum, checksum_source }
    }

    /// Is the file another one than the source says was applied?
    fn is_changed(&self) -> bool {
        match (&self.past.hash, self.file) {
            (Some(hash), Some(file)) => !file.checksum.matches(hash),
            _ => false,
        }
    }
}

impl Rejected {
    fn of(document: &SourceDocument, why: Why, reason: String) -> Self {
        Self { id: document.id(), why, reason, file: None }
    }
}

/// Reads all documents: one for each file, the latest.
fn read_all<'a>(
    inputs: Inputs<'a>,
    folder: &Folder<'a>,
    rejected: &mut Vec<Rejected>,
) -> Vec<Found<'a>> {
    let mut latest: HashMap<MigrationName, Found<'a>> = HashMap::new();
    let mut doubtful = Vec::new();
    for document in inputs.documents {
        match inputs.tool.read(document) {
            Reading::Applied(past) => match folder.resolve(&past.recorded, inputs.tool) {
                Ok((name, file)) => {
                    let found = Found { name, past, file, document };
                    keep_latest(&mut latest, found, rejected);
                }
                Err(invalid) => {
                    rejected.push(Rejected::of(document, Why::Malformed, invalid.to_string()));
                }
            },
            Reading::NotApplied(reason) => {
                rejected.push(Rejected::of(document, Why::NotApplied, reason));
            }
            Reading::Malformed { recorded, reason } => {
                let file = recorded.as_deref().and_then(|recorded| folder.file(recorded));
                let reason = recorded
                    .map_or_else(|| reason.clone(), |recorded| format!("{recorded} {reason}"));
                doubtful.push((Rejected::of(document, Why::Malformed, reason), file));
            }
        }
    }
    let applied = |name: &MigrationName| {
        inputs.entries.iter().any(|entry| entry.is_applied() && entry.is_about(name))
    };
    for (document, file) in doubtful {
        let file = file.filter(|file| !latest.contains_key(&file.name) && !applied(&file.name));
        rejected.push(Rejected { file: file.map(|file| file.name.to_string()), ..document });
    }
    latest.into_values().collect()
}

fn keep_latest<'a>(
    latest: &mut HashMap<MigrationName, Found<'a>>,
    found: Found<'a>,
    rejected: &mut Vec<Rejected>,
) {
    let when = |found: &Found<'_>| (found.past.applied_at, found.past.order);
    let older = match latest.remove(&found.name) {
        Some(other) if when(&other) > when(&found) => {
            latest.insert(found.name.clone(), other);
            Some(found)
        }
        other => {
            latest.insert(found.name.clone(), found);
            other
        }
    };
    if let Some(older) = older {
        let reason = format!("a later document is about {} too", older.name);
        rejected.push(Rejected::of(older.document, Why::Superseded, reason));
    }
}
