//! The changelog: which migrations were applied, by whom, and what came of them.
//!
//! [`entry`] is what is stored, [`store`] the port with its conditional writes; `docs/formats.md`
//! owns the documents.

pub mod entry;
pub mod memory;
mod memory_entries;
pub mod mongo;
mod mongo_advance;
mod mongo_document;
mod mongo_names;
pub mod store;
