//! Single runs that something happens to, on the memory stores under paused time.

#[path = "../common/jobs.rs"]
mod jobs;
mod lost_lock;
mod refused;
mod unarmed;
mod world;
