//! Tests of the index through its public interface, in one program.

mod common;
mod flat;
mod recall;
