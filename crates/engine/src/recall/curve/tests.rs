use super::*;

const ROWS: u64 = 100_000;

/// Of rows all of which live, and no others ever did.
fn moment(rows: u64) -> Moment {
    Moment {
        rows,
        live: rows,
        written: rows,
    }
}

/// Queries that find everything from a rung on, and before it as large a share as the rung is of it; all walks go as
/// `look` says, more or less.
fn queries(origin: Origin, count: usize, full: usize, look: f32) -> Vec<(Origin, Arc<Measured>)> {
    let recall = |rung: usize| (rung as f32 / full as f32).min(1.0);
    let one = |at: usize| {
        let look = look + (at % 5) as f32 / 10.0;
        Arc::new(Measured::of(recall, Look([look, look, 0.0, 0.0])))
    };
    (0..count).map(|at| (origin, one(at))).collect()
}

fn look(of: f32) -> Look {
    Look([of, of, 0.0, 0.0])
}

fn curve(all: Vec<(Origin, Arc<Measured>)>, rows: u64) -> Curve {
    Curve::new(all, Arc::default(), moment(rows))
}

fn mixed() -> Curve {
    let mut all = queries(Origin::Ordinary, 64, 4, 1.0);
    all.extend(queries(Origin::Far, 48, 8, 5.0));
    all.extend(queries(Origin::Far, 48, 1_000, 9.0));
    curve(all, ROWS)
}

#[test]
fn a_query_gets_what_those_needed_whose_walks_went_alike() {
    let curve = mixed();
    // Class 10 begins at effort 10, rung 2, where ordinary queries find a half, and others a quarter.
    let start = curve.start(0.5, 10, true).expect("reached");
    assert_eq!(start.ef, 10);
    assert_eq!(curve.judge(start, 0.5, look(1.2)), Judged::Enough(0.5));
    assert_eq!(curve.judge(start, 0.5, look(5.2)), Judged::More(20, 0.5));
    assert_eq!(curve.judge(start, 0.5, look(9.2)), Judged::Scan);
    let start = curve.start(1.0, 10, true).expect("reached");
    assert_eq!(start.ef, 20);
    assert_eq!(curve.judge(start, 1.0, look(5.2)), Judged::More(80, 1.0));
}

#[test]
fn a_query_unlike_all_is_scanned_for() {
    let curve = mixed();
    let start = curve.start(0.5, 10, true).expect("reached");
    assert_eq!(curve.judge(start, 0.5, look(0.6)), Judged::Enough(0.5));
    assert_eq!(curve.judge(start, 0.5, look(-5.0)), Judged::Scan);
    assert_eq!(curve.judge(start, 0.5, look(f32::NAN)), Judged::Scan);
    // A few that were measured suffice.
    let one = Measured::of(|_| 1.0, look(-5.0));
    let more = curve.with(std::iter::repeat_n(one, MOST_ALIKE));
    let judged = more.judge(more.start(0.5, 10, true).expect("reached"), 0.5, look(-5.0));
    assert!(matches!(judged, Judged::Enough(_)), "{judged:?}");
}

#[test]
fn the_rarer_of_two_kinds_that_look_alike_is_not_outvoted() {
    let mut all = queries(Origin::Ordinary, 64, 2, 1.0);
    // Where they lie, others are near, but none so near.
    let rare = Measured::of(
        |rung| (rung as f32 / 12.0).min(1.0),
        Look([1.2, 1.2, 0.3, 0.0]),
    );
    all.extend((0..MOST_ALIKE).map(|_| (Origin::Ordinary, Arc::new(rare.clone()))));
    let curve = curve(all, ROWS);
    let start = curve.start(0.9, 10, true).expect("reached");
    assert_eq!(start.ef, 10);
    let judged = curve.judge(start, 0.9, Look([1.2, 1.2, 0.3, 0.0]));
    assert!(
        matches!(judged, Judged::More(ef, _) if ef >= 226),
        "{judged:?}"
    );
}

#[test]
fn higher_targets_and_more_neighbours_take_more_effort() {
    let curve = mixed();
    let ef = |target, k| curve.start(target, k, true).map(|start| start.ef);
    let by_target = [0.5, 0.75, 1.0].map(|target| ef(target, 10));
    assert_eq!(by_target, [Some(10), Some(14), Some(20)]);
    let by_k = [1, 15, 100].map(|k| ef(0.5, k));
    assert_eq!(by_k, [Some(10), Some(20), Some(113)]);
    // Beyond the classes in proportion, and not judged.
    let start = curve.start(0.5, 1_000, true).expect("reached");
    assert_eq!(start.ef, 1_130);
    assert_eq!(curve.judge(start, 0.5, look(9.0)), Judged::Enough(1.0));
}

