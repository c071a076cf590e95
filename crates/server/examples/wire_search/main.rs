//! What the wire costs a search: the same queries, to the same index, in this process and through a server on the
//! loopback address, in turns.
//!
//! ```text
//! cargo build --release -p longbow
//! cargo run --release -p longbow-server --example wire_search -- [--rows 100000] [--dim 128] [--k 10] [--ef 50]
//!     [--queries 10000] [--rounds 7] [--folder DIR] [--binary target/release/longbow]
//! ```
//!
//! An engine is filled with seeded clusters, indexed, written as a checkpoint and closed. Then it is opened here, and
//! the real program serves a copy of its folder: both walk the same graph. A round asks 1,000 queries one by one here,
//! the same by `DoGet` on one kept connection, all queries at once here, and all by one `DoExchange`. Times of single
//! queries include making the ticket and reading the answer as Arrow. Answers are compared by their bits. Prints JSON:
//! times in microseconds, rates in queries a second, of the median round. With `--folder`, what was loaded stays there
//! for the next time.

mod data;
mod remote;
mod rounds;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use longbow_engine::{Engine, Options};
use serde_json::json;

use rounds::Rounds;
use server::Server;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is to be measured.
struct Asked {
    rows: u64,
    dim: usize,
    k: usize,
    ef: usize,
    queries: usize,
    rounds: usize,
    folder: Option<PathBuf>,
    binary: PathBuf,
}

impl Asked {
    fn read() -> Outcome<Asked> {
        let mut asked = Asked {
            rows: 100_000,
            dim: 128,
            k: 10,
            ef: 50,
            queries: 10_000,
            rounds: 7,
            folder: None,
            // Beside the folder of the examples.
            binary: std::env::current_exe()?.with_file_name("../longbow"),
        };
        let mut words = std::env::args().skip(1);
        while let Some(flag) = words.next() {
            let value = words.next().ok_or(format!("{flag} has no value"))?;
            match flag.as_str() {
                "--rows" => asked.rows = value.parse()?,
                "--dim" => asked.dim = value.parse()?,
                "--k" => asked.k = value.parse()?,
                "--ef" => asked.ef = value.parse()?,
                "--queries" => asked.queries = value.parse()?,
                "--rounds" => asked.rounds = value.parse()?,
                "--folder" => asked.folder = Some(value.into()),
                "--binary" => asked.binary = value.into(),
                _ => return Err(format!("{flag} is not known").into()),
            }
        }
        Ok(asked)
    }
}

/// Fills an empty folder, until all is in the index and in a checkpoint.
fn load(folder: &std::path::Path, asked: &Asked) -> Outcome<()> {
    let engine = Engine::open_folder(Options::new(folder))?;
    let mut session = engine.put(data::DATASET, &data::batch(0, 1, asked.dim)?.schema())?;
    for first in (0..asked.rows).step_by(1_000) {
        let rows = (asked.rows - first).min(1_000);
        session
            .record_batch(&data::batch(first, rows, asked.dim)?)?
            .wait()?;
    }
    if !engine
        .dataset(data::DATASET)?
        .wait_for_index(Duration::from_secs(3_600))
    {
        return Err("the index was not ready within an hour".into());
    }
    engine.checkpoint()?;
    Ok(engine.close()?)
}

fn main() -> Outcome<()> {
    let asked = Asked::read()?;
    let temporary = tempfile::tempdir()?;
    let root = asked
        .folder
        .clone()
        .unwrap_or(temporary.path().to_path_buf());
    let (ours, theirs) = (root.join("engine"), temporary.path().join("server"));
    if !ours.exists() {
        load(&ours, &asked)?;
    }
    server::copy(&ours, &theirs)?;
    let engine = Engine::open_folder(Options::new(&ours))?;
    let dataset = engine.dataset(data::DATASET)?;
    let rows = dataset.view().live;
    let indexed = dataset.wait_for_index(Duration::from_secs(600));
    if rows != asked.rows || !indexed {
        return Err(format!("{ours:?} has {rows} rows, all in the index: {indexed}").into());
    }
    let quantization = dataset.indexes()[0].graph().quantization().name();
    let server = Server::start(&asked.binary, &theirs)?;
    let mut rounds = Rounds::new(&engine, &server.data, &asked)?;
    rounds.warm_up()?;
    for _ in 0..asked.rounds {
        rounds.round()?;
    }
    let figures = rounds.figures();
    let told = json!({
        "rows": rows, "dim": asked.dim, "k": asked.k, "ef": asked.ef, "queries": asked.queries,
        "rounds": asked.rounds, "quantization": quantization,
        "cores": std::thread::available_parallelism()?.get(),
        "single_us": figures.single, "batched_qps": figures.batched,
    });
    println!("{}", serde_json::to_string_pretty(&told)?);
    drop(server);
    Ok(engine.close()?)
}
