//! Vectors that consist of whole numbers: they are compared by copies of a byte an element.

use std::sync::atomic::{AtomicBool, Ordering};

use longbow_index::{Entries, Filtered, Progress, VectorSource};

use super::checkpoint::save;
use super::*;

/// No vectors.
struct Nothing;

impl VectorSource for Nothing {
    fn vector(&self, _row: u64) -> Option<&[u8]> {
        None
    }
}

/// Vectors around 20 centres, of whole numbers of `range`.
fn whole(metric: Metric, dim: usize, rows: usize, range: (f32, f32)) -> Result<Data> {
    let space = floats(dim, metric);
    let mut data = Data::clustered(space, rows, 20, 9)?;
    let (least, most) = range;
    let (middle, wide) = (least.midpoint(most), (most - least) / 8.0);
    let (elements, _) = data.bytes.as_chunks_mut::<4>();
    for element in elements {
        let x = f32::from_le_bytes(*element);
        let whole = (middle + wide * x).round().clamp(least, most);
        *element = whole.to_le_bytes();
    }
    for query in &mut data.queries {
        let floats: Vec<f32> = query.floats().iter().map(|x| middle + wide * x).collect();
        *query = Query::new(space, &floats)?;
    }
    Ok(data)
}

/// Makes of each four rows the first, and twice, three and four times as much: by cosine they have the same code.
fn multiples(data: &mut Data) {
    let row_floats = data.space.dim;
    let (elements, _) = data.bytes.as_chunks_mut::<4>();
    for row in elements.chunks_mut(4 * row_floats) {
        let (first, others) = row.split_at_mut(row_floats);
        for (other, times) in others.chunks_mut(row_floats).zip([2.0, 3.0, 4.0]) {
            for (element, one) in other.iter_mut().zip(&*first) {
                *element = (times * f32::from_le_bytes(*one)).to_le_bytes();
            }
        }
    }
}

/// Checks what searches find with distances to the last bit, and whether that is by copies.
fn check(
    graph: &QuantizedGraph,
    data: &Data,
    visible: &(dyn Fn(u64) -> bool + Sync),
    copied: bool,
) {
    // Walks by product pass some by where lengths differ.
    let least = if data.space.metric == Metric::Dot {
        0.8
    } else {
        0.95
    };
    assert!(data.recall(graph, 10, 64, visible) >= least);
    assert_eq!(graph.kept_bytes() > 0, copied);
    for query in &data.queries[..5] {
        let stats = &mut SearchStats::default();
        let expected = graph.search(query, 10, 64, visible, data, stats);
        let found = graph.search(query, 10, 64, visible, &Nothing, stats);
        assert_eq!(found, if copied { expected } else { Vec::new() });
    }
}

#[test]
fn distances_are_those_of_the_vectors_to_the_last_bit() -> Result<()> {
    for metric in Metric::ALL {
        for dim in [1, 3, 16, 127] {
            for range in [(0.0, 255.0), (-128.0, 127.0)] {
                let data = whole(metric, dim, 1_200, range)?;
                let graph = build(&data)?;
                check(&graph, &data, &all, true);
                let copies = graph.kept_bytes();
                assert!(copies >= data.rows() * dim);
                assert_eq!(graph.let_go(), copies);
                check(&graph, &data, &all, false);
            }
        }
    }
    Ok(())
}

#[test]
fn fewer_bytes_are_read() -> Result<()> {
    let data = whole(Metric::Euclidean, 96, 2_000, (0.0, 255.0))?;
    let graph = build(&data)?;
    let cost = || {
        let mut stats = SearchStats::default();
        for query in &data.queries {
            graph.search(query, 10, 20, &all, &data, &mut stats);
        }
        stats
    };
    let copied = cost();
    assert!(graph.let_go() > 0);
    let whole = cost();
    let compared = copied.distance_computations;
    assert_eq!(compared, whole.distance_computations);
    let fewer = whole.bytes_touched - copied.bytes_touched;
    assert!(fewer >= 3 * 96 * 10 * data.queries.len() as u64, "{fewer}");
    Ok(())
}

#[test]
fn other_vectors_and_compact_graphs_have_none() -> Result<()> {
    let fractions = Data::clustered(floats(16, Metric::Euclidean), 500, 20, 9)?;
    check(&build(&fractions)?, &fractions, &all, false);
    let data = whole(Metric::Euclidean, 16, 500, (0.0, 255.0))?;
    let compact = QuantizedParams {
        edge_codes: false,
        ..QuantizedParams::default()
    };
    let graph = prepared(&data, compact)?;
    fill(&graph, &data)?;
    check(&graph, &data, &all, false);
    // The first insert came before the sample.
    let graph = QuantizedGraph::new(data.space, QuantizedParams::default())?;
    graph.insert(0, data.vector(0))?;
    graph.prepare(data.bytes.chunks_exact(data.space.row_bytes()));
    assert_eq!(graph.kept_bytes(), 0);
    Ok(())
}

