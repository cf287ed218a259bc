//! What is true of every migration: files, entries and the lock, put side by side. Pure.

use std::collections::HashMap;

use serde::Serialize;

use crate::changelog::entry::{Entry, EntryError, Status};
use crate::lock::lease::Holder;
use crate::migration::{Direction, MigrationFile, MigrationName};

/// One migration, as `status` shows it. Serialises to the shape of `lib/contract.d.ts`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusRow {
    /// File name.
    pub file: String,
    /// 1.x's two words.
    pub status: &'static str,
    /// The whole truth.
    pub state: RowState,
    /// What a running, interrupted or failed entry was doing.
    pub direction: Option<Direction>,
    /// The batch it was applied in.
    pub batch: Option<i64>,
    /// When it was applied, ms since 1970.
    pub applied_at: Option<i64>,
    /// How long its body took.
    pub duration_ms: Option<i64>,
    /// Is the file still the one that was applied? `None`: not applied, or nothing to compare.
    pub checksum_ok: Option<bool>,
    /// The file's own description, once it has been applied.
    pub description: Option<String>,
    /// It has an entry but no file.
    pub missing: bool,
    /// When its body last began, ms since 1970.
    pub started_at: Option<i64>,
    /// The run that changed it last.
    pub run_id: Option<String>,
    /// Operating system user of that run.
    pub executed_by: Option<String>,
    /// Host of that run.
    pub host: Option<String>,
    /// What its last body threw.
    pub error: Option<EntryError>,
}

/// Where a migration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RowState {
    /// Never run.
    Pending,
    /// Its body is running now.
    Running,
    /// Its body was running when its run disappeared.
    Interrupted,
    /// Its `up` threw.
    Failed,
    /// Done.
    Applied,
    /// Taken back.
    Reverted,
}

/// The rows, in the order in which files apply.
pub fn rows(files: &[MigrationFile], entries: &[Entry], holder: Option<&Holder>) -> Vec<StatusRow> {
    let mut entries_left: HashMap<MigrationName, &Entry> = HashMap::new();
    let mut unnamed = Vec::new();
    for entry in entries {
        match MigrationName::new(&entry.name) {
            Ok(name) => drop(entries_left.insert(name, entry)),
            Err(_) => unnamed.push(row(&entry.name, None, Some(entry), holder)),
        }
    }
    let mut named: Vec<(MigrationName, StatusRow)> = files
        .iter()
        .map(|file| {
            let entry = entries_left.remove(&file.name);
            (file.name.clone(), row(file.name.as_str(), Some(file), entry, holder))
        })
        .collect();
    // A reverted migration whose file is gone concerns nobody any more.
    let gone = entries_left.into_iter().filter(|(_, entry)| entry.status != Status::Reverted);
    named.extend(gone.map(|(name, entry)| {
        let row = row(name.as_str(), None, Some(entry), holder);
        (name, row)
    }));
    named.sort_by(|(a, _), (b, _)| a.cmp_code_units(b));
    named.into_iter().map(|(_, row)| row).chain(unnamed).collect()
}

fn row(
    name: &str,
    file: Option<&MigrationFile>,
    entry: Option<&Entry>,
    holder: Option<&Holder>,
) -> StatusRow {
    let state = entry.map_or(RowState::Pending, |entry| state(entry, holder));
    // A body that goes down starts from applied, so its facts still stand.
    let applied = entry.filter(|entry| entry.is_applied());
    let unfinished = entry
        .filter(|_| matches!(state, RowState::Running | RowState::Interrupted | RowState::Failed));
    StatusRow {
        file: name.to_owned(),
        status: if applied.is_some() { "applied" } else { "pending" },
        state,
        direction: unfinished.and_then(|entry| entry.direction),
        batch: applied.and_then(|entry| entry.batch),
        applied_at: applied.and_then(|entry| entry.applied_at),
        duration_ms: applied.and_then(|entry| entry.duration_ms),
        checksum_ok: applied.and_then(|entry| checksum_ok(file?, entry)),
        description: entry.and_then(|entry| entry.description.clone()),
        missing: file.is_none(),
        started_at: unfinished.and_then(|entry| entry.started_at),
        run_id: unfinished.and_then(|entry| entry.run_id.as_ref().map(ToString::to_string)),
        executed_by: unfinished.and_then(|entry| entry.executed_by.clone()),
        host: unfinished.and_then(|entry| entry.host.clone()),
        error: entry.and_then(|entry| entry.error.clone()),
    }
}

fn state(entry: &Entry, holder: Option<&Holder>) -> RowState {
    match &entry.status {
        Status::Applied => RowState::Applied,
        Status::Reverted => RowState::Reverted,
        Status::Failed => RowState::Failed,
        Status::Running if is_alive(entry, holder) => RowState::Running,
        Status::Running => RowState::Interrupted,
        // Not applied by anything that we can tell; `up` will claim it only as it was read.
        Status::Other(_) => RowState::Pending,
    }
}

/// A body is running only as long as the run that claimed it holds the lock.
fn is_alive(entry: &Entry, holder: Option<&Holder>) -> bool {
    let run = entry.run_id.as_ref().map(crate::lock::lease::RunId::as_str);
    holder.is_some_and(|holder| !holder.expired && run.is_some() && holder.run_id.as_deref() == run)
}

/// Adds which migration the holder is running, as its entry says.
pub fn naming_its_migration(holder: Holder, entries: &[Entry]) -> Holder {
    let running = entries
        .iter()
        .find(|entry| entry.status == Status::Running && is_alive(entry, Some(&holder)))
        .map(|entry| entry.name.clone());
    Holder { running, ..holder }
}

fn checksum_ok(file: &MigrationFile, entry: &Entry) -> Option<bool> {
    let stored = entry.checksum.as_deref().filter(|stored| !stored.is_empty())?;
    Some(file.checksum.matches(stored))
}
