//! A room is one search's alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use shuttle::thread;

use super::explore;
use crate::pool::{Pool, Room};
use crate::sync::point;

/// Rooms that were not dropped, of the one test that has such, whose executions run one after the other.
static ROOMS: AtomicUsize = AtomicUsize::new(0);

struct Single {
    bytes: usize,
    taken: AtomicBool,
}

impl Default for Single {
    fn default() -> Self {
        ROOMS.fetch_add(1, SeqCst);
        Single {
            bytes: 100,
            taken: AtomicBool::new(false),
        }
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        ROOMS.fetch_sub(1, SeqCst);
    }
}

impl Room for Single {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

fn work(pool: &Pool<Single>, grow: usize) {
    for _ in 0..3 {
        let mut room = pool.take();
        assert!(!room.taken.swap(true, SeqCst), "two have it");
        room.bytes += grow;
        point();
        assert!(room.taken.swap(false, SeqCst), "another gave it back");
        pool.give(room);
    }
}

#[test]
fn a_room_is_in_one_hand_and_all_are_counted() {
    explore(1, || {
        let pool = Pool::<Single>::new();
        thread::scope(|scope| {
            for grow in [1, 10, 100] {
                let pool = &pool;
                scope.spawn(move || work(pool, grow));
            }
        });
        let mut kept = Vec::new();
        let mut bytes = 0;
        while pool.bytes() > 0 {
            let room = pool.take();
            bytes += room.bytes();
            kept.push(room);
        }
        assert_eq!(ROOMS.load(SeqCst), kept.len(), "{bytes} bytes");
        drop((kept, pool));
        assert_eq!(ROOMS.load(SeqCst), 0);
    });
}
