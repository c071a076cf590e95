//! Walks that are told to end.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use longbow_index::{Filtered, IsOver};

use super::filtered::entries;
use super::*;

/// Graphs with codes of edges, and with codes that are cut.
fn built() -> Result<Vec<(Data, QuantizedGraph)>> {
    let kinds = [(96, true), (192, false)];
    let built = kinds.map(|(dim, edge_codes)| {
        let data = Data::clustered(floats(dim, Metric::Euclidean), 8000, 40, 5)?;
        let params = QuantizedParams {
            edge_codes,
            ..QuantizedParams::default()
        };
        let graph = prepared(&data, params)?;
        fill(&graph, &data)?;
        Ok((data, graph))
    });
    built.into_iter().collect()
}

#[test]
fn a_walk_that_is_told_to_end_gives_what_it_has() -> Result<()> {
    for (data, graph) in built()? {
        let passes = |row: u64| row.is_multiple_of(4);
        let entries = entries(&[], None);
        let search = |is_over: Option<IsOver<'_>>| {
            let asked = Filtered {
                k: 200,
                ef: 2_000,
                passes: &passes,
                entries,
                is_over,
            };
            let mut stats = [SearchStats::default(); 2];
            let queries = &data.queries[..2];
            let one = graph.search_filtered(&queries[0], asked, &data, &mut stats[0]);
            stats[0] = SearchStats::default();
            let each = graph.search_filtered_each(queries, asked, &data, &mut stats);
            assert_eq!(one, each[0]);
            (one, stats[0].nodes_popped)
        };
        let (whole, popped) = search(None);
        assert_eq!(whole.len(), 200);
        assert_eq!(search(Some(&|| false)), (whole, popped));
        let (cut, few) = search(Some(&|| true));
        assert!(0 < few && few < popped / 4, "{few} of {popped}");
        assert!(cut.is_sorted() && cut.iter().all(|one| passes(one.row)));
        // Without codes of edges it is still above the rows by then.
        assert_eq!(cut.is_empty(), !graph.params().edge_codes);
    }
    Ok(())
}

#[test]
fn wherever_a_walk_is_cut_what_it_gives_passes() -> Result<()> {
    for (data, graph) in built()? {
        let mut partial = 0;
        for (at, query) in data.queries.iter().enumerate() {
            // Where nothing passes around the query, a walk through all gives up and begins anew above.
            let far = data.exact(query, data.rows(), &all).split_off(3000);
            let mut is_far = vec![false; data.rows()];
            far.iter().for_each(|one| is_far[one.row as usize] = true);
            let passes = |row: u64| is_far[row as usize];
            for asks in 0..8 {
                let left = AtomicUsize::new(asks);
                let is_over = || {
                    left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1))
                        .is_err()
                };
                let asked = Filtered {
                    k: 10,
                    ef: 10 + at % 7,
                    passes: &passes,
                    entries: entries(&[], Some(far.len() as u64)),
                    is_over: Some(&is_over),
                };
                let mut stats = [SearchStats::default(); 2];
                let queries = [query.clone(), query.clone()];
                for found in graph.search_filtered_each(&queries, asked, &data, &mut stats) {
                    assert!(found.iter().all(|one| passes(one.row)), "{found:?}");
                    let distance = |one: &Neighbor| query.distance(data.vector(one.row));
                    assert!(found.iter().all(|one| distance(one) == one.distance));
                    partial += usize::from(found.len() < 10);
                }
            }
        }
        assert!(partial > 0, "some were cut");
    }
    Ok(())
}

#[test]
fn a_walk_of_all_rows_that_is_told_to_end_gives_what_it_has() -> Result<()> {
    for (data, graph) in built()? {
        let search = |is_over: Option<IsOver<'_>>| {
            let mut stats = [SearchStats::default(); 2];
            let rows = (&(|_| true) as &(dyn Fn(u64) -> bool + Sync), is_over);
            let found =
                graph.search_each(&data.queries[..2], (200, 2_000), rows, &data, &mut stats);
            (found, stats.map(|stats| stats.nodes_popped))
        };
        let (whole, popped) = search(None);
        assert!(whole.iter().all(|found| found.len() == 200));
        assert_eq!(search(Some(&|| false)), (whole, popped));
        let (cut, few) = search(Some(&|| true));
        assert!(
            (0..2).all(|at| 0 < few[at] && few[at] < popped[at] / 4),
            "{few:?} of {popped:?}"
        );
        assert!(
            cut.iter()
                .all(|found| !found.is_empty() && found.is_sorted())
        );
    }
    Ok(())
}
