//! Random writes, done to an engine and to the models of its datasets.

use longbow_engine::{Applied, Class, Engine, Error, Pending};

use crate::compare::{check, test};
use crate::model::{Model, Op};
use crate::random::Random;
use crate::rows::{Extra, Row, Shape};

/// The datasets that are written to.
pub const NAMES: [&str; 2] = ["one", "space/two"];
/// Keys are below this.
const KEYS: u64 = 150;

/// What is done next; the seed says the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Some batches at once.
    Put,
    /// Rows by id.
    Delete,
    /// Rows by id, one of which is unknown.
    DeleteUnknown,
    /// Rows by a condition.
    DeleteWhere,
    Checkpoint,
    Tidy,
    Drop,
    /// Close and open again; done by whoever holds the engine.
    Reopen,
}

/// How often each kind comes up.
pub const WEIGHTS: [(u32, Kind); 8] = [
    (16, Kind::Put),
    (4, Kind::Delete),
    (1, Kind::DeleteUnknown),
    (3, Kind::DeleteWhere),
    (4, Kind::Checkpoint),
    (2, Kind::Tidy),
    (1, Kind::Drop),
    (2, Kind::Reopen),
];

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// To which of [`NAMES`].
    pub to: usize,
    pub kind: Kind,
    pub seed: u64,
}

impl Step {
    /// A step as likely as its weight.
    pub fn random(random: &mut Random) -> Step {
        let all = WEIGHTS.iter().map(|(weight, _)| u64::from(*weight)).sum();
        let mut at = random.below(all);
        let kind = WEIGHTS.iter().find(|(weight, _)| {
            let hit = at < u64::from(*weight);
            at = at.saturating_sub(u64::from(*weight));
            hit
        });
        Step {
            to: random.below(2) as usize,
            kind: kind.map_or(Kind::Put, |(_, kind)| *kind),
            seed: random.next(),
        }
    }
}

/// What came of a step beside what was acknowledged.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was refused, and why.
    pub refused: Vec<Error>,
    /// Of that, what may be in the log all the same, in order.
    pub maybe: Vec<(usize, Op)>,
}

/// The datasets as they should be.
#[derive(Debug, Clone)]
pub struct World {
    pub shape: Shape,
    pub models: [Model; 2],
    /// Everything that was acknowledged: its place in the log, its dataset, and what it was.
    pub history: Vec<(u64, usize, Op)>,
    /// Found and findable rows of searches by graph.
    pub recall: [usize; 2],
    /// The last place in the log that was acknowledged, and the last that was acknowledged as durable.
    pub acknowledged: u64,
    pub durable: u64,
    /// The datasets as they were before `history`, which begins after a place of the log.
    base: ([Model; 2], u64),
    version: u32,
}

impl World {
    pub fn new(shape: Shape) -> World {
        World {
            shape,
            models: Default::default(),
            history: Vec::new(),
            recall: [0, 0],
            acknowledged: 0,
            durable: 0,
            base: Default::default(),
            version: 0,
        }
    }

    /// The datasets as the log up to a place makes them.
    pub fn models_at(&self, last: u64) -> [Model; 2] {
        let (mut models, from) = self.base.clone();
        assert!(
            last >= from,
            "asked for {last}, what was before {from} is not known"
        );
        let until = self
            .history
            .iter()
            .take_while(|(offset, ..)| *offset <= last);
        until.for_each(|(_, to, op)| models[*to].apply(op));
        models
    }

    /// Goes on with what was found when the folder was opened again, its log ending at `last`: all of it is durable.
    pub fn restart(&mut self, models: [Model; 2], last: u64) {
        self.base = (models.clone(), last);
        self.models = models;
        self.history.clear();
        self.acknowledged = last;
        self.durable = last;
    }

    /// Fails if a dataset is not as its model.
    pub fn check(&mut self, engine: &Engine, random: &mut Random) {
        for (name, model) in NAMES.iter().zip(&self.models) {
            let recall = check(engine, name, &self.shape, model, random);
            self.recall = [self.recall[0] + recall[0], self.recall[1] + recall[1]];
        }
    }

