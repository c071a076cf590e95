//! Random lives of an engine beside a plain model.

use std::cell::Cell;
use std::path::Path;

use longbow_engine::{
    Engine, GraphOptions, HnswParams, IndexKind, IndexPolicy, Options, Quantization, SyncMode,
};
use proptest::prelude::*;

use crate::drive::{Kind, Step, WEIGHTS, World};
use crate::lives::panics;
use crate::random::Random;
use crate::rounds::rounds;
use crate::rows::{Element, IdKind, Shape};

/// Options under which small data goes through everything that large data goes through.
pub fn small(path: &Path) -> Options {
    Options {
        log_segment_bytes: 16 << 10,
        seal_bytes: 16 << 10,
        tidy_interval: std::time::Duration::from_millis(300),
        max_log_bytes: 64 << 10,
        graphs: GraphOptions {
            hnsw: HnswParams {
                m: 6,
                ef_construction: 40,
                ..Options::new(path).graphs.hnsw
            },
            ..Options::new(path).graphs
        },
        index_workers: 2,
        ..Options::new(path)
    }
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = WEIGHTS.map(|(weight, kind)| (weight, Just(kind)));
    let kind = prop::strategy::Union::new_weighted(kinds.to_vec());
    (0..2usize, kind, any::<u64>()).prop_map(|(to, kind, seed)| Step { to, kind, seed })
}

/// Does all steps, and compares after each. Found and findable rows of searches by graph.
fn live(shape: Shape, steps: &[Step]) -> [usize; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = small(folder.path());
    let kinds = [Quantization::None, Quantization::Rabitq];
    options.graphs.quantization = Some(kinds[steps.len() % 2]);
    let [flat, hnsw, spfresh] = IndexKind::ALL.map(IndexPolicy::Fixed);
    let indexes = [flat, hnsw, spfresh, IndexPolicy::Auto];
    options.graphs.kind = indexes[steps.len() / 2 % 4];
    options.graphs.choice.least_rows = 30;
    options.graphs.choice.room = Some(10_000);
    let mut world = World::new(shape);
    let mut engine = Engine::open_folder(options.clone()).expect("an empty folder opens");
    assert_eq!(panics(), 0);
    for step in steps {
        let mut random = Random(!step.seed);
        if step.kind == Kind::Reopen {
            engine.close().expect("nothing fails on this disk");
            drop(engine);
            options.sync = match random.once_in(2) {
                true => SyncMode::EveryAck,
                false => Options::new("").sync,
            };
            if random.once_in(3) {
                // The graphs of the other kind go.
                options.graphs.quantization = Some(*random.pick(&kinds));
                options.graphs.kind = *random.pick(&indexes);
            }
            engine = Engine::open_folder(options.clone()).expect("what was closed opens");
            let found = engine.recovered();
            let rows = world
                .models
                .iter()
                .map(|model| model.len() as u64)
                .sum::<u64>();
            assert_eq!((found.rows, found.cut_bytes), (rows, 0));
        }
        let outcome = world.step(&engine, *step);
        assert!(outcome.refused.is_empty(), "{step:?}: {outcome:?}");
        world.check(&engine, &mut random);
    }
    engine.close().expect("nothing fails on this disk");
    assert_eq!(panics(), 0, "a thread of the engine panicked");
    world.recall
}

fn check(id: IdKind, element: Element) {
    let metric = prop::sample::select(vec!["euclidean", "cosine", "dot_product"]);
    let strategy = (metric, prop::collection::vec(step(), 1..40));
    let config = ProptestConfig {
        cases: rounds(6) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let recall = Cell::new([0, 0]);
    let outcome = prop::test_runner::TestRunner::new(config).run(&strategy, |(metric, steps)| {
        let found = live(
            Shape {
                id,
                element,
                metric,
            },
            &steps,
        );
        let [so_far, of] = recall.get();
        recall.set([so_far + found[0], of + found[1]]);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let [found, of] = recall.get();
    assert!(of > 0, "nothing was searched");
    assert!(
        found as f64 >= of as f64 * 0.98,
        "of {of} rows the graphs found {found}"
    );
}

macro_rules! each {
    ($($name:ident: $id:ident, $element:ident;)+) => {
        $(#[test]
        fn $name() {
            check(IdKind::$id, Element::$element);
        })+
    };
}

each! {
    numbered_rows_of_f32: Int, F32;
    numbered_rows_of_f16: Int, F16;
    numbered_rows_of_i8: Int, I8;
    numbered_rows_of_u8: Int, U8;
    numbered_rows_of_f64: Int, F64;
    numbered_rows_of_i16: Int, I16;
    named_rows_of_f32: Text, F32;
    named_rows_of_f16: Text, F16;
    named_rows_of_i8: Text, I8;
    named_rows_of_u8: Text, U8;
    named_rows_of_f64: Text, F64;
    named_rows_of_i16: Text, I16;
}
