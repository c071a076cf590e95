//! What a reader may see of a dataset that is written to meanwhile.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::rows::Row;

/// Rows below this id are written once and never change.
pub const LASTING: i64 = 11_000;
/// Ids there are.
pub const IDS: i64 = 17_000;

/// The last write of each id, as sent and as acknowledged: the number of the write, negative for a delete; 0 before the
/// first. The one writer of a dataset notes a write as sent before it sends it, and as acknowledged after it was.
pub struct Model {
    sent: Vec<AtomicI64>,
    acknowledged: Vec<AtomicI64>,
    writes: AtomicI64,
}

impl Default for Model {
    fn default() -> Self {
        let zeros = || (0..IDS).map(|_| AtomicI64::new(0)).collect();
        Model {
            sent: zeros(),
            acknowledged: zeros(),
            writes: AtomicI64::new(0),
        }
    }
}

impl Model {
    /// Notes a write of some ids that is about to be sent, and gives its number.
    pub fn send(&self, ids: &[i64], delete: bool) -> i64 {
        let number = 1 + self.writes.fetch_add(1, Ordering::SeqCst);
        let noted = if delete { -number } else { number };
        for id in ids {
            self.sent[*id as usize].store(noted, Ordering::SeqCst);
        }
        number
    }

    /// Notes that what was sent of some ids was acknowledged.
    pub fn acknowledge(&self, ids: &[i64]) {
        for id in ids {
            let sent = self.sent[*id as usize].load(Ordering::SeqCst);
            self.acknowledged[*id as usize].store(sent, Ordering::SeqCst);
        }
    }

    /// The living rows, for the writer.
    pub fn living(&self) -> impl Iterator<Item = Row> {
        let living = |(id, write): (usize, &AtomicI64)| {
            let version = write.load(Ordering::SeqCst);
            (version > 0).then(|| Row::new(id as i64, version))
        };
        self.acknowledged.iter().enumerate().filter_map(living)
    }

    /// What is acknowledged before a request begins.
    pub fn begin(&self) -> Before {
        let all = |writes: &[AtomicI64]| {
            let writes = writes.iter().map(|write| write.load(Ordering::SeqCst));
            writes.collect::<Vec<i64>>()
        };
        let acknowledged = all(&self.acknowledged);
        Before {
            sent: all(&self.sent),
            acknowledged,
        }
    }
}

/// What was acknowledged before a request, and what was under way.
pub struct Before {
    acknowledged: Vec<i64>,
    sent: Vec<i64>,
}

impl Before {
    /// The rows that are there at each moment from then until now: acknowledged before, and nothing sent since that would
    /// replace or delete them.
    pub fn steady(&self, now: &Model) -> Vec<Row> {
        let steady = |id: usize| {
            let version = self.acknowledged[id];
            let same = self.sent[id] == version && now.sent[id].load(Ordering::SeqCst) == version;
            (version > 0 && same).then(|| Row::new(id as i64, version))
        };
        (0..self.sent.len()).filter_map(steady).collect()
    }

    /// Whether a row was there at some moment from then until now: not replaced or deleted before, and sent by now.
    pub fn may_be_seen(&self, row: &Row, now: &Model) -> bool {
        let Some(last) = usize::try_from(row.id).ok().and_then(|id| now.sent.get(id)) else {
            return false;
        };
        let last = last.load(Ordering::SeqCst);
        let not_gone = match self.acknowledged[row.id as usize] {
            deleted if deleted < 0 => row.version > -deleted,
            version => row.version >= version,
        };
        let sent = row.version <= last.abs() && row.version != -last;
        not_gone && sent
    }
}

/// What holds at every moment must not depend on luck: one writer, step by step.
#[test]
fn what_may_be_seen_follows_from_what_was_sent_and_acknowledged() {
    let model = Model::default();
    let first = model.send(&[3], false);
    let before = model.begin();
    let row = Row::new(3, first);
    assert!(before.steady(&model).is_empty() && before.may_be_seen(&row, &model));
    model.acknowledge(&[3]);
    let before = model.begin();
    assert_eq!(before.steady(&model), std::slice::from_ref(&row));
    let second = model.send(&[3], false);
    assert!(before.steady(&model).is_empty());
    assert!(before.may_be_seen(&row, &model));
    assert!(before.may_be_seen(&Row::new(3, second), &model));
    assert!(!before.may_be_seen(&Row::new(3, second + 1), &model));
    model.acknowledge(&[3]);
    let before = model.begin();
    assert!(!before.may_be_seen(&row, &model), "it was replaced");
    let gone = model.send(&[3], true);
    model.acknowledge(&[3]);
    assert!(before.may_be_seen(&Row::new(3, second), &model));
    assert!(!before.may_be_seen(&Row::new(3, gone), &model));
    let before = model.begin();
    assert!(!before.may_be_seen(&Row::new(3, second), &model), "deleted");
    assert!(!before.may_be_seen(&Row::new(IDS, 1), &model));
}
