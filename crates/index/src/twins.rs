//! Chains of nodes that a graph cannot tell apart: all but the first are found through it alone.

use crate::sync::atomic::{AtomicU32, Ordering};

/// Puts a node, which nobody else knows yet, next to another in its chain: `first` is the link of the node that is there,
/// `link` that of the new one, which is `twin`.
pub(crate) fn chain(first: &AtomicU32, link: &AtomicU32, twin: u32) {
    let mut next = first.load(Ordering::Acquire);
    loop {
        link.store(next, Ordering::Relaxed);
        match first.compare_exchange_weak(next, twin, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(other) => next = other,
        }
    }
}
