//! More rows than memory: they are drawn piece by piece, and so is the truth.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longbow_disk::{Disk, RealDisk};
use longbow_types::host;

use super::error::Error;
use super::flags::{Settings, Shape};
use super::mixture::Mixture;
use super::pass::{Pass, requests};
use super::report::{Asked, Head, LargeReport, LargeRow, Latencies};
use super::store::{Opening, Store};
use super::truth::Truth;
use crate::rounded::rounded;
use crate::scratch::Scratch;

/// Settings by which rows leave memory early.
const SETTINGS: [(&str, &str); 2] = [("storage-segment-size", "4MiB"), ("max-wal-size", "256MiB")];

/// Writes all rows, opens the folder again with nothing of it in the page cache that is not read at a start, and searches.
pub fn run(
    settings: &Settings,
    shape: Shape,
    sweep: &[usize],
    memory_limit: u64,
) -> Result<LargeReport, Error> {
    let asked = Asked {
        memory_limit_bytes: Some(memory_limit),
        ..Asked::mixture(settings, shape)
    };
    let head = Head::new("large", asked);
    let scratch = Scratch::create(&settings.dir)?;
    let large = Large {
        settings,
        shape,
        mixture: Mixture::new(shape.dim, shape.centres, settings.seed),
        folder: scratch.path.join("store"),
        opening: opening(settings, shape, memory_limit),
    };
    let store = Store::open(&large.folder, &large.opening)?;
    let insert = large.write(&store)?;
    let began = Instant::now();
    store.settle()?;
    let until_indexed = began.elapsed();
    store.checkpoint()?;
    let index = store.footprint()?.into();
    store.close()?;
    forget(&large.folder)?;
    let began = Instant::now();
    let store = Store::open(&large.folder, &large.opening)?;
    store.settle()?;
    let open = began.elapsed();
    let rows = large.search(&store, &settings.efforts(sweep))?;
    store.close()?;
    let seconds = |of: Duration| rounded(of.as_secs_f64(), 3);
    Ok(LargeReport {
        head,
        vector_bytes: (shape.base * shape.dim * size_of::<f32>()) as u64,
        insert_s: seconds(insert),
        until_indexed_s: seconds(until_indexed),
        open_s: seconds(open),
        index,
        rows,
    })
}

fn opening(settings: &Settings, shape: Shape, memory_limit: u64) -> Opening {
    let limit = ("memory-limit", memory_limit.to_string());
    let fixed = SETTINGS.map(|(flag, value)| (flag, value.to_owned()));
    let all = fixed.into_iter().chain([limit]);
    Opening {
        dim: shape.dim,
        kind: settings.index.kind(),
        durable: settings.durable,
        shards: settings.shards,
        settings: all.map(|(flag, value)| (flag.to_owned(), value)).collect(),
    }
}

struct Large<'a> {
    settings: &'a Settings,
    shape: Shape,
    mixture: Mixture,
    folder: PathBuf,
    opening: Opening,
}

impl Large<'_> {
    /// Centres move while all rows come.
    fn fill(&self, row: usize, out: &mut Vec<f32>) {
        let moment = self.shape.drift * (row as f32 / self.shape.base as f32);
        self.mixture.fill(row as u64, moment, out);
    }

    /// Writes all rows; how long that took.
    fn write(&self, store: &Store) -> Result<Duration, Error> {
        let mut took = Duration::ZERO;
        let (mut ids, mut vectors) = (Vec::new(), Vec::new());
        for first in (0..self.shape.base).step_by(self.settings.update_batch) {
            ids.clear();
            vectors.clear();
            for row in first..(first + self.settings.update_batch).min(self.shape.base) {
                ids.push(row as i64);
                self.fill(row, &mut vectors);
            }
            let began = Instant::now();
            store.insert(&ids, &vectors)?;
            took += began.elapsed();
        }
        Ok(took)
    }

    /// Two passes of each effort, of which the second is timed.
    fn search(&self, store: &Store, efforts: &[usize]) -> Result<Vec<LargeRow>, Error> {
        let (k, queries) = (self.settings.k, self.shape.queries);
        let queries = self.mixture.queries(0, queries, self.shape.drift);
        let mut passes = Vec::new();
        for effort in efforts {
            let requests = requests(&queries, k, Some(*effort));
            let read = host::disk_read_bytes;
            let before = read();
            Pass::run(store, &requests)?;
            let between = read();
            let pass = Pass::run(store, &requests)?;
            let after = read();
            let memory = (host::resident_bytes(), host::anonymous_bytes());
            let a_query = |from: Option<u64>, to: Option<u64>| {
                let bytes = to?.saturating_sub(from?) as f64;
                Some(rounded(bytes / queries.len() as f64, 1))
            };
            let row = LargeRow {
                effort: *effort,
                recall_at_k: 0.0,
                search_qps: rounded(pass.rate(), 1),
                latencies: Latencies::of(&pass.latencies),
                disk_bytes_per_query: a_query(between, after),
                first_disk_bytes_per_query: a_query(before, between),
                resident_bytes: memory.0,
                anonymous_bytes: memory.1,
            };
            passes.push((row, pass.found));
        }
        // After all passes, which it would disturb.
        let truth = Truth::by_scan(&queries, k, self.shape.base, |at, out| self.fill(at, out))?;
        let told = passes.into_iter().map(|(row, found)| {
            let recall = truth.recall(&found, |id, out| {
                let row = usize::try_from(id).ok();
                if let Some(row) = row.filter(|row| *row < self.shape.base) {
                    self.fill(row, out);
                }
            });
            LargeRow {
                recall_at_k: rounded(recall, 5),
                ..row
            }
        });
        Ok(told.collect())
    }
}

/// Has the system drop the files of all datasets from its memory.
fn forget(folder: &Path) -> Result<(), Error> {
    let datasets = folder.join("datasets");
    for dataset in RealDisk.list(&datasets)? {
        let dataset = datasets.join(dataset);
        for file in RealDisk.list(&dataset)? {
            RealDisk.forget(&dataset.join(file))?;
        }
    }
    Ok(())
}
