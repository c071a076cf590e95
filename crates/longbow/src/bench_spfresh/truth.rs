//! The true nearest rows, in double precision, and recall against them.

use std::collections::HashSet;

use super::error::Error;

/// What the distance of a hit may exceed that of the k-th true row by, as a share of it: rows of equal distance count
/// whichever of them was found, and the engine takes distances in single precision.
const TIE: f64 = 1e-6;

/// How near a row must be to count as found, for each query, in squared Euclidean distance.
#[derive(Debug)]
pub struct Truth<'a> {
    queries: &'a [Vec<f32>],
    limits: Vec<f64>,
    k: usize,
}

impl<'a> Truth<'a> {
    /// Compares each query with all rows, on as many threads as there are cores; `row` puts the vector of one into the
    /// buffer, so that they need not be in memory.
    ///
    /// # Errors
    /// If there are fewer than `k` rows.
    pub fn by_scan(
        queries: &'a [Vec<f32>],
        k: usize,
        rows: usize,
        row: impl Fn(usize, &mut Vec<f32>) + Sync,
    ) -> Result<Truth<'a>, Error> {
        if rows < k {
            return Err(Error::Mismatch(format!(
                "{k} neighbours are asked for of {rows} rows; lower --k"
            )));
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = rows.div_ceil(threads).max(1);
        let scan = |part: usize| {
            let mut nearest = vec![Nearest::new(k); queries.len()];
            let mut vector = Vec::new();
            for at in part * share..((part + 1) * share).min(rows) {
                vector.clear();
                row(at, &mut vector);
                for (query, nearest) in queries.iter().zip(&mut nearest) {
                    nearest.see(squared_distance(query, &vector));
                }
            }
            nearest
        };
        let parts = std::thread::scope(|scope| {
            let scan = &scan;
            let threads: Vec<_> = (0..threads)
                .map(|part| scope.spawn(move || scan(part)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            let parts: Result<Vec<_>, Error> =
                ended.map(|part| part.map_err(|_| Error::Thread)).collect();
            parts
        })?;
        let merged = parts.into_iter().reduce(|mut all, part| {
            let pairs = all.iter_mut().zip(&part);
            pairs.for_each(|(all, part)| part.0.iter().for_each(|distance| all.see(*distance)));
            all
        });
        let limit = |nearest: &Nearest| nearest.0.last().copied().unwrap_or(f64::INFINITY);
        let limits = merged.unwrap_or_default();
        Ok(Truth {
            queries,
            limits: limits.iter().map(|of| limit(of) * (1.0 + TIE)).collect(),
            k,
        })
    }

    /// The share of the true rows that was found, over all queries. A row that was found twice counts once, one that
    /// `row` does not know (it puts nothing into the buffer) not at all.
    pub fn recall(&self, found: &[Vec<i64>], row: impl Fn(i64, &mut Vec<f32>)) -> f64 {
        let mut hits = 0;
        let mut vector = Vec::new();
        for ((query, limit), found) in self.queries.iter().zip(&self.limits).zip(found) {
            let ids: HashSet<i64> = found.iter().take(self.k).copied().collect();
            for id in ids {
                vector.clear();
                row(id, &mut vector);
                let near = !vector.is_empty() && squared_distance(query, &vector) <= *limit;
                hits += usize::from(near);
            }
        }
        hits as f64 / (self.k * self.queries.len()).max(1) as f64
    }
}

/// The distances of the nearest rows so far, ascending; of none they are infinite.
#[derive(Debug, Clone)]
struct Nearest(Vec<f64>);

impl Nearest {
    fn new(k: usize) -> Nearest {
        Nearest(vec![f64::INFINITY; k])
    }

    fn see(&mut self, distance: f64) {
        if self.0.last().is_some_and(|last| distance < *last) {
            let place = self.0.partition_point(|other| *other <= distance);
            self.0.insert(place, distance);
            self.0.pop();
        }
    }
}

/// Sums in eight strands, so that the compiler may take several at once.
fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    let square = |a: &f32, b: &f32| {
        let apart = f64::from(*a) - f64::from(*b);
        apart * apart
    };
    let (eights_a, rest_a) = a.as_chunks::<8>();
    let (eights_b, rest_b) = b.as_chunks::<8>();
    for (a, b) in eights_a.iter().zip(eights_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += square(a, b);
        }
    }
    let rest: f64 = rest_a.iter().zip(rest_b).map(|(a, b)| square(a, b)).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_row_counts_and_a_repeated_or_unknown_one_does_not() {
        let base = [1.0f32, -1.0, 2.0, -2.0, 5.0];
        let queries = [vec![0.0], vec![5.0]];
        let truth = Truth::by_scan(&queries, 3, base.len(), |at, out| out.push(base[at]));
        let truth = truth.expect("enough rows");
        let recall = |found: &[Vec<i64>]| {
            truth.recall(found, |id, out| {
                out.extend(usize::try_from(id).ok().and_then(|id| base.get(id)));
            })
        };
        // The third nearest to 0 is row 2 or row 3, at the same distance.
        assert_eq!(recall(&[vec![0, 1, 3], vec![4, 2, 0]]), 1.0);
        assert_eq!(recall(&[vec![0, 0, 4], vec![4, 0]]), 0.5);
        assert_eq!(recall(&[vec![0, -1, 99], vec![]]), 1.0 / 6.0);
        assert_eq!(recall(&[]), 0.0);
        // What comes behind the k-th place is not looked at.
        assert_eq!(recall(&[vec![4, 4, 4, 0, 1, 2], vec![]]), 0.0);
    }

    #[test]
    fn fewer_rows_than_neighbours_are_refused() {
        let queries = [vec![0.0]];
        let told = Truth::by_scan(&queries, 3, 2, |_, out| out.push(0.0));
        assert!(told.expect_err("few").to_string().contains("--k"));
    }

    #[test]
    fn distances_take_every_element() {
        for dim in [1usize, 7, 8, 9, 64] {
            let a: Vec<f32> = (0..dim).map(|at| at as f32).collect();
            let b: Vec<f32> = a.iter().map(|x| x + 2.0).collect();
            assert_eq!(squared_distance(&a, &b), 4.0 * dim as f64, "{dim}");
        }
    }
}
