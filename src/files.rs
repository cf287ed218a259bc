//! The migrations directory: which files are migrations, and what is in them.
//!
//! Not migrations: folders, dotfiles, `mmk.config.*`, `*.d.ts` and its kin, `*.test.*`, `*.spec.*`,
//! and whatever has none of the configured extensions (source maps among them).

use std::fs::DirEntry;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;

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
    /// It can't be read.
    #[error("{} can't be read: {reason}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// A file in it has the name of a migration and can't be read: a link that leads nowhere, too.
    #[error("{} can't be read: {reason}", path.display())]
    UnreadableFile {
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
    let mut items = Vec::new();
    for item in listing {
        let item = item.map_err(|error| unreadable(directory, error))?;
        if is_migration(&item.file_name().to_string_lossy(), extensions) {
            items.push(item);
        }
    }
    let mut files = read_files(&items)?;
    files.sort_by(|a, b| a.name.cmp_code_units(&b.name));
    Ok(files)
}

/// Reads them on a few threads, when they are many.
fn read_files(items: &[DirEntry]) -> Result<Vec<MigrationFile>, DirectoryFault> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let share = items.len().div_ceil(threads).max(MIN_SHARE);
    let read = |items: &[DirEntry]| {
        items.iter().filter_map(|item| read_file(item).transpose()).collect::<Result<Vec<_>, _>>()
    };
    if items.len() <= share {
        return read(items);
    }
    let shares: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let readers: Vec<_> =
            items.chunks(share).map(|share| scope.spawn(move || read(share))).collect();
        let ended = readers.into_iter().map(ScopedJoinHandle::join);
        ended.map(|files| files.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    Ok(shares?.concat())
}

/// `None` for what is no file: opening a pipe would wait for its writer.
fn read_file(item: &DirEntry) -> Result<Option<MigrationFile>, DirectoryFault> {
    let path = item.path();
    let unreadable = |reason: String| DirectoryFault::UnreadableFile { path: path.clone(), reason };
    let is_file = match item.file_type() {
        Ok(kind) if !kind.is_symlink() => Ok(kind.is_file()),
        Ok(_) | Err(_) => std::fs::metadata(&path).map(|metadata| metadata.is_file()),
    };
    if !is_file.map_err(|error| unreadable(error.to_string()))? {
        return Ok(None);
    }
    let shown = item.file_name();
    let name = shown.to_str().and_then(|name| MigrationName::new(name).ok());
    let name = name.ok_or_else(|| unreadable("its name is no valid text".to_owned()))?;
    let bytes = std::fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(MigrationFile { name, checksum: FileChecksum::of(bytes) }))
}

fn is_migration(name: &str, extensions: &[String]) -> bool {
    let Some(extension) = extensions.iter().find(|extension| name.ends_with(extension.as_str()))
    else {
        return false;
    };
    let stem = &name[..name.len() - extension.len()];
    let helper = [".d", ".test", ".spec"].iter().any(|mark| stem.ends_with(mark));
    let config = name.starts_with("mmk.config.");
    !name.starts_with('.') && !stem.is_empty() && !helper && !config
}

/// More would only wait for the same disk.
const MAX_THREADS: usize = 8;

/// What one thread reads in about the time that it takes to start another.
const MIN_SHARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_migrations_are_migrations() {
        let extensions = [".js", ".ts", ".mjs"].map(str::to_owned);
        for name in ["1-a.js", "1-a.ts", "1-a.mjs", "d.js", "1.test-data.js"] {
            assert!(is_migration(name, &extensions), "{name}");
        }
        for name in [
            "a.d.ts",
            ".hidden.js",
            "a.test.js",
            "a.spec.mjs",
            "a.js.map",
            "a.json",
            ".js",
            "mmk.config.js",
        ] {
            assert!(!is_migration(name, &extensions), "{name}");
        }
    }

    #[tokio::test]
    async fn files_that_several_threads_read_come_in_the_order_in_which_they_apply() {
        let folder = std::env::temp_dir().join(format!("mmk-files-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(folder.join("a-folder.js")).expect("a writable place");
        let names: Vec<String> = (0..3 * MIN_SHARE).map(|index| format!("{index:04}.js")).collect();
        for name in &names {
            std::fs::write(folder.join(name), name).expect("a writable place");
        }
        let files = read(folder.clone(), vec![".js".to_owned()]).await;
        std::fs::remove_dir_all(&folder).expect("our own folder");

        let files = files.expect("readable files");
        let read: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(read, names);
        for file in &files {
            let content = file.name.as_str().as_bytes().to_vec();
            assert_eq!(file.checksum.as_str(), FileChecksum::of(content).as_str());
        }
    }
}
