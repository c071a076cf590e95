//! Requests, as clients write them: JSON to what the engine is asked, and the engine's refusals to words for people.
//!
//! It is one grammar for every way in: the server reads tickets and actions with it, and so does the engine in a Python
//! process, so that a request means the same and is refused in the same words, over the network or without one.
//!
//! # What it is not
//! - Not a transport: it takes bytes and knows neither Flight nor HTTP.
//! - Not where rows are read: filters become expressions that the engine evaluates over its batches, SQL is
//!   DataFusion's ([`sql`]).
//!
//! # Invariants
//! - An unknown key or value is refused, never ignored; the nearest key that is known is named.
//! - A [`Refusal`] is one line without control characters, with a stable code.
//!
//! # Example
//! ```
//! use longbow_query::Ticket;
//!
//! let ticket = br#"{"search": {"dataset": "words", "vector": [0.0, 1.0], "k": 3}}"#;
//! assert!(matches!(Ticket::parse(ticket)?, Ticket::Search { request, .. } if request.k == 3));
//! let refused = Ticket::parse(br#"{"search": {"dataset": "words", "vectr": [0.0]}}"#).unwrap_err();
//! assert_eq!(refused.code, "unknown_key");
//! # Ok::<(), longbow_query::Refusal>(())
//! ```
#![forbid(unsafe_code)]

mod actions;
mod allowance;
mod evaluation;
mod filter;
mod greedy;
pub mod json;
mod number;
pub mod once;
mod parser;
mod refusal;
pub mod rows;
mod search;
pub mod sql;
mod ticket;
mod vector;

pub use actions::{Answer, deleted, run};
pub use filter::Conditions;
pub use refusal::{Refusal, Result, invalid, unimplemented};
pub use search::SearchObject;
pub use ticket::Ticket;
