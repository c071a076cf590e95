//! What threads in the background sleep on.

use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Wakes sleeping threads; a ring while nobody sleeps is remembered.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_rung: bool,
    /// Threads that will look by themselves in a moment.
    naps: usize,
}

impl Bell {
    /// Wakes all, unless one looks in a moment anyway.
    pub fn ring(&self) {
        let mut state = self.state.lock();
        state.is_rung = true;
        if state.naps == 0 {
            self.wake.notify_all();
        }
    }

    /// Wakes all, whoever naps.
    pub fn ring_all(&self) {
        self.state.lock().is_rung = true;
        self.wake.notify_all();
    }

    /// Waits for a ring, at most so long.
    pub fn wait(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if !state.is_rung {
            self.wake.wait_for(&mut state, at_most);
        }
        state.is_rung = false;
    }

    /// Sleeps so long, however often it is rung, and then looks for who rang. Others are not woken meanwhile.
    pub fn nap(&self, time: Duration) {
        self.state.lock().naps += 1;
        thread::sleep(time);
        self.state.lock().naps -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(300);

    #[test]
    fn a_ring_is_remembered_and_reaches_who_waits_once_nobody_naps() {
        let bell = Bell::default();
        bell.ring();
        bell.wait(LONG);
        bell.state.lock().naps = 1;
        let (tell, told) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                bell.wait(LONG);
                tell.send(()).expect("awaited");
            });
            bell.ring();
            // Whether it slept by then or not: the one that naps rings again if there is more than it can do.
            bell.state.lock().naps = 0;
            bell.ring();
            told.recv_timeout(LONG).expect("it was woken");
        });
        bell.nap(Duration::from_nanos(1));
        assert_eq!(bell.state.lock().naps, 0);
    }
}
