//! An index with the queries that are put to it.

use std::sync::Arc;
use std::time::Instant;

use longbow_kernels::prefetch::CacheLevel;
use longbow_types::cpu_time;

use super::error::Error;
use super::flags::Settings;
use super::index::{self, Index};
use super::pass::{self, How};
use super::report::{Figures, Point, Report};
use super::truth::Truth;
use super::vectors::Vectors;
use crate::machine::Machine;
use crate::rounded::rounded;

/// All that passes need, made once.
pub struct Bench {
    index: Box<dyn Index>,
    base: Arc<Vectors>,
    queries: Vec<Vec<f32>>,
    truth: Truth,
    k: usize,
    threads: usize,
}

impl Bench {
    /// Reads the files, builds the index and finds the exact answers. The report has no points yet.
    pub fn prepare(settings: &Settings) -> Result<(Bench, Report), Error> {
        let machine = Machine::probe();
        let (base, queries) = read(settings)?;
        let base = Arc::new(base);
        let space = base.space(settings.metric);
        let (cpu, wall) = (cpu_time::of_process(), Instant::now());
        let index = index::build(
            settings.index,
            space,
            settings.params,
            &base,
            settings.threads,
        )?;
        let build_s = wall.elapsed().as_secs_f64();
        let build_cpu_s = cpu_time::of_process().saturating_sub(cpu).as_secs_f64();
        let began = Instant::now();
        let truth = match &settings.truth {
            Some(path) => Truth::read(path, space, &base, &queries, settings.k)?,
            None => Truth::by_scan(space, &base, &queries, settings.k, machine.cores)?,
        };
        let truth_s = settings.truth.is_none().then(|| began.elapsed());
        let bench = Bench {
            index,
            base,
            queries,
            truth,
            k: settings.k,
            threads: settings.threads,
        };
        // The first passes are slower than those to come, and tell nothing else.
        bench.figures(settings.k, false)?;
        let batches = bench.figures(settings.k, true)?.is_some();
        let report = Report {
            longbow: env!("CARGO_PKG_VERSION"),
            machine,
            index: settings.index.name(),
            quantization: settings.index.quantization(),
            metric: space.metric.to_string(),
            scalar: space.scalar.to_string(),
            threads: settings.threads,
            k: settings.k,
            rows: bench.base.rows(),
            dim: space.dim,
            queries: bench.queries.len(),
            build_s: rounded(build_s, 3),
            build_cpu_s: rounded(build_cpu_s, 3),
            bytes_per_vector: rounded(
                bench.index.memory_bytes() as f64 / bench.base.rows() as f64,
                1,
            ),
            vector_bytes: space.row_bytes(),
            truth_s: truth_s.map(|took| rounded(took.as_secs_f64(), 3)),
            prefetch_level: match CacheLevel::aimed_at() {
                CacheLevel::First => 1,
                CacheLevel::Second => 2,
            },
            batches,
            points: Vec::new(),
        };
        Ok((bench, report))
    }

    /// The figures of one pass; `None` if batches are asked for and the index takes none.
    pub fn figures(&self, effort: usize, batched: bool) -> Result<Option<Figures>, Error> {
        let how = How {
            k: self.k,
            effort,
            threads: self.threads,
            batched,
        };
        let pass = pass::run(self.index.as_ref(), &self.queries, how)?;
        Ok(pass.map(|pass| Figures::of(&pass, self.truth.recall(&self.base, &pass.found))))
    }

    /// Every breadth in turn, and that `repeat` times, so that a machine that slows down meanwhile slows all of them.
    pub fn sweep(&self, efforts: &[usize], repeat: usize) -> Result<Vec<Point>, Error> {
        let mut single = vec![Vec::new(); efforts.len()];
        let mut batched = single.clone();
        for _ in 0..repeat {
            for (place, effort) in efforts.iter().enumerate() {
                single[place].extend(self.figures(*effort, false)?);
                batched[place].extend(self.figures(*effort, true)?);
            }
        }
        let passes = efforts.iter().zip(single.iter().zip(&batched));
        let points = passes.map(|(effort, (single, batched))| Point::of(*effort, single, batched));
        Ok(points.flatten().collect())
    }
}

/// The vectors and the queries, which must go together.
fn read(settings: &Settings) -> Result<(Vectors, Vec<Vec<f32>>), Error> {
    let mut base = Vectors::read(&settings.base, settings.column.as_deref())?;
    if let Some(rows) = settings.limit {
        base = base.limited(rows);
    }
    let queries = Vectors::read(&settings.queries, settings.column.as_deref())?;
    if queries.dim != base.dim {
        return Err(Error::Mismatch(format!(
            "the queries have {} elements and the vectors {}",
            queries.dim, base.dim
        )));
    }
    if settings.k > base.rows() {
        return Err(Error::Mismatch(format!(
            "--k is {} and there are {} vectors",
            settings.k,
            base.rows()
        )));
    }
    let most = base.space(settings.metric).largest_element();
    for (name, vectors) in [("vectors", &base), ("queries", &queries)] {
        if !vectors.are_within(most) {
            let metric = settings.metric;
            return Err(Error::Mismatch(format!(
                "the {name} hold elements beyond {most:e}, with which {metric} distances overflow: scale all down"
            )));
        }
    }
    let queries = (0..queries.rows()).map(|n| queries.floats(n)).collect();
    Ok((base, queries))
}
