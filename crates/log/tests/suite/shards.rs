//! The sequences of shards: truncations, votes, and what is left of them after purges, restarts and power losses.

use crate::common::*;
use bytes::Bytes;
use longbow_disk::{Fault, FaultyDisk, MemoryDisk};
use longbow_log::{Ack, Control, Entry, Error, Log, MAX_VOTE_BYTES, Result, SyncMode};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// What the payload of an entry is made from.
fn content(term: u64, shard_index: u64) -> u64 {
    shard_index.wrapping_add(term * 1000)
}

/// An entry of a shard's sequence.
fn numbered(shard: u32, term: u64, shard_index: u64, len: usize) -> Entry {
    Entry {
        shard,
        term,
        shard_index,
        kind: 1,
        durable: false,
        payload: vec![Bytes::from(payload(content(term, shard_index), len))],
    }
}

fn acked(
    call: impl FnOnce(Box<dyn FnOnce(Result<Ack>) + Send>) -> Result<u64>,
) -> std::result::Result<Ack, Error> {
    let (tell, told) = channel();
    let _ = call(Box::new(move |result| tell.send(result).unwrap()));
    told.recv().expect("every completion is called")
}

fn truncate(log: &Log, shard: u32, after: u64, term: u64) -> Result<Ack> {
    acked(|done| log.truncate(shard, after, term, done))
}

fn vote(log: &Log, shard: u32, vote: impl Into<Bytes>) -> Result<Ack> {
    let vote = vote.into();
    acked(|done| log.save_vote(shard, vote, done))
}

/// Terms and shard indexes of what is read.
fn read(log: &Log, shard: u32, from: u64, to: u64) -> Vec<(u64, u64)> {
    let records = log.read_shard(shard, from..to, u64::MAX).unwrap();
    for record in &records {
        let expected = payload(
            content(record.term, record.shard_index),
            record.payload.len(),
        );
        assert_eq!(record.payload[..], expected);
        assert_eq!((record.shard, record.control()), (shard, None));
    }
    records.iter().map(|r| (r.term, r.shard_index)).collect()
}

#[test]
fn what_is_truncated_is_void_and_served_in_its_last_version() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, BACKGROUND).unwrap();
    for (shard, term, at) in [(1, 1, 1), (2, 9, 1), (1, 1, 2), (1, 1, 3), (1, 2, 4)] {
        append_acked(&log, numbered(shard, term, at, 10)).unwrap();
    }
    assert_eq!(log.last_of(1), Some((2, 4)));
    let ack = truncate(&log, 1, 2, 3).unwrap();
    assert!(ack.durable && ack.index == 6);
    assert_eq!(
        (log.last_of(1), log.last_of(2)),
        (Some((1, 2)), Some((9, 1)))
    );
    append_acked(&log, numbered(1, 3, 3, 10)).unwrap();
    let check = |log: &Log| {
        assert_eq!(read(log, 1, 1, 9), [(1, 1), (1, 2), (3, 3)]);
        assert_eq!(read(log, 1, 2, 3), [(1, 2)]);
        assert_eq!(read(log, 1, 4, 9), []);
        assert_eq!(read(log, 3, 1, 9), []);
        assert_eq!((log.last_of(1), log.last_of(3)), (Some((3, 3)), None));
        let first = log.read_shard(1, 1..9, 0).unwrap();
        assert_eq!(first.len(), 1, "at least one");
        let all = log.read(1, u64::MAX).unwrap();
        let after = Control::Truncate { after: 2 };
        let controls: Vec<_> = all.iter().map(|record| record.control()).collect();
        assert_eq!(controls.len(), 7, "nothing is skipped");
        assert_eq!((controls[4], controls[5]), (None, Some(after)));
    };
    check(&log);
    log.close().unwrap();
    check(&log);
    let (log, _, records) = open(&disk, BACKGROUND).unwrap();
    assert_eq!(records.len(), 7);
    check(&log);
    truncate(&log, 1, 0, 4).unwrap();
    assert_eq!((log.last_of(1), read(&log, 1, 1, 9)), (None, vec![]));
}

#[test]
fn an_entry_voids_what_it_overwrites_and_one_behind_a_gap_what_was_before() {
    let (log, ..) = open(&MemoryDisk::new(), SyncMode::EveryAck).unwrap();
    for at in 1..=5 {
        append_acked(&log, numbered(1, 1, at, 10)).unwrap();
    }
    append_acked(&log, numbered(1, 2, 3, 10)).unwrap();
    assert_eq!(read(&log, 1, 1, 9), [(1, 1), (1, 2), (2, 3)]);
    append_acked(&log, numbered(1, 2, 40, 10)).unwrap();
    assert_eq!(
        (log.last_of(1), read(&log, 1, 1, 99)),
        (Some((2, 40)), vec![])
    );
    append_acked(&log, numbered(1, 3, u64::MAX, 10)).unwrap();
    assert_eq!(log.last_of(1), Some((3, u64::MAX)));
    append_acked(&log, numbered(1, 3, u64::MAX, 10)).unwrap();
    truncate(&log, 1, u64::MAX, 3).unwrap();
    assert_eq!(log.last_of(1), Some((3, u64::MAX)));
}

