//! A stream: rows come and go while searches run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longbow_engine::SearchRequest;
use longbow_types::host;

use super::error::Error;
use super::flags::{Settings, Shape};
use super::living::Living;
use super::mixture::Mixture;
use super::pass::{Pass, requests};
use super::report::{Asked, End, Head, Idle, Latencies, Ratios, RoundRow, StreamReport};
use super::rows::Rows;
use super::runbook::{Round, Write};
use super::store::{Opening, Store};
use super::table;
use super::truth::Truth;
use crate::dice::Dice;
use crate::histogram::Histogram;
use crate::rounded::rounded;
use crate::scratch::Scratch;

/// Searches of an index without writes, in turns with the index beside it.
const IDLE_SEARCHES: usize = 2_000;
const IDLE_TURNS: usize = 3;

/// Searches before the writes of a round, which do not count: what was done between rounds has left nothing of the index in the
/// processor's caches, and the thread that searches is new. A node that serves knows neither.
const WARM_SEARCHES: usize = 200;

/// Carries the rounds out; `tell` gets each line of the table as soon as there is one.
pub fn run(
    settings: &Settings,
    shape: Shape,
    rounds: &[Round],
    tell: &mut dyn FnMut(&str),
) -> Result<StreamReport, Error> {
    let head = Head::new("stream", Asked::mixture(settings, shape));
    let scratch = Scratch::create(&settings.dir)?;
    let mut stream = Stream {
        settings,
        shape,
        mixture: Mixture::new(shape.dim, shape.centres, settings.seed),
        store: Store::open(&scratch.path.join("churned"), &opening(settings, shape))?,
        living: Living::default(),
        dice: Dice::new(settings.seed),
        beside_writes: Histogram::new(),
    };
    let base = stream.drawn(shape.base, 0.0);
    let build_s = stream.build(&stream.store, &base)?;
    drop(base);
    tell(&table::head(&head));
    tell(&table::round_titles());
    let mut rows = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        let row = stream.round(at + 1, round)?;
        tell(&table::round(&row));
        rows.push(row);
    }
    let fresh = Store::open(&scratch.path.join("fresh"), &opening(settings, shape))?;
    let end = stream.end(&fresh, rounds.len())?;
    fresh.close()?;
    stream.store.close()?;
    Ok(StreamReport {
        head,
        build_s: rounded(build_s, 3),
        rounds: rows,
        end,
    })
}

fn opening(settings: &Settings, shape: Shape) -> Opening {
    Opening {
        dim: shape.dim,
        kind: settings.index.kind(),
        durable: settings.durable,
        shards: settings.shards,
        settings: Vec::new(),
    }
}

/// A write that only has to be carried out.
enum Drawn {
    Insert(Rows),
    Delete(Vec<i64>),
}

/// What came of searches beside writes.
struct Beside {
    latencies: Histogram,
    searches: usize,
    short: usize,
}

struct Stream<'a> {
    settings: &'a Settings,
    shape: Shape,
    mixture: Mixture,
    store: Store,
    living: Living,
    dice: Dice,
    beside_writes: Histogram,
}

