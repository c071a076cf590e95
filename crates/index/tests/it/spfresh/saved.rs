use longbow_index::{Error, Metric, Result, Scalar, SpFresh, SpFreshParams, Space};
use proptest::prelude::*;

use super::file::MemoryFile;
use super::{recall, search};
use crate::common::{Data, golden_data, sealed};

const SPACE: Space = Space {
    scalar: Scalar::F32,
    metric: Metric::Cosine,
    dim: 20,
};

/// An index of 3,000 rows in three shards, its file, and what it saved.
fn saved() -> Result<(Data, SpFresh, MemoryFile, Vec<u8>)> {
    let data = Data::clustered(SPACE, 6_000, 30, 21)?;
    let file = MemoryFile::default();
    let params = SpFreshParams {
        shards: 3,
        ..SpFreshParams::default()
    };
    let index = SpFresh::new(SPACE, params, Box::new(file.clone()))?;
    index.prepare((0..100).map(|row| data.vector(row)));
    (0..3_000).try_for_each(|row| index.insert(row, data.vector(row)))?;
    let mut bytes = Vec::new();
    let saved = index.save(&mut bytes)?;
    assert_eq!((saved.rows, saved.bytes), (3_000, bytes.len() as u64));
    assert!(SpFresh::is_saved(&bytes));
    index.hold()?;
    Ok((data, index, file, bytes))
}

fn load(bytes: &[u8], file: &MemoryFile) -> Result<SpFresh> {
    SpFresh::load(
        SPACE,
        SpFreshParams::default(),
        bytes,
        Box::new(file.clone()),
    )
}

#[test]
fn what_was_saved_is_read_whatever_came_after() -> Result<()> {
    let (data, index, file, bytes) = saved()?;
    let query = &data.queries[3];
    let before = search(&index, &data, query, (100, 8), &|_| true);
    // These change postings, and free blocks that the checkpoint names.
    (3_000..6_000).try_for_each(|row| index.insert(row, data.vector(row)))?;
    index.sweep(&|row| row < 2_000, 0, usize::MAX)?;
    let again = load(&bytes, &file)?;
    assert_eq!((again.len(), again.postings() > 10), (3_000, true));
    assert_eq!(search(&again, &data, query, (100, 8), &|_| true), before);
    let found = recall(&again, &data, (10, 12), &|row| row < 3_000);
    assert!(found > 0.95, "{found}");
    Ok(())
}

#[test]
fn slots_are_written_over_once_the_next_checkpoint_holds() -> Result<()> {
    let (data, index, file, first) = saved()?;
    (3_000..6_000).try_for_each(|row| index.insert(row, data.vector(row)))?;
    let mut second = Vec::new();
    index.save(&mut second)?;
    assert!(load(&first, &file).is_ok() && load(&second, &file).is_ok());
    index.hold()?;
    assert!(index.file_bytes().1 > 0, "the first one's blocks are free");
    index.sweep(&|row| row % 2 == 0, 0, usize::MAX)?;
    (0..1_000).try_for_each(|row| index.insert(10_000 + row, data.vector(row)))?;
    assert!(
        load(&first, &file).is_err(),
        "its slots were given out again"
    );
    assert_eq!(load(&second, &file)?.len(), 6_000);
    Ok(())
}

#[test]
fn an_empty_index_is_saved_and_goes_on() -> Result<()> {
    let file = MemoryFile::default();
    let index = SpFresh::new(SPACE, SpFreshParams::default(), Box::new(file.clone()))?;
    let mut bytes = Vec::new();
    index.save(&mut bytes)?;
    let again = load(&bytes, &file)?;
    assert!(again.is_empty() && !again.is_prepared());
    let data = Data::clustered(SPACE, 500, 3, 4)?;
    (0..500).try_for_each(|row| again.insert(row, data.vector(row)))?;
    assert_eq!(again.len(), 500);
    Ok(())
}

