//! Rows that lie far out from all others are found however many come after them.

use longbow_kernels::Metric;

use super::groups::graph;
use super::led_to::insert;
use crate::VectorIndex;
use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::mix::drawn;
use crate::space::Query;
use crate::stats::SearchStats;

struct Rows(Vec<Vec<u8>>);

impl VectorSource for Rows {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.0.get(row as usize).map(Vec::as_slice)
    }
}

/// Of 300 rows that are so many times as long as the 4,700 that come after them, how many are not found by their own
/// vectors where a walk goes through a fifth of all.
fn lost(times: f32, edge_codes: bool) -> Result<usize> {
    const DIM: usize = 128;
    let graph = graph(Metric::Euclidean, DIM, edge_codes)?;
    let mut next = drawn(7);
    let mut row = |row: usize| -> Vec<f32> {
        let length = if row < 300 { times } else { 1.0 };
        // Sums of four are about normal.
        let mut element = || (next() + next() + next() + next() - 2.0) * length;
        (0..DIM).map(|_| element()).collect()
    };
    let rows: Vec<Vec<f32>> = (0..5_000).map(&mut row).collect();
    let bytes = |row: &Vec<f32>| row.iter().flat_map(|x| x.to_le_bytes()).collect();
    let originals = Rows(rows.iter().map(bytes).collect());
    graph.prepare(originals.0.iter().map(Vec::as_slice));
    for (number, row) in (0..).zip(&rows) {
        insert(&graph, number, row)?;
    }
    graph.check_edges("far out");
    let is_lost = |number: &u64| {
        let query = Query::new(graph.space(), &rows[*number as usize]).expect("finite numbers");
        let mut stats = SearchStats::default();
        let found = graph.search(&query, 1, 1_000, &|_| true, &originals, &mut stats);
        found.first().is_none_or(|found| found.row != *number)
    };
    Ok((0..300).filter(is_lost).count())
}

#[test]
fn rows_far_out_are_found_though_all_others_came_after_them() -> Result<()> {
    for edge_codes in [true, false] {
        for times in [2.0, 4.0, 100.0] {
            let lost = lost(times, edge_codes)?;
            // It is 114 to 193 without guides. Each can guide only so many.
            assert!(lost <= 40, "{lost} at {times}, codes {edge_codes}");
        }
    }
    Ok(())
}
