use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use longbow_index::{Query, Result, SearchStats, SpFresh, SpFreshParams, VectorSource};

use super::build_in;
use super::file::MemoryFile;
use crate::common::{Data, floats};

/// Rows of which each that is compared is said to be read from the disk, while that is wanted.
struct Rows<'a> {
    data: &'a Data,
    file: &'a MemoryFile,
    missing: AtomicBool,
    asked: AtomicU64,
}

impl<'a> Rows<'a> {
    fn new(data: &'a Data, file: &'a MemoryFile) -> Self {
        Rows {
            data,
            file,
            missing: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }
}

impl VectorSource for Rows<'_> {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        let missing = self.missing.load(Ordering::Relaxed);
        self.file
            .reads
            .fetch_add(u64::from(missing), Ordering::Relaxed);
        Some(self.data.vector(row))
    }

    fn will_need(&self, _row: u64) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

/// An index, what it reads, and a query.
struct World<'a> {
    index: SpFresh,
    rows: Rows<'a>,
    query: &'a Query,
}

impl World<'_> {
    /// What is found, and how many slices of the file of blocks and how many rows were asked for beforehand.
    fn search(
        &self,
        probes: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
    ) -> (Vec<longbow_index::Neighbor>, u64, u64) {
        let asked = || {
            let rows = self.rows.asked.load(Ordering::Relaxed);
            (self.rows.file.asked.load(Ordering::Relaxed), rows)
        };
        let (before, mut stats) = (asked(), SearchStats::default());
        let found = self.index.search(
            self.query,
            (10, probes),
            (visible, None),
            &self.rows,
            &mut stats,
        );
        let after = asked();
        (found, after.0 - before.0, after.1 - before.1)
    }
}

/// Once a search has had a page read, the next ones ask for such pages of theirs beforehand, and find the same.
#[test]
fn searches_ask_for_pages_once_one_had_some_read() -> Result<()> {
    let space = floats(32);
    let data = Data::clustered(space, 3_000, 30, 5)?;
    let file = MemoryFile::default();
    let index = build_in(&file, &data, SpFreshParams::default(), 0..3_000)?;
    let rows = Rows::new(&data, &file);
    let query = &data.queries[0];
    let world = World { index, rows, query };
    let any = |_: u64| true;
    let (warm, blocks, rows) = world.search(8, &any);
    assert_eq!(
        (blocks, rows),
        (0, 0),
        "all is in memory as far as is known"
    );
    let first_part_was_read = |_: u64| {
        file.reads.fetch_add(1, Ordering::Relaxed);
        true
    };
    let (_, blocks, rows) = world.search(8, &first_part_was_read);
    assert_eq!((blocks, rows), (0, 0), "what it found is for the next");
    let (cold, blocks, rows) = world.search(8, &any);
    assert!(
        blocks >= 8 && rows == 0,
        "{blocks} first parts, {rows} rows"
    );
    assert_eq!(cold, warm);

    world.rows.missing.store(true, Ordering::Relaxed);
    world.search(8, &any);
    world.rows.missing.store(false, Ordering::Relaxed);
    let first_parts = blocks;
    let (cold, blocks, rows) = world.search(8, &any);
    assert!(blocks >= first_parts + 10, "{blocks}: of ten codes, too");
    assert!((10..=20).contains(&rows), "{rows} rows");
    assert_eq!(cold, warm);
    let (_, blocks, _) = world.search(usize::MAX, &any);
    // Nine postings, and then one for each that is read.
    assert!(blocks > 20, "{blocks} asked for exactly");

    for _ in 0..300 {
        world.search(8, &any);
    }
    let (_, blocks, rows) = world.search(8, &any);
    assert_eq!((blocks, rows), (0, 0), "nothing is read any more");
    Ok(())
}

/// Where codes of eight bits are not in memory, and few vectors of many elements are likely, their rows are read by the estimates
/// alone. That finds as much, in loose clusters and in tight ones.
#[test]
fn rows_that_are_read_by_their_estimates_are_the_nearest() -> Result<()> {
    let space = floats(768);
    let mut by_rows = 0;
    for (centres, spread, k) in [(600, 0.5, 40), (600, 0.5, 2), (12, 0.5, 10), (12, 0.02, 10)] {
        let data = Data::spread(space, (4_000, centres), spread, 8)?;
        let file = MemoryFile::default();
        let index = build_in(&file, &data, SpFreshParams::default(), 0..4_000)?;
        let rows = Rows::new(&data, &file);
        let search = |query| {
            let mut stats = SearchStats::default();
            let before = file.asked.load(Ordering::Relaxed);
            let found = index.search(query, (k, 1_000), (&|_| true, None), &rows, &mut stats);
            let exact = data.exact(query, k, &|_| true);
            let hits = found.iter().filter(|one| exact.contains(one)).count();
            (hits, file.asked.load(Ordering::Relaxed) > before)
        };
        let warm: usize = data.queries.iter().map(|query| search(query).0).sum();
        rows.missing.store(true, Ordering::Relaxed);
        search(&data.queries[0]);
        let cold: Vec<(usize, bool)> = data.queries.iter().map(search).collect();
        by_rows += cold.iter().filter(|(_, codes)| !codes).count();
        let cold: usize = cold.iter().map(|(hits, _)| hits).sum();
        let least = 99 * 50 * k / 100;
        assert!(warm >= least, "{warm} of {least}, spread {spread}");
        assert!(cold >= least, "{cold} of {least}, cold, spread {spread}");
    }
    assert!(by_rows > 20, "{by_rows} of 200 searches read no codes");
    Ok(())
}