#[test]
fn a_damaged_block_is_found_and_its_posting_made_again() -> Result<()> {
    let (data, _, file, bytes) = saved()?;
    let whole = file.bytes.lock().expect("no writer panics").clone();
    let mut damaged = 0;
    for at in [0, 4, 70, whole.len() / 2, whole.len() - 1] {
        file.bytes.lock().expect("no writer panics")[at] ^= 4;
        let (params, copy) = (SpFreshParams::default(), Box::new(file.clone()));
        let (index, lost) = SpFresh::load_sound(SPACE, params, &bytes, copy)?;
        let strict = load(&bytes, &file);
        if let Some(lost) = lost {
            damaged += 1;
            let is_said = |error| matches!(error, Error::Block { .. } | Error::Inconsistent { .. });
            assert!(is_said(lost.first) && lost.postings == 1, "byte {at}");
            assert!(strict.is_err_and(is_said), "byte {at}");
            make_again(&index, &data)?;
        } else {
            // A slot that is free may hold anything.
            assert!(index.file_bytes().1 > 0 && strict.is_ok(), "byte {at}");
        }
        assert_eq!(index.len(), 3_000);
        let found = recall(&index, &data, (10, usize::MAX), &|row| row < 3_000);
        assert!(found > 0.999, "byte {at}: {found}");
        *file.bytes.lock().expect("no writer panics") = whole.clone();
    }
    assert!(damaged > 2, "{damaged} of five bytes were in a block");
    let half = whole.len() / 2;
    file.bytes.lock().expect("no writer panics").truncate(half);
    assert!(matches!(load(&bytes, &file), Err(Error::Truncated { .. })));
    Ok(())
}

/// Inserts the rows that an index lost, and has it hold again what a checkpoint names.
fn make_again(index: &SpFresh, data: &Data) -> Result<()> {
    let mut there = vec![false; 3_000];
    index.each_row(&mut |row| {
        assert!(
            !std::mem::replace(&mut there[row as usize], true),
            "{row} twice"
        );
    });
    let missing = (0..3_000).filter(|row| !there[*row as usize]);
    let missing: Vec<u64> = missing.collect();
    assert!((1..=192).contains(&missing.len()) && index.len() == 3_000 - missing.len());
    missing
        .into_iter()
        .try_for_each(|row| index.insert(row, data.vector(row)))?;
    let (used, free) = index.file_bytes();
    index.save(&mut Vec::new())?;
    index.hold()?;
    let (now, free_now) = index.file_bytes();
    assert!(
        now - free_now < used - free,
        "the damaged slots are free again"
    );
    Ok(())
}

#[test]
fn what_was_moved_to_the_front_is_read_again() -> Result<()> {
    let (data, index, file, _) = saved()?;
    index.sweep(&|row| row % 4 != 0, 0, usize::MAX)?;
    index.save(&mut Vec::new())?;
    index.hold()?;
    let (before, _) = index.file_bytes();
    let query = &data.queries[3];
    let rows = |row: u64| row.is_multiple_of(4);
    let found = search(&index, &data, query, (100, 8), &rows);
    assert!(index.is_sparse());
    let (end, mut from) = (index.could_end().expect("much is free"), Some(0));
    while let Some(next) = from {
        from = index.shrink(end, next, 3)?;
    }
    assert_eq!(index.could_end(), None, "there is nothing left to move");
    let mut bytes = Vec::new();
    index.save(&mut bytes)?;
    index.hold()?;
    let (after, free) = index.file_bytes();
    assert!(
        2 * after < before && 8 * free < after && !index.is_sparse(),
        "{before} {after} {free}"
    );
    assert_eq!(
        file.bytes.lock().expect("no writer panics").len() as u64,
        after
    );
    assert_eq!(search(&index, &data, query, (100, 8), &rows), found);
    let again = load(&bytes, &file)?;
    assert_eq!(search(&again, &data, query, (100, 8), &rows), found);
    Ok(())
}