    /// Does a step. Where the step is wrong in itself, the engine must say so, and nothing has come of it.
    pub fn step(&mut self, engine: &Engine, step: Step) -> Outcome {
        let mut random = Random(step.seed);
        let (to, name) = (step.to, NAMES[step.to]);
        match step.kind {
            Kind::Put => self.put(engine, to, &mut random),
            Kind::Delete | Kind::DeleteUnknown if !self.models[to].exists => {
                absent(engine.delete_ids(name, vec![self.shape.id(0)]))
            }
            Kind::Delete => self.delete(engine, to, &mut random),
            Kind::DeleteUnknown => {
                let known = self.models[to]
                    .rows()
                    .next()
                    .map(|row| self.shape.id(row.key));
                let unknown = self.shape.id(KEYS as u32 + 5);
                absent(engine.delete_ids(name, known.into_iter().chain([unknown]).collect()))
            }
            Kind::DeleteWhere => self.delete_where(engine, to, &mut random),
            Kind::Checkpoint => {
                let made = engine.checkpoint();
                if made.is_ok() {
                    self.durable = self.acknowledged;
                }
                Outcome::of(made.err(), [])
            }
            Kind::Tidy => Outcome::of(engine.tidy().err(), []),
            Kind::Drop if !self.models[to].exists => {
                let refused = engine.drop_dataset(name).expect_err("there is none");
                Outcome::unless_absent(refused)
            }
            Kind::Drop => {
                let rows = self.models[to].len();
                let done = engine.drop_dataset(name);
                self.done(to, Op::Drop, rows, done)
            }
            Kind::Reopen => Outcome::default(),
        }
    }

    /// Notes what was acknowledged at a place of the log.
    fn note(&mut self, offset: u64, to: usize, op: Op) {
        let last = self.history.last().map_or(0, |(offset, ..)| *offset);
        assert!(offset > last, "{op:?} at {offset}, after {last}");
        self.models[to].apply(&op);
        self.history.push((offset, to, op));
    }

    /// Takes the answer to an operation that should touch so many rows.
    fn done(&mut self, to: usize, op: Op, rows: usize, answer: Result<Applied, Error>) -> Outcome {
        match answer {
            Ok(applied) => {
                assert_eq!(applied.rows, rows as u64, "{op:?}");
                self.note(applied.offset, to, op);
                self.acknowledged = applied.offset;
                if applied.durable {
                    self.durable = applied.offset;
                }
                Outcome::default()
            }
            Err(error) => Outcome::of(Some(error), [(to, op)]),
        }
    }

    fn put(&mut self, engine: &Engine, to: usize, random: &mut Random) -> Outcome {
        let extras = self.extras(to, random);
        let mut session = match engine.put(NAMES[to], &self.shape.schema(&extras)) {
            Ok(session) => session,
            Err(error) => return Outcome::of(Some(error), []),
        };
        let mut outcome = Outcome::default();
        let mut waiting = Vec::new();
        for _ in 0..1 + random.below(3) {
            let rows = self.rows(&extras, random);
            match session.record_batch(&self.shape.batch(&extras, &rows)) {
                Ok(pending) => waiting.push((rows, pending)),
                Err(error) if waiting.is_empty() => {
                    // Perhaps the dataset was created or grew; these rows did not come to the log.
                    outcome.add(error, to, self.preparation(to, &extras));
                }
                Err(error) => outcome.refused.push(error),
            }
        }
        let mut prepared = false;
        for (rows, pending) in waiting {
            let count = rows.len();
            let answer = pending.wait();
            if let Ok(applied) = &answer
                && !std::mem::replace(&mut prepared, true)
            {
                self.prepared(engine, to, &extras, Some(applied.offset - 1));
            }
            let more = self.done(to, Op::Put(rows), count, answer);
            outcome.refused.extend(more.refused);
            outcome.maybe.extend(more.maybe);
        }
        if !prepared {
            self.prepared(engine, to, &extras, None);
        }
        outcome
    }

    /// What a put with these columns does before its rows.
    fn preparation(&self, to: usize, extras: &[Extra]) -> Op {
        if self.models[to].exists {
            Op::Grow(self.models[to].missing(extras))
        } else {
            Op::Create(extras.to_vec())
        }
    }

    /// Notes that a put created its dataset, or grew it, if it did: before its first rows, or as the last that was
    /// applied.
    fn prepared(&mut self, engine: &Engine, to: usize, extras: &[Extra], offset: Option<u64>) {
        let Ok(dataset) = engine.dataset(NAMES[to]) else {
            return;
        };
        let has = |extra: &Extra| dataset.view().schema.arrow.index_of(extra.name()).is_ok();
        let model = &self.models[to];
        let grown = model.missing(extras);
        if !model.exists || (!grown.is_empty() && grown.iter().all(has)) {
            let op = self.preparation(to, extras);
            self.note(offset.unwrap_or(dataset.view().index), to, op);
        }
    }

