use super::*;
use crate::{Entry, Log, Observer};
use longbow_disk::MemoryDisk;
use parking_lot::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Holds each sync back until it may end.
struct Held(Mutex<Receiver<()>>);

impl Observer for Held {
    fn written(&self, _bytes: u64) {}

    fn synced(&self, _took: Duration, _bytes: u64) {
        // An error: the test has no more to hold back.
        let _ = self.0.lock().recv();
    }
}

fn held_log(sync: SyncMode) -> (Log, Sender<()>) {
    held_log_of(Options {
        sync,
        ..Options::new("log")
    })
}

fn held_log_of(options: Options) -> (Log, Sender<()>) {
    let (release, held) = channel();
    let options = Options {
        observer: Arc::new(Held(Mutex::new(held))),
        prepared_segments: 0,
        ..options
    };
    let disk = Arc::new(MemoryDisk::new());
    let (log, _) = Log::open(disk, options, 0, &mut |_| Ok(())).unwrap();
    (log, release)
}

#[test]
fn a_caller_works_beside_a_sync_that_it_does_not_wait_for() {
    let sync = SyncMode::Background {
        max_unsynced_bytes: u64::MAX,
        max_unsynced_age: Duration::MAX,
    };
    let (log, release) = held_log(sync);
    log.append_and_wait([Entry::default()]).unwrap();
    wait_for(&log, |state| state.syncing && state.idle == 1);
    // Nobody can be called.
    log.shared.state.lock().called = true;
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(|| tell.send(log.append_and_wait([Entry::default()])).unwrap());
        let told = told.recv_timeout(Duration::from_secs(60));
        // If it was not told, this lets it go, so that the test can end.
        log.shared.work.notify_all();
        drop(release);
        assert!(matches!(told, Ok(Ok(ack)) if ack.index == 2 && !ack.durable));
    });
}

/// Hands in an entry by `append_here`; what it is told, and whether that was by this thread.
fn append_here(log: &Log, entry: Entry) -> (Receiver<crate::Result<crate::Ack>>, bool) {
    let (tell, told) = channel();
    let (caller, here) = (thread::current().id(), channel());
    let done = move |ack| {
        // An error: it has returned already.
        let _ = here.0.send(thread::current().id() == caller);
        tell.send(ack).unwrap();
    };
    drop(log.append_here(entry, Box::new(done)).unwrap());
    let is_here = here.1.try_recv().unwrap_or(false);
    (told, is_here)
}

/// In the background, and so many bytes may be unsynced.
fn behind(max_unsynced_bytes: u64) -> SyncMode {
    SyncMode::Background {
        max_unsynced_bytes,
        max_unsynced_age: Duration::MAX,
    }
}

#[test]
fn who_appends_here_is_told_before_it_returns_beside_a_sync_that_it_does_not_wait_for() {
    let (log, release) = held_log(behind(u64::MAX));
    log.append_and_wait([Entry::default()]).unwrap();
    wait_for(&log, |state| state.syncing && state.idle == 1);
    // Nobody can be called.
    log.shared.state.lock().called = true;
    let (told, is_here) = append_here(&log, Entry::default());
    log.shared.state.lock().called = false;
    drop(release);
    assert!(is_here);
    assert!(matches!(told.try_recv(), Ok(Ok(ack)) if ack.index == 2 && !ack.durable));
}

#[test]
fn who_appends_here_does_not_wait_for_a_sync_nor_for_others() {
    let written = |sync_method, linger| Options {
        sync: SyncMode::EveryAck,
        sync_method,
        linger,
        ..Options::new("log")
    };
    let background = |sync| Options {
        sync,
        ..Options::new("log")
    };
    let lingering = Options {
        linger: Duration::from_millis(1),
        ..background(behind(u64::MAX))
    };
    let cases = [
        (background(behind(0)), Entry::default()),
        (background(behind(u64::MAX)), durable()),
        (
            written(SyncMethod::Fdatasync, Duration::ZERO),
            Entry::default(),
        ),
        (written(SyncMethod::Dsync, Duration::ZERO), Entry::default()),
        (lingering, Entry::default()),
    ];
    for (options, entry) in cases {
        let (log, release) = held_log_of(options.clone());
        let (tell, returned) = channel();
        thread::scope(|scope| {
            scope.spawn(|| tell.send(append_here(&log, entry)).unwrap());
            // The sync that the acknowledgement waits for does not end, and yet it returns.
            let returned = returned.recv_timeout(Duration::from_secs(60));
            drop(release);
            let (told, is_here) = returned.expect("it returned");
            assert!(!is_here, "{options:?}");
            let ack = told.recv_timeout(Duration::from_secs(60));
            assert!(matches!(ack, Ok(Ok(_))), "{options:?}");
        });
    }
}