#[test]
fn another_index_is_refused() -> Result<()> {
    let (_, _, file, bytes) = saved()?;
    let other = |space, params: SpFreshParams| {
        SpFresh::load(space, params, &bytes, Box::new(file.clone())).map(|_| ())
    };
    let params = SpFreshParams::default();
    let dim = other(Space { dim: 21, ..SPACE }, params).unwrap_err();
    assert!(
        matches!(
            dim,
            Error::Mismatch {
                field: "dimension",
                ..
            }
        ),
        "{dim}"
    );
    let seed = other(SPACE, SpFreshParams { seed: 1, ..params }).unwrap_err();
    assert!(
        matches!(seed, Error::Mismatch { field: "seed", .. }),
        "{seed}"
    );
    let graph = load(b"LBWQGRF\0 and so on", &file).unwrap_err();
    assert!(matches!(graph, Error::Magic { .. }), "{graph}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the bytes are, there is an index or an error.
    #[test]
    fn no_bytes_are_trusted(
        at in any::<prop::sample::Index>(),
        value in any::<[u8; 4]>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static SAVED: std::sync::LazyLock<(MemoryFile, Vec<u8>)> = std::sync::LazyLock::new(|| {
            let (_, _, file, bytes) = saved().expect("a sound index");
            (file, bytes)
        });
        let (file, bytes) = &*SAVED;
        let mut bytes = bytes.clone();
        let at = at.index(bytes.len());
        for (byte, value) in bytes[at..].iter_mut().zip(value) {
            *byte = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = load(&bytes, file);
        if let Ok(index) = load(&sealed(bytes), file) {
            prop_assert_eq!(index.len(), 3_000);
        }
    }
}

const GOLDEN: &[u8] = include_bytes!("../../fixtures/spfresh-v3.bin");
const GOLDEN_BLOCKS: &[u8] = include_bytes!("../../fixtures/spfresh-v3.blocks");

#[test]
fn version_3_is_read_and_written_byte_by_byte() -> Result<()> {
    let data = golden_data()?;
    let file = MemoryFile::default();
    *file.bytes.lock().expect("no writer panics") = GOLDEN_BLOCKS.to_vec();
    let params = SpFreshParams {
        split: 32,
        merge: 4,
        ..SpFreshParams::default()
    };
    let index = SpFresh::load(data.space, params, GOLDEN, Box::new(file.clone()))?;
    assert_eq!((index.len(), index.postings() > 4), (160, true));
    let shards = 3;
    assert_eq!(index.params(), SpFreshParams { shards, ..params });
    assert!(index.is_prepared());
    let found = recall(&index, &data, (10, usize::MAX), &|row| row < 160);
    assert!(found > 0.99, "{found}");
    let mut again = Vec::new();
    index.save(&mut again)?;
    assert!(again == GOLDEN, "written as it was read");
    assert!(*file.bytes.lock().expect("no writer panics") == GOLDEN_BLOCKS);
    SpFresh::verify(data.space, params, GOLDEN, &file)
}

#[test]
fn what_older_versions_wrote_is_refused() {
    for version in [1, 2] {
        let mut old = GOLDEN.to_vec();
        old[8] = version;
        let refused = load(&sealed(old), &MemoryFile::default()).unwrap_err();
        let got = u32::from(version);
        assert!(
            matches!(refused, Error::Version { known: 3, got: it } if it == got),
            "{refused}"
        );
    }
}

#[test]
fn a_checkpoint_keeps_its_number_of_shards() -> Result<()> {
    let (_, _, file, bytes) = saved()?;
    let load = |bytes: &[u8], shards| {
        let params = SpFreshParams {
            shards,
            ..SpFreshParams::default()
        };
        SpFresh::load(SPACE, params, bytes, Box::new(file.clone()))
    };
    let index = load(&bytes, 7)?;
    assert_eq!((index.params().shards, index.len()), (3, 3_000));
    let data = Data::clustered(SPACE, 6_000, 30, 21)?;
    (3_000..6_000).try_for_each(|row| index.insert(row, data.vector(row)))?;
    let found = recall(&index, &data, (10, usize::MAX), &|_| true);
    assert!(found > 0.999, "{found}");
    let at = 36 + 4 * SPACE.dim;
    for shards in [0u32, 65, u32::MAX] {
        let mut other = bytes.clone();
        other[at..at + 4].copy_from_slice(&shards.to_le_bytes());
        let refused = load(&sealed(other), 1).unwrap_err();
        assert!(
            matches!(refused, Error::Inconsistent { field: "number of shards", got, .. }
                if got == u64::from(shards)),
            "{refused}"
        );
    }
    let mut newer = bytes.clone();
    newer[8] = 4;
    let refused = load(&sealed(newer), 1).unwrap_err();
    assert!(
        matches!(refused, Error::Version { known: 3, got: 4 }),
        "{refused}"
    );
    Ok(())
}
