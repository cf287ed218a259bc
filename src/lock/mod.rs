//! The migration lock: one per database, leased, renewed, and given back.
//!
//! Read [`protocol`] first: it says what is true in every state. [`keeper`] carries it out, and
//! [`guard`] says what others may know of it; [`store`] is the port to where the lock document lives,
//! [`orphans`] the one to what dead runs left running; [`rules`] says what a store decides, [`wait`]
//! how long to wait for somebody else.

mod document;
pub mod guard;
pub mod keeper;
pub mod lease;
pub mod memory;
mod memory_document;
pub mod memory_orphans;
pub mod mongo;
mod mongo_acquire;
mod mongo_fence;
mod mongo_operators;
pub mod mongo_orphans;
mod mongo_pipeline;
mod mongo_reading;
mod mongo_register;
mod mongo_unblock;
mod mongo_watch;
pub mod orphans;
pub mod proof;
pub mod protocol;
pub mod rules;
pub mod store;
pub mod timing;
pub mod wait;
