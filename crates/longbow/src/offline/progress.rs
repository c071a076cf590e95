//! How far a reading of a folder has come, told on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use longbow_engine::Progress;

use super::bytes;

/// Tells at most so often: a line that is written over on a terminal, a line of its own elsewhere.
const ON_A_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(5);

/// Somebody who watches a reading.
pub struct Watch {
    begun: Instant,
    told: Instant,
    terminal: bool,
    last: Progress,
}

impl Watch {
    /// Begins now.
    pub fn begin() -> Watch {
        let now = Instant::now();
        Watch {
            begun: now,
            told: now,
            terminal: io::stderr().is_terminal(),
            last: Progress { done: 0, total: 0 },
        }
    }

    /// Tells how far it has come, if that was not told just now.
    pub fn tell(&mut self, progress: Progress) {
        self.last = progress;
        let pause = if self.terminal {
            ON_A_TERMINAL
        } else {
            ELSEWHERE
        };
        if self.told.elapsed() < pause {
            return;
        }
        self.told = Instant::now();
        let ends = if self.terminal { "\r" } else { "\n" };
        // If standard error is gone there is nobody to tell.
        let _ = write!(
            io::stderr(),
            "{}{ends}",
            line(progress, self.begun.elapsed())
        );
    }

    /// Tells how much it was in the end.
    pub fn end(self) {
        let _ = writeln!(io::stderr(), "{}", line(self.last, self.begun.elapsed()));
    }
}

fn line(progress: Progress, took: Duration) -> String {
    let Progress { done, total } = progress;
    let rate = done as f64 / 1e6 / took.as_secs_f64().max(1e-6);
    let total = total.max(done);
    let share = (done * 100).checked_div(total).unwrap_or(100);
    format!(
        "read {} of {} ({share} %), {rate:.0} MB/s        ",
        bytes(done),
        bytes(total)
    )
    .trim_end()
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_and_how_fast() {
        let progress = Progress {
            done: 50 << 20,
            total: 200 << 20,
        };
        let text = line(progress, Duration::from_millis(100));
        assert_eq!(text, "read 50.0 MiB of 200.0 MiB (25 %), 524 MB/s");
        let nothing = Progress { done: 0, total: 0 };
        let text = line(nothing, Duration::ZERO);
        assert_eq!(text, "read 0 bytes of 0 bytes (100 %), 0 MB/s");
    }
}
