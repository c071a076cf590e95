//! [`Segment`]: any Arrow reader opens it, rows are found by number, damage is found and named.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Random, record_batch, shape, usual};
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, Field, Schema};
use longbow_disk::{Disk, MemoryDisk};
use longbow_storage::{Batch, Error, RowRuns, Segment, SegmentMeta, SegmentWriter, write_segment};
use proptest::prelude::*;

const PATH: &str = "rows-1.arrow";

fn rows_of(batches: &[Batch], random: &mut Random) -> RowRuns {
    let mut runs = RowRuns::default();
    let mut at = 0;
    let mut left: u64 = batches.iter().map(|batch| batch.rows() as u64).sum();
    while left > 0 {
        at += random.below(3) as u64;
        let len = left.min(1 + random.below(40) as u64);
        runs.push(at..at + len).unwrap();
        (at, left) = (at + len, left - len);
    }
    runs
}

fn written(batches: &[Batch], runs: &RowRuns) -> (MemoryDisk, SegmentMeta) {
    let disk = MemoryDisk::new();
    let schema = batches[0].schema();
    let meta = write_segment(&disk, Path::new(PATH), &schema, batches, runs, true).unwrap();
    (disk, meta)
}

fn three() -> (MemoryDisk, SegmentMeta, Vec<Batch>) {
    let batches = vec![usual(0, 10, 4), usual(10, 1, 4), usual(11, 20, 4)];
    let runs = [5..8, 100..128].into_iter().collect();
    let (disk, meta) = written(&batches, &runs);
    (disk, meta, batches)
}

fn file(disk: &MemoryDisk) -> Vec<u8> {
    disk.read(Path::new(PATH), 1 << 30).unwrap()
}

/// Puts `bytes` on a new disk and opens them; `meta` is made to fit them if `sealed`.
fn reopen(bytes: &[u8], meta: &SegmentMeta, sealed: bool) -> Result<Segment, Error> {
    let disk = MemoryDisk::new();
    disk.write_atomic(Path::new(PATH), bytes).unwrap();
    let mut meta = meta.clone();
    if sealed {
        meta.bytes = bytes.len() as u64;
        meta.crc32c = longbow_storage::crc32c(bytes);
    }
    Segment::open(&disk, Path::new(PATH), &meta)
}

proptest! {
    #[test]
    fn every_type_comes_back((kinds, rows, seed) in shape(), count in 1..5_usize) {
        let views: Vec<_> = (0..count).map(|i| {
            let part = record_batch(&kinds, 20, seed);
            part.slice(i * 4, (rows + i) % 4 + 1)
        }).collect();
        let batches: Vec<_> = views.iter().map(|view| Batch::from_record_batch(view).unwrap()).collect();
        let runs = rows_of(&batches, &mut Random(seed));
        let (disk, meta) = written(&batches, &runs);

        let segment = Segment::open(&disk, Path::new(PATH), &meta).unwrap();
        prop_assert_eq!(segment.runs(), &runs);
        prop_assert_eq!(segment.schema(), &batches[0].schema());
        for (ours, original) in segment.batches().iter().zip(&batches) {
            prop_assert_eq!(ours.view(), original.view());
            let padding = ours.header().strip_prefix(&original.header()[..]).unwrap();
            prop_assert!(padding.len() < 64 && padding.iter().all(|byte| *byte == 0));
            prop_assert_eq!(ours.body(), original.body());
        }
        let arrow = FileReader::try_new(Cursor::new(file(&disk)), None).unwrap();
        let theirs: Vec<_> = arrow.map(Result::unwrap).collect();
        prop_assert_eq!(theirs, views);
    }

    #[test]
    fn rows_are_found(seed in any::<u64>(), sizes in prop::collection::vec(1..30_usize, 1..6)) {
        let batches: Vec<_> = sizes.iter().map(|rows| usual(0, *rows, 2)).collect();
        let runs = rows_of(&batches, &mut Random(seed));
        let (disk, meta) = written(&batches, &runs);
        let segment = Segment::open(&disk, Path::new(PATH), &meta).unwrap();
        let mut all = runs.iter().flatten();
        for (batch, size) in sizes.iter().enumerate() {
            let ranges: Vec<_> = segment.row_ranges(batch).collect();
            prop_assert_eq!(ranges.iter().map(|range| range.2).sum::<usize>(), *size);
            let mut listed = ranges.iter().flat_map(|(first, _, len)| *first..first + *len as u64);
            for at in 0..*size {
                let row = all.next().unwrap();
                prop_assert_eq!(segment.locate(row), Some((batch, at)));
                prop_assert_eq!(segment.row_at(batch, at), Some(row));
                prop_assert_eq!(listed.next(), Some(row));
            }
            prop_assert_eq!(segment.row_at(batch, *size), None);
        }
        prop_assert_eq!(segment.row_ranges(sizes.len()).count(), 0);
        prop_assert_eq!(segment.locate(meta.last_row + 1), None);
    }

    #[test]
    fn a_changed_byte_is_found(at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let (disk, meta, _) = three();
        let mut bytes = file(&disk);
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        let error = reopen(&bytes, &meta, false).unwrap_err();
        let Error::Checksum { path, offset, length, expected, got } = &error else { panic!("{error}") };
        prop_assert_eq!(path, Path::new(PATH));
        prop_assert!((*offset..offset + length).contains(&(at as u64)));
        prop_assert_ne!(expected, got);
    }

    #[test]
    fn mutated_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>(), from_end in any::<bool>()) {
        let (disk, meta, _) = three();
        let mut bytes = file(&disk);
        for (at, value) in changes {
            // Half of the changes go into the footer, where the structure is.
            let start = if from_end { bytes.len().saturating_sub(900) } else { 0 };
            let at = start + at.index(bytes.len() - start);
            bytes[at] = value;
        }
        if let Ok(segment) = reopen(&bytes, &meta, true) {
            prop_assert_eq!(segment.batches().iter().map(|batch| batch.rows() as u64).sum::<u64>(), segment.rows());
        }
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(reopen(&bytes, &meta, true).is_err());
    }
}

