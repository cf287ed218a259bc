//! Imports, by the core as one object.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::Engine;
use crate::changelog::mongo::MongoChangelogStore;
use crate::clock::SystemClock;
use crate::config::import::ImportRequest;
use crate::error::Failed;
use crate::files::DirectoryFault;
use crate::host::Host;
use crate::import::adopt::{ImportJob, ImportReport, Importer};
use crate::lock::lease::Identity;
use crate::lock::mongo::MongoLockStore;

impl Engine {
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
