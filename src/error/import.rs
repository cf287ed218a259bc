//! What stops an import, with its public face.

use serde_json::json;

use super::{Certainty, Failure};
use crate::import::adopt::ImportError;
use crate::import::tool::Tool;

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        let message = error.to_string();
        let (code, hint, context) = match error {
            ImportError::Run(stopped) => return Self::from(&stopped),
            ImportError::Undecided { from, tools } => (
                "INVALID_ARGUMENT",
                "--tool says which tool wrote it, --from names another collection",
                json!({ "source": from, "tools": tools.into_iter().map(Tool::name).collect::<Vec<_>>() }),
            ),
            ImportError::TargetInUse { from, target, entries } => (
                "IMPORT_TARGET_NOT_EMPTY",
                "--force imports beside them: entries that are there already stay as they are",
                json!({ "source": from, "target": target, "existing": entries }),
            ),
        };
        Self {
            code: code.into(),
            message,
            hint: Some(hint.into()),
            certainty: Certainty::Known,
            context,
            cause_id: None,
            suppressed: Vec::new(),
        }
    }
}
