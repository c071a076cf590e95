//! SQL over the datasets of an engine, planned and run by DataFusion.
//!
//! A [`Session`] plans each statement over a moment of its own: the first mention of a dataset takes a view of it, and
//! every further one reads the same view. Rows are read where they lie, batch by batch; what an operator has to hold
//! (hash tables, sorts) is counted, and refused beyond the limit. Statements run on threads of the session's own, so that
//! a long one holds up nobody's search.
//!
//! ```text
//! text ── check (length, depth) ── parse ── parameters put in ── plan ── optimise ── run ── batches
//!                                                    │              │
//!                                   tables: moment.rs, table.rs     └ order.rs: ORDER BY distance … LIMIT k asks the index
//! ```
//!
//! Vectors are compared by the functions of `distance.rs`, with the kernels that searches use; `vector_search` is a
//! search as a table, and after another table one for each row of it (`lateral.rs`). `INSERT` and `DELETE` go the way of every other write (`write.rs`),
//! and take no number for an integer that it is not (`assigned.rs`).

mod answer;
mod assigned;
mod check;
mod distance;
mod lateral;
mod lateral_exec;
mod limits;
mod memory;
mod moment;
mod nearest;
mod order;
mod parameters;
mod pushdown;
mod refuse;
mod rewrite;
mod running;
mod scan;
mod search_function;
mod session;
mod state;
mod system;
mod table;
mod vectors;
mod write;

pub use answer::{Answer, Described};
pub use limits::{Limits, Setting};
pub use moment::{CATALOG, DATASETS, SYSTEM};
pub use session::Session;
