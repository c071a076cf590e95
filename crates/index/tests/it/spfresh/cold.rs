use std::sync::atomic::Ordering;

use longbow_index::{Metric, Result, Scalar, SpFresh, SpFreshParams, Space};

use super::file::MemoryFile;
use super::search;
use crate::common::Data;

/// Once a search has had a page read, the next ones ask for all pages of theirs beforehand, and find the same.
#[test]
fn searches_ask_for_pages_once_one_had_some_read() -> Result<()> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 32,
    };
    let data = Data::clustered(space, 3_000, 30, 5)?;
    let file = MemoryFile::default();
    let index = SpFresh::new(space, SpFreshParams::default(), Box::new(file.clone()))?;
    index.prepare((0..100).map(|row| data.vector(row)));
    (0..3_000).try_for_each(|row| index.insert(row, data.vector(row)))?;
    let (query, asked) = (&data.queries[0], || file.asked.load(Ordering::Relaxed));
    let warm = search(&index, &data, query, (10, 8), &|_| true);
    assert_eq!(asked(), 0, "all is in memory as far as is known");
    search(&index, &data, query, (10, 8), &|_| {
        file.reads.fetch_add(1, Ordering::Relaxed);
        true
    });
    assert_eq!(asked(), 0, "what that one found is for the next");
    let cold = search(&index, &data, query, (10, 8), &|_| true);
    // At least a block of each of eight postings, and the ten rows.
    assert!(asked() >= 18, "{} asked for", asked());
    assert_eq!(cold, warm);
    let before = asked();
    search(&index, &data, query, (10, usize::MAX), &|_| true);
    // Nine postings, and then one for each that is read.
    assert!(asked() > before + 20, "{} asked for exactly", asked());
    let before = asked();
    for _ in 0..300 {
        search(&index, &data, query, (10, 8), &|_| true);
    }
    let after = asked();
    assert!(after > before);
    search(&index, &data, query, (10, 8), &|_| true);
    assert_eq!(asked(), after, "nothing is read any more");
    Ok(())
}
