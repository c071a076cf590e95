//! Which effort reaches a recall.

use std::sync::{Arc, OnceLock};

use super::measure::{CLASSES, LADDER, Look, Measured};
use super::middle::Middle;

/// Measured queries that tell of a query: those that look most alike, in how their walks went and where they lie.
const ALIKE: usize = 24;
/// Those of them that tell most.
const MOST_ALIKE: usize = 8;
/// What these may reach less: one of ten neighbours, of one of them.
const ONE_MISS: f32 = 0.0125;
/// How far the look of a query may be from that of the one most alike, squared, in deviations of ordinary ones: beyond
/// that nothing is known of it, and it is scanned for. It may be measured then, so that more is known of the next.
const UNLIKE: f32 = 64.0;
/// Real queries that are kept, the last ones.
const REAL: usize = 512;
/// Real queries from which on they say what is ordinary, and those made from rows to be ordinary are only what looks are measured by.
const PLENTY: usize = 128;
/// How much farther a made query counts than a real one: squared.
const MADE_FARTHER: f32 = 9.0;
/// Rows for each unit of effort from which on a walk is better than a scan.
const ROWS_AN_EFFORT: u64 = 4;

/// Deviations of the numbers of a look that may be rounding, and tell nothing: what is compared is a logarithm, or, where the
/// metric is the inner product, small as it comes; a distance from the middle is a sum of many terms.
const LEAST_DEVIATION: [f32; 4] = [1e-6, 1e-6, 1e-6, 1e-3];

/// Where a measured query is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Somebody asked it.
    Real,
    /// Made to be like the rows.
    Ordinary,
    /// Made to be unlike the rows.
    Far,
}

/// What an index and its dataset held at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Rows in the graph.
    pub rows: u64,
    /// Rows alive.
    pub live: u64,
    /// Rows that were ever written.
    pub written: u64,
}

/// The recall of an index by effort, as of one moment.
#[derive(Debug)]
pub(crate) struct Curve {
    /// The real ones last, the latest at the end. Those made to be ordinary stay also when they tell nothing any more of others.
    queries: Vec<(Origin, Arc<Measured>)>,
    /// When it was calibrated.
    moment: Moment,
    middle: Arc<Middle>,
    /// Where ordinary queries are from.
    is_ordinary: Origin,
    /// By class and rung: the mean recall of ordinary queries.
    ordinary: [[f32; LADDER.len()]; CLASSES.len()],
    /// The same of the easiest quarter of them. So a walk that suits these is tried first also where most queries are
    /// others; to begin too low costs little, too high much.
    easier: [[f32; LADDER.len()]; CLASSES.len()],
    /// By class and rung; made when first needed.
    points: Vec<OnceLock<Points>>,
}

/// The first walk of a search with a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Start {
    class: usize,
    rung: usize,
    k: usize,
    judged: bool,
    /// Its effort.
    pub ef: usize,
}

/// What is to be done after the first walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judged {
    /// Nothing: it is expected to have reached this recall.
    Enough(f32),
    /// A walk of this effort, for this recall.
    More(usize, f32),
    /// No walk that was measured reaches the target.
    Scan,
}

/// The looks of all queries at one class and rung, each number in units of its deviation among queries made to be like the
/// rows: what is unlike them is far from them, however different from each other the unlike ones are. Real ones would not do,
/// which may be of several kinds: between these lies what no query of one kind differs by.
#[derive(Debug)]
struct Points {
    mean: [f32; 4],
    scale: [f32; 4],
    points: Vec<[f32; 4]>,
}

impl Points {
    fn new(looks: &[Look], like_rows: &[Look]) -> Self {
        let n = like_rows.len().max(1) as f32;
        let each = |of: &dyn Fn(usize) -> f32| -> [f32; 4] { std::array::from_fn(of) };
        let mean = each(&|at| like_rows.iter().map(|look| look.0[at]).sum::<f32>() / n);
        let scale = each(&|at| {
            let square = |look: &Look| (look.0[at] - mean[at]).powi(2);
            let deviation = (like_rows.iter().map(square).sum::<f32>() / n).sqrt();
            // What is the same for all tells nothing.
            if deviation > LEAST_DEVIATION[at] {
                1.0 / deviation
            } else {
                0.0
            }
        });
        let mut new = Points {
            mean,
            scale,
            points: Vec::new(),
        };
        new.points = looks.iter().map(|look| new.place(*look)).collect();
        new
    }

