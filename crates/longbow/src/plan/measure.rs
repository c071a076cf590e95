//! How long an index takes to build here: a small one, and n log n from there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use half::f16;
use longbow_engine::{IndexKind, Load, Options, Plan, Quantization};
use longbow_index::{Hnsw, QuantizedGraph, Space, VectorIndex};
use longbow_kernels::Scalar;

use crate::dice::number;

/// Rows of the small graph, unless time is up before.
const ROWS: u64 = 20_000;
const TIME: Duration = Duration::from_secs(8);
/// Rows around one centre, on average.
const CLUSTER: u64 = 100;
/// Rows from which a graph of codes takes its origin.
const SAMPLE: u64 = 500;

/// Seconds to index all rows, with as many threads as the node would have.
pub fn index_seconds(plan: &Plan, load: &Load, options: &Options) -> Result<f64, String> {
    let mut seconds = 0.0;
    for column in &plan.columns {
        let (graphs, space) = (&options.graphs, column.space);
        match column.kind {
            IndexKind::Flat => continue,
            IndexKind::Hnsw => {}
            IndexKind::SpFresh => {
                return Err("how long postings take is not measured; leave --measure out".into());
            }
        }
        let graph: Box<dyn VectorIndex> = match column.quantization {
            Quantization::None => Box::new(Hnsw::new(space, graphs.hnsw).map_err(said)?),
            codes => {
                let graph = QuantizedGraph::new(space, graphs.codes(codes)).map_err(said)?;
                let sample: Vec<_> = (0..SAMPLE).map(|row| vector(space, row)).collect();
                graph.prepare(sample.iter().map(Vec::as_slice));
                Box::new(graph)
            }
        };
        let (rows, took) = build(graph.as_ref(), load.rows, options.index_workers)?;
        let work = |rows: u64| rows as f64 * (rows.max(2) as f64).ln();
        seconds += took.as_secs_f64() * work(load.rows) / work(rows);
    }
    Ok(seconds)
}

fn said(error: longbow_index::Error) -> String {
    error.to_string()
}

/// Inserts rows from several threads; how many, and the time that it took.
fn build(graph: &dyn VectorIndex, most: u64, threads: usize) -> Result<(u64, Duration), String> {
    let (next, most) = (AtomicU64::new(0), most.min(ROWS));
    let (space, started) = (graph.space(), Instant::now());
    let insert = || -> longbow_index::Result<u64> {
        let mut done = 0;
        loop {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= most || (done > 0 && started.elapsed() > TIME) {
                return Ok(done);
            }
            graph.insert(row, &vector(space, row))?;
            done += 1;
        }
    };
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(insert)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        let done = ended.map(|done| {
            done.map_err(|_| "a thread ended too early".to_owned())?
                .map_err(said)
        });
        done.sum::<Result<u64, String>>()
    })?;
    Ok((done, started.elapsed()))
}

/// A vector near one of many centres, in the bytes of its type.
fn vector(space: Space, row: u64) -> Vec<u8> {
    let centre = row % (ROWS / CLUSTER);
    let element = |at: u64| 0.6 * number(centre << 20 | at) + 0.4 * number((row + 1) << 24 | at);
    let elements = (0..space.dim as u64).map(element);
    match space.scalar {
        Scalar::F32 => elements.flat_map(f32::to_le_bytes).collect(),
        Scalar::F16 => elements
            .flat_map(|x| f16::from_f32(x).to_le_bytes())
            .collect(),
        Scalar::I8 => elements
            .map(|x| ((x * 127.0) as i8).cast_unsigned())
            .collect(),
        Scalar::U8 => elements.map(|x| ((x + 1.0) * 127.0) as u8).collect(),
    }
}