/// Adds a fraction to the first element of some rows, so that there are no copies of these.
fn make_odd(data: &mut Data, is_odd: impl Fn(usize) -> bool) {
    let (row_bytes, rows) = (data.space.row_bytes(), data.rows());
    for row in (0..rows).filter(|row| is_odd(*row)) {
        let first = &mut data.bytes[row * row_bytes..][..4];
        let x = f32::from_le_bytes([first[0], first[1], first[2], first[3]]);
        first.copy_from_slice(&(x.floor() + 0.5).to_le_bytes());
    }
}

/// Whether a row has a fraction.
fn is_odd(data: &Data, row: u64) -> bool {
    let (elements, _) = data.vector(row).as_chunks::<4>();
    elements
        .iter()
        .any(|bytes| f32::from_le_bytes(*bytes).fract() != 0.0)
}

/// As [`check`], of data of which some rows are odd: all but these are compared by copies.
fn check_odd(graph: &QuantizedGraph, data: &Data, visible: &(dyn Fn(u64) -> bool + Sync)) {
    assert!(data.recall(graph, 10, 64, visible) >= 0.95);
    assert!(graph.kept_bytes() > 0);
    let mut odd = 0;
    for query in &data.queries {
        let stats = &mut SearchStats::default();
        let expected = graph.search(query, 10, 64, visible, data, stats);
        let mut found = graph.search(query, 10, 64, visible, &Nothing, stats);
        assert!(found.iter().all(|found| !is_odd(data, found.row)));
        let mut whole = expected.clone();
        whole.retain(|found| !is_odd(data, found.row));
        odd += expected.len() - whole.len();
        found.truncate(whole.len());
        assert_eq!(found, whole);
        for found in expected {
            let distance = query.distance(data.vector(found.row));
            assert_eq!(found.distance.to_bits(), distance.to_bits());
        }
    }
    assert!(odd > 0, "none is found");
}

#[test]
fn few_odd_vectors_are_read_and_many_end_them_beside_searches() -> Result<()> {
    let mut data = whole(Metric::Euclidean, 24, 3_000, (0.0, 255.0))?;
    make_odd(&mut data, |row| row >= 2_000 || row % 10 == 9);
    let graph = prepared(&data, QuantizedParams::default())?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let searching = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(Ordering::Acquire) || rounds == 0 {
                for query in &data.queries {
                    for found in search(&graph, &data, query, 10, 20) {
                        let distance = query.distance(data.vector(found.row));
                        assert_eq!(found.distance.to_bits(), distance.to_bits());
                    }
                }
                rounds += 1;
            }
        });
        let insert = || {
            (0..2_000).try_for_each(|row| graph.insert(row, data.vector(row)))?;
            check_odd(&graph, &data, &|row| row < 2_000);
            (2_000..3_000).try_for_each(|row| graph.insert(row, data.vector(row)))
        };
        let inserted = insert();
        done.store(true, Ordering::Release);
        assert!(searching.join().is_ok(), "distances are those of the rows");
        inserted
    })?;
    check(&graph, &data, &all, false);
    Ok(())
}

#[test]
fn they_are_made_anew_from_the_rows() -> Result<()> {
    for (metric, range) in [
        (Metric::Euclidean, (0.0, 255.0)),
        (Metric::Dot, (-128.0, 127.0)),
    ] {
        let data = whole(metric, 20, 1_000, range)?;
        let graph = prepared(&data, QuantizedParams::default())?;
        (0..500).try_for_each(|row| graph.insert(row, data.vector(row)))?;
        let bytes = save(&graph)?.0;
        let mut loaded = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
        check(&loaded, &data, &|row| row < 500, false);
        assert!(loaded.make_copies(&data, 0));
        assert_eq!(loaded.kept_bytes(), graph.kept_bytes());
        assert!(loaded.kept_bytes() >= loaded.bytes_of_copies());
        check(&loaded, &data, &|row| row < 500, true);
        (500..1_000).try_for_each(|row| loaded.insert(row, data.vector(row)))?;
        check(&loaded, &data, &all, true);
        let anew = graph.empty_like_it()?;
        fill(&anew, &data)?;
        check(&anew, &data, &all, true);
        // Of a row that nobody sees there is no vector.
        assert!(loaded.make_copies(&Few(&data, 7), 8));
        check(&loaded, &data, &|row| row != 7, true);
        assert!(
            !loaded.make_copies(&Few(&data, 7), 7),
            "it may be seen later"
        );
        check(&loaded, &data, &all, false);
    }
    Ok(())
}

/// All vectors but that of a row.
struct Few<'a>(&'a Data, u64);

impl VectorSource for Few<'_> {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        (row != self.1).then(|| self.0.vector(row))
    }
}

