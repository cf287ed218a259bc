//! Adopting the history of another tool: what it has applied becomes entries of ours.
//!
//! [`source`] is a foreign document as values, [`tool`] reads its shape, [`intake`] decides what a
//! whole collection comes to, [`adopt`] writes that under the lock; [`neighbour`] finds a history that
//! was forgotten. The source is only ever read.
//!
//! # Promises
//! - An entry that is there already is never touched, so an import can be repeated and, if it was cut
//!   off, taken up again.
//! - A document that can't be understood becomes no entry: it is listed with the reason.
//!
//! # What it does not promise
//! That the other tool stands still meanwhile: it knows nothing of our lock.

pub mod adopt;
pub mod folder;
pub mod intake;
pub(crate) mod mongo;
pub mod neighbour;
pub mod source;
pub mod tool;