/// A log that is told that so many hand-ins were just told of a sync that took an hour.
fn gathering_log(missing: usize) -> (Log, Receiver<u64>) {
    struct Syncs(Mutex<Sender<u64>>);
    impl Observer for Syncs {
        fn written(&self, _bytes: u64) {}
        fn synced(&self, _took: Duration, bytes: u64) {
            // An error: the test has ended.
            let _ = self.0.lock().send(bytes);
        }
    }
    let (tell, syncs) = channel();
    let options = Options {
        sync: SyncMode::EveryAck,
        observer: Arc::new(Syncs(Mutex::new(tell))),
        prepared_segments: 0,
        ..Options::new("log")
    };
    let disk = Arc::new(MemoryDisk::new());
    let (log, _) = Log::open(disk, options, 0, &mut |_| Ok(())).unwrap();
    let hour = Duration::from_secs(3600);
    let mut state = log.shared.state.lock();
    state
        .gathering
        .begin(missing, 1, hour, Instant::now() + hour);
    drop(state);
    (log, syncs)
}

#[test]
fn a_sync_waits_for_those_who_were_just_told() {
    let (log, syncs) = gathering_log(2);
    let (tell, told) = channel();
    let append = || {
        let tell = tell.clone();
        let done = move |ack: crate::Result<crate::Ack>| tell.send(ack.unwrap().index).unwrap();
        log.append(durable(), Box::new(done)).unwrap();
    };
    append();
    // One of the log's threads looks at the time, and neither writes.
    wait_for(&log, |state| state.timed && state.idle == THREADS);
    assert_eq!(log.shared.state.lock().queue.len(), 1);
    append();
    assert_eq!((told.recv().unwrap(), told.recv().unwrap()), (1, 2));
    let bytes = 2 * crate::frame_bytes(0);
    assert_eq!(syncs.try_iter().collect::<Vec<_>>(), [bytes]);
}

#[test]
fn what_is_held_back_is_done_now_or_waited_for_with_an_end() {
    let (log, _syncs) = gathering_log(2);
    log.append(durable(), Box::new(|_| ())).unwrap();
    wait_for(&log, |state| state.timed && state.idle == THREADS);
    let state = log.shared.state.lock();
    let options = &log.shared.options;
    let until = state.rests_until(options, Instant::now()).unwrap();
    for now in [until - Duration::from_nanos(1), until] {
        let is_job = state.next_job(options, now).0.is_some();
        assert_eq!(is_job, now == until);
        assert_eq!(state.rests_until(options, now).is_none(), is_job);
    }
}

#[test]
fn a_log_that_is_closed_waits_for_nobody() {
    let (log, _syncs) = gathering_log(2);
    thread::scope(|scope| {
        let caller = scope.spawn(|| log.append_and_wait([durable()]));
        wait_for(&log, |state| state.timed && state.idle == THREADS);
        log.close().unwrap();
        assert_eq!(caller.join().unwrap().unwrap().index, 1);
    });
}

/// Waits until the log is in a state.
fn wait_for(log: &Log, is_there: impl Fn(&State) -> bool) {
    let began = Instant::now();
    while !is_there(&log.shared.state.lock()) {
        assert!(began.elapsed() < Duration::from_secs(300), "it never came");
        thread::yield_now();
    }
}

fn durable() -> Entry {
    Entry {
        durable: true,
        ..Entry::default()
    }
}

#[test]
fn a_log_can_be_closed_while_a_caller_works_for_it() {
    // Several times: the threads may look only after the caller is done.
    let modes = [SyncMode::EveryAck, SyncMode::Never];
    for sync in modes.into_iter().cycle().take(40) {
        let (log, release) = held_log(sync);
        let (tell, told) = channel();
        thread::scope(|scope| {
            wait_for(&log, |state| state.idle == THREADS);
            let caller = scope.spawn(|| log.append_and_wait([durable()]));
            wait_for(&log, |state| state.syncing && state.idle == THREADS);
            let log = &log;
            scope.spawn(move || tell.send(log.close()).unwrap());
            // The threads of the log looked for something to do, found nothing, and wait for the caller.
            wait_for(log, |state| state.closed && state.idle == THREADS);
            drop(release);
            assert_eq!(caller.join().unwrap().unwrap().index, 1);
            let closed = told.recv_timeout(Duration::from_secs(60));
            // If it hangs, this lets it go, so that the test can end.
            log.shared.work.notify_all();
            assert!(matches!(closed, Ok(Ok(()))), "{closed:?}");
        });
    }
}

#[test]
fn a_caller_that_works_is_told_before_it_works_for_others() {
    let (log, release) = held_log(SyncMode::EveryAck);
    thread::scope(|scope| {
        wait_for(&log, |state| state.idle == THREADS);
        let (tell, told) = channel();
        let log = &log;
        scope.spawn(move || tell.send(log.append_and_wait([durable()])).unwrap());
        wait_for(log, |state| state.syncing);
        let other = scope.spawn(|| log.append_and_wait([durable()]));
        wait_for(log, |state| state.next == 3);
        // One sync ends; the next does not.
        release.send(()).unwrap();
        let told = told.recv_timeout(Duration::from_secs(60));
        let others = other.is_finished();
        drop(release);
        assert!(matches!(told, Ok(Ok(ack)) if ack.index == 1));
        assert!(!others);
        assert_eq!(other.join().unwrap().unwrap().index, 2);
    });
}
