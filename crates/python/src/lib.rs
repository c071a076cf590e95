//! The engine inside a Python process: `longbow._engine`, which the Python package wraps as `longbow.open()`.
//!
//! The same engine as the server's, in memory or on a data folder, spoken to with the same requests (`longbow-query`)
//! and refusing them in the same words. Arrow data goes in and out over Arrow's C data interface, without a copy.
//!
//! # What it is not
//! - Not an interface for people: the Python package has that, and the reading of whatever a caller may insert.
//! - Not a server: nothing listens, and nobody else can use the data folder meanwhile.
//!
//! # Invariants
//! - Python's lock is let go of wherever the engine works, waits or ends; no lock is waited for with it.
//! - A fork of the process uses nothing that was opened before, and ends nothing of it.
//! - Every error is one of the Python client's exceptions, with the engine's stable code.
//! - What a caller hands in is checked before it reaches the log: nothing is written that could not be read again.
//! - It forbids itself `unsafe`; the C data interface is the arrow-pyarrow crate's.
//!
//! # Example
//! ```python
//! from longbow import _engine
//!
//! engine = _engine.Engine("./data", {"memory_limit": "4GiB"})
//! put = engine.put("words", batch.schema, False, True)
//! put.write(batch)
//! put.finish()
//! ids, kind, distances = engine.nearest("words", query, (10, None, False, None))
//! ```
#![forbid(unsafe_code)]

mod engine;
mod errors;
mod held;
mod nearest;
mod parsed;
mod put;
mod queries;
mod rows;
mod sql;

/// The system's allocator keeps the memory of batches that were sealed, which a database in memory holds a second time then.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The module `longbow._engine`.
#[pyo3::pymodule]
mod _engine {
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::put::Put;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::sql::SqlRows;
}
