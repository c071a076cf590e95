//! Processor time, user and system: on a busy machine it holds better than the clock on the wall.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// That of this process, all threads, also those that have ended.
pub fn of_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// That of this thread.
pub fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_another_thread_is_not_this_ones() {
        let (process, thread) = (of_process(), of_thread());
        let theirs = std::thread::spawn(|| {
            while of_thread() < Duration::from_millis(20) {}
            of_thread()
        });
        let theirs = theirs.join().expect("no panic");
        assert!(theirs >= Duration::from_millis(20));
        assert!(of_process() - process >= theirs);
        assert!(of_thread() - thread < of_process() - process);
    }
}