#[test]
fn entries_without_a_shard_index_are_not_part_of_a_sequence() {
    let (log, ..) = open(&MemoryDisk::new(), SyncMode::EveryAck).unwrap();
    append_acked(&log, numbered(1, 1, 0, 10)).unwrap();
    assert_eq!((log.last_of(1), log.vote(1)), (None, None));
    assert_eq!(read(&log, 1, 0, 9), []);
}

#[test]
fn reserved_kinds_and_long_votes_are_refused() {
    let (log, ..) = open(&MemoryDisk::new(), SyncMode::EveryAck).unwrap();
    for kind in [240, 247] {
        let entry = Entry {
            kind,
            ..entry(1, 9)
        };
        let error = append_acked(&log, entry.clone()).unwrap_err();
        assert!(
            matches!(error, Error::ReservedKind { kind: k } if k == kind),
            "{error}"
        );
        assert!(error.to_string().contains("from 240 to 247"), "{error}");
        assert!(log.append_and_wait([entry]).is_err());
    }
    append_acked(
        &log,
        Entry {
            kind: 248,
            ..entry(1, 9)
        },
    )
    .unwrap();
    let longest = vec![7; MAX_VOTE_BYTES as usize];
    vote(&log, 1, longest.clone()).unwrap();
    let error = vote(&log, 1, vec![8; longest.len() + 1]).unwrap_err();
    assert!(
        matches!(error, Error::TooLong { limit: 4096, .. }),
        "{error}"
    );
    assert_eq!((log.vote(1), log.last_index()), (Some(longest.into()), 2));
}

#[test]
fn a_purge_keeps_votes_and_forgets_entries() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    vote(&log, 1, "old").unwrap();
    vote(&log, 1, "new").unwrap();
    vote(&log, 2, "other").unwrap();
    for at in 1..=20 {
        append_acked(&log, numbered(1, 1, at, 1000)).unwrap();
    }
    let last = log.last_index();
    log.purge(last).unwrap();
    assert_eq!(log.last_index(), last + 2, "one copy of each");
    let copies = log.read(last + 1, u64::MAX).unwrap();
    assert!(copies.iter().all(|r| r.control() == Some(Control::Vote)));
    log.purge(last).unwrap();
    assert_eq!(log.last_index(), last + 2, "copies are behind what goes");
    vote(&log, 2, "newer").unwrap();
    let check = |log: &Log| {
        assert_eq!(log.vote(1).unwrap(), "new");
        assert_eq!(log.vote(2).unwrap(), "newer");
        assert_eq!(read(log, 1, 1, 99), [], "the beginning is gone");
        assert_eq!(log.last_of(1), Some((1, 20)));
        assert_eq!(read(log, 1, 20, 99), [(1, 20)]);
    };
    check(&log);
    check(
        &open_after(&disk.crash(), options(BACKGROUND), last)
            .unwrap()
            .0,
    );
}

#[test]
fn a_purge_takes_nothing_that_is_not_acknowledged_yet() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    let (reach, reached) = channel();
    let (release, released) = channel::<()>();
    let slow = Box::new(move |_| {
        reach.send(()).unwrap();
        released.recv().unwrap();
    });
    log.append(entry(1, 10), slow).unwrap();
    reached.recv().unwrap();
    let (tell, told) = channel();
    let done = Box::new(move |ack: Result<Ack>| tell.send(ack).unwrap());
    log.save_vote(1, "vote".into(), done).unwrap();
    for index in 3..20 {
        log.append(entry(index, 1000), Box::new(|_| ())).unwrap();
    }
    log.sync().unwrap();
    log.purge(u64::MAX).unwrap();
    release.send(()).unwrap();
    assert!(told.recv().unwrap().unwrap().durable);
    let after = log.first_index() - 1;
    let (log, ..) = open_after(&disk.crash(), options(BACKGROUND), after).unwrap();
    assert_eq!(log.vote(1).unwrap(), "vote");
}

/// What was acknowledged.
#[derive(Debug, Clone, Copy)]
enum Op {
    Entry { term: u64, at: u64 },
    Truncate { after: u64 },
    Vote(u64),
}

/// What must be true of the shards, kept beside the log.
#[derive(Default)]
struct Model {
    /// By index: the shard, and what happened to it.
    history: BTreeMap<u64, (u32, Op)>,
    /// The caller's checkpoint.
    after: u64,
    tries: u64,
}