#[test]
fn none_are_made_where_many_vectors_are_odd() -> Result<()> {
    let mut data = whole(Metric::Euclidean, 20, 1_500, (0.0, 255.0))?;
    let graph = build(&data)?;
    let bytes = save(&graph)?.0;
    let mut loaded = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
    for (one_in, copied) in [(1_500, true), (5, true), (3, false), (1, false)] {
        make_odd(&mut data, |row| row % one_in == 0);
        let anew = build(&data)?;
        let bytes = save(&anew)?.0;
        let mut loaded = QuantizedGraph::load(data.space, anew.params(), &bytes)?;
        assert_eq!(loaded.make_copies(&data, 0), copied, "one in {one_in}");
        match one_in {
            5 => check_odd(&loaded, &data, &all),
            _ => check(
                &loaded,
                &data,
                &|row| !is_odd(&data, row) || !copied,
                copied,
            ),
        }
    }
    for (odd, copied) in [(256.0f32, true), (-1.0, true)] {
        let at = 1_001 * data.space.row_bytes();
        let mut data = whole(Metric::Euclidean, 20, 1_500, (0.0, 255.0))?;
        data.bytes[at..at + 4].copy_from_slice(&odd.to_le_bytes());
        assert_eq!(loaded.make_copies(&data, 0), copied, "{odd}");
        check(&loaded, &data, &|row| row != 1_001, copied);
    }
    let params = QuantizedParams {
        edge_codes: false,
        ..graph.params()
    };
    let mut compact = QuantizedGraph::load(data.space, params, &bytes)?;
    assert!(!compact.make_copies(&data, 0));
    assert_eq!((compact.bytes_of_copies(), compact.kept_bytes()), (0, 0));
    Ok(())
}

#[test]
fn all_ways_to_search_compare_them() -> Result<()> {
    let data = whole(Metric::Euclidean, 48, 1_500, (0.0, 255.0))?;
    let graph = build(&data)?;
    let rows: Vec<u64> = (0..1_500).filter(|row| row % 3 == 0).collect();
    let passes = |row: u64| row.is_multiple_of(3);
    let filtered = Filtered {
        k: 10,
        ef: 64,
        passes: &passes,
        entries: Entries {
            rows: &rows,
            passing: None,
            coded: None,
        },
        is_over: None,
    };
    let answers = |source: &dyn VectorSource| {
        let stats = &mut SearchStats::default();
        let mut answers = graph.search_batch(&data.queries, 10, 64, &all, source, stats);
        let each = &mut vec![SearchStats::default(); data.queries.len()];
        answers.extend(graph.search_filtered_each(&data.queries, filtered, source, each));
        for query in &data.queries {
            answers.push(graph.search_filtered(query, filtered, source, stats));
            // So narrow that a wider search follows, and more than there are.
            answers.push(graph.search(query, 10, 1, &all, source, stats));
            answers.push(graph.search(query, 2_000, 64, &all, source, stats));
            let asked = rows.iter().copied();
            answers.push(graph.scan_rows(query, 10, asked, source, (&mut Vec::new(), stats)));
        }
        answers
    };
    let copied = answers(&Nothing);
    assert!(copied.iter().all(|found| found.len() >= 10));
    assert_eq!(copied, answers(&data));
    assert!(graph.let_go() > 0);
    assert_eq!(copied, answers(&data));
    Ok(())
}

#[test]
fn rows_that_came_in_haste_have_copies() -> Result<()> {
    let data = whole(Metric::Euclidean, 48, 1_000, (0.0, 255.0))?;
    let graph = prepared(&data, QuantizedParams::default())?;
    (0..1_000).try_for_each(|row| graph.insert_in_haste(row, data.vector(row)))?;
    while graph.refine(64) {}
    check(&graph, &data, &all, true);
    Ok(())
}

/// Nodes take the rows of others with the same code, and others take the places of those that left.
#[test]
fn rows_that_come_and_go_keep_their_own() -> Result<()> {
    let mut data = whole(Metric::Cosine, 16, 4_000, (0.0, 63.0))?;
    // Half of it is whole again, so that nodes with a copy take the rows of nodes without, and the other way round.
    make_odd(&mut data, |row| row % 36 == 0);
    multiples(&mut data);
    let mut graph = prepared(&data, QuantizedParams::default())?;
    (0..2_000).try_for_each(|row| graph.insert(row, data.vector(row)))?;
    let mut lives: Vec<bool> = (0..4_000).map(|row| row < 2_000).collect();
    let mut dice = Dice(3);
    for coming in (2_000u64..4_000).step_by(250) {
        // The first of four with the same code, and some.
        for row in 0..coming {
            if row % 4 == 0 && dice.below(4) == 0 || dice.below(20) == 0 {
                lives[row as usize] = false;
            }
        }
        graph.retire(&|row| !lives[row as usize])?;
        if coming % 500 == 0 {
            // As after a restart in the middle, with nodes that are free.
            let bytes = save(&graph)?.0;
            graph = QuantizedGraph::load(data.space, graph.params(), &bytes)?;
            graph.retire(&|row| !lives[row as usize])?;
            assert!(graph.make_copies(&data, 0));
        }
        while graph.remove(50) != Progress::Ended {
            check_odd(&graph, &data, &|row| lives[row as usize]);
        }
        for row in coming..coming + 250 {
            graph.insert(row, data.vector(row))?;
        }
        lives
            .iter_mut()
            .skip(coming as usize)
            .take(250)
            .for_each(|l| *l = true);
        check_odd(&graph, &data, &|row| {
            row < coming + 250 && lives[row as usize]
        });
    }
    Ok(())
}
