//! Inserts from several threads, and searches beside them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use longbow_index::{Error, Hnsw, HnswParams, Metric, Result, Scalar, SearchStats, Space};

use crate::common::{Data, all};

const THREADS: usize = 4;

/// Inserts all rows from four threads, each its share, and calls `beside` meanwhile until they are done.
fn build(data: &Data, begun: &[AtomicBool], beside: impl Fn(&Hnsw) + Sync) -> Result<Hnsw> {
    let index = Hnsw::new(data.space, HnswParams::default())?;
    let running = AtomicUsize::new(THREADS);
    std::thread::scope(|scope| {
        let (index, running, beside) = (&index, &running, &beside);
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let rows = (thread..data.rows()).step_by(THREADS);
                    let done = rows.map(|row| {
                        begun[row].store(true, Ordering::SeqCst);
                        index.insert(row as u64, data.vector(row as u64))
                    });
                    let done = done.collect::<Result<()>>();
                    running.fetch_sub(1, Ordering::SeqCst);
                    done
                })
            })
            .collect();
        scope.spawn(move || {
            while running.load(Ordering::SeqCst) > 0 {
                beside(index);
            }
        });
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|e| std::panic::resume_unwind(e))
        })
    })?;
    Ok(index)
}

#[test]
fn searches_beside_inserts_see_whole_rows_only() -> Result<()> {
    for metric in Metric::ALL {
        let data = Data::clustered(
            Space {
                scalar: Scalar::F32,
                metric,
                dim: 16,
            },
            6000,
            30,
            19,
        )?;
        let begun: Vec<AtomicBool> = (0..data.rows()).map(|_| AtomicBool::new(false)).collect();
        let searches = AtomicUsize::new(0);
        let index = build(&data, &begun, |index| {
            let turn = searches.fetch_add(1, Ordering::SeqCst);
            let query = &data.queries[turn % data.queries.len()];
            let ended = index.len();
            let found = index.search(query, 10, 50, &all, &mut SearchStats::default());
            assert!(
                found.len() >= ended.min(10),
                "{} found when {ended} were in",
                found.len()
            );
            for neighbor in found {
                assert!(
                    begun[neighbor.row as usize].load(Ordering::SeqCst),
                    "row {} was inserted",
                    neighbor.row
                );
                let distance = query.distance(data.vector(neighbor.row));
                assert_eq!(
                    neighbor.distance.to_bits(),
                    distance.to_bits(),
                    "a torn vector"
                );
            }
        })?;
        assert!(searches.load(Ordering::SeqCst) > 0);
        assert_eq!(index.len(), data.rows());
        let (parallel, serial) = (
            data.recall(&index, 10, 64, &all),
            data.recall(&data.build(HnswParams::default())?, 10, 64, &all),
        );
        assert!(
            parallel >= serial - 0.01 && parallel >= 0.95,
            "{metric}: {parallel} in parallel, {serial} in series"
        );
    }
    Ok(())
}

#[test]
fn equal_vectors_from_many_threads_are_all_found() -> Result<()> {
    let data = Data::equal(5000)?;
    let begun: Vec<AtomicBool> = (0..data.rows()).map(|_| AtomicBool::new(false)).collect();
    let index = build(&data, &begun, |_| std::thread::yield_now())?;
    let found = index.search(
        &data.queries[0],
        5000,
        5000,
        &all,
        &mut SearchStats::default(),
    );
    assert_eq!(found.len(), 5000);
    Ok(())
}

/// A checkpoint is either refused because an insert runs, or holds whole rows only.
#[test]
fn a_checkpoint_beside_inserts_is_refused_or_whole() -> Result<()> {
    let data = Data::clustered(
        Space {
            scalar: Scalar::F32,
            metric: Metric::Euclidean,
            dim: 8,
        },
        3000,
        30,
        19,
    )?;
    let begun: Vec<AtomicBool> = (0..data.rows()).map(|_| AtomicBool::new(false)).collect();
    struct Source<'a>(&'a Data);
    impl longbow_index::VectorSource for Source<'_> {
        fn vector(&self, row: u64) -> Option<&[u8]> {
            Some(self.0.vector(row))
        }
    }
    let attempt = |index: &Hnsw| {
        let mut bytes = Vec::new();
        match index.save(&mut bytes) {
            Err(Error::Busy) => {}
            Err(other) => panic!("{other}"),
            Ok(saved) => {
                let loaded = Hnsw::load(data.space, index.params(), &bytes, &Source(&data));
                assert_eq!(
                    loaded.map(|loaded| loaded.len() as u64).ok(),
                    Some(saved.rows)
                );
            }
        }
    };
    let index = build(&data, &begun, attempt)?;
    attempt(&index);
    assert_eq!(index.save(&mut std::io::sink())?.rows, 3000);
    Ok(())
}
