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
    index.hold();
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
    index.hold();
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
fn a_damaged_block_is_found() -> Result<()> {
    let (_, _, file, bytes) = saved()?;
    let whole = file.bytes.lock().expect("no writer panics").clone();
    for at in [0, 4, 70, whole.len() / 2, whole.len() - 1] {
        file.bytes.lock().expect("no writer panics")[at] ^= 4;
        // A slot that is free may hold anything.
        let found = load(&bytes, &file);
        assert!(
            matches!(
                found,
                Err(Error::Checksum { .. } | Error::Inconsistent { .. })
            ) || found.is_ok_and(|index| index.len() == 3_000 && index.file_bytes().1 > 0),
            "byte {at}"
        );
        *file.bytes.lock().expect("no writer panics") = whole.clone();
    }
    file.bytes
        .lock()
        .expect("no writer panics")
        .truncate(whole.len() / 2);
    assert!(matches!(load(&bytes, &file), Err(Error::Truncated { .. })));
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

const GOLDEN: [&[u8]; 2] = [
    include_bytes!("../../fixtures/spfresh-v1.bin"),
    include_bytes!("../../fixtures/spfresh-v2.bin"),
];
const GOLDEN_BLOCKS: [&[u8]; 2] = [
    include_bytes!("../../fixtures/spfresh-v1.blocks"),
    include_bytes!("../../fixtures/spfresh-v2.blocks"),
];

/// Reads the golden files of a version, which have so many shards, and returns what is saved then.
fn golden(version: usize, shards: usize) -> Result<Vec<u8>> {
    let data = golden_data()?;
    let (bytes, blocks) = (GOLDEN[version - 1], GOLDEN_BLOCKS[version - 1]);
    let file = MemoryFile::default();
    *file.bytes.lock().expect("no writer panics") = blocks.to_vec();
    let params = SpFreshParams {
        split: 32,
        merge: 4,
        ..SpFreshParams::default()
    };
    let index = SpFresh::load(data.space, params, bytes, Box::new(file.clone()))?;
    assert_eq!((index.len(), index.postings() > 4), (160, true));
    assert_eq!(index.params(), SpFreshParams { shards, ..params });
    assert!(index.is_prepared());
    let found = recall(&index, &data, (10, usize::MAX), &|row| row < 160);
    assert!(found > 0.99, "{found}");
    let mut again = Vec::new();
    index.save(&mut again)?;
    assert!(*file.bytes.lock().expect("no writer panics") == blocks);
    SpFresh::verify(data.space, params, bytes, &file)?;
    Ok(again)
}

#[test]
fn version_1_is_read_as_one_shard() -> Result<()> {
    let again = golden(1, 1)?;
    // As it was, with another version, and the number of shards behind the centre.
    let (old, at) = (GOLDEN[0], 36 + 4 * 4);
    let expected = [
        &old[..8],
        &[2, 0, 0, 0],
        &old[12..at],
        &[1, 0, 0, 0],
        &old[at..],
    ]
    .concat();
    assert!(again == sealed(expected));
    Ok(())
}

#[test]
fn version_2_is_read_and_written_byte_by_byte() -> Result<()> {
    assert!(golden(2, 3)? == GOLDEN[1], "written as it was read");
    Ok(())
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
    newer[8] = 3;
    let refused = load(&sealed(newer), 1).unwrap_err();
    assert!(
        matches!(refused, Error::Version { known: 2, got: 3 }),
        "{refused}"
    );
    Ok(())
}
