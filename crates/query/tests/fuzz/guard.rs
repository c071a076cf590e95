//! What a request may cost: processor time and memory, as the system counts them, and no panic.
//!
//! Both are of the whole process, helpers and threads of SQL included; so nothing else may run in it. Where there is no
//! `/proc`, only panics are seen.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Processor seconds of one request: many times what the slowest good one takes.
const MOST_SECONDS: f64 = 10.0;
/// Bytes that memory may grow by at the peak of one request: each call of a function may make 64 MiB, and a request may
/// hold a dozen of them.
pub const MOST_BYTES: u64 = 1 << 30;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics of all threads from now on.
pub fn count_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
}

/// Panics so far.
pub fn panics() -> usize {
    PANICS.load(Ordering::SeqCst)
}

/// What the process had used when a request began.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    seconds: f64,
    resident: u64,
}

impl Begin {
    /// Now; the peak of memory is counted from here.
    pub fn now() -> Begin {
        // Linux: 5 sets the peak back to what is resident.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Begin {
            seconds: seconds(),
            resident: kilobytes("VmRSS:") << 10,
        }
    }

    /// Processor seconds since.
    pub fn seconds(&self) -> f64 {
        seconds() - self.seconds
    }

    /// Bytes by which memory has grown at its peak since.
    pub fn bytes(&self) -> u64 {
        (kilobytes("VmHWM:") << 10).saturating_sub(self.resident)
    }

    /// Complains of what cost too much.
    pub fn check(&self) -> Result<(), String> {
        let (seconds, bytes) = (self.seconds(), self.bytes());
        if seconds > MOST_SECONDS {
            return Err(format!("{seconds} seconds of the processors"));
        }
        if bytes > MOST_BYTES {
            return Err(format!("{} MiB of memory", bytes >> 20));
        }
        Ok(())
    }
}

/// Processor seconds of all threads; the kernel's ticks are hundredths for every program.
fn seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

fn kilobytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// How often it looks whether a request ends.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Ends the process when a request does not end by itself, and says which it was.
#[derive(Default)]
pub struct Watch {
    running: Mutex<Option<(Begin, String)>>,
}

impl Watch {
    /// Runs `all` with somebody watching.
    pub fn over<T>(&self, all: impl FnOnce() -> T) -> T {
        // Closed when its sender is dropped, also if a check fails.
        let (open, closed) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let _open = open;
            scope.spawn(move || {
                while closed.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                    self.look();
                }
            });
            all()
        })
    }

    /// A request begins.
    pub fn begin(&self, shown: String) -> Begin {
        let begin = Begin::now();
        *self.running.lock().expect("the watch lives") = Some((begin, shown));
        begin
    }

    /// It ended.
    pub fn end(&self) {
        *self.running.lock().expect("the watch lives") = None;
    }

    fn look(&self) {
        let running = self.running.lock().expect("the watch lives");
        let Some((begin, shown)) = running.as_ref() else {
            return;
        };
        // Twice what is refused at its end: then it may never end.
        let seconds = begin.seconds();
        if seconds > 2.0 * MOST_SECONDS || begin.bytes() > 4 * MOST_BYTES {
            eprintln!("without end, after {seconds} seconds: {shown}");
            std::process::exit(101);
        }
    }
}