impl Stream<'_> {
    /// New rows of a moment.
    fn drawn(&mut self, rows: usize, moment: f32) -> Rows {
        let mut drawn = Rows::new(self.shape.dim);
        for id in self.living.add(rows, moment) {
            drawn.ids.push(id);
            self.mixture.fill(id as u64, moment, &mut drawn.elements);
        }
        drawn
    }

    /// Seconds until rows are written and indexed.
    fn build(&self, store: &Store, rows: &Rows) -> Result<f64, Error> {
        let began = Instant::now();
        for (ids, vectors) in rows.pieces(self.settings.update_batch) {
            store.insert(ids, vectors)?;
        }
        store.settle()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Centres have moved by then.
    fn moment(&self, round: usize) -> f32 {
        self.shape.drift * round as f32
    }

    /// The queries of a round, which no other has.
    fn queries(&self, round: usize) -> Vec<Vec<f32>> {
        let count = self.shape.queries;
        self.mixture
            .queries(round * count, count, self.moment(round))
    }

    fn requests_of(&self, round: usize) -> Vec<SearchRequest> {
        let effort = Some(self.settings.effort);
        requests(&self.queries(round), self.settings.k, effort)
    }

    fn round(&mut self, number: usize, round: &Round) -> Result<RoundRow, Error> {
        let moment = self.moment(number);
        let (mut inserted, mut deleted, mut writes) = (0, 0, Vec::new());
        for write in &round.writes {
            writes.push(match *write {
                Write::Insert(rows) => {
                    inserted += rows;
                    Drawn::Insert(self.drawn(rows, moment))
                }
                Write::Delete(rows) => {
                    deleted += rows;
                    Drawn::Delete(self.living.take(rows, &mut self.dice))
                }
            });
        }
        let queries = self.queries(number);
        let requests = self.requests_of(number);
        // Of the round before, so that no query of this one was asked.
        let warm = self.requests_of(number - 1);
        let (took, beside) =
            self.write_beside_searches(&writes, (&warm, &requests), round.searches)?;
        drop(writes);
        self.beside_writes.add(&beside.latencies);
        let memory = (host::resident_bytes(), host::anonymous_bytes());
        let recall = self.recall(&self.store, &queries)?;
        let written = (inserted + deleted) as f64;
        Ok(RoundRow {
            round: number,
            inserted,
            deleted,
            rows: self.living.ids().len(),
            update_qps: (written > 0.0).then(|| rounded(written / took.as_secs_f64().max(1e-9), 1)),
            searches: beside.searches,
            short_answers: beside.short,
            recall_at_k: recall,
            latencies: Latencies::of(&beside.latencies),
            resident_bytes: memory.0,
            anonymous_bytes: memory.1,
            index: self.store.footprint()?.into(),
        })
    }

    /// Writes, and waits for the index, while another thread searches, which is warmed before; how long the writes took until they were
    /// acknowledged, and what came of the searches.
    fn write_beside_searches(
        &self,
        writes: &[Drawn],
        (warm, requests): (&[SearchRequest], &[SearchRequest]),
        least: usize,
    ) -> Result<(Duration, Beside), Error> {
        let over = AtomicBool::new(false);
        let (tell, is_warm) = channel();
        std::thread::scope(|scope| {
            let over = &over;
            let searcher = scope.spawn(move || {
                let warmed = if least > 0 { self.warm(warm) } else { Ok(()) };
                // An error: nobody waits for it any more.
                let _ = tell.send(());
                warmed.and_then(|()| self.search_until(over, requests, least))
            });
            // An error: it has ended, and says why below.
            let _ = is_warm.recv();
            let written = self.write(writes);
            over.store(true, Ordering::Relaxed);
            let searched = searcher.join().unwrap_or(Err(Error::Thread));
            Ok((written?, searched?))
        })
    }

    fn write(&self, writes: &[Drawn]) -> Result<Duration, Error> {
        let batch = self.settings.update_batch;
        let began = Instant::now();
        for write in writes {
            match write {
                Drawn::Insert(rows) => {
                    for (ids, vectors) in rows.pieces(batch) {
                        self.store.insert(ids, vectors)?;
                    }
                }
                Drawn::Delete(ids) => {
                    for ids in ids.chunks(batch) {
                        self.store.delete(ids)?;
                    }
                }
            }
        }
        let took = began.elapsed();
        self.store.settle()?;
        Ok(took)
    }

    fn warm(&self, requests: &[SearchRequest]) -> Result<(), Error> {
        let mut requests = requests.iter().cycle().take(WARM_SEARCHES);
        requests.try_for_each(|request| self.store.search(request).map(drop))
    }

    /// Searches again and again until the writes are over, and at least so often.
    fn search_until(
        &self,
        over: &AtomicBool,
        requests: &[SearchRequest],
        least: usize,
    ) -> Result<Beside, Error> {
        let mut beside = Beside {
            latencies: Histogram::new(),
            searches: 0,
            short: 0,
        };
        for request in requests.iter().cycle() {
            if least == 0 || (beside.searches >= least && over.load(Ordering::Relaxed)) {
                break;
            }
            let asked = Instant::now();
            let found = self.store.search(request)?;
            beside.latencies.note(asked.elapsed());
            beside.searches += 1;
            beside.short += usize::from(found.len() < self.settings.k);
        }
        Ok(beside)
    }

    /// What searches find now of the rows that are alive.
    fn recall(&self, store: &Store, queries: &[Vec<f32>]) -> Result<f64, Error> {
        let requests = requests(queries, self.settings.k, Some(self.settings.effort));
        let found = Pass::run(store, &requests)?.found;
        if found.iter().flatten().any(|id| !self.living.holds(*id)) {
            return Err(Error::Promise("a search found a row that was deleted"));
        }
        let vector = |id: i64, out: &mut Vec<f32>| {
            let moment = self.living.moment(id);
            self.mixture.fill(id as u64, moment, out);
        };
        let ids = self.living.ids();
        let truth = Truth::by_scan(queries, self.settings.k, ids.len(), |at, out| {
            vector(ids[at], out);
        })?;
        Ok(rounded(truth.recall(&found, vector), 5))
    }

    /// Both indexes without writes: the one that went through all rounds, and one that is built anew.
    fn end(&self, fresh: &Store, rounds: usize) -> Result<End, Error> {
        let mut ids = self.living.ids().to_vec();
        ids.sort_unstable();
        let mut rows = Rows::new(self.shape.dim);
        for id in ids {
            let moment = self.living.moment(id);
            rows.ids.push(id);
            self.mixture.fill(id as u64, moment, &mut rows.elements);
        }
        let build_s = self.build(fresh, &rows)?;
        drop(rows);
        for store in [&self.store, fresh] {
            store.vacuum()?;
        }
        let queries = self.queries(rounds);
        let mut idle = [Histogram::new(), Histogram::new()];
        let requests = self.requests_of(rounds);
        let many = requests.iter().cycle().take(IDLE_SEARCHES);
        let many: Vec<_> = many.cloned().collect();
        for _ in 0..IDLE_TURNS {
            for (store, idle) in [&self.store, fresh].into_iter().zip(&mut idle) {
                idle.add(&Pass::run(store, &many)?.latencies);
            }
        }
        let told = |store: &Store, idle: &Histogram, build_s| -> Result<Idle, Error> {
            Ok(Idle {
                recall_at_k: self.recall(store, &queries)?,
                latencies: Latencies::of(idle),
                index: store.footprint()?.into(),
                build_s,
            })
        };
        let churned = told(&self.store, &idle[0], None)?;
        let fresh = told(fresh, &idle[1], Some(rounded(build_s, 3)))?;
        let beside_writes = Latencies::of(&self.beside_writes);
        Ok(End {
            ratios: Ratios::of(beside_writes, &churned, &fresh),
            beside_writes,
            churned,
            fresh,
        })
    }
}
