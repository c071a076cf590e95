//! What threads share, from one place: locks, pointers that are exchanged, and atomics.
//!
//! Normally these are the types of `parking_lot`, `arc_swap` and `std` themselves. Built with `--cfg shuttle` they are twins that
//! let a scheduler take over before each access, so that tests explore how threads interleave: see `interleave`. What only
//! counts, and what no decision rests on, may be taken from `std`.

#[cfg(shuttle)]
mod explored;

#[cfg(shuttle)]
pub(crate) use explored::{ArcSwap, Loaded, Mutex, MutexGuard, RwLock, atomic};

#[cfg(shuttle)]
#[cfg(test)]
pub(crate) use explored::point;

#[cfg(not(shuttle))]
pub(crate) use {
    arc_swap::ArcSwap,
    parking_lot::{Mutex, MutexGuard, RwLock},
    std::sync::atomic,
};

/// What is behind a pointer, until it is dropped.
#[cfg(not(shuttle))]
pub(crate) type Loaded<T> = arc_swap::Guard<std::sync::Arc<T>>;
