//! The changelog: which migrations were applied, by whom, and what came of them.
//!
//! [`entry`] is what is stored, [`store`] the port with its conditional writes; `docs/formats.md`
//! owns the documents.

pub mod entry;
pub mod memory;
mod memory_entries;
pub mod mongo;
mod mongo_advance;
mod mongo_answer;
mod mongo_attempt;
mod mongo_change;
mod mongo_entry;
mod mongo_names;
mod mongo_operators;
mod mongo_pipeline;
mod mongo_plain;
pub mod store;
