//! What the log adds to an entry. The numbers are those of the log's format; a test compares them with a log's own count.

/// Bytes at the beginning of a segment file.
pub const SEGMENT_HEADER_BYTES: u64 = 32;

/// Bytes before the payload of an entry.
const FRAME_HEADER_BYTES: u64 = 64;

/// Frames begin at multiples of this many bytes.
const ALIGNMENT: u64 = 8;

/// What an entry of so many bytes takes in a segment: header, payload, padding.
pub fn frame_bytes(entry_bytes: u64) -> u64 {
    FRAME_HEADER_BYTES + entry_bytes.next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longbow_disk::MemoryDisk;
    use longbow_log::{Entry, Log, Observer, Options};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    struct Written(AtomicU64);

    impl Observer for Written {
        fn written(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn synced(&self, _took: Duration, _bytes: u64) {}
    }

    #[test]
    fn frames_are_as_long_as_the_log_writes_them() {
        for entry_bytes in [0, 1, 7, 8, 9, 100, 1024, 65_537] {
            let written = Arc::new(Written(AtomicU64::new(0)));
            let options = Options {
                observer: written.clone(),
                ..Options::new("log")
            };
            let disk = Arc::new(MemoryDisk::new());
            let (log, _) = Log::open(disk, options, 0, &mut |_| Ok(())).expect("opened");
            assert_eq!(log.size_bytes(), SEGMENT_HEADER_BYTES);
            let entry = Entry {
                payload: vec![vec![1; entry_bytes].into()],
                ..Entry::default()
            };
            log.append(entry, Box::new(|_| {})).expect("queued");
            log.sync().expect("synced");
            let frame = written.0.load(Ordering::Relaxed);
            assert_eq!(frame, frame_bytes(entry_bytes as u64), "{entry_bytes}");
            assert_eq!(log.size_bytes(), SEGMENT_HEADER_BYTES + frame);
        }
    }
}
