//! Lives of an engine on disks in memory: from a start through random steps to an end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use longbow_disk::Disk;
use longbow_engine::{Engine, Error, Options, SyncMode};

use crate::compare::difference;
use crate::drive::{Kind, NAMES, Outcome, Step, World};
use crate::model::Op;
use crate::property::small;
use crate::random::Random;

/// Options of a life: everything small, and nothing happens by time alone.
pub fn options(sync: SyncMode) -> Options {
    Options {
        sync,
        tidy_interval: std::time::Duration::from_secs(3600),
        max_log_bytes: u64::MAX,
        ..small("data".as_ref())
    }
}

/// The sync mode in which acknowledgements do not wait for the disk.
pub fn background() -> SyncMode {
    Options::new("").sync
}

/// What a life left behind.
#[derive(Debug)]
pub struct Left {
    pub world: World,
    /// What was refused and may be in the log all the same.
    pub maybe: Vec<(usize, Op)>,
    /// The first refusal, if there was one.
    pub refused: Option<Error>,
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// How many of the engine's own threads have panicked since this was first called.
pub fn panics() -> usize {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            if ["apply", "index-", "maintenance", "log-"]
                .iter()
                .any(|own| name.starts_with(own))
            {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            before(panic);
        }));
    });
    PANICS.load(Ordering::Relaxed)
}

/// Opens the folder and does `steps` steps, comparing after each; after the first refusal only if `go_on`. Then ends
/// the engine, which may fail.
pub fn live(
    disk: Arc<dyn Disk>,
    options: &Options,
    mut world: World,
    random: &mut Random,
    steps: usize,
    go_on: bool,
) -> Left {
    assert_eq!(panics(), 0, "a thread of an engine panicked");
    let mut left = Left {
        world: World::new(world.shape),
        maybe: Vec::new(),
        refused: None,
    };
    match Engine::open(disk, options.clone()) {
        Err(error) => left.refused = Some(error),
        Ok(engine) => {
            for _ in 0..steps {
                let Outcome { refused, maybe } = world.step(&engine, Step::random(random));
                left.maybe.extend(maybe);
                left.refused = left.refused.or_else(|| refused.into_iter().next());
                // What is refused is not seen, what is acknowledged is, also when the disk fails.
                world.check(&engine, random);
                if left.refused.is_some() && !go_on {
                    break;
                }
            }
            let closed = engine.close();
            left.refused = left.refused.or(closed.err());
        }
    }
    left.world = world;
    left
}

/// Fails unless the folder opens and holds what was acknowledged, and of what came after it some beginning of what
/// may be there. `safe` is the last place in the log that must not be lost. Then does a few steps more on that engine
/// and ends it; gives what is known now.
pub fn reopened(
    disk: Arc<dyn Disk>,
    options: &Options,
    left: Left,
    safe: u64,
    random: &mut Random,
) -> World {
    let engine = Engine::open(disk, options.clone())
        .unwrap_or_else(|error| panic!("the folder does not open: {error}"));
    let last = engine.log_indices().0;
    assert!(
        last >= safe,
        "the log ends at {last}, acknowledged was {safe}"
    );
    let mut models = left.world.models_at(last);
    let differs = |models: &[_; 2]| {
        let pairs = NAMES.iter().zip(models);
        let mut all =
            pairs.map(|(name, model)| difference(&engine, name, &left.world.shape, model));
        all.find_map(|difference| difference)
    };
    let mut difference = differs(&models);
    let mut maybe = left.maybe.iter();
    while difference.is_some()
        && let Some((to, op)) = maybe.next()
    {
        models[*to].apply(op);
        difference = differs(&models);
    }
    assert!(
        difference.is_none(),
        "after {:?}, at {last}: {difference:?}",
        left.refused
    );
    let mut world = left.world;
    world.restart(models, last);
    for _ in 0..3 {
        let step = Step {
            kind: Kind::Put,
            ..Step::random(random)
        };
        let outcome = world.step(&engine, step);
        assert!(outcome.refused.is_empty(), "{outcome:?}");
        world.check(&engine, random);
    }
    engine.checkpoint().expect("nothing fails any more");
    world.check(&engine, random);
    engine.close().expect("nothing fails any more");
    assert_eq!(panics(), 0, "a thread of the engine panicked");
    world
}
