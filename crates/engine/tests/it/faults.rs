//! Disks that fail single calls: what is refused has not happened, what is acknowledged has, and the folder opens.

use std::sync::Arc;

use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk, Operation, RealDisk};
use longbow_engine::{Engine, Options, SyncMode};

use crate::drive::World;
use crate::lives::{background, live, options, reopened};
use crate::random::Random;
use crate::rounds::rounds;
use crate::rows::{Element, IdKind, Shape};

const FAULTS: [Fault; 4] = [
    Fault::Io,
    Fault::NoSpace,
    Fault::ShortWrite(1),
    Fault::ShortWrite(300),
];

/// What the engine does to the disk while it is open.
const OPERATIONS: [Operation; 8] = [
    Operation::Write,
    Operation::Sync,
    Operation::Create,
    Operation::Open,
    Operation::Map,
    Operation::Rename,
    Operation::SyncDir,
    Operation::Remove,
];

fn world() -> World {
    World::new(Shape {
        id: IdKind::Int,
        element: Element::F32,
        metric: "euclidean",
    })
}

/// A life in which the `nth` call of a kind fails, and the one after.
fn check(seed: u64, sync: SyncMode, operation: Operation, nth: u64, fault: Fault) {
    let mut random = Random(seed);
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    let options = options(sync);
    disk.fail(operation, nth, fault);
    let left = live(
        Arc::new(disk.clone()),
        &options,
        world(),
        &mut random,
        25,
        true,
    );
    if let Some(refused) = &left.refused {
        let text = refused.to_string();
        let why = ["injected", "storage space", "no space"];
        assert!(
            why.iter().any(|why| text.contains(why)),
            "{operation}, {nth}, {fault:?}: {text}"
        );
    }
    let power = random.once_in(2);
    let (after, safe) = match power {
        true => (memory.crash(), left.world.durable),
        false => (memory.clone(), left.world.acknowledged),
    };
    reopened(Arc::new(after), &options, left, safe, &mut random);
}

#[test]
fn a_call_that_fails_while_the_engine_is_open() {
    let mut random = Random(3_000_000);
    for seed in 0..rounds(10) as u64 {
        for operation in OPERATIONS {
            let fault = *random.pick(&FAULTS);
            let sync = *random.pick(&[SyncMode::EveryAck, background()]);
            check(seed, sync, operation, 1 + random.below(40), fault);
        }
    }
}

/// On the real disk rows are read from mapped files, which must not become shorter under their readers.
#[test]
fn a_write_that_fails_on_the_real_disk() {
    for seed in 0..rounds(12) as u64 {
        let mut random = Random(7_000_000 + seed);
        let folder = tempfile::tempdir().expect("a folder");
        let disk = FaultyDisk::new(Arc::new(RealDisk));
        let options = Options {
            path: folder.path().join("data"),
            ..options(*random.pick(&[SyncMode::EveryAck, background()]))
        };
        let fault = *random.pick(&[Fault::NoSpace, Fault::ShortWrite(5_000)]);
        disk.fail(Operation::Write, 1 + random.below(40), fault);
        disk.fail(Operation::Write, 1 + random.below(60), fault);
        let left = live(Arc::new(disk), &options, world(), &mut random, 30, true);
        let safe = left.world.acknowledged;
        reopened(Arc::new(RealDisk), &options, left, safe, &mut random);
    }
}

#[test]
fn a_disk_that_fails_from_some_moment_on() {
    for seed in 0..rounds(20) as u64 {
        let mut random = Random(4_000_000 + seed);
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let options = options(*random.pick(&[SyncMode::EveryAck, background()]));
        disk.fail_randomly(*random.pick(&OPERATIONS), seed, 8, *random.pick(&FAULTS));
        let left = live(
            Arc::new(disk.clone()),
            &options,
            world(),
            &mut random,
            30,
            true,
        );
        let safe = left.world.acknowledged;
        reopened(Arc::new(memory), &options, left, safe, &mut random);
    }
}

#[test]
fn a_call_that_fails_while_the_folder_is_opened() {
    let mut random = Random(5_000_000);
    for seed in 0..rounds(4) as u64 {
        let memory = MemoryDisk::new();
        let options = options(background());
        let left = live(
            Arc::new(memory.clone()),
            &options,
            world(),
            &mut random,
            20,
            false,
        );
        assert!(left.refused.is_none(), "{:?}", left.refused);
        let mut failed = 0;
        for operation in Operation::ALL {
            for nth in 1..20 {
                let disk = FaultyDisk::new(Arc::new(memory.clone()));
                disk.fail(operation, nth, *random.pick(&FAULTS));
                let opened = Engine::open(Arc::new(disk.clone()), options.clone());
                failed += usize::from(opened.is_err());
                if disk.calls(operation) < nth {
                    break;
                }
            }
        }
        assert!(failed >= 15, "seed {seed}: only {failed} faults were met");
        let safe = left.world.acknowledged;
        reopened(Arc::new(memory), &options, left, safe, &mut random);
    }
}

/// A full disk refuses writes; when there is space again it takes them, without a restart.
#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_space() {
    for sync in [SyncMode::EveryAck, background()] {
        let mut random = Random(6_000_000);
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let options = options(sync);
        let full = disk.clone();
        let engine = Engine::open(Arc::new(disk.clone()), options.clone()).expect("opens");
        let mut world = world();
        let steps = |world: &mut World, random: &mut Random| {
            let mut refused = 0;
            for _ in 0..20 {
                let step = crate::drive::Step {
                    kind: crate::drive::Kind::Put,
                    ..crate::drive::Step::random(random)
                };
                refused += world.step(&engine, step).refused.len();
                world.check(&engine, random);
            }
            refused
        };
        assert_eq!(steps(&mut world, &mut random), 0);
        full.fail_always(Operation::Write, Fault::NoSpace);
        assert!(steps(&mut world, &mut random) >= 20);
        full.heal();
        assert_eq!(steps(&mut world, &mut random), 0);
        engine.close().expect("nothing fails any more");
        drop(engine);
        let engine = Engine::open(Arc::new(memory) as Arc<dyn Disk>, options).expect("opens");
        world.check(&engine, &mut random);
    }
}
