//! The plan: what a run will do, decided before it does anything.
//!
//! Pure: from the files, the entries and the request. A [`Plan`] has one constructor for each
//! direction, and what makes a run impossible comes as a list of *all* its [`Problem`]s, so that
//! nobody fixes one only to meet the next.
//!
//! The same plan is made twice in a run: before the lock is asked for (to leave at once when nothing
//! is pending, and to load and check the files while somebody else may still be at work), and again
//! from a changelog read under the lock. Only the second one is carried out. What can only be judged
//! under the lock is judged there: an entry that is `running` may be alive before.

mod down;
mod mark;
mod oddities;
mod problem;
mod redo;
mod up;

use std::collections::{HashMap, HashSet};

pub(crate) use problem::drop_index;
pub use problem::{Problem, Warning};

use crate::changelog::entry::{Entry, Status};
use crate::changelog::store::Expected;
use crate::event::Unfinished;
use crate::host::{Exports, ModuleFacts, OnInterrupted};
use crate::migration::{Direction, MigrationFile, MigrationName};

/// What the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Apply.
    Up {
        /// Which of the files.
        scope: Scope,
        /// A batch for each migration.
        step: bool,
        /// Run a named file although it is applied.
        force: bool,
    },
    /// Revert.
    Down {
        /// What to revert.
        selection: Selection,
        /// Revert although the file was edited.
        force: bool,
    },
    /// Revert and apply again, by the file as it is now.
    Redo {
        /// Which one; `None` is the latest.
        file: Option<MigrationName>,
    },
    /// Change an entry by hand. No body runs.
    Mark {
        /// Which one.
        name: MigrationName,
        /// Into what.
        state: MarkAs,
        /// Why.
        reason: Option<String>,
    },
}

/// What a person says of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkAs {
    /// It is done, by the file as it is now.
    Applied,
    /// It is not done.
    Pending,
}

/// Which files an `up` is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those up to and including this one.
    Through(MigrationName),
    /// This one.
    File(MigrationName),
}

impl Scope {
    fn covers(&self, name: &MigrationName) -> bool {
        match self {
            Self::All => true,
            Self::Through(last) => name.cmp_code_units(last).is_le(),
            Self::File(only) => name == only,
        }
    }

    /// The file that it names.
    fn named(&self) -> Option<&MigrationName> {
        match self {
            Self::All => None,
            Self::Through(name) | Self::File(name) => Some(name),
        }
    }
}

/// Which applied migrations to revert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those of the last batch.
    LastBatch,
    /// Those of this batch.
    Batch(i64),
    /// This many, the latest first.
    Steps(u32),
    /// What was applied after this one, which stays.
    To(MigrationName),
    /// This one.
    File(MigrationName),
}

impl Request {
    /// The command's name, as the lock shows it.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Up { .. } => "up",
            Self::Down { .. } => "down",
            Self::Redo { .. } => "redo",
            Self::Mark { .. } => "mark",
        }
    }

    /// Does it run bodies?
    pub fn runs_bodies(&self) -> bool {
        !matches!(self, Self::Mark { .. })
    }
}

/// How strict to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// Drift is a problem, not a warning.
    pub strict: bool,
    /// Bodies run in a transaction unless the file says otherwise.
    pub use_transaction: bool,
    /// What to do about migrations that did not finish, unless the file says otherwise.
    pub on_interrupted: OnInterrupted,
    /// What to do about a pending file that sorts before an applied one.
    pub out_of_order: OutOfOrder,
    /// What to do about another tool's changelog beside one without anything of our own.
    pub foreign: Foreign,
}

/// What to do about files that another tool has applied, as its changelog says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Foreign {
    /// Refuse to apply them again.
    #[default]
    Refuse,
    /// Apply them.
    Ignore,
}

/// What to do about a pending file that sorts before an applied one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutOfOrder {
    /// Apply it.
    Allow,
    /// Apply it and say so.
    #[default]
    Warn,
    /// Refuse.
    Error,
}

/// Is the lock ours while this plan is made?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// Not yet: entries may be moving.
    BeforeLock,
    /// Yes: an entry that is `running` is an interrupted one.
    UnderLock,
}

/// Everything a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The files on disk, in the order in which they apply.
    pub files: &'a [MigrationFile],
    /// The entries of our namespace.
    pub entries: &'a [Entry],
    /// How strict to be.
    pub policy: Policy,
    /// Whether the lock is ours.
    pub vantage: Vantage,
}

/// What a run will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What runs.
    pub direction: Direction,
    /// In this order.
    pub steps: Vec<Step>,
    /// Named files that need nothing.
    pub skipped: Vec<MigrationName>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// One migration to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The migration.
    pub name: MigrationName,
    /// The file's checksum now; `None` when it is not on disk, which the check of its exports refuses.
    pub checksum: Option<String>,
    /// What its entry must still be when it is claimed.
    pub expected: Expected,
    /// The run that changed the entry last.
    pub last_run: Option<String>,
    /// The batch to record.
    pub batch: Option<i64>,
    /// It ran before and did not finish.
    pub rerun_of: Option<Unfinished>,
    /// It runs although it is applied.
    pub forced: bool,
    /// What the file exports; filled in by [`Plan::check_exports`].
    pub exports: Option<Exports>,
}

