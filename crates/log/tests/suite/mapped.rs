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

#[test]
fn a_file_is_used_again_only_when_no_payload_of_it_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        segment_size: 64 << 10,
        prepared_segments: 0,
        ..Options::new(folder.path())
    };
    let (log, _) = Log::open(Arc::new(RealDisk), options, 0, &mut |_| Ok(())).unwrap();
    let append = |fill: u8| {
        let (tell, told) = mpsc::channel();
        let entry = Entry {
            payload: vec![Bytes::from(vec![fill; 10_000])],
            ..Entry::default()
        };
        log.append(entry, Box::new(move |ack| tell.send(ack).unwrap()))
            .unwrap();
        told.recv().unwrap().unwrap().payload.unwrap()
    };
    let files = |end: &str| {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(end)).count()
    };
    // Six to a segment; one payload of the second segment stays with someone.
    let held = (0..30).map(append).collect::<Vec<Bytes>>().swap_remove(7);
    let segments = files(".log");
    log.purge(u64::MAX).unwrap();
    assert_eq!((files(".log"), files(".spare")), (1, segments - 2));
    for round in 0..40 {
        append(100 + round);
    }
    assert_eq!(files(".spare"), 0);
    assert!(held.iter().all(|byte| *byte == 7));
    drop(held);
    let segments = files(".log");
    log.purge(u64::MAX).unwrap();
    assert_eq!((files(".log"), files(".spare")), (1, segments - 1));
}