impl Model {
    fn vote(&self, shard: u32) -> Option<Bytes> {
        let votes = self.history.values().filter(|(of, _)| *of == shard);
        let last = votes.rev().find_map(|(_, op)| match op {
            Op::Vote(vote) => Some(vote.to_string()),
            _ => None,
        });
        last.map(Bytes::from)
    }

    /// Of each entry that is not void: term, shard index, index.
    fn entries(&self, shard: u32) -> Vec<(u64, u64, u64)> {
        let mut entries = Vec::new();
        for (index, (_, op)) in self.history.iter().filter(|(_, (of, _))| *of == shard) {
            match op {
                Op::Entry { term, at } => entries.push((*term, *at, *index)),
                Op::Truncate { after } => entries.retain(|(_, at, _)| at <= after),
                Op::Vote(_) => {}
            }
        }
        entries
    }

    fn check(&self, log: &Log, random: &mut Random) {
        let first = log.first_index();
        for shard in 1..4 {
            assert_eq!(log.vote(shard), self.vote(shard), "shard {shard}");
            let entries = self.entries(shard).into_iter();
            let kept = entries.filter(|(.., index)| *index >= first);
            let kept: Vec<_> = kept.map(|(term, at, _)| (term, at)).collect();
            assert_eq!(log.last_of(shard), kept.last().copied());
            let Some((_, begin)) = kept.first().copied() else {
                assert_eq!(read(log, shard, 1, u64::MAX), []);
                continue;
            };
            assert_eq!(read(log, shard, begin, u64::MAX), kept);
            assert_eq!(read(log, shard, begin - 1, u64::MAX), []);
            let from = begin + random.below(kept.len() as u64 + 2);
            let to = from + random.below(9);
            let part = kept.iter().filter(|(_, at)| (from..to).contains(at));
            assert!(read(log, shard, from, to).iter().eq(part));
        }
    }

    /// Does something, and notes it if it is acknowledged.
    fn step(&mut self, log: &Log, random: &mut Random) -> Result<()> {
        self.tries += 1;
        let shard = 1 + random.below(3) as u32;
        let term = self.tries / 20;
        let last = self.entries(shard).last().map_or(0, |(_, at, _)| *at);
        let (acked, op) = match random.below(20) {
            0..=10 => {
                let at = last + 1;
                let entry = numbered(shard, term, at, random.below(500) as usize);
                (append_acked(log, entry)?, Op::Entry { term, at })
            }
            11..=12 => {
                let after = last.saturating_sub(random.below(5));
                (truncate(log, shard, after, term)?, Op::Truncate { after })
            }
            13..=15 => {
                let ack = vote(log, shard, self.tries.to_string())?;
                (ack, Op::Vote(self.tries))
            }
            16..=17 => {
                append_acked(log, numbered(shard, 0, 0, 300))?;
                return Ok(());
            }
            _ => {
                // A checkpoint, now and then ahead of what is durable.
                let span = log.last_index() - self.after + 1;
                self.after += random.below(span);
                return match random.below(2) {
                    0 => log.purge(self.after),
                    _ => Ok(()),
                };
            }
        };
        assert!(acked.durable || matches!(op, Op::Entry { .. }));
        self.history.insert(acked.index, (shard, op));
        Ok(())
    }
}

/// A few lives on a disk, each ended properly, by a kill or by a power loss.
fn live(seed: u64, sync: SyncMode) -> u64 {
    let mut disk = MemoryDisk::new();
    let mut random = Random(seed);
    let mut model = Model::default();
    let mut gaps = 0;
    let (mut log, ..) = open(&disk, sync).unwrap();
    for _ in 0..5 {
        for _ in 0..random.below(80) {
            model.step(&log, &mut random).unwrap();
        }
        model.check(&log, &mut random);
        if random.below(3) == 0 {
            // A checkpoint of what nobody asked to be durable.
            for _ in 0..5 {
                append_acked(&log, numbered(1, 0, 0, 300)).unwrap();
            }
            model.after = log.last_index();
        }
        match random.below(3) {
            0 => log.close().unwrap(),
            1 => drop(log),
            _ => disk = disk.crash_keeping(&mut |_, unsynced| random.below(unsynced + 1)),
        }
        let opened = open_after(&disk, options(sync), model.after).unwrap();
        let recovery = opened.1;
        log = opened.0;
        // Copies of votes may have come behind it.
        model.history.split_off(&(recovery.last_index + 1));
        gaps += u64::from(log.last_index() > recovery.last_index);
        model.check(&log, &mut random);
    }
    gaps
}

#[test]
fn shards_are_as_the_model_says_when_every_acknowledgement_is_synced() {
    for seed in 0..100 {
        live(seed, SyncMode::EveryAck);
    }
}

