//! The recipe: rows are written and indexed, updates come, then everything is searched.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use longbow_disk::{Disk, RealDisk};

use super::error::Error;
use super::flags::{Choice, Settings, Source};
use super::pass::{Pass, requests};
use super::recipe::Recipe;
use super::recipe_file;
use super::report::{Asked, Head, Latencies, RecipeReport, RecipeRow};
use super::store::{Opening, Store};
use super::truth::Truth;
use crate::median::median;
use crate::rounded::rounded;
use crate::scratch::Scratch;

/// Measures each way to write in turn, and that `repeat` times, so that a machine that slows down meanwhile slows both.
pub fn run(
    settings: &Settings,
    source: &Source,
    sweep: &[usize],
    repeat: usize,
) -> Result<RecipeReport, Error> {
    let recipe = match source {
        Source::Made(sizes) => Recipe::made(*sizes, settings.seed),
        Source::File(path) => recipe_file::read(path)?,
    };
    let head = Head::new(
        "recipe",
        Asked {
            repeat: Some(repeat),
            seed: matches!(source, Source::Made(_)).then_some(settings.seed),
            dataset: match source {
                Source::File(path) => Some(path.clone()),
                Source::Made(_) => None,
            },
            ..Asked::recipe(settings, recipe.sizes())
        },
    );
    let outcome = recipe.outcome();
    let vectors: Vec<&[f32]> = outcome.values().copied().collect();
    let truth = Truth::by_scan(&recipe.queries, settings.k, vectors.len(), |at, out| {
        out.extend_from_slice(vectors[at]);
    })?;
    let scratch = Scratch::create(&settings.dir)?;
    let efforts = match settings.index {
        Choice::Exact => Vec::new(),
        _ => settings.efforts(sweep),
    };
    // A comparison with all rows stands beside whatever is measured.
    let efforts: Vec<_> = efforts.into_iter().map(Some).chain([None]).collect();
    let bench = Bench {
        settings,
        recipe: &recipe,
        outcome: &outcome,
        truth: &truth,
        efforts: &efforts,
    };
    let ways: &[bool] = if settings.durable {
        &[true]
    } else {
        &[false, true]
    };
    let mut runs = vec![Vec::new(); ways.len()];
    for _ in 0..repeat {
        for (durable, runs) in ways.iter().zip(&mut runs) {
            let folder = scratch.path.join("store");
            runs.push(bench.once(&folder, *durable)?);
            RealDisk.remove_dir_all(&folder)?;
        }
    }
    let rows = runs.iter().flat_map(|runs| medians(runs)).collect();
    Ok(RecipeReport { head, rows })
}

/// What every run needs.
struct Bench<'a> {
    settings: &'a Settings,
    recipe: &'a Recipe,
    outcome: &'a HashMap<i64, &'a [f32]>,
    truth: &'a Truth<'a>,
    /// Efforts; none compares all rows.
    efforts: &'a [Option<usize>],
}

impl Bench<'_> {
    /// All ways to search after one way to write.
    fn once(&self, folder: &Path, durable: bool) -> Result<Vec<RecipeRow>, Error> {
        let (recipe, batch) = (self.recipe, self.settings.update_batch);
        let opening = Opening {
            dim: recipe.base.dim,
            kind: self.settings.index.kind(),
            durable,
            shards: self.settings.shards,
            settings: Vec::new(),
        };
        let store = Store::open(folder, &opening)?;
        let began = Instant::now();
        for (ids, vectors) in recipe.base.pieces(batch) {
            store.insert(ids, vectors)?;
        }
        store.settle()?;
        let build_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        for (ids, vectors) in recipe.updates.pieces(batch) {
            store.insert(ids, vectors)?;
        }
        let took = began.elapsed().as_secs_f64();
        store.settle()?;
        let mut rows = Vec::new();
        for effort in self.efforts {
            let requests = requests(&recipe.queries, self.settings.k, *effort);
            // The first pass is slower than those to come, and tells nothing else.
            Pass::run(&store, &requests)?;
            let pass = Pass::run(&store, &requests)?;
            let recall = self.truth.recall(&pass.found, |id, out| {
                out.extend_from_slice(self.outcome.get(&id).copied().unwrap_or_default());
            });
            let latencies = Latencies::of(&pass.latencies);
            rows.push(RecipeRow {
                index: effort.map_or(Choice::Exact, |_| self.settings.index).name(),
                effort: *effort,
                durable,
                build_s,
                // All updates count, also those that a later one replaces.
                update_qps: recipe.updates.len() as f64 / took.max(1e-9),
                search_qps: pass.rate(),
                recall_at_k: recall,
                p50_us: latencies.p50_us.unwrap_or_default(),
                p99_us: latencies.p99_us.unwrap_or_default(),
            });
        }
        store.close()?;
        Ok(rows)
    }
}

/// The median of each figure over runs that measured the same.
fn medians(runs: &[Vec<RecipeRow>]) -> Vec<RecipeRow> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let of = |at: usize, figure: fn(&RecipeRow) -> f64, places: i32| {
        let figures = runs.iter().filter_map(|run| run.get(at)).map(figure);
        rounded(median(figures).unwrap_or_default(), places)
    };
    let row = |(at, row): (usize, &RecipeRow)| RecipeRow {
        build_s: of(at, |row| row.build_s, 4),
        update_qps: of(at, |row| row.update_qps, 1),
        search_qps: of(at, |row| row.search_qps, 1),
        recall_at_k: of(at, |row| row.recall_at_k, 5),
        p50_us: of(at, |row| row.p50_us, 1),
        p99_us: of(at, |row| row.p99_us, 1),
        ..row.clone()
    };
    first.iter().enumerate().map(row).collect()
}
