//! Which original vectors a search asks for, and when.

use std::cell::RefCell;

use super::led_to::{graph, insert};
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::mix::drawn;
use crate::quantized::QuantizedGraph;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::vector_index::VectorIndex;

const DIM: usize = 128;
const ROWS: u64 = 600;

/// The vectors of all rows, of one length, and which were asked for, one after the other.
pub(in crate::quantized) struct Rows {
    pub(in crate::quantized) bytes: Vec<u8>,
    pub(in crate::quantized) stride: usize,
    pub(in crate::quantized) asked: RefCell<Vec<u64>>,
}

impl VectorSource for Rows {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.asked.borrow_mut().push(row);
        self.bytes.chunks_exact(self.stride).nth(row as usize)
    }
}

fn vector(of: u64) -> Vec<f32> {
    std::iter::repeat_with(drawn(of)).take(DIM).collect()
}

fn rows() -> Result<(QuantizedGraph, Rows)> {
    let graph = graph(DIM, true)?;
    let mut bytes = Vec::new();
    for row in 0..ROWS {
        let vector = vector(row);
        insert(&graph, row, &vector)?;
        bytes.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
    }
    let rows = Rows {
        bytes,
        stride: 4 * DIM,
        asked: RefCell::default(),
    };
    Ok((graph, rows))
}

#[test]
fn a_search_by_itself_asks_for_what_it_will_find() -> Result<()> {
    let (graph, rows) = rows()?;
    let (k, ef) = (10, 40);
    for query in 0..20 {
        let query = || Query::new(graph.space(), &vector(ROWS + query));
        let (one, two) = (query()?, [query()?, query()?]);
        let stats = &mut SearchStats::default();
        let found = graph.search(&one, k, ef, &|_| true, &rows, stats);
        let asked = rows.asked.take();
        let both = graph.search_batch(&two, k, ef, &|_| true, &rows, stats);
        assert_eq!(both, [found.clone(), found.clone()]);
        // Each of these asks when it has ended only.
        let at_the_end = rows.asked.take().len() / 2;
        let ahead = &asked[..asked.len() - at_the_end];
        let missing = found.iter().filter(|found| !ahead.contains(&found.row));
        // By codes, the tenth may be another than by vectors.
        assert!(missing.count() <= 2, "{ahead:?} for {found:?}");
        assert!(ahead.len() < 4 * k, "{ahead:?} for {found:?}");
    }
    Ok(())
}

#[test]
fn at_the_end_no_more_are_on_their_way_than_the_nearest_cache_holds() -> Result<()> {
    let (graph, rows) = rows()?;
    let query = Query::new(graph.space(), &vector(ROWS))?;
    let (k, window) = (200, (32 << 10) / (4 * DIM));
    let mut scratch = graph.prepare_query(&query).expect("a graph with nodes");
    // As if the last were the nearest.
    let found = (0..ROWS as u32).map(|node| Candidate::new((ROWS as u32 - node) as f32, node));
    scratch.found = found.collect();
    graph.ask_originals(k, &rows, &mut scratch);
    // SAFETY: all were written.
    let row = |found: &Candidate| unsafe { graph.ground().blocks.row(found.node()) };
    let nearest: Vec<u64> = scratch.found.iter().map(row).collect();
    assert_eq!(nearest[0], ROWS - 1);
    assert_eq!(rows.asked.take(), nearest[..window]);
    let answer = graph.rerank(&query, k, &rows, &mut scratch);
    assert_eq!(answer.len(), k);
    let asked = rows.asked.take();
    let later = |place: usize| (place + window < k).then(|| nearest[place + window]);
    let both = (0..k).flat_map(|place| later(place).into_iter().chain([nearest[place]]));
    assert_eq!(asked[..2 * k - window], both.collect::<Vec<_>>());
    // One that is compared beyond these was not asked for.
    assert!(
        asked[2 * k - window..]
            .iter()
            .all(|row| nearest[k..].contains(row))
    );
    Ok(())
}
