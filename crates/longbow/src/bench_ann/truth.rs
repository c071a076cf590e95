//! The true nearest rows, and recall against them.

use std::path::Path;

use longbow_disk::{Disk, RealDisk};
use longbow_index::{Neighbor, Query, SearchStats, Space, TopK, flat};

use super::error::Error;
use super::vectors::Vectors;
use super::{npy, parquet, vecs};

/// What the distance of a hit may exceed that of the k-th true row by, as a share of it: rows of equal distance count
/// whichever of them was found.
const TIE: f64 = 1e-6;

/// Queries at most whose rows in a file are compared with those of a scan: a file of another metric or other vectors is wrong for all.
const CHECKED: usize = 32;

/// By how much distances may differ that are the same but for rounding, as a share of them.
const ROUNDED: f64 = 0.01;
/// One query in so many may have others: where all of its nearest are equal to it, rounding is all there is.
const FEW: usize = 4;

/// How near a row must be to count as found, for each query.
#[derive(Debug)]
pub struct Truth {
    queries: Vec<Query>,
    limits: Vec<f64>,
    k: usize,
}

impl Truth {
    /// Finds the `k` nearest rows of each query by comparing with all, on `threads` threads.
    pub fn by_scan(
        space: Space,
        base: &Vectors,
        queries: &[Vec<f32>],
        k: usize,
        threads: usize,
    ) -> Result<Truth, Error> {
        let queries = prepared(space, queries)?;
        let share = queries.len().div_ceil(threads).max(1);
        let scan = |query: &Query| {
            let mut top = TopK::new(k);
            let mut stats = SearchStats::default();
            flat::scan(query, 0, base.bytes(), &|_| true, &mut top, &mut stats);
            let farthest = top.into_sorted().last().map(|found| found.distance);
            widened(farthest.unwrap_or(f32::INFINITY))
        };
        let limits: Result<Vec<Vec<f64>>, Error> = std::thread::scope(|scope| {
            let parts = queries.chunks(share);
            let threads: Vec<_> = parts
                .map(|part| scope.spawn(move || part.iter().map(scan).collect()))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|part| part.map_err(|_| Error::Thread)).collect()
        });
        Ok(Truth {
            queries,
            limits: limits?.concat(),
            k,
        })
    }

    /// Takes it from rows of row numbers, one a query, nearest first: a `.npy` of `i4` or `i8`, an `.ivecs` file, or lists
    /// of integers in a `.parquet` file.
    pub fn read(
        path: &Path,
        space: Space,
        base: &Vectors,
        queries: &[Vec<f32>],
        k: usize,
    ) -> Result<Truth, Error> {
        let wrong = |reason: String| Error::File {
            path: path.to_path_buf(),
            reason,
        };
        let file = RealDisk.map(path)?;
        let read = match path.extension().and_then(|ending| ending.to_str()) {
            Some("ivecs") => vecs::read(&file).map(|(depth, ids)| (depth, words(&ids))),
            Some("parquet") => parquet::numbers(file),
            _ => of_npy(&file),
        };
        let (depth, ids) = read.map_err(wrong)?;
        if depth == 0 {
            return Err(wrong("holds no row numbers".to_owned()));
        }
        if depth < k {
            return Err(wrong(format!("has {depth} rows a query, and k is {k}")));
        }
        if ids.len() != depth * queries.len() {
            let lines = ids.len() / depth;
            return Err(wrong(format!(
                "is of {lines} queries, and there are {}",
                queries.len()
            )));
        }
        let queries = prepared(space, queries)?;
        let limit = |(query, ids): (&Query, &[i64])| {
            let distances = ids[..k].iter().map(|id| {
                let row = usize::try_from(*id).ok().filter(|row| *row < base.rows());
                let row = row.ok_or_else(|| wrong(format!("names row {id} of {}", base.rows())))?;
                Ok(query.distance(base.row(row)))
            });
            let farthest = distances.collect::<Result<Vec<f32>, Error>>()?;
            let farthest = farthest.into_iter().fold(f32::NEG_INFINITY, f32::max);
            Ok(widened(farthest))
        };
        let limits: Result<_, Error> = queries.iter().zip(ids.chunks(depth)).map(limit).collect();
        let truth = Truth {
            queries,
            limits: limits?,
            k,
        };
        match truth.nearer(base) {
            Some((query, row)) => Err(wrong(format!(
                "is not the truth by this metric: row {row} is nearer to query {query} than one of the {k} rows that it names"
            ))),
            None => Ok(truth),
        }
    }

    /// A query and a row that is nearer to it than one that counts as found while another as near does not, if that is so for more than a
    /// few of some queries: distances that another program rounded differently are no other truth.
    fn nearer(&self, base: &Vectors) -> Option<(usize, u64)> {
        let step = self.queries.len().div_ceil(CHECKED).max(1);
        let queries = self.queries.iter().zip(&self.limits).enumerate();
        let is_nearer = |(place, (query, limit)): (usize, (&Query, &f64))| {
            let mut top = TopK::new(self.k);
            let mut stats = SearchStats::default();
            flat::scan(query, 0, base.bytes(), &|_| true, &mut top, &mut stats);
            let last = top.into_sorted().pop()?;
            let distance = f64::from(last.distance);
            (distance + distance.abs() * ROUNDED < *limit).then_some((place, last.row))
        };
        let checked = queries.len().div_ceil(step);
        let wrong: Vec<_> = queries.step_by(step).filter_map(is_nearer).collect();
        wrong
            .first()
            .copied()
            .filter(|_| wrong.len() > checked / FEW)
    }

    /// The share of the true rows that was found, over all queries. Distances are taken anew, since an index may have
    /// estimated its own; a row that was found twice counts once.
    pub fn recall(&self, base: &Vectors, found: &[Vec<Neighbor>]) -> f64 {
        let mut hits = 0;
        for ((query, limit), found) in self.queries.iter().zip(&self.limits).zip(found) {
            let mut rows: Vec<u64> = found.iter().take(self.k).map(|hit| hit.row).collect();
            rows.sort_unstable();
            rows.dedup();
            let near = |row: &&u64| {
                let vector = base.row(usize::try_from(**row).unwrap_or(usize::MAX));
                f64::from(query.distance(vector)) <= *limit
            };
            hits += rows.iter().filter(near).count();
        }
        hits as f64 / (self.k * self.queries.len()) as f64
    }
}

