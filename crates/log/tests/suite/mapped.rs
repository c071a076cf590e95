//! Payloads as acknowledgements hand them back: out of the log's own file.

use std::sync::{Arc, mpsc};

use bytes::Bytes;
use longbow_disk::RealDisk;
use longbow_log::{Entry, Log, Options, SyncMode};

#[test]
fn an_acknowledgement_shows_the_payload_in_the_file_also_after_the_log_was_purged() {
    for sync in [SyncMode::EveryAck, Options::new("").sync] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            sync,
            segment_size: 64 << 10,
            ..Options::new(folder.path())
        };
        let (log, _) = Log::open(Arc::new(RealDisk), options, 0, &mut |_| Ok(())).unwrap();
        let (tell, told) = mpsc::channel();
        let payload = |i: u32| Bytes::from(vec![i as u8; 1 + i as usize * 777]);
        // The last ones are larger than a segment.
        for i in 0..120 {
            let tell = tell.clone();
            let halves = payload(i).len() / 2;
            let entry = Entry {
                payload: vec![payload(i).slice(..halves), payload(i).slice(halves..)],
                ..Entry::default()
            };
            log.append(entry, Box::new(move |ack| tell.send((i, ack)).unwrap()))
                .unwrap();
        }
        let acks: Vec<_> = told.iter().take(120).collect();
        log.purge(u64::MAX).unwrap();
        log.close().unwrap();
        for (i, ack) in acks {
            assert_eq!(ack.unwrap().payload, Some(payload(i)), "entry {i}");
        }
    }
}
