//! Saving and loading: equal answers, rows that are gone, and bytes that are not what they should be.

use crc_fast::{CrcAlgorithm, checksum};
use longbow_index::{
    Error, Hnsw, HnswParams, Metric, Result, Saved, Scalar, SearchStats, Space, VectorSource,
};
use proptest::prelude::*;

use crate::common::{Data, all, kinds, sealed};

/// The vectors of the rows for which a condition holds.
struct Rows<'a, F: Fn(u64) -> bool>(&'a Data, F);

impl<F: Fn(u64) -> bool> VectorSource for Rows<'_, F> {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        (row < self.0.rows() as u64 && self.1(row)).then(|| self.0.vector(row))
    }
}

fn save(index: &Hnsw) -> Result<(Vec<u8>, Saved)> {
    let mut bytes = Vec::new();
    let saved = index.save(&mut bytes)?;
    Ok((bytes, saved))
}

fn load(data: &Data, params: HnswParams, bytes: &[u8]) -> Result<Hnsw> {
    Hnsw::load(data.space, params, bytes, &Rows(data, all))
}

fn error(data: &Data, bytes: &[u8]) -> String {
    load(data, PARAMS, bytes)
        .map(|_| ())
        .unwrap_err()
        .to_string()
}

const PARAMS: HnswParams = HnswParams {
    m: 4,
    ef_construction: 50,
    seed: 3,
};

/// The data of the fixtures: small integers, so that distances are the same on every processor, and some twice.
fn golden_data(metric: Metric) -> Result<Data> {
    let space = Space {
        scalar: Scalar::U8,
        metric,
        dim: 4,
    };
    let mut data = Data::clustered(space, 150, 6, 77)?;
    let repeated = data.bytes[..40].to_vec();
    data.bytes.extend(repeated);
    Ok(data)
}

const GOLDEN: &[u8] = include_bytes!("../fixtures/hnsw-v1.bin");
/// Of the inner product, for which level 0 has two lists.
const GOLDEN_DOT: &[u8] = include_bytes!("../fixtures/hnsw-v1-dot.bin");

#[test]
fn version_1_is_read_and_written_byte_by_byte() -> Result<()> {
    for (metric, golden) in [(Metric::Euclidean, GOLDEN), (Metric::Dot, GOLDEN_DOT)] {
        let data = golden_data(metric)?;
        let index = load(&data, PARAMS, golden)?;
        assert_eq!(index.len(), 160);
        assert!(data.recall(&index, 10, 50, &all) >= 0.99, "{metric}");
        let written = save(&index)?.0;
        if metric == Metric::Euclidean {
            assert_eq!(written, golden, "{metric}");
        } else {
            // To one of its rows nothing led; one link does since.
            assert_eq!(written.len(), golden.len() + 4, "{metric}");
            let again = load(&data, PARAMS, &written)?;
            assert_eq!(save(&again)?.0, written, "{metric}");
        }
    }
    Ok(())
}

#[test]
fn a_loaded_index_answers_as_the_saved_one_and_grows() -> Result<()> {
    for (scalar, metric) in kinds() {
        let data = Data::clustered(
            Space {
                scalar,
                metric,
                dim: 12,
            },
            1500,
            10,
            5,
        )?;
        let index = data.build(HnswParams::default())?;
        let (bytes, saved) = save(&index)?;
        let check = checksum(CrcAlgorithm::Crc32Iscsi, &bytes[..bytes.len() - 4]) as u32;
        assert_eq!(
            saved,
            Saved {
                rows: 1500,
                bytes: bytes.len() as u64,
                checksum: check
            }
        );
        let loaded = load(&data, HnswParams::default(), &bytes)?;
        assert_eq!(loaded.len(), 1500);
        for query in &data.queries {
            let (mut before, mut after) = (SearchStats::default(), SearchStats::default());
            let expected = index.search(query, 10, 40, &all, &mut before);
            assert_eq!(
                loaded.search(query, 10, 40, &all, &mut after),
                expected,
                "{scalar} {metric}"
            );
            assert_eq!(before, after);
        }
        for row in 0..1500 {
            loaded.insert(10_000 + row, data.vector(row))?;
        }
        assert_eq!(loaded.len(), 3000);
        let found = loaded.search(
            &data.queries[0],
            20,
            60,
            &|row| row >= 10_000,
            &mut SearchStats::default(),
        );
        assert_eq!(found.len(), 20);
    }
    Ok(())
}

