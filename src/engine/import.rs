//! Imports, and what could be imported, by the core as one object.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::Mutex;

use super::Engine;
use crate::changelog::mongo::MongoChangelogStore;
use crate::changelog::store::{ChangelogStore, Lookout};
use crate::clock::SystemClock;
use crate::config::import::ImportRequest;
use crate::error::Failed;
use crate::files::DirectoryFault;
use crate::host::Host;
use crate::import::adopt::{ImportJob, ImportReport, Importer};
use crate::import::neighbour::{Doubtful, Neighbour, neighbours};
use crate::lock::lease::Identity;
use crate::lock::mongo::MongoLockStore;

/// Another tool's changelog, as it crosses to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NeighbourReport {
    /// Its collection.
    pub collection: String,
    /// Who wrote it.
    pub tool: &'static str,
    /// How many documents are in it.
    pub documents: usize,
    /// The files without an entry of ours that it says are applied.
    pub pending: Vec<String>,
    /// The command that takes it over.
    pub command: String,
}

impl Engine {
    /// The changelogs of other tools in the database, as long as nothing of ours has run there: what
    /// makes a first `up` refuse. Writes nothing.
    ///
    /// # Errors
    /// The database or the directory can't be read.
    pub async fn neighbours(&self) -> Result<Vec<NeighbourReport>, Failed> {
        let files = self.files().await?;
        let connection = self.connection().await?;
        let changelog = self.changelog(&connection);
        let entries = changelog.entries(&self.settings.namespace).await?;
        if entries.iter().any(|entry| entry.origin.is_none()) {
            return Ok(Vec::new());
        }
        let names = files.iter().map(|file| &file.name);
        let pending = names.filter(|name| !entries.iter().any(|entry| entry.is_about(name)));
        let pending: Vec<_> = pending.cloned().collect();
        let sources = changelog.foreign(Lookout::Everywhere).await?;
        let doubtful = if entries.is_empty() { Doubtful::Count } else { Doubtful::Ignore };
        let mut found = neighbours(&sources, &files, &pending, doubtful);
        // What was imported stays where it was, and is no news.
        found.retain(|found| entries.is_empty() || !found.names.is_empty());
        let report = |found: Neighbour| NeighbourReport {
            command: found.command(),
            collection: found.collection,
            tool: found.tool.name(),
            documents: found.documents,
            pending: found.names.iter().map(ToString::to_string).collect(),
        };
        Ok(found.into_iter().map(report).collect())
    }

    /// Takes over another tool's history; the host only hears what happens.
    ///
    /// # Errors
    /// Whatever stopped it. What was written by then stays.
    pub async fn import<H: Host>(
        &self,
        request: ImportRequest,
        host: Arc<H>,
    ) -> Result<ImportReport, Failed> {
        self.as_long_as_wanted(self.import_wanted(request, host)).await
    }

    async fn import_wanted<H: Host>(
        &self,
        request: ImportRequest,
        host: Arc<H>,
    ) -> Result<ImportReport, Failed> {
        let settings = &self.settings;
        let timing = settings.timing()?;
        let (from, to) = request.collections(&settings.migrations_collection)?;
        let files = match self.files().await {
            // The history may be taken over before the files are: they count as missing then.
            Err(DirectoryFault::NotFound { .. }) => Vec::new(),
            files => files?,
        };
        let connection = self.connection().await?;
        let identity = Identity { changelog: to, ..settings.identity("import") };
        let lock_name = identity.run_id.lock_app_name();
        let importer = Importer {
            changelog: Arc::new(MongoChangelogStore::new(
                connection.collection(&identity.changelog),
                self.form.clone(),
            )),
            clock: SystemClock::start(),
            job: ImportJob {
                from,
                tool: request.tool()?,
                wishes: request.wishes(),
                mode: request.mode(),
                files,
                identity,
                timing,
            },
            events: Arc::new(move |event| host.emit(&event)),
            cancel: self.wanted.subscribe(),
        };
        let lock_connection = Mutex::new(None);
        let outcome = importer
            .run(|| async {
                let own = self.open(lock_name).await?;
                let store = MongoLockStore::new(
                    own.collection(&settings.lock_collection),
                    timing,
                    self.form.clone(),
                );
                *lock_connection.lock().await = Some(own);
                Ok(Arc::new(store))
            })
            .await;
        if let Some(own) = lock_connection.into_inner() {
            own.close().await;
        }
        Ok(outcome?)
    }
}
