//! The migrations directory: which files are migrations, and what is in them.
//!
//! Not migrations: folders, dotfiles, `*.d.ts` and its kin, `*.test.*`, `*.spec.*`, and whatever has
//! none of the configured extensions (source maps among them).

use std::path::{Path, PathBuf};

use crate::checksum::FileChecksum;
use crate::migration::{MigrationFile, MigrationName};

/// Why the directory could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryFault {
    /// It does not exist, or is no directory.
    #[error("the migrations directory {} does not exist", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It, or a file in it, can't be read.
    #[error("{} can't be read: {reason}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// Reads all migration files, in the order in which they apply.
///
/// # Errors
/// [`DirectoryFault`].
pub async fn read(
    directory: PathBuf,
    extensions: Vec<String>,
) -> Result<Vec<MigrationFile>, DirectoryFault> {
    let path = directory.clone();
    tokio::task::spawn_blocking(move || read_now(&directory, &extensions))
        .await
        .unwrap_or_else(|error| Err(DirectoryFault::Unreadable { path, reason: error.to_string() }))
}

fn read_now(directory: &Path, extensions: &[String]) -> Result<Vec<MigrationFile>, DirectoryFault> {
    let unreadable = |path: &Path, error: std::io::Error| DirectoryFault::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let listing = std::fs::read_dir(directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            DirectoryFault::NotFound { path: directory.to_owned() }
        }
        _ => unreadable(directory, error),
    })?;
    let mut files = Vec::new();
    for item in listing {
        let item = item.map_err(|error| unreadable(directory, error))?;
        let Some(name) = item.file_name().to_str().and_then(|name| MigrationName::new(name).ok())
        else {
            continue;
        };
        let path = item.path();
        if is_migration(name.as_str(), extensions) && path.is_file() {
            let bytes = std::fs::read(&path).map_err(|error| unreadable(&path, error))?;
            files.push(MigrationFile { name, checksum: FileChecksum::of(bytes) });
        }
    }
    files.sort_by(|a, b| a.name.cmp_code_units(&b.name));
    Ok(files)
}

fn is_migration(name: &str, extensions: &[String]) -> bool {
    let Some(extension) = extensions.iter().find(|extension| name.ends_with(extension.as_str()))
    else {
        return false;
    };
    let stem = &name[..name.len() - extension.len()];
    let helper = [".d", ".test", ".spec"].iter().any(|mark| stem.ends_with(mark));
    !name.starts_with('.') && !stem.is_empty() && !helper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_migrations_are_migrations() {
        let extensions = [".js", ".ts", ".mjs"].map(str::to_owned);
        for name in ["1-a.js", "1-a.ts", "1-a.mjs", "d.js", "1.test-data.js"] {
            assert!(is_migration(name, &extensions), "{name}");
        }
        for name in ["a.d.ts", ".hidden.js", "a.test.js", "a.spec.mjs", "a.js.map", "a.json", ".js"]
        {
            assert!(!is_migration(name, &extensions), "{name}");
        }
    }
}
