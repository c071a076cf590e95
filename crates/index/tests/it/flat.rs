//! The exact scan against sorting everything.

use crate::common::{Data, all, floats, kinds};
use longbow_index::flat::{Flat, scan, scan_rows};
use longbow_index::{
    Metric, Neighbor, Query, Result, Scalar, SearchStats, Space, TopK, VectorIndex, VectorSource,
};

fn sorted(data: &Data, query: &Query, k: usize, visible: &dyn Fn(u64) -> bool) -> Vec<Neighbor> {
    let rows = (0..data.rows() as u64).filter(|row| visible(*row));
    let mut all: Vec<Neighbor> = rows
        .map(|row| Neighbor {
            row,
            distance: query.distance(data.vector(row)),
        })
        .collect();
    all.sort_unstable();
    all.truncate(k);
    all
}

#[test]
fn a_scan_gives_the_nearest_in_order_however_it_is_split() -> Result<()> {
    for (scalar, metric) in kinds() {
        // More rows than a batch, and in few dimensions, so that there are ties.
        let data = Data::clustered(
            Space {
                scalar,
                metric,
                dim: 3,
            },
            9000,
            4,
            1,
        )?;
        let size = data.space.row_bytes();
        let visible = |row: u64| !row.is_multiple_of(3);
        for query in &data.queries[..5] {
            let expected = sorted(&data, query, 100, &visible);
            for split in [1, 1000, 4096, 9000] {
                let (mut top, mut stats) = (TopK::new(100), SearchStats::default());
                // The last part comes first: the order must not matter either.
                for (i, part) in data.bytes.chunks(split * size).enumerate().rev() {
                    scan(
                        query,
                        (i * split) as u64,
                        part,
                        &visible,
                        &mut top,
                        &mut stats,
                    );
                }
                assert_eq!(
                    top.into_sorted(),
                    expected,
                    "{scalar} {metric}, split {split}"
                );
                assert_eq!(
                    stats,
                    SearchStats {
                        bytes_touched: 0,
                        distance_computations: 9000,
                        nodes_popped: 0
                    }
                );
            }
        }
    }
    Ok(())
}

#[test]
fn scattered_rows_are_scored_as_in_a_scan() -> Result<()> {
    for (scalar, metric) in kinds() {
        let data = Data::clustered(
            Space {
                scalar,
                metric,
                dim: 9,
            },
            1000,
            4,
            1,
        )?;
        for count in [0u64, 1, 63, 64, 65, 700] {
            let wanted = |row: u64| row * 7 % 1000 < count;
            let rows = (0..1000)
                .filter(|row| wanted(*row))
                .map(|row| (row, data.vector(row)));
            let (mut top, mut stats) = (TopK::new(20), SearchStats::default());
            scan_rows(&data.queries[0], rows, &mut top, &mut stats);
            assert_eq!(
                top.into_sorted(),
                data.exact(&data.queries[0], 20, &wanted),
                "{scalar} {metric} {count}"
            );
            assert_eq!(stats.distance_computations, count);
        }
    }
    Ok(())
}

#[test]
fn only_rows_that_can_enter_are_asked_about() -> Result<()> {
    let space = floats(1);
    let bytes: Vec<u8> = (0..10_000u32)
        .flat_map(|x| (x as f32).to_le_bytes())
        .collect();
    let asked = std::cell::Cell::new(0);
    let visible = |_| {
        asked.set(asked.get() + 1);
        true
    };
    let mut top = TopK::new(7);
    scan(
        &Query::new(space, &[0.0])?,
        0,
        &bytes,
        &visible,
        &mut top,
        &mut SearchStats::default(),
    );
    assert_eq!(asked.get(), 7);
    assert_eq!(
        top.into_sorted().iter().map(|n| n.row).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5, 6]
    );
    Ok(())
}

#[test]
fn a_flat_index_answers_as_a_scan() -> Result<()> {
    let data = Data::clustered(
        Space {
            scalar: Scalar::F16,
            metric: Metric::Cosine,
            dim: 7,
        },
        500,
        5,
        1,
    )?;
    let flat = Flat::new(data.space);
    assert!(flat.is_empty());
    for row in (0..500).rev() {
        flat.insert(row, data.vector(row))?;
    }
    assert_eq!(flat.len(), 500);
    assert!(flat.memory_bytes() >= 500 * (8 + data.space.row_bytes()));
    let mut stats = SearchStats::default();
    for query in &data.queries {
        let visible = |row: u64| row < 100;
        assert_eq!(
            flat.search(query, 10, 0, &visible, &Nothing, &mut stats),
            sorted(&data, query, 10, &visible)
        );
        assert_eq!(
            flat.search(query, 600, 0, &all, &Nothing, &mut stats).len(),
            500
        );
    }
    assert!(
        flat.insert(1, &[0; 13])
            .unwrap_err()
            .to_string()
            .contains("13 bytes, expected 14")
    );
    Ok(())
}

#[test]
#[should_panic(expected = "10 bytes are no whole number of vectors of 4")]
fn a_torn_row_is_a_fault_of_the_caller() {
    let space = Space {
        scalar: Scalar::U8,
        metric: Metric::Dot,
        dim: 4,
    };
    let Ok(query) = Query::new(space, &[0.0; 4]) else {
        return;
    };
    scan(
        &query,
        0,
        &[0; 10],
        &all,
        &mut TopK::new(1),
        &mut SearchStats::default(),
    );
}

/// A flat index has the vectors itself.
struct Nothing;

impl VectorSource for Nothing {
    fn vector(&self, _: u64) -> Option<&[u8]> {
        None
    }
}
