//! Permission to write the changelog, as a type.
//!
//! A [`StillHeld`] exists only while the lease it was drawn from is trusted; every changelog write
//! asks for one. It is a statement about a moment, not a reservation: the write itself carries its
//! precondition in its filter, so that a proof which has just gone stale loses a conflict instead of
//! overwriting a successor's work.

use std::marker::PhantomData;

/// Proof that the lease was still ours when it was drawn.
#[derive(Debug)]
pub struct StillHeld<'lease>(PhantomData<&'lease ()>);

impl StillHeld<'_> {
    /// Only the lock's own modules may vouch for a lease.
    pub(in crate::lock) fn vouched() -> Self {
        Self(PhantomData)
    }
}
