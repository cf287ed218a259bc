//! An import: reads the source, decides, and writes the entries under the lock.
//!
//! # Promises
//! - Nothing is written without a lease that is trusted at that moment, unless no lock was wanted.
//! - With nothing to write there is no lock either, so an import may stand in every deployment.
//!
//! # What it does not promise
//! That all entries appear at once: an import that was cut off is taken up by the next one, and until
//! then `up` refuses to run what the source still says is applied.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;

use super::intake::{self, Inputs, Intake, Rejected, Row, Target, TargetInUse, Wishes};
use super::neighbour::{Doubtful, neighbour};
use super::source::SourceDocument;
use super::tool::Tool;
use crate::changelog::store::{Adoption, ChangelogStore, Lookout, Written};
use crate::clock::Clock;
use crate::event::Event;
use crate::fault::StoreFault;
use crate::host::Wanted;
use crate::lock::guard::LeaseGuard;
use crate::lock::keeper::{Lease, LeaseEnd, NotAcquired, NotArmed};
use crate::lock::lease::{Identity, OwnerToken};
use crate::lock::store::{Arming, Attempt, LockStore, UnsettledRun};
use crate::lock::timing::Timing;
use crate::migration::MigrationFile;
use crate::runner::{Cancel, RunError, event_of};

/// One import, as it was asked for.
#[derive(Debug, Clone)]
pub struct ImportJob {
    /// The collection to read.
    pub from: String,
    /// Who wrote it; `None`: found out by the shape of its documents.
    pub tool: Option<Tool>,
    /// How to take it in.
    pub wishes: Wishes,
    /// What to do.
    pub mode: Mode,
    /// The files on disk.
    pub files: Vec<MigrationFile>,
    /// Who we are; its `changelog` is the collection to write.
    pub identity: Identity,
    /// How long the lease lasts.
    pub timing: Timing,
}

/// How far an import goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It only tells what it would write.
    Preview,
    /// It writes under the lock.
    Locked,
    /// It writes without a lock, at the user's own request.
    Unlocked,
}

/// What an import came to. Serialises to 1.x's shape, and more.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// The collection that was read.
    pub source: String,
    /// The collection that was written.
    pub target: String,
    /// Who wrote the source; `None` when it is empty.
    pub tool: Option<&'static str>,
    /// How many entries were written.
    pub imported: usize,
    /// How many documents were left out.
    pub skipped: usize,
    /// How many migrations had an entry already, which was left alone.
    pub already_there: usize,
    /// Was it only a preview?
    pub dry_run: bool,
    /// The entries that were written, or would be.
    pub rows: Vec<Row>,
    /// The documents that were left out.
    pub rejected: Vec<Rejected>,
    /// Files that differ from what the source says was applied, accepted as they are.
    pub changed: Vec<String>,
}

/// Why an import stops. What it has written by then stays, and is left alone by the next one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportError {
    /// Nobody can tell which tool wrote the source. Nothing was written.
    #[error("{}", undecided(from, tools))]
    Undecided {
        /// The collection.
        from: String,
        /// The tools that it may be from; none or more than one.
        tools: Vec<Tool>,
    },
    /// The target has a history that did not come from this source. Nothing was written.
    #[error(
        "Target collection \"{}\" already has {entries} record(s), and none of them came from \"{}\"",
        target.escape_debug(),
        from.escape_debug()
    )]
    TargetInUse {
        /// The collection to read.
        from: String,
        /// The collection to write.
        target: String,
        /// How many entries it has.
        entries: usize,
    },
    /// What stops any run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Hears what happens.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// What an import works with.
pub struct Importer<G, C> {
    /// Both changelogs: ours and, in the same database, the other tool's.
    pub changelog: Arc<G>,
    /// The local clock.
    pub clock: C,
    /// What to do.
    pub job: ImportJob,
    /// Who is told.
    pub events: EventSink,
    /// How it hears that it is not wanted any more.
    pub cancel: Cancel,
}

impl<G: ChangelogStore, C: Clock> Importer<G, C> {
    /// Imports. `open_lock` is called only when there is something to write and a lock is wanted.
    ///
    /// # Errors
    /// [`ImportError`].
    ///
    /// # Cancellation
    /// Dropping the future releases the lock in the background.
    pub async fn run<L, F>(
        self,
        open_lock: impl FnOnce() -> F + Send,
    ) -> Result<ImportReport, ImportError>
    where
        L: LockStore,
        F: Future<Output = Result<Arc<L>, StoreFault>> + Send,
    {
        let sight = self.look().await?;
        if self.job.mode == Mode::Preview || sight.intake.rows.is_empty() {
            return Ok(self.report(sight));
        }
        if self.job.mode == Mode::Unlocked {
            let message = "Running without a lock (--no-lock) — concurrent runs are unsafe";
            self.warn("NO_LOCK", message.to_owned());
            return self.write(&LeaseGuard::unlocked()).await;
        }
        let lock = open_lock().await;
        let lock = lock.map_err(|fault| RunError::Database { doing: "opening the lock", fault })?;
        let lease = self.acquire(lock).await?;
        let outcome = self.with_lease(&lease).await;
        self.leave(lease).await;
        outcome
    }

