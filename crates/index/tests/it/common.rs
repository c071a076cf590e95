//! Seeded data, and exact answers to compare with.

use std::collections::HashSet;

use crc_fast::{CrcAlgorithm, checksum};
use half::f16;
use longbow_index::{
    Hnsw, HnswParams, Metric, Neighbor, Query, Result, Scalar, SearchStats, Space, TopK,
    VectorIndex, VectorSource, flat,
};

/// Deterministic generator (splitmix64), so that a failure repeats.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Uniform in -1 .. 1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// About normal, with deviation 1.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit() * 0.5).sum()
    }
}

/// `values` as stored bytes; integers take values of -4 .. 4 over most of their range.
pub fn encode(scalar: Scalar, values: &[f32]) -> Vec<u8> {
    match scalar {
        Scalar::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Scalar::F16 => values
            .iter()
            .flat_map(|x| f16::from_f32(*x).to_le_bytes())
            .collect(),
        Scalar::I8 => values
            .iter()
            .map(|x| (x * 30.0).clamp(-128.0, 127.0) as i8 as u8)
            .collect(),
        Scalar::U8 => values
            .iter()
            .map(|x| (x * 30.0 + 128.0).clamp(0.0, 255.0) as u8)
            .collect(),
    }
}

/// What a query must be to be compared with such stored values.
pub fn as_query(scalar: Scalar, values: &[f32]) -> Vec<f32> {
    match scalar {
        Scalar::F32 | Scalar::F16 => values.to_vec(),
        Scalar::I8 => values.iter().map(|x| x * 30.0).collect(),
        Scalar::U8 => values.iter().map(|x| x * 30.0 + 128.0).collect(),
    }
}

/// A set of vectors, numbered from 0.
pub struct Data {
    pub space: Space,
    pub bytes: Vec<u8>,
    pub queries: Vec<Query>,
}

impl Data {
    /// `rows` equal vectors, and queries around them.
    pub fn equal(rows: usize) -> Result<Data> {
        let space = Space {
            scalar: Scalar::I8,
            metric: Metric::Cosine,
            dim: 6,
        };
        let mut data = Data::clustered(space, 1, 1, 2)?;
        data.bytes = data.bytes.repeat(rows);
        Ok(data)
    }

    /// `rows` vectors and 50 queries around `centres` random centres.
    pub fn clustered(space: Space, rows: usize, centres: usize, seed: u64) -> Result<Data> {
        Data::spread(space, (rows, centres), 0.5, seed)
    }

    /// Rows and queries around so many centres, at a distance of which the elements have this standard deviation; those of
    /// the centres have one of 1.
    pub fn spread(
        space: Space,
        (rows, centres): (usize, usize),
        spread: f32,
        seed: u64,
    ) -> Result<Data> {
        let mut dice = Dice(seed);
        let centres: Vec<Vec<f32>> = (0..centres)
            .map(|_| (0..space.dim).map(|_| dice.normal()).collect())
            .collect();
        let mut point = || -> Vec<f32> {
            let centre = &centres[dice.below(centres.len() as u64) as usize];
            centre.iter().map(|x| x + spread * dice.normal()).collect()
        };
        let bytes = (0..rows)
            .flat_map(|_| encode(space.scalar, &point()))
            .collect();
        let queries: Result<Vec<Query>> = (0..50)
            .map(|_| Query::new(space, &as_query(space.scalar, &point())))
            .collect();
        Ok(Data {
            space,
            bytes,
            queries: queries?,
        })
    }

    pub fn rows(&self) -> usize {
        self.bytes.len() / self.space.row_bytes()
    }

    pub fn vector(&self, row: u64) -> &[u8] {
        let size = self.space.row_bytes();
        &self.bytes[row as usize * size..][..size]
    }

    pub fn build(&self, params: HnswParams) -> Result<Hnsw> {
        let index = Hnsw::new(self.space, params)?;
        for row in 0..self.rows() as u64 {
            index.insert(row, self.vector(row))?;
        }
        Ok(index)
    }

