//! Compaction: the living rows, all of them, in order, under their numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use longbow_disk::{Disk, MemoryDisk};
use longbow_storage::{
    Batch, Compactor, Error, RowRuns, Segment, SegmentMeta, Sizes, merge, write_segment,
};
use proptest::prelude::*;

use crate::common::{Random, usual};

fn segment(disk: &MemoryDisk, name: &str, batches: &[Batch], first_row: u64) -> Arc<Segment> {
    let rows: u64 = batches.iter().map(|batch| batch.rows() as u64).sum();
    let runs: RowRuns = std::iter::once(first_row..first_row + rows).collect();
    let path = Path::new(name);
    let meta = write_segment(disk, path, &batches[0].schema(), batches, &runs, false).unwrap();
    Arc::new(Segment::open(disk, path, &meta).unwrap())
}

fn compact(
    disk: &MemoryDisk,
    inputs: &[Arc<Segment>],
    sizes: Sizes,
    alive: &dyn Fn(u64) -> bool,
) -> Vec<SegmentMeta> {
    let mut count = 0;
    let mut names = || {
        count += 1;
        PathBuf::from(format!("new-{count}"))
    };
    let mut compactor = Compactor::new(disk, inputs[0].schema(), sizes, true, &mut names);
    merge(&mut compactor, inputs, alive).unwrap();
    compactor.finish().unwrap()
}

/// Row number to id, read from segments.
fn rows(segments: &[Arc<Segment>]) -> BTreeMap<u64, i64> {
    let mut found = BTreeMap::new();
    for segment in segments {
        for (at, batch) in segment.batches().iter().enumerate() {
            let ids = batch.column(0).unwrap();
            let ids = ids.as_primitive::<Int64Type>().values();
            for (first, start, len) in segment.row_ranges(at) {
                for i in 0..len {
                    let earlier = found.insert(first + i as u64, ids[start + i]);
                    assert_eq!(earlier, None);
                }
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn exactly_the_living_rows_are_kept(
        sizes in prop::collection::vec(prop::collection::vec(1..40_usize, 1..5), 1..4),
        batch in 200..5_000_u64,
        segment_bytes in 1_000..20_000_u64,
        dead in 0..12_usize,
        seed in any::<u64>(),
    ) {
        let disk = MemoryDisk::new();
        let mut row = 10;
        let mut id = 1_000;
        let inputs: Vec<_> = sizes.iter().enumerate().map(|(i, sizes)| {
            let batches: Vec<_> = sizes.iter().map(|rows| {
                id += *rows as i64;
                usual(id, *rows, 3)
            }).collect();
            let segment = segment(&disk, &format!("old-{i}"), &batches, row);
            row = segment.last_row() + 5;
            segment
        }).collect();
        let mut random = Random(seed);
        let mut expected = rows(&inputs);
        expected.retain(|_, _| random.below(12) >= dead);
        let living = expected.clone();
        let made = compact(&disk, &inputs, Sizes { batch, segment: segment_bytes }, &|row| living.contains_key(&row));
        let opened: Vec<_> = made.iter().map(|meta| Arc::new(Segment::open(&disk, Path::new(&meta.file), meta).unwrap())).collect();
        prop_assert_eq!(rows(&opened), expected);
        prop_assert!(made.is_sorted_by(|a, b| a.last_row < b.first_row));
    }
}

#[test]
fn whole_large_batches_are_not_copied_and_small_ones_are_joined() {
    let disk = MemoryDisk::new();
    let large = usual(0, 1_000, 8);
    let small: Vec<_> = (0..50).map(|i| usual(1_000 + i, 1, 8)).collect();
    let inputs = [
        segment(&disk, "old-1", std::slice::from_ref(&large), 0),
        segment(&disk, "old-2", &small, 1_000),
    ];
    let sizes = Sizes {
        batch: large.bytes(),
        segment: 10 * large.bytes(),
    };
    let made = compact(&disk, &inputs, sizes, &|_| true);
    assert_eq!(made.len(), 1);
    let merged = Segment::open(&disk, Path::new("new-1"), &made[0]).unwrap();
    assert_eq!(merged.batches().len(), 2);
    assert_eq!(merged.batches()[0].body(), large.body());
    assert_eq!(merged.batches()[1].rows(), 50);
    assert_eq!(
        (merged.runs().first(), merged.runs().len()),
        (Some(0), 1_050)
    );
    assert_eq!(merged.runs().last(), Some(1_049));
}

#[test]
fn segments_are_split_at_their_size() {
    let disk = MemoryDisk::new();
    let batches: Vec<_> = (0..20).map(|i| usual(i * 100, 100, 8)).collect();
    let input = [segment(&disk, "old", &batches, 0)];
    let one = batches[0].bytes();
    let sizes = Sizes {
        batch: one,
        segment: 5 * one,
    };
    let made = compact(&disk, &input, sizes, &|_| true);
    assert!((4..=6).contains(&made.len()), "{made:?}");
    assert!(
        made.iter().all(|meta| meta.bytes <= 5 * one + 4_096),
        "{made:?}"
    );
}

#[test]
fn nothing_alive_makes_no_file() {
    let disk = MemoryDisk::new();
    let input = [segment(&disk, "old", &[usual(0, 10, 2)], 0)];
    assert!(compact(&disk, &input, Sizes::default(), &|_| false).is_empty());
    assert_eq!(disk.list(Path::new("")).unwrap(), ["old"]);
}

#[test]
fn rows_out_of_order_are_refused() {
    let disk = MemoryDisk::new();
    let batch = usual(0, 10, 2);
    let mut names = || PathBuf::from("new");
    let sizes = Sizes {
        batch: 1,
        segment: 1,
    };
    let mut compactor = Compactor::new(&disk, &batch.schema(), sizes, false, &mut names);
    compactor.push(&batch, [(100, 0, 10)]).unwrap();
    let error = compactor.push(&batch, [(105, 0, 10)]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::RowOrder {
                row: 105,
                last: 109
            }
        ),
        "{error}"
    );
}