    async fn acquire<L: LockStore>(&self, lock: Arc<L>) -> Result<Lease, RunError> {
        let owner = OwnerToken::random();
        let ImportJob { identity, timing, .. } = &self.job;
        let attempt = Attempt {
            owner: owner.clone(),
            identity: identity.clone(),
            timing: *timing,
            unmoved: None,
        };
        let (events, run_id) = (Arc::clone(&self.events), identity.run_id.clone());
        let notices = Arc::new(move |notice| events(event_of(notice, &owner, &run_id)));
        let acquired = Lease::acquire(lock, self.clock.clone(), attempt, notices).await;
        acquired.map_err(|not| match not {
            NotAcquired::Held(holder) => {
                RunError::LockHeld { holder: Box::new(holder), waited_ms: 0 }
            }
            NotAcquired::Failed(fault) => RunError::Database { doing: "taking the lock", fault },
        })
    }

    async fn with_lease(&self, lease: &Lease) -> Result<ImportReport, ImportError> {
        let ImportJob { identity, timing, .. } = &self.job;
        if lease.election_moved() {
            // A live holder may have been judged by a clock it never met: let it find out first.
            self.clock.sleep_until(self.clock.now() + timing.grace()).await;
        }
        let run = UnsettledRun {
            run_id: identity.run_id.clone(),
            namespace: identity.namespace.clone(),
            changelog: identity.changelog.clone(),
            host: Some(identity.host.clone()),
            pid: Some(i64::from(identity.pid)),
        };
        // What past runs left running can't touch entries; the next run of bodies clears it away.
        let armed = lease.arm(Arming { run, settled: Vec::new() }).await;
        armed.map_err(|not| match not {
            NotArmed::Lost(cause) => RunError::Lost { cause, during: None, settled: true },
            NotArmed::Refused(fault) => RunError::Database { doing: "raising the fence", fault },
        })?;
        self.write(lease.guard()).await
    }

    /// Decides again, from what is there now, and writes.
    async fn write(&self, guard: &LeaseGuard) -> Result<ImportReport, ImportError> {
        let mut sight = self.look().await?;
        let (Some(tool), planned) = (sight.tool, std::mem::take(&mut sight.intake.rows)) else {
            return Ok(self.report(sight));
        };
        for row in planned {
            if *self.cancel.borrow() >= Wanted::Cancelled {
                return Err(RunError::Cancelled { during: None, settled: true }.into());
            }
            match self.adopt(guard, tool, &row).await? {
                Written::Done(_) => sight.intake.rows.push(row),
                Written::Conflict(_) => sight.intake.already_there += 1,
                Written::Unknown(fault) => {
                    return Err(RunError::unknown(row.file.as_str(), fault, false).into());
                }
                Written::Refused(fault) => return Err(self.refusal(&row, fault).await.into()),
            }
        }
        Ok(self.report(sight))
    }

    /// Why the server refused to write the entry of a row.
    async fn refusal(&self, row: &Row, fault: StoreFault) -> RunError {
        let identity = &self.job.identity;
        match self.changelog.name_index(&identity.namespace, &[&row.file]).await {
            Ok(Some(found)) => RunError::name_taken(found, &identity.changelog),
            Ok(None) | Err(_) => RunError::Database { doing: "writing an entry", fault },
        }
    }

    async fn adopt(&self, guard: &LeaseGuard, tool: Tool, row: &Row) -> Result<Written, RunError> {
        let Some(proof) = guard.proof() else {
            return Err(RunError::Lost { cause: guard.loss(), during: None, settled: true });
        };
        let adoption = Adoption {
            name: row.file.clone(),
            batch: row.batch,
            applied_at: row.applied_at,
            checksum: row.checksum.clone(),
            origin: tool.name(),
            identity: self.job.identity.clone(),
        };
        Ok(self.changelog.adopt(&proof, &adoption).await)
    }

