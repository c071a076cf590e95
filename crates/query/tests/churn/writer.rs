//! The writer: rows are put, replaced and deleted, as fast as they are indexed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use longbow_engine::{Engine, Id, Pending, PutSession};
use longbow_query::{Answer, Conditions, Ticket};
use serde_json::json;

use crate::Dataset;
use crate::condition::Condition;
use crate::model::{IDS, LASTING};
use crate::random::Random;
use crate::rows::{Row, batch};

/// Rows that may wait for the index before the writer waits for it.
const AHEAD: u64 = 3_000;

/// Writes until it is told to end, and counts its writes.
pub fn write(engine: &Engine, datasets: &[Dataset], done: &AtomicBool, writes: &AtomicU64) {
    let mut random = Random(0xA11CE);
    let mut sessions: Vec<PutSession> = datasets.iter().map(|to| session(engine, to)).collect();
    while !done.load(Ordering::Acquire) {
        let at = random.below(datasets.len() as u64) as usize;
        let to = &datasets[at];
        match random.below(10) {
            0..6 => {
                let count = *random.pick(&[1, 16, 200, 1_000]);
                let first = LASTING + random.below((IDS - LASTING - count) as u64) as i64;
                put(&mut sessions[at], to, first..first + count);
            }
            6..9 => delete(engine, to, &mut random),
            _ => delete_where(engine, to, &mut random),
        }
        writes.fetch_add(1, Ordering::Release);
        let dataset = engine.dataset(&to.name).expect("it is there");
        while dataset.unindexed() > AHEAD && !done.load(Ordering::Acquire) {
            dataset.wait_for_index(Duration::from_secs(1));
        }
    }
}

/// Puts all rows of a dataset for the first time.
pub fn fill(engine: &Engine, to: &Dataset) {
    let mut session = session(engine, to);
    for first in (0..IDS).step_by(1_000) {
        put(&mut session, to, first..first + 1_000);
    }
    let dataset = engine.dataset(&to.name).expect("it is there");
    assert!(dataset.wait_for_index(Duration::from_secs(600)));
}

fn session(engine: &Engine, to: &Dataset) -> PutSession {
    let schema = batch(&[], to.metric).schema();
    engine.put(&to.name, &schema).expect("a good schema")
}

fn put(session: &mut PutSession, to: &Dataset, ids: std::ops::Range<i64>) {
    let ids: Vec<i64> = ids.collect();
    let version = to.model.send(&ids, false);
    let rows: Vec<Row> = ids.iter().map(|id| Row::new(*id, version)).collect();
    let taken = session.record_batch(&batch(&rows, to.metric));
    let told = taken.and_then(Pending::wait).expect("acknowledged");
    assert_eq!(told.rows, rows.len() as u64);
    to.model.acknowledge(&ids);
}

fn delete(engine: &Engine, to: &Dataset, random: &mut Random) {
    let first = LASTING + random.below((IDS - LASTING) as u64) as i64;
    let most = *random.pick(&[1, 20, 150]);
    let living = to.model.living().filter(|row| row.id >= first);
    let ids: Vec<i64> = living.map(|row| row.id).take(most).collect();
    if ids.is_empty() {
        return;
    }
    to.model.send(&ids, true);
    let deleted = engine.delete_ids(&to.name, ids.iter().map(|id| Id::Int(*id)).collect());
    let told = deleted.and_then(Pending::wait).expect("they are there");
    assert_eq!(told.rows, ids.len() as u64);
    to.model.acknowledge(&ids);
}

/// Deletes by a filter: what the model says, and no other row.
fn delete_where(engine: &Engine, to: &Dataset, random: &mut Random) {
    let share = 0.2 * random.share();
    let parts = vec![
        Condition::Number("id", ">=", LASTING),
        Condition::of_share(random, share),
    ];
    let condition = Condition::And(parts);
    let passing = to
        .model
        .living()
        .filter(|row| condition.holds(row) == Some(true));
    let ids: Vec<i64> = passing.map(|row| row.id).collect();
    to.model.send(&ids, true);
    if random.once_in(2) {
        let body = json!({"dataset": to.name, "where": condition.to_sql()}).to_string();
        let told = longbow_query::run(engine, "delete", body.as_bytes());
        assert!(matches!(told, Ok(Answer::Deleted(_))), "{told:?}");
    } else {
        let filters = Conditions::read(Some(vec![condition.to_json()]), None);
        let filters = filters.expect("a good filter").expect("a filter");
        let deleted = engine.delete_where(&to.name, &filters);
        let told = deleted.and_then(Pending::wait).expect("acknowledged");
        assert_eq!(told.rows, ids.len() as u64, "{}", condition.to_sql());
    }
    to.model.acknowledge(&ids);
    // Nobody else writes: none is left.
    let ticket = json!({"name": to.name, "where": condition.to_sql()}).to_string();
    let Ok(Ticket::Scan { dataset, request }) = Ticket::parse(ticket.as_bytes()) else {
        panic!("a scan");
    };
    let left = engine.scan(&dataset, &request).expect("a scan").decoded();
    let left: usize = left.map(|rows| rows.expect("rows").num_rows()).sum();
    assert_eq!(left, 0, "{}", condition.to_sql());
}
