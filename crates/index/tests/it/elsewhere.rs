//! Filters by which nothing passes around the query, in all graphs.

use longbow_index::{
    Entries, Filtered, Hnsw, HnswParams, Neighbor, QuantizedGraph, QuantizedParams, Query, Result,
    SearchStats,
};

use crate::common::{Data, Dice, encode, floats};

const DIM: usize = 96;
const CLUSTERED: usize = 12_000;
const LUMP: usize = 2_000;

/// Rows in many clusters, and the last of them in a lump without structure, about as far from all clusters; queries in
/// the lump.
fn with_a_lump() -> Result<Data> {
    let space = floats(DIM);
    let mut data = Data::spread(space, (CLUSTERED, 150), 0.3, 5)?;
    let mut dice = Dice(9);
    let mut point = || -> Vec<f32> { (0..DIM).map(|_| 10.0 + dice.normal()).collect() };
    for _ in 0..LUMP {
        data.bytes.extend(encode(space.scalar, &point()));
    }
    let queries: Result<Vec<Query>> = (0..50).map(|_| Query::new(space, &point())).collect();
    data.queries = queries?;
    Ok(data)
}

/// Recall of what `search` finds of the rows that pass, and how often it leaves them to a scan, of which the share is
/// told; nothing else passes.
fn recall(
    data: &Data,
    (passes, ef, is_known): (&(dyn Fn(u64) -> bool + Sync), usize, bool),
    search: impl Fn(&Query, Filtered<'_>) -> Vec<Neighbor>,
) -> (f64, f64) {
    let passing: Vec<u64> = (0..data.rows() as u64).filter(|row| passes(*row)).collect();
    let some: Vec<u64> = passing.iter().step_by(16).copied().collect();
    let filtered = Filtered {
        k: 10,
        ef,
        passes,
        entries: Entries {
            rows: &some,
            passing: is_known.then_some(passing.len() as u64),
        },
        is_over: None,
    };
    let (mut hits, mut asked, mut left) = (0, 0, 0);
    for query in &data.queries {
        let found = search(query, filtered);
        assert!(found.is_sorted() && found.iter().all(|one| passes(one.row)));
        if found.is_empty() {
            left += 1;
            continue;
        }
        let exact = data.exact(query, 10, &passes);
        hits += found.iter().filter(|one| exact.contains(one)).count();
        asked += exact.len();
    }
    let share = |part: usize, of: usize| f64::from(part as u32) / f64::from(of.max(1) as u32);
    (share(hits, asked), share(left, data.queries.len()))
}

#[test]
fn codes_find_the_nearest_far_from_a_lump() -> Result<()> {
    let data = with_a_lump()?;
    for edge_codes in [true, false] {
        let params = QuantizedParams {
            edge_codes,
            ..QuantizedParams::default()
        };
        let graph = QuantizedGraph::new(data.space, params)?;
        graph.prepare(data.bytes.chunks_exact(data.space.row_bytes()).step_by(16));
        (0..data.rows() as u64).try_for_each(|row| graph.insert(row, data.vector(row)))?;
        let search = |query: &Query, asked: Filtered<'_>| {
            graph.search_filtered(query, asked, &data, &mut SearchStats::default())
        };
        let clustered = |row: u64| row < CLUSTERED as u64;
        // As if too many passed for a scan.
        let (found, left) = recall(&data, (&clustered, 50, false), search);
        println!("{edge_codes}: {found}, {left} left");
        assert!(found >= 0.95 && left == 0.0, "{found}, {left} left");
        let (found, left) = recall(&data, (&clustered, 50, true), search);
        assert!(found >= 0.95 || left == 1.0, "{found}, {left} left");
    }
    Ok(())
}

#[test]
fn whole_vectors_far_from_a_lump_are_left_to_a_scan() -> Result<()> {
    let data = with_a_lump()?;
    let graph: Hnsw = data.build(HnswParams::default())?;
    let search = |query: &Query, asked: Filtered<'_>| {
        graph.search_filtered(query, asked, &mut SearchStats::default())
    };
    let clustered = |row: u64| row < CLUSTERED as u64;
    let (found, left) = recall(&data, (&clustered, 50, true), search);
    assert!(found >= 0.95 || left == 1.0, "{found}, {left} left");
    // What passes at random does around the query, too.
    for one_in in [1, 2, 5, 12] {
        let passes = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (1 << 32) / one_in;
        let (found, left) = recall(&data, (&passes, 100, true), search);
        assert!(found >= 0.95 && left <= 0.02, "{found}, {left} left");
    }
    Ok(())
}

#[test]
fn rows_that_lack_only_the_nearest_are_found_by_more_effort() -> Result<()> {
    let mut data = Data::spread(floats(24), (24_000, 200), 0.4, 5)?;
    let graph: Hnsw = data.build(HnswParams::default())?;
    let queries = std::mem::take(&mut data.queries);
    let search = |query: &Query, asked: Filtered<'_>| {
        graph.search_filtered(query, asked, &mut SearchStats::default())
    };
    let (mut found, mut left) = (0.0, 0.0);
    for query in &queries {
        // A cluster and more, and then one in two.
        let mut near = vec![false; data.rows()];
        for one in data.exact(query, 200, &|_| true) {
            near[one.row as usize] = true;
        }
        let passes = |row: u64| !near[row as usize] && row.is_multiple_of(2);
        data.queries = vec![query.clone()];
        let (one, is_left) = recall(&data, (&passes, 10, true), search);
        found += one;
        left += is_left;
    }
    println!("{found} of 50, {left} left");
    assert!(found >= 0.95 * 50.0 && left == 0.0, "{found}, {left} left");
    Ok(())
}