fn prepared(space: Space, queries: &[Vec<f32>]) -> Result<Vec<Query>, Error> {
    let queries = queries.iter().map(|query| Query::new(space, query));
    Ok(queries.collect::<Result<_, _>>()?)
}

/// A distance and what is equal to it; distances by inner product are negative.
fn widened(distance: f32) -> f64 {
    let distance = f64::from(distance);
    distance + distance.abs() * TIE
}

fn of_npy(file: &[u8]) -> Result<(usize, Vec<i64>), String> {
    let array = npy::read(file)?;
    let elements = &file[array.offset..];
    let ids = match array.element.as_str() {
        "i4" => words(elements),
        "i8" => {
            let (ids, _) = elements.as_chunks();
            ids.iter().map(|id| i64::from_le_bytes(*id)).collect()
        }
        other => return Err(format!("has elements {other}, expected i4 or i8")),
    };
    Ok((array.columns, ids))
}

fn words(bytes: &[u8]) -> Vec<i64> {
    let (words, _) = bytes.as_chunks();
    let words = words.iter().map(|word| i32::from_le_bytes(*word));
    words.map(i64::from).collect()
}

#[cfg(test)]
mod tests {
    use super::super::vectors::tests::vectors;
    use super::*;
    use longbow_index::Metric;

    fn space(metric: Metric) -> Space {
        Space {
            scalar: longbow_kernels::Scalar::F32,
            metric,
            dim: 1,
        }
    }

    fn hits(rows: &[u64]) -> Vec<Neighbor> {
        let hit = |row: &u64| Neighbor {
            row: *row,
            distance: 0.0,
        };
        rows.iter().map(hit).collect()
    }

    fn read(name: &str, file: &[u8]) -> Result<Truth, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        RealDisk.write_atomic(&path, file).expect("room");
        let base = vectors(1, &[0.0, 1.0, 2.0, 3.0]);
        let queries = [vec![0.0], vec![3.0]];
        Truth::read(&path, space(Metric::Euclidean), &base, &queries, 2)
    }

    #[test]
    fn an_equal_row_counts_and_a_repeated_one_does_not() {
        let base = vectors(1, &[1.0, -1.0, 2.0, -2.0, 5.0]);
        for threads in [1, 4] {
            let queries = [vec![0.0], vec![5.0]];
            let truth = Truth::by_scan(space(Metric::Euclidean), &base, &queries, 3, threads);
            let truth = truth.expect("valid");
            // The third nearest to 0 is row 2 or row 3, at the same distance.
            let both = [hits(&[0, 1, 3]), hits(&[4, 2, 0])];
            assert_eq!(truth.recall(&base, &both), 1.0);
            let half = [hits(&[0, 0, 4]), hits(&[4, 0])];
            assert_eq!(truth.recall(&base, &half), 0.5);
            assert_eq!(truth.recall(&base, &[]), 0.0);
        }
    }

    #[test]
    fn negative_distances_have_ties_too() {
        let base = vectors(1, &[3.0, 3.0, 2.0]);
        let truth = Truth::by_scan(space(Metric::Dot), &base, &[vec![1.0]], 1, 1).expect("valid");
        assert_eq!(truth.recall(&base, &[hits(&[1])]), 1.0);
        assert_eq!(truth.recall(&base, &[hits(&[2])]), 0.0);
    }

    #[test]
    fn a_file_is_the_same_truth() {
        let ids: Vec<u8> = [0, 1, 3, 2]
            .into_iter()
            .flat_map(i32::to_le_bytes)
            .collect();
        let long: Vec<u8> = [0, 1, 3, 2]
            .into_iter()
            .flat_map(i64::to_le_bytes)
            .collect();
        let base = vectors(1, &[0.0, 1.0, 2.0, 3.0]);
        for (name, file) in [
            ("t.npy", npy::tests::file("<i4", "(2, 2)", &ids)),
            ("t.npy", npy::tests::file("<i8", "(2, 2)", &long)),
            ("t.ivecs", vecs::tests::file(&[&[0, 1], &[3, 2]])),
        ] {
            let truth = read(name, &file).expect(name);
            let found = [hits(&[0, 1]), hits(&[2, 1])];
            assert_eq!(truth.recall(&base, &found), 0.75, "{name}");
        }
    }

    #[test]
    fn a_file_that_does_not_go_with_the_vectors_is_refused() {
        let told = |rows: &[&[i32]]| {
            let error = read("t.ivecs", &vecs::tests::file(rows));
            error.expect_err("wrong").to_string()
        };
        assert!(told(&[&[0], &[1]]).contains("k is 2"));
        assert!(told(&[&[0, 1]]).contains("1 queries"));
        assert!(told(&[&[0, 1], &[3, 4]]).contains("row 4 of 4"));
        assert!(told(&[&[0, 1], &[3, -1]]).contains("row -1"));
        assert!(told(&[&[0, 2], &[3, 2]]).contains("row 1 is nearer to query 0"));
        let floats = read("t.npy", &npy::tests::file("<f4", "(2, 2)", &[0; 16]));
        assert!(floats.expect_err("wrong").to_string().contains("f4"));
    }
}
