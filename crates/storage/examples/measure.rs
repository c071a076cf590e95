//! Figures of storage on this machine, each beside a copy of the same bytes in memory:
//! `cargo run --release -p longbow-storage --example measure [folder] [ids]`

use std::hint::black_box;
use std::io::IoSlice;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field};
use longbow_disk::{Disk, RealDisk};
use longbow_storage::{
    Batch, Compactor, IdMap, Key, RowRuns, Segment, Sizes, crc32c, merge, write_segment,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Duration)> {
    let start = Instant::now();
    let made = work()?;
    Ok((made, start.elapsed()))
}

fn rate(what: &str, bytes: u64, took: Duration) {
    let speed = bytes as f64 / took.as_secs_f64() / 1e9;
    println!("{what:44} {speed:8.2} GB/s  {took:>10.2?}");
}

fn each(what: &str, count: usize, took: Duration) {
    let nanoseconds = took.as_nanos() as f64 / count as f64;
    println!("{what:44} {nanoseconds:8.1} ns each");
}

fn batch(first: i64, rows: usize, dim: usize) -> Outcome<Batch> {
    let ids = Int64Array::from_iter_values(first..first + rows as i64);
    let values = Float32Array::from_iter_values((0..rows * dim).map(|i| i as f32));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vectors = FixedSizeListArray::try_new(item, dim as i32, Arc::new(values), None)?;
    let text = StringArray::from_iter_values((0..rows).map(|i| format!("the text of row {i}")));
    let rows = RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as _),
        ("vector", Arc::new(vectors) as _),
        ("text", Arc::new(text) as _),
    ])?;
    Ok(Batch::from_record_batch(&rows)?)
}

fn messages() -> Outcome<()> {
    let made = batch(0, 10_000, 128)?;
    let (_, took) = timed(|| Ok(black_box(made.body().to_vec())))?;
    rate("copy of a body in memory", made.bytes(), took);
    let (_, took) = timed(|| Ok(black_box(crc32c(made.body()))))?;
    rate("CRC-32C of a body", made.bytes(), took);
    let schema = made.schema();
    let check = |batch: &Batch| {
        let (header, body) = (batch.header().clone(), batch.body().clone());
        Batch::from_message(&schema, header, body)
    };
    for (what, batch) in [("10,000 rows", made.clone()), ("1 row", batch(0, 1, 128)?)] {
        let (_, took) = timed(|| {
            for _ in 0..100 {
                black_box(check(&batch)?);
            }
            Ok(())
        })?;
        rate(&format!("from_message, {what}"), 100 * batch.bytes(), took);
        each(&format!("from_message, {what}"), 100, took);
    }
    Ok(())
}

fn segments(folder: PathBuf) -> Outcome<()> {
    let disk = RealDisk;
    let batches: Vec<_> = (0..8)
        .map(|i| batch(i * 30_000, 30_000, 128))
        .collect::<Outcome<_>>()?;
    let runs: RowRuns = std::iter::once(0..240_000).collect();
    let path = folder.join("measure-old.arrow");
    let schema = batches[0].schema();
    let bytes: u64 = batches.iter().map(Batch::bytes).sum();
    let (_, took) = timed(|| {
        let file = disk.create(&path)?;
        for batch in &batches {
            file.append_vectored(&[IoSlice::new(batch.body())])?;
        }
        Ok(())
    })?;
    rate("plain file of the same bytes, not synced", bytes, took);
    disk.remove(&path)?;
    let (meta, took) = timed(|| {
        Ok(write_segment(
            &disk, &path, &schema, &batches, &runs, false,
        )?)
    })?;
    rate("write_segment, not synced", meta.bytes, took);
    let (segment, took) = timed(|| Ok(Arc::new(Segment::open(&disk, &path, &meta)?)))?;
    rate("Segment::open, in the page cache", meta.bytes, took);

    for (what, step) in [("all alive", 1 << 40), ("every tenth dead", 10)] {
        let out = folder.join("measure-new.arrow");
        let mut next = || out.clone();
        let sizes = Sizes {
            segment: 1 << 30,
            ..Sizes::default()
        };
        let (made, took) = timed(|| {
            let mut compactor = Compactor::new(&disk, &schema, sizes, false, &mut next);
            merge(&mut compactor, std::slice::from_ref(&segment), &|row| {
                row % step != step - 1
            })?;
            Ok(compactor.finish()?)
        })?;
        rate(&format!("merge, {what}"), meta.bytes, took);
        let merged = Segment::open(&disk, &out, &made[0])?;
        println!(
            "{:44} {:8} rows in {} runs",
            "",
            merged.rows(),
            merged.runs().iter().count()
        );
        disk.remove(&out)?;
    }
    let (_, took) = timed(|| {
        for row in 0..240_000_u64 {
            black_box(segment.locate(row * 7 % 240_000));
        }
        Ok(())
    })?;
    each("Segment::locate", 240_000, took);
    disk.remove(&path)?;
    Ok(())
}

/// Puts all ids in batches and then, in another order, all of them again.
fn ids_of(what: &str, count: usize, column: &dyn Fn(Range<usize>) -> ArrayRef) -> Outcome<IdMap> {
    let chunk = 100_000.min(count);
    let mut map = IdMap::new(column(0..0).data_type())?;
    for (round, what) in [(0, format!("{what}, new")), (1, format!("{what}, again"))] {
        let mut slowest = Duration::ZERO;
        let mut total = Duration::ZERO;
        let chunks = count / chunk;
        for i in 0..chunks {
            let first = (i * (1 + 6 * round)) % chunks * chunk;
            let rows = RecordBatch::try_from_iter([("id", column(first..first + chunk))])?;
            let rows = Batch::from_record_batch(&rows)?;
            let row = ((round * chunks + i) * chunk) as u64;
            let (_, took) = timed(|| Ok(map.insert_column(&rows, 0, row, &mut |_| {})?))?;
            total += took;
            slowest = slowest.max(took);
        }
        each(&what, chunks * chunk, total);
        each("  the slowest batch", chunk, slowest);
    }
    let memory = map.memory_bytes() as f64 / map.len() as f64;
    println!("  {:42} {memory:8.1} bytes each", "memory");
    Ok(map)
}

fn ids(count: usize) -> Outcome<()> {
    let scatter = |i: usize| (i as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
    ids_of("IdMap insert of integers in order", count, &|ids| {
        Arc::new(Int64Array::from_iter_values(ids.map(|i| i as i64)))
    })?;
    let map = ids_of("IdMap insert of scattered integers", count, &|ids| {
        Arc::new(Int64Array::from_iter_values(ids.map(scatter)))
    })?;
    let (_, took) = timed(|| {
        for i in 0..1_000_000 {
            black_box(map.get(&Key::Int(scatter(i * 7 % count))));
        }
        Ok(())
    })?;
    each("IdMap get of scattered integers", 1_000_000, took);
    drop(map);
    ids_of("IdMap insert of strings of 21", count, &|ids| {
        let names = ids.map(|i| format!("document-{:012}", scatter(i) as u64 % 1_000_000_000_000));
        Arc::new(StringArray::from_iter_values(names))
    })?;
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".into());
    let count = arguments
        .next()
        .map_or(Ok(10_000_000), |count| count.parse())?;
    messages()?;
    segments(folder.into())?;
    ids(count)
}