#[test]
fn what_no_walk_reaches_is_scanned() {
    let hard = curve(queries(Origin::Ordinary, 64, 1_000, 1.0), ROWS);
    assert_eq!(hard.start(0.5, 10, true), None);
    // Of few rows a scan is as fast as the larger walks.
    let small = |rows| curve(queries(Origin::Ordinary, 64, 18, 1.0), rows);
    assert_eq!(small(4_000).start(1.0, 10, true), None);
    assert_eq!(
        small(ROWS).start(1.0, 10, true).map(|start| start.ef),
        Some(2_560)
    );
}

#[test]
fn real_queries_take_the_place_of_made_ones() {
    let real = |count, full| {
        let real = queries(Origin::Real, count, full, 1.0).into_iter();
        real.map(|(_, one)| (*one).clone())
    };
    let first = |curve: &Curve| curve.start(0.5, 10, true).expect("reached");
    let few = mixed().with(real(PLENTY - 1, 8));
    assert_eq!(first(&few).ef, 10);
    // As alike as those that were made, and nearer than they.
    let judged = few.judge(first(&few), 0.5, look(1.05));
    assert_eq!(judged, Judged::More(20, 0.5));
    let plenty = few.with(real(1, 8));
    assert_eq!(first(&plenty).ef, 20);
    // The last ones are kept, and so are those that were made to be far.
    let later = plenty.with(real(REAL, 4));
    assert_eq!(first(&later).ef, 10);
    assert_eq!(later.real(10_000).len(), REAL);
    assert_eq!(later.queries.len(), REAL + 96 + 64);
}

#[test]
fn kinds_of_real_queries_do_not_blur_each_other() {
    // Walks of one kind differ in the first number, kinds in the second.
    let kind = |origin, count: usize, full: usize, of: f32| {
        let recall = move |rung: usize| (rung as f32 / full as f32).min(1.0);
        (0..count).map(move |at| {
            let look = [
                (at % 20) as f32 / 10.0,
                of + (at % 3) as f32 / 50.0,
                0.0,
                0.0,
            ];
            (origin, Arc::new(Measured::of(recall, Look(look))))
        })
    };
    let all: Vec<_> = kind(Origin::Ordinary, 64, 2, 0.0)
        .chain(kind(Origin::Real, PLENTY, 2, 0.0))
        .chain(kind(Origin::Real, PLENTY, 8, 1.0))
        .chain(kind(Origin::Real, PLENTY, 8, 20.0))
        .collect();
    let curve = curve(all, ROWS);
    let start = curve.start(0.9, 10, true).expect("reached");
    for first in [0.0, 0.7, 1.9] {
        let judge = |second| curve.judge(start, 0.9, Look([first, second, 0.0, 0.0]));
        assert_eq!(judge(0.0), Judged::Enough(1.0), "{first}");
        assert_eq!(judge(1.0), Judged::More(LADDER[8], 1.0), "{first}");
    }
}

#[test]
fn the_start_suits_the_easiest_quarter() {
    let mut all = queries(Origin::Real, PLENTY, 4, 1.0);
    all.extend(queries(Origin::Real, 2 * PLENTY, 16, 5.0));
    let curve = curve(all, ROWS);
    let first = |judged| curve.start(1.0, 10, judged).map(|start| start.ef);
    assert_eq!(first(true), Some(LADDER[4]));
    // Without a judgement it must suit all.
    assert_eq!(first(false), Some(LADDER[16]));
}

#[test]
fn a_curve_is_stale_when_the_index_is_another() {
    let curve = mixed();
    let at = |rows, live, written| Moment {
        rows,
        live,
        written,
    };
    for stale in [
        at(ROWS + ROWS / 5 + 1, ROWS, ROWS),
        at(ROWS, ROWS - ROWS / 5 - 1, ROWS),
        at(ROWS - ROWS / 5 - 1, ROWS, ROWS),
        // Others took the place of a fifth.
        at(ROWS, ROWS, ROWS + ROWS / 5 + 1),
    ] {
        assert!(curve.is_stale(stale) && curve.is_of(stale), "{stale:?}");
    }
    for other in [
        at(ROWS * 3 / 2, ROWS, ROWS),
        at(ROWS, ROWS / 2, ROWS),
        at(ROWS, ROWS, ROWS * 3 / 2),
    ] {
        assert!(!curve.is_of(other), "{other:?}");
    }
    for fresh in [
        at(ROWS, ROWS, ROWS),
        at(ROWS + ROWS / 5, ROWS, ROWS + ROWS / 5),
        at(ROWS - 1, ROWS - 1, ROWS + 1),
    ] {
        assert!(!curve.is_stale(fresh), "{fresh:?}");
    }
}