#[test]
fn shards_are_as_the_model_says_in_the_background() {
    for seed in 0..100 {
        live(seed, BACKGROUND);
    }
    // Synced so seldom that a checkpoint is often ahead of it.
    let gaps: u64 = (0..200).map(|seed| live(seed, SyncMode::Never)).sum();
    assert!(gaps > 20, "{gaps} logs were shorter than the checkpoint");
}

/// Votes, entries and purges; every step may fail. Answers the last votes that were acknowledged.
fn vote_and_purge(
    disk: &FaultyDisk,
    sync: SyncMode,
    acked: &mut BTreeMap<u32, Tried>,
) -> Result<u64> {
    let (log, ..) = open(disk, sync)?;
    let mut after = 0;
    let mut failed = Ok(());
    for round in 1..=4 {
        for shard in (1..=3).filter(|shard| round == 1 || round % shard == 0) {
            let tried = acked.entry(shard).or_default();
            tried.last = u64::from(round);
            if vote(&log, shard, round.to_string()).is_ok() {
                tried.acked = tried.last;
            }
        }
        for _ in 0..5 {
            let _ = append_acked(&log, tagged(1, 900));
        }
        let last = log.last_index();
        // Nothing that is not acknowledged may be covered.
        if log.poisoned().is_none() {
            after = last;
            failed = failed.and(log.purge(after));
        }
    }
    log.close()?;
    failed.map(|()| after)
}

/// The votes of one shard that was tried last, and that was acknowledged last.
#[derive(Default)]
struct Tried {
    acked: u64,
    last: u64,
}

fn fail_every_call(sync: SyncMode, fault: Fault) {
    let counting = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    vote_and_purge(&counting, sync, &mut BTreeMap::new()).unwrap();
    let calls = counting.calls(None);
    let mut failures = 0;
    for nth in 1..=calls {
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        disk.fail(None, nth, fault);
        let mut votes = BTreeMap::new();
        failures += u64::from(vote_and_purge(&disk, sync, &mut votes).is_err());
        for found in [memory.crash(), memory] {
            let first = longbow_log::segments(&found, Path::new(DIR)).unwrap();
            let after = first.first().map_or(0, |first| first - 1);
            let (log, ..) = open_after(&found, options(sync), after).unwrap();
            for (shard, tried) in &votes {
                let vote = log.vote(*shard).unwrap_or_else(|| Bytes::from("0"));
                let vote: u64 = std::str::from_utf8(&vote).unwrap().parse().unwrap();
                assert!(
                    (tried.acked..=tried.last).contains(&vote),
                    "call {nth}, shard {shard}: {vote} instead of {}",
                    tried.acked
                );
            }
        }
    }
    assert!(failures > 10, "{failures} of {calls} lives noticed");
}

#[test]
fn no_fault_at_any_call_loses_an_acknowledged_vote() {
    for sync in [SyncMode::EveryAck, BACKGROUND] {
        for fault in [Fault::Io, Fault::NoSpace, Fault::ShortWrite(70)] {
            fail_every_call(sync, fault);
        }
    }
}

/// A disk whose log a power loss left shorter than the checkpoint, with votes in several segments; and the checkpoint.
fn shorter_than_its_checkpoint() -> (MemoryDisk, u64) {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::Never).unwrap();
    for shard in 1..=4 {
        vote(&log, shard, shard.to_string()).unwrap();
        append_many(&log, 3, 900);
    }
    log.sync().unwrap();
    append_many(&log, 30, 900);
    (disk.crash(), log.last_index())
}

#[test]
fn a_start_behind_a_lost_end_keeps_the_votes_whatever_interrupts_it() {
    let (disk, after) = shorter_than_its_checkpoint();
    assert!(segments(&disk).len() > 2);
    let counting = FaultyDisk::new(Arc::new(disk.crash()));
    open_after(&counting, options(SyncMode::EveryAck), after).unwrap();
    let mut interrupted = 0;
    for nth in 1..=counting.calls(None) {
        let memory = disk.crash();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        faulty.fail(None, nth, Fault::Io);
        interrupted += u64::from(open_after(&faulty, options(SyncMode::EveryAck), after).is_err());
        for found in [memory.crash(), memory] {
            let survey = longbow_log::verify(&found, Path::new(DIR), after, &mut |_| ()).unwrap();
            assert!(survey.damages.is_empty(), "call {nth}: {survey:?}");
            let (log, ..) = open_after(&found, options(SyncMode::EveryAck), after).unwrap();
            assert_eq!(log.first_index(), after + 1, "call {nth}");
            for shard in 1..=4 {
                assert_eq!(log.vote(shard).unwrap(), shard.to_string(), "call {nth}");
            }
            append_many(&log, 1, 10);
        }
    }
    assert!(interrupted > 5, "{interrupted}");
}