    /// Columns of a put: seldom new ones, and always all vectors.
    fn extras(&self, to: usize, random: &mut Random) -> Vec<Extra> {
        let known = &self.models[to].extras;
        let mut extras = Vec::new();
        for extra in Extra::ALL {
            let wanted = match (extra, known.contains(&extra)) {
                (Extra::Second, true) => true,
                (_, true) => random.once_in(2),
                (Extra::Second, false) => random.once_in(20),
                (_, false) => random.once_in(10),
            };
            if wanted {
                extras.insert(random.below(extras.len() as u64 + 1) as usize, extra);
            }
        }
        extras
    }

    fn rows(&mut self, extras: &[Extra], random: &mut Random) -> Vec<Row> {
        // Some batches are so large that their rows are read from the log's file.
        let count = match random.once_in(15) {
            true => 1_500 + random.below(1_500),
            false => 1 + random.below(40),
        };
        let span = 1 + random.below(KEYS);
        let row = |_| {
            self.version += 1;
            let mut row = Row {
                key: random.below(span) as u32,
                version: self.version,
                tag: (!random.once_in(5)).then(|| random.below(10) as u32),
                extras: [None; 4],
            };
            for extra in extras {
                let there = *extra == Extra::Second || !random.once_in(4);
                row.extras[*extra as usize] = there.then(|| random.below(50) as u32);
            }
            row
        };
        (0..count).map(row).collect()
    }

    fn delete(&mut self, engine: &Engine, to: usize, random: &mut Random) -> Outcome {
        let living = self.models[to]
            .rows()
            .map(|row| row.key)
            .collect::<Vec<_>>();
        if living.is_empty() {
            return Outcome::default();
        }
        let count = 1 + random.below(8);
        let keys = (0..count)
            .map(|_| *random.pick(&living))
            .collect::<Vec<_>>();
        let mut different = keys.clone();
        different.sort_unstable();
        different.dedup();
        let ids = keys.iter().map(|key| self.shape.id(*key)).collect();
        let answer = engine.delete_ids(NAMES[to], ids).and_then(Pending::wait);
        self.done(to, Op::DeleteKeys(keys), different.len(), answer)
    }

    fn delete_where(&mut self, engine: &Engine, to: usize, random: &mut Random) -> Outcome {
        let Some(test) = test(&self.models[to], random) else {
            return Outcome::default();
        };
        let answer = engine.delete_where(NAMES[to], &test.condition(&self.shape));
        if !self.models[to].exists {
            return absent(answer);
        }
        let rows = self.models[to]
            .rows()
            .filter(|row| row.passes(&test))
            .count();
        self.done(
            to,
            Op::DeleteWhere(test),
            rows,
            answer.and_then(Pending::wait),
        )
    }
}

impl Outcome {
    fn of(refused: Option<Error>, maybe: impl IntoIterator<Item = (usize, Op)>) -> Outcome {
        let mut outcome = Outcome::default();
        match refused {
            Some(error) if may_be_logged(&error) => {
                outcome.maybe.extend(maybe);
                outcome.refused.push(error);
            }
            other => outcome.refused.extend(other),
        }
        outcome
    }

    fn add(&mut self, refused: Error, to: usize, op: Op) {
        let more = Outcome::of(Some(refused), [(to, op)]);
        self.refused.extend(more.refused);
        self.maybe.extend(more.maybe);
    }

    /// The outcome of a request for what is not there: none, if the engine says so.
    fn unless_absent(error: Error) -> Outcome {
        if error.class() == Class::NotFound {
            return Outcome::default();
        }
        Outcome::of(Some(error), [])
    }
}

/// The outcome of a request for what is not there, which must not succeed.
fn absent(answer: Result<Pending, Error>) -> Outcome {
    match answer.and_then(Pending::wait) {
        Ok(applied) => panic!("acknowledged what it could not do: {applied:?}"),
        Err(error) => Outcome::unless_absent(error),
    }
}

/// Whether what was refused in this way may be in the log. A full disk refuses for good.
fn may_be_logged(error: &Error) -> bool {
    matches!(error, Error::Log(longbow_log::Error::Poisoned { .. }))
}
