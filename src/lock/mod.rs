//! The migration lock: one per database, leased, renewed, and given back.
//!
//! Read [`protocol`] first: it says what is true in every state. [`keeper`] carries it out, [`store`]
//! is the port to where the lock document lives, [`wait`] decides how long to wait for somebody else.

pub mod keeper;
pub mod lease;
pub mod memory;
pub mod mongo;
mod mongo_pipeline;
pub mod proof;
pub mod protocol;
pub mod store;
pub mod timing;
pub mod wait;
