//! A lock that tells processes apart.

use std::fmt::Debug;

/// A held lock; dropping it, or the end of the process by any means, lets it go.
pub trait Lock: Send + Sync + Debug {}

/// What a lock file says about its holder.
pub(crate) fn describe(note: &str) -> String {
    format!("pid {} {note}", std::process::id())
}
