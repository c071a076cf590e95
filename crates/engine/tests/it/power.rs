//! Processes that are killed, and machines that lose power, at any call of the disk.

use std::sync::Arc;

use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{Engine, IndexKind, IndexPolicy, Quantization, SyncMode};

use crate::drive::World;
use crate::lives::{background, live, options, reopened};
use crate::mortal::Mortal;
use crate::random::Random;
use crate::rounds::rounds;
use crate::rows::{Element, IdKind, Row, Shape};

fn shape(random: &mut Random) -> Shape {
    Shape {
        id: *random.pick(&[IdKind::Int, IdKind::Text]),
        element: *random.pick(&Element::ALL),
        metric: "euclidean",
    }
}

/// What a loss of power leaves: of each file all that was synced, and of the rest as much as chance wants.
fn without_power(disk: &MemoryDisk, random: &mut Random) -> MemoryDisk {
    disk.crash_keeping(&mut |_, unsynced| random.below(unsynced + 1))
}

/// One folder through several lives, each of which ends at some call of the disk.
fn check(seed: u64, sync: SyncMode) {
    let mut random = Random(seed);
    let mut world = World::new(shape(&mut random));
    let mut disk = MemoryDisk::new();
    for _ in 0..3 {
        let mortal = Mortal::new(Arc::new(disk.clone()), random.below(600));
        let mut options = options(sync);
        let kinds = [Quantization::None, Quantization::Rabitq];
        options.graphs.quantization = Some(*random.pick(&kinds));
        let [flat, hnsw, spfresh] = IndexKind::ALL.map(IndexPolicy::Fixed);
        options.graphs.kind = *random.pick(&[flat, hnsw, spfresh, IndexPolicy::Auto]);
        options.graphs.choice.least_rows = random.below(40);
        options.graphs.choice.room = Some(random.below(20_000));
        let left = live(Arc::new(mortal), &options, world, &mut random, 25, false);
        let (acknowledged, durable) = (left.world.acknowledged, left.world.durable);
        let safe = match random.below(3) {
            0 => {
                disk = without_power(&disk, &mut random);
                durable
            }
            1 => acknowledged,
            _ => {
                // Killed, opened again, perhaps killed during that, and then the power goes.
                let mortal = Mortal::new(Arc::new(disk.clone()), random.below(120));
                let opened = Engine::open(Arc::new(mortal), options.clone());
                let safe = if opened.is_ok() {
                    acknowledged
                } else {
                    durable
                };
                drop(opened);
                disk = without_power(&disk, &mut random);
                safe
            }
        };
        world = reopened(Arc::new(disk.clone()), &options, left, safe, &mut random);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_every_acknowledgement_is_synced() {
    for seed in 0..rounds(60) as u64 {
        check(seed, SyncMode::EveryAck);
    }
}

#[test]
fn nothing_durable_is_lost_when_syncs_come_behind() {
    for seed in 0..rounds(60) as u64 {
        check(1_000_000 + seed, background());
    }
}

/// A sync that failed may succeed the next time although its bytes are gone: nothing may rely on that.
#[test]
fn a_failed_sync_is_never_taken_back() {
    for seed in 0..rounds(80) as u64 {
        let mut random = Random(2_000_000 + seed);
        let sync = *random.pick(&[SyncMode::EveryAck, background()]);
        let memory = MemoryDisk::new();
        let disk = Mortal::new(Arc::new(memory.clone()), u64::MAX);
        disk.fail_sync(random.below(60));
        let world = World::new(shape(&mut random));
        let options = options(sync);
        let mut left = live(Arc::new(disk), &options, world, &mut random, 30, true);
        // What the log could not sync at its end it has told nobody to be durable.
        let safe = left.world.durable;
        left.refused = None;
        let after = memory.crash();
        reopened(Arc::new(after), &options, left, safe, &mut random);
    }
}

/// Two checkpoints of one dataset, the process dying at some call of the disk.
fn two_checkpoints(disk: &MemoryDisk, calls: u64) {
    let engine = Engine::open(
        Arc::new(Mortal::new(Arc::new(disk.clone()), calls)),
        options(SyncMode::EveryAck),
    );
    let Ok(engine) = engine else {
        return;
    };
    let put = |version: u32| -> longbow_engine::Result<()> {
        let row = Row {
            key: version % 3,
            version,
            tag: None,
            extras: [None; 4],
        };
        let mut session = engine.put("one", &PLAIN.schema(&[]))?;
        session.record_batch(&PLAIN.batch(&[], &[row]))?.wait()?;
        engine.checkpoint().map(drop)
    };
    let _ = put(1).and_then(|()| put(2));
}

const PLAIN: Shape = Shape {
    id: IdKind::Int,
    element: Element::F32,
    metric: "euclidean",
};

/// The process died when the new manifest had its name and the folder was not yet synced. The next process read it
/// and removed what only the old one names; then the power went, and the old one was back without its files.
#[test]
fn files_of_the_manifest_before_stay_until_the_new_one_cannot_go() {
    let manifest = |disk: &MemoryDisk| disk.read("data/MANIFEST".as_ref(), 1 << 20).ok();
    let mut between = 0;
    for calls in 0..300 {
        let disk = MemoryDisk::new();
        two_checkpoints(&disk, calls);
        let durable = manifest(&disk.crash());
        if durable.is_none() || durable == manifest(&disk) {
            continue;
        }
        between += 1;
        for more in 0..120 {
            let disk = MemoryDisk::new();
            two_checkpoints(&disk, calls);
            two_checkpoints(&disk, more);
            let opened = Engine::open(Arc::new(disk.crash()), options(SyncMode::EveryAck));
            let engine = opened.unwrap_or_else(|error| panic!("{calls}, {more}: {error}"));
            assert!(engine.dataset("one").expect("it is there").view().live > 0);
        }
    }
    assert!(between > 0, "the moment between two manifests never came");
}