#[test]
fn bodies_lie_aligned_and_are_not_copied() {
    let (disk, meta, _) = three();
    let segment = Segment::open(&disk, Path::new(PATH), &meta).unwrap();
    let map = disk.map(Path::new(PATH)).unwrap();
    for (batch, original) in segment.batches().iter().zip(three().2) {
        let at = map
            .windows(batch.body().len())
            .position(|window| window == batch.body());
        assert_eq!(at.unwrap() % 64, 0);
        assert_eq!(batch.body(), original.body());
    }
}

#[test]
fn damage_is_named_by_block() {
    let (disk, meta, batches) = three();
    let mut bytes = file(&disk);
    let body = batches[2].body();
    let at = bytes
        .windows(body.len())
        .position(|window| window == body)
        .unwrap();
    bytes[at + 5] ^= 1;
    let error = reopen(&bytes, &meta, false).unwrap_err();
    let Error::Checksum { offset, length, .. } = &error else {
        panic!("{error}")
    };
    assert!(*offset > body.len() as u64 && *offset < at as u64);
    assert_eq!(offset + length, (at + body.len()) as u64);
    assert!(
        error.to_string().contains(&format!(
            "rows-1.arrow is damaged: the {length} bytes at offset {offset}"
        )),
        "{error}"
    );
}

#[test]
fn a_wrong_length_or_row_count_is_refused() {
    let (disk, meta, _) = three();
    let bytes = file(&disk);
    let error = reopen(&bytes[..bytes.len() - 1], &meta, false).unwrap_err();
    assert!(matches!(error, Error::FileLength { .. }), "{error}");
    let mut other = meta.clone();
    other.last_row += 1;
    let error = reopen(&bytes, &other, false).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_newer_version_is_refused() {
    let (disk, meta, _) = three();
    let mut bytes = file(&disk);
    let key = bytes
        .windows(15)
        .position(|window| window == b"longbow.segment")
        .unwrap();
    // The flatbuffer writes backwards: the value "1", with its length before it, is within the bytes before the key.
    let value = bytes[..key]
        .windows(5)
        .rposition(|window| window == [1, 0, 0, 0, b'1']);
    let value = value.or_else(|| {
        bytes[key..]
            .windows(5)
            .position(|w| w == [1, 0, 0, 0, b'1'])
            .map(|at| key + at)
    });
    bytes[value.unwrap() + 4] = b'9';
    let error = reopen(&bytes, &meta, true).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NewerVersion {
                found: 9,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("written by a newer version"));
}

#[test]
fn older_batches_get_the_new_columns() {
    let batch = usual(0, 4, 2);
    let mut fields = batch.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("more", DataType::Utf8, true)));
    let schema = Arc::new(Schema::new(fields));
    let disk = MemoryDisk::new();
    let runs = std::iter::once(0..4).collect();
    let meta = write_segment(&disk, Path::new(PATH), &schema, &[batch], &runs, false).unwrap();
    let segment = Segment::open(&disk, Path::new(PATH), &meta).unwrap();
    assert_eq!(segment.schema(), &schema);
    assert_eq!(segment.batches()[0].null_count(3), 4);
}

#[test]
fn row_numbers_must_fit_the_rows() {
    let disk = MemoryDisk::new();
    let batch = usual(0, 4, 2);
    let mut writer = SegmentWriter::create(&disk, Path::new(PATH), &batch.schema()).unwrap();
    let error = writer.write(&batch, std::iter::once(0..3)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::RowCount {
                numbers: 3,
                rows: 4
            }
        ),
        "{error}"
    );
    let writer = SegmentWriter::create(&disk, Path::new(PATH), &batch.schema()).unwrap();
    let error = writer.finish(true).unwrap_err();
    assert!(matches!(error, Error::EmptySegment { .. }), "{error}");
}

#[test]
fn a_synced_segment_survives_power_loss() {
    let (disk, meta, batches) = three();
    disk.sync_dir(Path::new("")).unwrap();
    let segment = Segment::open(&disk.crash(), Path::new(PATH), &meta).unwrap();
    assert_eq!(segment.batches()[1].view(), batches[1].view());
    assert_eq!(
        (segment.first_row(), segment.last_row(), segment.rows()),
        (5, 127, 31)
    );
}

#[test]
fn the_first_version_opens() {
    let meta = SegmentMeta {
        file: PATH.into(),
        rows: 31,
        bytes: 3_338,
        crc32c: 754_952_760,
        first_row: 5,
        last_row: 127,
    };
    let golden = include_bytes!("../golden/segment-1.arrow");
    let segment = reopen(golden, &meta, false).unwrap();
    assert_eq!(segment.runs().iter().collect::<Vec<_>>(), [5..8, 100..128]);
    for (batch, original) in segment.batches().iter().zip(three().2) {
        assert_eq!(batch.view(), original.view());
    }
}
