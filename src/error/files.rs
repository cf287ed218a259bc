//! What is wrong with the migrations directory, with its public face.

use serde_json::json;

use super::{Certainty, Failure};
use crate::files::DirectoryFault;

impl From<DirectoryFault> for Failure {
    fn from(fault: DirectoryFault) -> Self {
        let (code, hint, context) = match &fault {
            DirectoryFault::NotFound { path } | DirectoryFault::Unreadable { path, .. } => (
                "MIGRATIONS_DIR_NOT_FOUND",
                "set migrationsDir, or pass --dir",
                json!({ "migrationsDir": path.display().to_string() }),
            ),
            DirectoryFault::UnreadableFile { path, .. } => (
                "MIGRATION_LOAD_FAILED",
                "make it readable, or remove it; a name that starts with a dot is no migration",
                json!({ "path": path.display().to_string() }),
            ),
        };
        Self {
            code: code.into(),
            message: fault.to_string(),
            hint: Some(hint.into()),
            certainty: Certainty::Known,
            context,
            cause_id: None,
            suppressed: Vec::new(),
        }
    }
}