#[test]
fn an_empty_index_is_saved_and_loaded() -> Result<()> {
    let data = Data::clustered(
        Space {
            scalar: Scalar::I8,
            metric: Metric::Dot,
            dim: 3,
        },
        5,
        2,
        5,
    )?;
    let (bytes, saved) = save(&Hnsw::new(data.space, PARAMS)?)?;
    assert_eq!((saved.rows, bytes.len()), (0, 40));
    let loaded = load(&data, PARAMS, &bytes)?;
    assert!(
        loaded
            .search(&data.queries[0], 3, 3, &all, &mut SearchStats::default())
            .is_empty()
    );
    loaded.insert(4, data.vector(4))?;
    assert_eq!(
        loaded
            .search(&data.queries[0], 3, 3, &all, &mut SearchStats::default())
            .len(),
        1
    );
    Ok(())
}

#[test]
fn rows_that_are_gone_are_bridged() -> Result<()> {
    for metric in Metric::ALL {
        let mut data = Data::clustered(
            Space {
                scalar: Scalar::F32,
                metric,
                dim: 12,
            },
            2000,
            10,
            5,
        )?;
        let index = data.build(HnswParams::default())?;
        let (bytes, _) = save(&index)?;
        let kept = |row: u64| row % 25 != 7;
        let loaded = Hnsw::load(
            data.space,
            HnswParams::default(),
            &bytes,
            &Rows(&data, kept),
        )?;
        assert_eq!(loaded.len(), 1920);
        let recall = data.recall(&loaded, 10, 64, &kept);
        assert!(recall >= 0.95, "{metric}: recall {recall}");
        data.queries.truncate(1);
        let reached = loaded.search(
            &data.queries[0],
            1920,
            1920,
            &kept,
            &mut SearchStats::default(),
        );
        assert!(
            reached.len() >= 1910,
            "{metric}: {} of 1920 rows can be reached",
            reached.len()
        );
    }
    Ok(())
}

#[test]
fn a_twin_stands_in_for_the_first_of_its_kind() -> Result<()> {
    let data = golden_data(Metric::Euclidean)?;
    let (bytes, _) = save(&data.build(PARAMS)?)?;
    // The first eight of ten rows whose vectors come again at the end are gone: one in twenty of all.
    let kept = |row: u64| row >= 8;
    let loaded = Hnsw::load(data.space, PARAMS, &bytes, &Rows(&data, kept))?;
    assert_eq!(loaded.len(), 152);
    assert!(data.recall(&loaded, 10, 50, &kept) >= 0.99);
    Ok(())
}