    fn place(&self, look: Look) -> [f32; 4] {
        std::array::from_fn(|at| (look.0[at] - self.mean[at]) * self.scale[at])
    }
}

impl Curve {
    /// The curve of an index with its rows around this middle.
    pub fn new(queries: Vec<(Origin, Arc<Measured>)>, middle: Arc<Middle>, moment: Moment) -> Self {
        let real = queries.iter().filter(|(of, _)| *of == Origin::Real).count();
        let mut drop = real.saturating_sub(REAL);
        let mut keep = |of: Origin| match of {
            Origin::Real if drop > 0 => {
                drop -= 1;
                false
            }
            _ => true,
        };
        let mut queries: Vec<_> = queries.into_iter().filter(|(of, _)| keep(*of)).collect();
        queries.sort_by_key(|(of, _)| *of == Origin::Real);
        let is_ordinary = if real < PLENTY {
            Origin::Ordinary
        } else {
            Origin::Real
        };
        let of = |(origin, measured): &(Origin, Arc<Measured>)| {
            (*origin == is_ordinary).then(|| Arc::clone(measured))
        };
        let ordinary: Vec<_> = queries.iter().filter_map(of).collect();
        Curve {
            ordinary: std::array::from_fn(|class| easier(&ordinary, class, ordinary.len())),
            easier: std::array::from_fn(|class| {
                easier(&ordinary, class, ordinary.len().div_ceil(4))
            }),
            is_ordinary,
            middle,
            queries,
            moment,
            points: (0..CLASSES.len() * LADDER.len())
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// With more real queries.
    pub fn with(&self, real: impl Iterator<Item = Measured>) -> Self {
        let mut queries = self.queries.clone();
        queries.extend(real.map(|measured| (Origin::Real, Arc::new(measured))));
        Self::new(queries, Arc::clone(&self.middle), self.moment)
    }

    /// The middle of the rows, for the looks of queries.
    pub fn middle(&self) -> &Arc<Middle> {
        &self.middle
    }

    /// The vectors of the last real queries, up to `most`.
    pub fn real(&self, most: usize) -> Vec<Vec<f32>> {
        let real = self
            .queries
            .iter()
            .rev()
            .take_while(|(of, _)| *of == Origin::Real);
        let mut vectors: Vec<_> = real.take(most).map(|(_, one)| one.vector.clone()).collect();
        vectors.reverse();
        vectors
    }

    /// Whether the index has changed so much that it is to be calibrated anew: by a fifth of its rows, or of those alive, be
    /// it that there are more or fewer, or that others took the place of as many.
    pub fn is_stale(&self, now: Moment) -> bool {
        self.changed(now) > 0.2
    }

    /// Whether it still tells of the index, though it may be stale.
    pub fn is_of(&self, now: Moment) -> bool {
        self.changed(now) <= 0.4
    }

    fn changed(&self, now: Moment) -> f64 {
        let then = self.moment;
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        let grown = share(now.rows.abs_diff(then.rows), then.rows);
        let died = share(then.live.saturating_sub(now.live), then.live);
        let written = share(now.written.saturating_sub(then.written), then.rows);
        grown.max(died).max(written)
    }

    /// The first walk, or the only one, if it will not be judged; `None` if not even ordinary queries reach the target by
    /// one.
    pub fn start(&self, target: f32, k: usize, judged: bool) -> Option<Start> {
        let class = CLASSES.iter().position(|most| k <= *most);
        let class = class.unwrap_or(CLASSES.len() - 1);
        // Walks for more neighbours than a class has were not measured: there is nothing to compare their looks with.
        let judged = judged && k <= CLASSES[class];
        let by = if judged { &self.easier } else { &self.ordinary };
        let rungs = self.rungs(class);
        let rung = rungs.into_iter().find(|at| by[class][*at] >= target)?;
        Some(Start {
            class,
            rung,
            k,
            judged,
            ef: effort(rung, k),
        })
    }

    /// What the look of a first walk says about what the query needs.
    pub fn judge(&self, start: Start, target: f32, look: Look) -> Judged {
        let Start { class, rung, k, .. } = start;
        if !start.judged {
            return Judged::Enough(self.ordinary[class][rung]);
        }
        let alike = self.alike(class, rung, look);
        if !alike.iter().any(|(away, _)| *away <= UNLIKE) {
            return Judged::Scan;
        }
        let mut reached: f32 = 0.0;
        for higher in self.rungs(class).into_iter().filter(|at| *at >= rung) {
            let mean = |most: usize| mean_recall(&alike[..most.min(alike.len())], class, higher);
            // Of two kinds of queries that look alike, the rarer has few among many.
            reached = reached.max(mean(ALIKE).min(mean(MOST_ALIKE) + ONE_MISS));
            if reached >= target {
                return if higher == rung {
                    Judged::Enough(reached)
                } else {
                    Judged::More(effort(higher, k), reached)
                };
            }
        }
        Judged::Scan
    }

    /// The rungs that are worth a walk.
    fn rungs(&self, class: usize) -> Vec<usize> {
        let is_worth = |ef: usize| {
            ef >= CLASSES[class]
                && ef as u64 * ROWS_AN_EFFORT <= self.moment.rows.max(super::LEAST_ROWS)
        };
        (0..LADDER.len())
            .filter(|rung| is_worth(LADDER[*rung]))
            .collect()
    }

    /// Whether queries of such an origin tell of others.
    fn tells(&self, of: Origin) -> bool {
        of != Origin::Ordinary || of == self.is_ordinary
    }

    /// The measured queries that tell most of one of this look, each with how far its own look is from that: squared, in
    /// deviations of ordinary ones.
    fn alike(&self, class: usize, rung: usize, look: Look) -> Vec<(f32, &Measured)> {
        let points = self.points[class * LADDER.len() + rung].get_or_init(|| {
            let look = |(_, one): &(Origin, Arc<Measured>)| one.look(class, rung);
            let looks: Vec<Look> = self.queries.iter().map(look).collect();
            let of = |origin: Origin| -> Vec<Look> {
                let is_of = |(of, _): &&(Origin, _)| *of == origin;
                self.queries.iter().filter(is_of).map(look).collect()
            };
            let like_rows = of(Origin::Ordinary);
            if like_rows.is_empty() {
                return Points::new(&looks, &of(self.is_ordinary));
            }
            Points::new(&looks, &like_rows)
        });
        let place = points.place(look);
        let away = |point: &[f32; 4]| -> f32 {
            let squares = point.iter().zip(&place).map(|(a, b)| (a - b) * (a - b));
            squares.sum()
        };
        let mut order: Vec<(f32, usize)> = points
            .points
            .iter()
            .zip(&self.queries)
            .enumerate()
            .filter(|(_, (_, (of, _)))| self.tells(*of))
            .map(|(at, (point, (of, _)))| {
                let farther = if *of == Origin::Real {
                    1.0
                } else {
                    MADE_FARTHER
                };
                (farther * away(point), at)
            })
            .collect();
        if order.len() > ALIKE {
            order.select_nth_unstable_by(ALIKE, |a, b| a.0.total_cmp(&b.0));
            order.truncate(ALIKE);
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // How much nearer the first is than the last does not count there: a query that is a row is unlike none.
        let unlike = |point: &[f32; 4]| {
            let squares = [0, 1, 3].map(|at| (point[at] - place[at]).powi(2));
            squares.iter().sum::<f32>()
        };
        let one = |(_, at): (f32, usize)| (unlike(&points.points[at]), &*self.queries[at].1);
        order.into_iter().map(one).collect()
    }
}

/// The mean recall of queries at a rung.
fn mean_recall(alike: &[(f32, &Measured)], class: usize, rung: usize) -> f32 {
    let recall = alike.iter().map(|(_, one)| one.recall(class, rung));
    recall.sum::<f32>() / alike.len().max(1) as f32
}

/// The mean recall at each rung of the `most` queries that find most over all rungs.
fn easier(queries: &[Arc<Measured>], class: usize, most: usize) -> [f32; LADDER.len()] {
    let total = |one: &Measured| -> f32 { (0..LADDER.len()).map(|r| one.recall(class, r)).sum() };
    let mut order: Vec<(f32, &Measured)> = queries.iter().map(|one| (total(one), &**one)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    order.truncate(most);
    let n = order.len().max(1) as f32;
    std::array::from_fn(|rung| {
        let sum: f32 = order.iter().map(|(_, one)| one.recall(class, rung)).sum();
        sum / n
    })
}

/// The effort of a rung: beyond the largest class it grows with `k`.
fn effort(rung: usize, k: usize) -> usize {
    let most = CLASSES[CLASSES.len() - 1];
    let ef = LADDER[rung];
    if k > most {
        (ef * k).div_ceil(most)
    } else {
        ef.max(k)
    }
}

#[cfg(test)]
mod tests;