    /// Reads both sides and decides.
    async fn look(&self) -> Result<Sight, ImportError> {
        let ImportJob { from, identity, files, .. } = &self.job;
        let reading = |fault| RunError::Database { doing: "reading the changelogs", fault };
        let sources = self.changelog.foreign(Lookout::In(from)).await.map_err(reading)?;
        let documents = sources.into_iter().flat_map(|source| source.documents).collect::<Vec<_>>();
        if documents.is_empty() {
            self.look_elsewhere().await;
            return Ok(Sight { tool: None, intake: Intake::default() });
        }
        let tool = self.tool(&documents)?;
        let entries = self.changelog.entries(&identity.namespace).await.map_err(reading)?;
        let wishes = self.job.wishes;
        let inputs = Inputs { tool, documents: &documents, files, entries: &entries, wishes };
        let decided = intake::decide(inputs);
        let intake = match (decided, self.job.mode) {
            (Ok(intake), _) => intake,
            (Err(TargetInUse { entries }), Mode::Preview) => {
                let refusal = self.in_use(entries);
                self.warn("IMPORT_TARGET_NOT_EMPTY", format!("{refusal}: it will take --force"));
                let wishes = Wishes { target: Target::MayBeInUse, ..wishes };
                intake::decide(Inputs { wishes, ..inputs }).unwrap_or_default()
            }
            (Err(TargetInUse { entries }), Mode::Locked | Mode::Unlocked) => {
                return Err(self.in_use(entries));
            }
        };
        Ok(Sight { tool: Some(tool), intake })
    }

    /// The source is empty or not there: is there another that knows files of ours?
    async fn look_elsewhere(&self) {
        let ImportJob { from, identity, files, .. } = &self.job;
        let looks = (
            self.changelog.foreign(Lookout::Everywhere).await,
            self.changelog.entries(&identity.namespace).await,
        );
        // An import of nothing has done what it was asked for; this is advice.
        let (Ok(sources), Ok(entries)) = looks else { return };
        let names = files.iter().map(|file| &file.name);
        let unknown = names.filter(|name| !entries.iter().any(|entry| entry.is_about(name)));
        let unknown: Vec<_> = unknown.cloned().collect();
        let Some(found) = neighbour(&sources, files, &unknown, Doubtful::Ignore) else { return };
        let (collection, from) = (found.collection.escape_debug(), from.escape_debug());
        let message = format!(
            "There is nothing in \"{from}\", but \"{collection}\" says that {} has applied files \
             which are pending here: `{}`",
            found.tool,
            found.command()
        );
        self.warn("IMPORT_ELSEWHERE", message);
    }

    fn tool(&self, documents: &[SourceDocument]) -> Result<Tool, ImportError> {
        if let Some(tool) = self.job.tool {
            return Ok(tool);
        }
        match Tool::detect(documents)[..] {
            [tool] => Ok(tool),
            ref tools => {
                let (from, tools) = (self.job.from.clone(), tools.to_vec());
                Err(ImportError::Undecided { from, tools })
            }
        }
    }

    fn in_use(&self, entries: usize) -> ImportError {
        let (from, target) = (self.job.from.clone(), self.job.identity.changelog.clone());
        ImportError::TargetInUse { from, target, entries }
    }

    /// Gives the lock back; a failure to do so is worth a warning, and hides nothing.
    async fn leave(&self, lease: Lease) {
        if let LeaseEnd::Unknown(fault) =
            lease.release(Some(self.job.identity.run_id.clone())).await
        {
            let message = format!(
                "the lock may not be released ({fault}); it frees itself when the lease expires"
            );
            self.warn("LOCK_RELEASE_FAILED", message);
        }
    }

    fn warn(&self, code: &'static str, message: String) {
        (self.events)(Event::Warning { code, message, context: serde_json::Value::Null });
    }

    fn report(&self, Sight { tool, intake }: Sight) -> ImportReport {
        let dry_run = self.job.mode == Mode::Preview;
        ImportReport {
            source: self.job.from.clone(),
            target: self.job.identity.changelog.clone(),
            tool: tool.map(Tool::name),
            imported: if dry_run { 0 } else { intake.rows.len() },
            skipped: intake.rejected.len(),
            already_there: intake.already_there,
            dry_run,
            rows: intake.rows,
            rejected: intake.rejected,
            changed: intake.changed,
        }
    }
}

/// What a look at both sides came to.
struct Sight {
    tool: Option<Tool>,
    intake: Intake,
}

fn undecided(from: &str, tools: &[Tool]) -> String {
    let from = from.escape_debug();
    let names =
        |tools: &[Tool]| tools.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if tools.is_empty() {
        let all = names(&Tool::ALL);
        return format!("\"{from}\" doesn't look like the changelog of any tool we know ({all})");
    }
    format!("\"{from}\" has documents of more than one tool: {}", names(tools))
}
