//! The changelog: which migrations were applied, by whom, and what came of them.
//!
//! [`entry`] is what is stored, [`store`] the port with its conditional writes; `docs/formats.md`
//! owns the documents.

pub mod entry;
pub mod memory;
pub mod mongo;
mod mongo_document;
pub mod store;
