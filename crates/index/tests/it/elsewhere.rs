//! Filters by which nothing passes around the query, in all graphs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

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
            coded: None,
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
        // So few are scanned.
        let (_, left) = recall(&data, (&clustered, 50, true), search);
        assert_eq!(left, 1.0);
    }
    Ok(())
}

/// A walk through what does not pass finds all that it meets far, and nothing nearer from elsewhere: what it found out before stays true.
#[test]
fn queries_behind_a_lump_that_does_not_pass_are_left_to_a_scan() -> Result<()> {
    let mut data = with_a_lump()?;
    let mut dice = Dice(11);
    let mut point = || -> Vec<f32> { (0..DIM).map(|_| 40.0 + dice.normal()).collect() };
    let queries: Result<Vec<Query>> = (0..50).map(|_| Query::new(data.space, &point())).collect();
    data.queries = queries?;
    let graph: QuantizedGraph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    graph.prepare(data.bytes.chunks_exact(data.space.row_bytes()).step_by(16));
    (0..data.rows() as u64).try_for_each(|row| graph.insert(row, data.vector(row)))?;
    let search = |query: &Query, asked: Filtered<'_>| {
        graph.search_filtered(query, asked, &data, &mut SearchStats::default())
    };
    let clustered = |row: u64| row < CLUSTERED as u64;
    // Before and after all of the lump may be gone through.
    for ef in [50, 300] {
        let (found, left) = recall(&data, (&clustered, ef, true), search);
        println!("{ef}: {found}, {left} left");
        assert_eq!(left, 1.0, "{ef}: {found}");
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
    let (_, left) = recall(&data, (&clustered, 50, true), search);
    assert_eq!(left, 1.0);
    // What passes at random does around the query, too.
    for one_in in [1, 2, 5, 12] {
        let passes = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (1 << 32) / one_in;
        let (found, left) = recall(&data, (&passes, 100, true), search);
        assert!(found >= 0.95 && left <= 0.02, "{found}, {left} left");
    }
    Ok(())
}

type Way<'a> = dyn Fn(Filtered<'_>) -> Vec<Neighbor> + 'a;

/// What `search` finds of the rows that pass if it is told to end when it is asked for the time after `asks`, and whether it
/// was.
fn cut(
    (passes, rows): (&(dyn Fn(u64) -> bool + Sync), usize),
    asks: usize,
    search: &Way,
) -> (Vec<Neighbor>, bool) {
    let (left, was_cut) = (AtomicUsize::new(asks), AtomicBool::new(false));
    let is_over = || {
        let ask = left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        was_cut.fetch_or(ask.is_err(), SeqCst);
        ask.is_err()
    };
    let some: Vec<u64> = (0..rows as u64).filter(|row| passes(*row)).collect();
    let some: Vec<u64> = some.into_iter().step_by(16).collect();
    let found = search(Filtered {
        k: 10,
        ef: 50,
        passes,
        entries: Entries {
            rows: &some,
            // As if too many passed for a scan.
            passing: Some(60_000),
            coded: None,
        },
        is_over: Some(&is_over),
    });
    (found, was_cut.load(SeqCst))
}

/// What was found is kept while the search goes on elsewhere, wherever it is cut.
#[test]
fn a_search_that_is_cut_gives_what_it_had_found() -> Result<()> {
    let data = Data::spread(floats(DIM), (8_000, 40), 0.5, 5)?;
    let codes = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    codes.prepare(data.bytes.chunks_exact(data.space.row_bytes()).step_by(16));
    (0..data.rows() as u64).try_for_each(|row| codes.insert(row, data.vector(row)))?;
    let whole = data.build(HnswParams::default())?;
    let mut cuts = [0; 2];
    for query in &data.queries[..10] {
        // All but the nearest, of which some are looked at first.
        let mut is_far = vec![true; data.rows()];
        for one in data.exact(query, 25, &|_| true) {
            is_far[one.row as usize] = false;
        }
        let passes = |row: u64| is_far[row as usize];
        let rows: (&(dyn Fn(u64) -> bool + Sync), usize) = (&passes, data.rows());
        let ways: [&Way; 2] = [
            &|asked| codes.search_filtered(query, asked, &data, &mut SearchStats::default()),
            &|asked| whole.search_filtered(query, asked, &mut SearchStats::default()),
        ];
        for (way, search) in ways.into_iter().enumerate() {
            assert_eq!(cut(rows, usize::MAX, search).0.len(), 10);
            let mut farthest = f32::INFINITY;
            for asks in 0..200 {
                let (found, was_cut) = cut(rows, asks, search);
                assert!(found.is_sorted() && found.iter().all(|one| passes(one.row)));
                // Once there are ten, later ones are no farther.
                let last = found.get(9).map_or(f32::INFINITY, |one| one.distance);
                assert!(last <= farthest, "{way} {asks}: {last} after {farthest}");
                farthest = last;
                if !was_cut {
                    break;
                }
                cuts[way] += 1;
            }
            assert!(farthest < f32::INFINITY);
        }
    }
    println!("{cuts:?} cuts");
    assert!(cuts.into_iter().all(|cuts| cuts > 10), "{cuts:?}");
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