#[test]
fn too_many_rows_gone_means_rebuild() -> Result<()> {
    let data = golden_data(Metric::Euclidean)?;
    let kept = |row: u64| row >= 9;
    match Hnsw::load(data.space, PARAMS, GOLDEN, &Rows(&data, kept)) {
        Err(Error::Rebuild {
            missing: 9,
            total: 160,
        }) => Ok(()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_checkpoint_of_something_else_is_refused_by_name() -> Result<()> {
    let data = golden_data(Metric::Euclidean)?;
    let load = |space, params| {
        Hnsw::load(space, params, GOLDEN, &Rows(&data, all))
            .map(|_| ())
            .unwrap_err()
    };
    let space = data.space;
    let other = |space| load(space, PARAMS).to_string();
    assert!(
        other(Space {
            scalar: Scalar::I8,
            ..space
        })
        .contains("element type uint8, this index has int8")
    );
    assert!(
        other(Space {
            metric: Metric::Dot,
            ..space
        })
        .contains("metric euclidean")
    );
    assert!(other(Space { dim: 5, ..space }).contains("dimension 4, this index has 5"));
    assert!(
        load(space, HnswParams { m: 5, ..PARAMS })
            .to_string()
            .contains("m 4, this index has 5")
    );
    assert!(
        load(space, HnswParams { seed: 5, ..PARAMS })
            .to_string()
            .contains("seed 3, this index has 5")
    );
    let short = Data {
        space,
        bytes: data.bytes.clone(),
        queries: Vec::new(),
    };
    struct Short(Data);
    impl VectorSource for Short {
        fn vector(&self, row: u64) -> Option<&[u8]> {
            Some(&self.0.vector(row)[1..])
        }
    }
    let got = Hnsw::load(space, PARAMS, GOLDEN, &Short(short))
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        got.contains("vector of row 0 has 3 bytes, expected 4"),
        "{got}"
    );
    Ok(())
}

#[test]
fn damage_is_named() -> Result<()> {
    let data = golden_data(Metric::Euclidean)?;
    let changed = |at: usize, value: u8| {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] = value;
        bytes
    };
    assert!(error(&data, &changed(0, b'X')).contains("another kind of file"));
    assert!(error(&data, &changed(8, 2)).contains("version 2, this program reads up to 1"));
    assert!(error(&data, &changed(500, !GOLDEN[500])).contains("checksum"));
    assert!(error(&data, &GOLDEN[..11]).contains("ends at byte 11, expected at least 12"));
    for cut in 0..GOLDEN.len() {
        error(&data, &GOLDEN[..cut]);
    }
    Ok(())
}

#[test]
fn no_single_changed_byte_goes_unnoticed() -> Result<()> {
    let data = golden_data(Metric::Euclidean)?;
    for at in 0..GOLDEN.len() {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 1 << (at % 8);
        error(&data, &bytes);
    }
    Ok(())
}

/// Loads what may be anything, and if it is an index uses it.
fn try_out(data: &Data, bytes: &[u8]) -> Result<()> {
    let index = load(data, PARAMS, bytes)?;
    let stats = &mut SearchStats::default();
    for query in &data.queries[..3] {
        let found = index.search(query, 10, 20, &all, stats);
        assert!(found.is_sorted() && found.len() <= index.len());
    }
    index.insert(159, data.vector(159))?;
    save(&index).map(|_| ())
}

fn golden(dot: bool) -> std::result::Result<(Data, &'static [u8]), TestCaseError> {
    let (metric, bytes) = if dot {
        (Metric::Dot, GOLDEN_DOT)
    } else {
        (Metric::Euclidean, GOLDEN)
    };
    let data = golden_data(metric).map_err(|e| TestCaseError::fail(e.to_string()))?;
    Ok((data, bytes))
}

proptest! {
    #[test]
    fn changed_bytes_with_a_right_checksum_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        dot: bool,
    ) {
        let (data, golden) = golden(dot)?;
        let mut bytes = golden.to_vec();
        for (at, value) in changes {
            *at.get_mut(&mut bytes) = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(golden.len()));
        }
        let _ = try_out(&data, &sealed(bytes));
    }

    #[test]
    fn fields_beyond_their_limits_are_refused_or_harmless(
        at: prop::sample::Index,
        value in prop_oneof![Just(u32::MAX), Just(u32::MAX - 1), Just(1 << 31), 0u32..400],
        dot: bool,
    ) {
        let (data, golden) = golden(dot)?;
        let mut bytes = golden.to_vec();
        let at = at.index(golden.len() - 8);
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let _ = try_out(&data, &sealed(bytes));
    }

    #[test]
    fn random_bytes_do_no_harm(tail in prop::collection::vec(any::<u8>(), 0..400), header: bool, dot: bool) {
        let (data, golden) = golden(dot)?;
        let mut bytes = if header { golden[..28].to_vec() } else { Vec::new() };
        bytes.extend(tail);
        let _ = try_out(&data, &sealed(bytes));
    }
}
