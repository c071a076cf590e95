//! Tests of the index through its public interface, in one program.

mod checkpoint;
mod coded_run;
mod common;
mod concurrent;
mod elsewhere;
mod flat;
mod model;
mod quantized;
mod recall;
mod spfresh;