    pub fn exact(&self, query: &Query, k: usize, visible: &dyn Fn(u64) -> bool) -> Vec<Neighbor> {
        let mut top = TopK::new(k);
        flat::scan(
            query,
            0,
            &self.bytes,
            visible,
            &mut top,
            &mut SearchStats::default(),
        );
        top.into_sorted()
    }

    /// Share of the true `k` nearest visible rows that the index finds, over all queries. A row at the distance of
    /// the true last counts as found, whichever of the equals it is.
    pub fn recall(
        &self,
        index: &dyn VectorIndex,
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
    ) -> f64 {
        let (mut hits, mut wanted) = (0, 0);
        for query in &self.queries {
            let exact = self.exact(query, k, visible);
            let stats = &mut SearchStats::default();
            let found = index.search(query, k, ef, visible, self, stats);
            assert!(found.len() <= k, "no more than asked for");
            assert!(found.is_sorted(), "nearest first");
            let rows: HashSet<u64> = found.iter().map(|n| n.row).collect();
            assert_eq!(rows.len(), found.len(), "each row once");
            assert!(found.iter().all(|n| visible(n.row)), "visible rows only");
            for neighbor in &found {
                let distance = query.distance(self.vector(neighbor.row));
                assert_eq!(
                    neighbor.distance.to_bits(),
                    distance.to_bits(),
                    "the distance of the exact scan"
                );
            }
            let last = exact.last().map_or(f32::INFINITY, |n| n.distance);
            hits += found.iter().filter(|n| n.distance <= last).count();
            wanted += exact.len();
        }
        hits as f64 / wanted as f64
    }
}

impl VectorSource for Data {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        (row < self.rows() as u64).then(|| Data::vector(self, row))
    }
}

pub fn all(_: u64) -> bool {
    true
}

/// Of float32 elements, by Euclidean distance.
pub const fn floats(dim: usize) -> Space {
    Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim,
    }
}

/// Vectors around 40 centres that lie around `shift`, whose lengths vary by a factor of about `e ^ spread`, and
/// queries like them but for the lengths.
pub fn lengths(dim: usize, spread: f32, shift: f32) -> Result<Data> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Dot,
        dim,
    };
    let mut dice = Dice(11);
    let mut data = Data {
        space,
        bytes: Vec::new(),
        queries: Vec::new(),
    };
    let centres: Vec<Vec<f32>> = (0..40)
        .map(|_| (0..dim).map(|_| dice.normal() + shift).collect())
        .collect();
    let mut point = |spread: f32| -> Vec<f32> {
        let length = (spread * dice.normal()).exp();
        let centre = &centres[dice.below(40) as usize];
        centre
            .iter()
            .map(|x| length * (x + 0.5 * dice.normal()))
            .collect()
    };
    for _ in 0..3000 {
        data.bytes.extend(encode(space.scalar, &point(spread)));
    }
    for _ in 0..50 {
        data.queries.push(Query::new(space, &point(0.0))?);
    }
    Ok(data)
}

/// All pairs of element type and metric.
pub fn kinds() -> impl Iterator<Item = (Scalar, Metric)> {
    Scalar::ALL
        .into_iter()
        .flat_map(|scalar| Metric::ALL.map(|metric| (scalar, metric)))
}

/// Makes the checksum right, so that what is behind it is put to the test.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len().saturating_sub(4);
    let check = checksum(CrcAlgorithm::Crc32Iscsi, &bytes[..end]) as u32;
    bytes.truncate(end);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

/// The data of the fixtures: small integers, some twice.
pub fn golden_data() -> Result<Data> {
    let space = Space {
        scalar: Scalar::U8,
        metric: Metric::Euclidean,
        dim: 4,
    };
    let mut data = Data::clustered(space, 150, 6, 77)?;
    let repeated = data.bytes[..40].to_vec();
    data.bytes.extend(repeated);
    Ok(data)
}
