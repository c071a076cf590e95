//! Random inserts, deletes and searches, against a plain list.

use longbow_index::{Hnsw, HnswParams, Query, Result, SearchStats, Space, TopK, flat};
use longbow_index::{Metric, Scalar};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::common::{as_query, encode};

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<i8>),
    Delete(prop::sample::Index),
    Search(Vec<i8>, usize),
}

/// Few values and dimensions, so that vectors repeat and distances tie.
fn vector() -> impl Strategy<Value = Vec<i8>> {
    prop::collection::vec(-3i8..4, 3)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => vector().prop_map(Step::Insert),
        2 => any::<prop::sample::Index>().prop_map(Step::Delete),
        2 => (vector(), 1usize..12).prop_map(|(v, k)| Step::Search(v, k)),
    ];
    prop::collection::vec(step, 1..150)
}

fn floats(values: &[i8]) -> Vec<f32> {
    values.iter().map(|x| f32::from(*x)).collect()
}

fn run(space: Space, steps: &[Step]) -> Result<()> {
    let index = Hnsw::new(
        space,
        HnswParams {
            m: 8,
            ef_construction: 60,
            seed: 1,
        },
    )?;
    let (mut bytes, mut alive) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Insert(values) => {
                let stored = encode(space.scalar, &floats(values));
                index.insert(alive.len() as u64, &stored)?;
                bytes.extend_from_slice(&stored);
                alive.push(true);
            }
            Step::Delete(which) if !alive.is_empty() => *which.get_mut(&mut alive) = false,
            Step::Delete(_) => {}
            Step::Search(values, k) => {
                let query = Query::new(space, &as_query(space.scalar, &floats(values)))?;
                let visible = |row: u64| alive[row as usize];
                let mut top = TopK::new(*k);
                flat::scan(
                    &query,
                    0,
                    &bytes,
                    &visible,
                    &mut top,
                    &mut SearchStats::default(),
                );
                let exact: Vec<f32> = top.into_sorted().iter().map(|n| n.distance).collect();
                let found = index.search(&query, *k, 200, &visible, &mut SearchStats::default());
                assert!(
                    found.iter().all(|n| visible(n.row)),
                    "{space:?}: only what is alive"
                );
                let distances: Vec<f32> = found.iter().map(|n| n.distance).collect();
                assert_eq!(
                    distances,
                    exact,
                    "{space:?}: the nearest of {} rows",
                    alive.len()
                );
            }
        }
    }
    Ok(())
}

proptest! {
    // The graph is approximate, so the cases are the same in every run.
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default() })]
    #[test]
    fn a_graph_that_is_searched_widely_is_exact(
        steps in steps(),
        scalar in prop::sample::select(Scalar::ALL.to_vec()),
        metric in prop::sample::select(Metric::ALL.to_vec()),
    ) {
        let done = run(Space { scalar, metric, dim: 3 }, &steps);
        prop_assert!(done.is_ok(), "{:?}", done);
    }
}