impl Plan {
    /// Decides what `request` comes to.
    ///
    /// # Errors
    /// Everything that stands in the way, in the order in which it was met; never an empty list.
    pub fn new(request: &Request, inputs: Inputs<'_>) -> Result<Self, Vec<Problem>> {
        match request {
            Request::Up { scope, step, force } => up::plan(scope, *step, *force, inputs),
            Request::Down { selection, force } => down::plan(selection, *force, inputs),
            Request::Redo { file } => redo::first_half(file.as_ref(), inputs),
            Request::Mark { name, state, .. } => mark::plan(name, *state, inputs),
        }
    }

    /// The second half of a redo: what its first half has reverted is applied again.
    ///
    /// # Errors
    /// As for [`Plan::new`], from a changelog that has changed since the first half was planned.
    pub fn again(name: &MigrationName, inputs: Inputs<'_>) -> Result<Self, Vec<Problem>> {
        redo::second_half(name, inputs)
    }

    /// Checks what the files export, as far as this plan needs it, and keeps the facts.
    ///
    /// # Errors
    /// All files that can't be used for this plan.
    pub fn check_exports(
        &mut self,
        facts: &HashMap<MigrationName, ModuleFacts>,
        policy: Policy,
        vantage: Vantage,
    ) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        for step in &mut self.steps {
            match facts.get(&step.name).map(|facts| &facts.exports) {
                None => problems.push(Problem::FileMissing { name: step.name.to_string() }),
                Some(Err(error)) => problems
                    .push(Problem::Unusable { name: step.name.to_string(), error: error.clone() }),
                Some(Ok(exports)) => {
                    step.exports = Some(exports.clone());
                    problems.extend(step.objection(self.direction, policy, vantage));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

impl Step {
    fn new(name: &MigrationName, file: Option<&MigrationFile>, entry: Option<&Entry>) -> Self {
        Self {
            name: name.clone(),
            checksum: file.map(|file| file.checksum.as_str().to_owned()),
            expected: Expected::of(entry),
            last_run: entry.and_then(|entry| entry.run_id.as_ref().map(ToString::to_string)),
            batch: None,
            rerun_of: entry.and_then(unfinished),
            forced: false,
            exports: None,
        }
    }

    /// What its exports forbid.
    fn objection(&self, direction: Direction, policy: Policy, vantage: Vantage) -> Option<Problem> {
        let exports = self.exports.as_ref()?;
        if direction == Direction::Down && !exports.down {
            return Some(Problem::Irreversible { name: self.name.to_string() });
        }
        let wish = exports.on_interrupted.unwrap_or(policy.on_interrupted);
        // A transactional body that did not finish left nothing behind.
        let must_stop = wish == OnInterrupted::Stop && !self.transactional(policy);
        match self.rerun_of {
            Some(Unfinished::Interrupted) if vantage == Vantage::BeforeLock => None,
            Some(unfinished) if must_stop => {
                Some(Problem::NeedsALook { name: self.name.to_string(), unfinished })
            }
            Some(_) | None => None,
        }
    }

    /// Does it run in a transaction?
    pub fn transactional(&self, policy: Policy) -> bool {
        let own = self.exports.as_ref().and_then(|exports| exports.use_transaction);
        own.unwrap_or(policy.use_transaction)
    }
}

fn unfinished(entry: &Entry) -> Option<Unfinished> {
    match entry.status {
        Status::Running => Some(Unfinished::Interrupted),
        Status::Failed => Some(Unfinished::Failed),
        Status::Applied | Status::Reverted | Status::Other(_) => None,
    }
}

/// Pairs every entry with its file. Of several entries about one file (1.x's unique index makes them
/// impossible, but it may have been dropped) the applied one counts.
fn entries_by_name(entries: &[Entry]) -> HashMap<MigrationName, &Entry> {
    let mut by_name: HashMap<MigrationName, &Entry> = HashMap::new();
    for entry in entries {
        if let Ok(name) = MigrationName::new(&entry.name) {
            let kept = by_name.entry(name).or_insert(entry);
            if !kept.is_applied() && entry.is_applied() {
                *kept = entry;
            }
        }
    }
    by_name
}

/// Two files of one stem are one migration twice: which of them was meant?
fn same_stem_twice(files: &[MigrationFile]) -> Vec<Problem> {
    let mut seen: HashMap<&str, &MigrationName> = HashMap::new();
    files
        .iter()
        .filter_map(|file| {
            let first = seen.insert(file.name.stem(), &file.name)?;
            Some(Problem::TwoExtensions { first: first.to_string(), second: file.name.to_string() })
        })
        .collect()
}

/// Applied entries whose file was edited, and those whose file is gone.
fn drift(inputs: Inputs<'_>) -> (Vec<String>, Vec<String>) {
    let files: HashMap<_, _> = inputs.files.iter().map(|file| (&file.name, file)).collect();
    let (mut edited, mut missing) = (Vec::new(), HashSet::new());
    for entry in inputs.entries.iter().filter(|entry| entry.is_applied()) {
        let file = MigrationName::new(&entry.name).ok().and_then(|name| files.get(&name).copied());
        match (file, entry.checksum.as_deref()) {
            (None, _) => drop(missing.insert(entry.name.clone())),
            // An import may have left no checksum at all: nothing to compare.
            (Some(_), None | Some("")) => {}
            (Some(file), Some(stored)) if file.checksum.matches(stored) => {}
            (Some(_), Some(_)) => edited.push(entry.name.clone()),
        }
    }
    edited.sort_unstable();
    let mut missing: Vec<_> = missing.into_iter().collect();
    missing.sort_unstable();
    (edited, missing)
}
