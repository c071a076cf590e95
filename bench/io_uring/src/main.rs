//! Would io_uring make a durable write cheaper? The same bytes into the same zero-written file, made durable in three ways,
//! in turns: `pwrite` then `fdatasync`; io_uring with a write linked to an fdatasync; io_uring
//! with one write that carries `RWF_DSYNC`. One caller, one write under way, as a log has that acknowledges in order.
//!
//! `cargo run --release --manifest-path bench/io_uring/Cargo.toml -- [FOLDER]` prints JSON.

use io_uring::{IoUring, opcode, squeue, types};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const FILE_BYTES: u64 = 64 << 20;
const SIZES: [usize; 4] = [1088, 10_880, 108_800, 1_088_000];
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 7;
/// `RWF_DSYNC` of `pwritev2(2)`.
const RWF_DSYNC: i32 = 2;

#[derive(Clone, Copy)]
enum Way {
    Fdatasync,
    UringLinked,
    UringDsync,
}

const WAYS: [(&str, Way); 3] = [
    ("pwrite + fdatasync", Way::Fdatasync),
    ("io_uring write linked to fdatasync", Way::UringLinked),
    ("io_uring write with RWF_DSYNC", Way::UringDsync),
];

struct Bench {
    file: File,
    ring: IoUring,
    bytes: Vec<u8>,
    offset: u64,
}

impl Bench {
    fn write(&mut self, way: Way, len: usize) -> io::Result<()> {
        if self.offset + len as u64 > FILE_BYTES {
            self.offset = 0;
        }
        let fd = types::Fd(self.file.as_raw_fd());
        let write = opcode::Write::new(fd, self.bytes.as_ptr(), len as u32).offset(self.offset);
        match way {
            Way::Fdatasync => {
                self.file.write_all_at(&self.bytes[..len], self.offset)?;
                self.file.sync_data()?;
            }
            Way::UringLinked => {
                let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC);
                let write = write.build().flags(squeue::Flags::IO_LINK);
                self.run(&[(write, len as i32), (sync.build(), 0)])?;
            }
            Way::UringDsync => self.run(&[(write.rw_flags(RWF_DSYNC).build(), len as i32)])?,
        }
        self.offset += len as u64;
        Ok(())
    }

    /// Submits and waits until all are done; each must give what is expected.
    fn run(&mut self, entries: &[(squeue::Entry, i32)]) -> io::Result<()> {
        for (nth, (entry, _)) in entries.iter().enumerate() {
            let entry = entry.clone().user_data(nth as u64);
            // SAFETY: file and buffer outlive the calls, which are waited for below.
            unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        }
        self.ring.submit_and_wait(entries.len())?;
        let mut done = 0;
        while done < entries.len() {
            let Some(completion) = self.ring.completion().next() else {
                self.ring.submit_and_wait(1)?;
                continue;
            };
            let expected = entries[completion.user_data() as usize].1;
            if completion.result() != expected {
                return Err(io::Error::other(format!("got {}", completion.result())));
            }
            done += 1;
        }
        Ok(())
    }

    /// Writes a second, and the times of single writes in microseconds.
    fn round(&mut self, way: Way, len: usize, latencies: &mut Vec<f64>) -> io::Result<f64> {
        let began = Instant::now();
        let mut writes = 0;
        while began.elapsed() < ROUND {
            let write_began = Instant::now();
            self.write(way, len)?;
            latencies.push(write_began.elapsed().as_secs_f64() * 1e6);
            writes += 1;
        }
        Ok(f64::from(writes) / began.elapsed().as_secs_f64())
    }
}

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&folder).join("io-uring-bench.tmp");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    let zeros = vec![0; 1 << 20];
    (0..FILE_BYTES)
        .step_by(zeros.len())
        .try_for_each(|at| file.write_all_at(&zeros, at))?;
    file.sync_all()?;
    let bytes = (0..1_088_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut bench = Bench {
        file,
        ring: IoUring::new(8)?,
        bytes,
        offset: 0,
    };
    let mut rows = Vec::new();
    for len in SIZES {
        let mut rates = [const { Vec::new() }; WAYS.len()];
        let mut latencies = [const { Vec::new() }; WAYS.len()];
        for _ in 0..ROUNDS {
            for (nth, (_, way)) in WAYS.iter().enumerate() {
                rates[nth].push(bench.round(*way, len, &mut latencies[nth])?);
            }
        }
        for (nth, (name, _)) in WAYS.iter().enumerate() {
            rates[nth].sort_by(f64::total_cmp);
            latencies[nth].sort_by(f64::total_cmp);
            let at = |share: f64| latencies[nth][(latencies[nth].len() as f64 * share) as usize];
            rows.push(format!(
                r#"  {{"bytes": {len}, "way": "{name}", "writes_per_s": {:.0}, "p50_us": {:.1}, "p99_us": {:.1}}}"#,
                rates[nth][ROUNDS / 2],
                at(0.5),
                at(0.99)
            ));
        }
    }
    println!("[\n{}\n]", rows.join(",\n"));
    fs::remove_file(path)
}
