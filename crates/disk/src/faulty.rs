//! A disk that fails when it is told to.

use crate::{Disk, Error, File, Lock, Operation, Result};
use bytes::Bytes;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An input/output error (EIO); nothing was done.
    Io,
    /// The disk is full (ENOSPC); nothing was done.
    NoSpace,
    /// The disk fills up (ENOSPC) after a write has taken this many bytes. Another call than a write does nothing.
    ShortWrite(u64),
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::Io => io::Error::other("input/output error (injected)"),
            Fault::NoSpace | Fault::ShortWrite(_) => io::Error::from(io::ErrorKind::StorageFull),
        }
    }
}

/// When a fault strikes.
#[derive(Debug)]
enum When {
    /// At this many matching calls from now, once; 1 is the next.
    Nth(u64),
    /// At every matching call.
    Always,
    /// At one in `one_in` calls, drawn from the state of a generator.
    Randomly { state: u64, one_in: u64 },
}

#[derive(Debug)]
struct Rule {
    /// None: any call.
    operation: Option<Operation>,
    when: When,
    fault: Fault,
}

impl Rule {
    fn strikes(&mut self, operation: Operation) -> bool {
        if self.operation.is_some_and(|wanted| wanted != operation) {
            return false;
        }
        match &mut self.when {
            When::Nth(left) => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            When::Always => true,
            When::Randomly { state, one_in } => next_random(state).is_multiple_of(*one_in),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[derive(Debug, Default)]
struct Plan {
    rules: Vec<Rule>,
    calls: [u64; Operation::ALL.len()],
}

type SharedPlan = Arc<Mutex<Plan>>;

/// Counts the call and says how it fails, if it does.
fn strike(plan: &SharedPlan, operation: Operation) -> Option<Fault> {
    let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
    plan.calls[operation as usize] += 1;
    let hit = plan.rules.iter_mut().position(|r| r.strikes(operation))?;
    let fault = plan.rules[hit].fault;
    if matches!(plan.rules[hit].when, When::Nth(_)) {
        plan.rules.remove(hit);
    }
    Some(fault)
}

fn check(plan: &SharedPlan, operation: Operation, path: &Path) -> Result<()> {
    match strike(plan, operation) {
        None => Ok(()),
        Some(fault) => Err(Error::new(operation, path, fault.error())),
    }
}

/// Wraps a disk, counts the calls of each kind, and fails those it was told to fail. Clones, and the files opened through
/// them, share one plan, which can be changed at any time. Without rules every call passes.
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    plan: SharedPlan,
}

impl FaultyDisk {
    /// Wraps `inner` with an empty plan.
    pub fn new(inner: Arc<dyn Disk>) -> FaultyDisk {
        let plan = SharedPlan::default();
        FaultyDisk { inner, plan }
    }

    fn add(&self, operation: Option<Operation>, when: When, fault: Fault) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.rules.push(Rule {
            operation,
            when,
            fault,
        });
    }

    /// Fails one call: the `nth` from now (1 = the next) of that kind, or of any kind if `operation` is `None`.
    pub fn fail(&self, operation: impl Into<Option<Operation>>, nth: u64, fault: Fault) {
        self.add(operation.into(), When::Nth(nth.max(1)), fault);
    }

    /// Fails every call of that kind, or of any kind, from now on.
    pub fn fail_always(&self, operation: impl Into<Option<Operation>>, fault: Fault) {
        self.add(operation.into(), When::Always, fault);
    }

    /// Fails about one in `one_in` calls of that kind, or of any kind; the same seed fails the same calls.
    pub fn fail_randomly(
        &self,
        operation: impl Into<Option<Operation>>,
        seed: u64,
        one_in: u64,
        fault: Fault,
    ) {
        let state = seed;
        let one_in = one_in.max(1);
        self.add(operation.into(), When::Randomly { state, one_in }, fault);
    }

    /// Forgets every rule: from now on all calls pass.
    pub fn heal(&self) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.rules.clear();
    }

    /// How many calls of that kind, or of any kind, there were so far, failed ones included.
    pub fn calls(&self, operation: impl Into<Option<Operation>>) -> u64 {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        match operation.into() {
            Some(operation) => plan.calls[operation as usize],
            None => plan.calls.iter().sum(),
        }
    }

    fn wrap(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(FaultyFile {
            path: path.to_path_buf(),
            inner,
            plan: self.plan.clone(),
        })
    }
}

/// A file opened through a [`FaultyDisk`].
#[derive(Debug)]
struct FaultyFile {
    path: PathBuf,
    inner: Box<dyn File>,
    plan: SharedPlan,
}

/// The first `keep` bytes of `parts`.
fn first_bytes<'a>(parts: &'a [IoSlice<'_>], mut keep: u64) -> Vec<IoSlice<'a>> {
    let mut kept = Vec::new();
    for part in parts {
        let len = keep.min(part.len() as u64);
        kept.push(IoSlice::new(&part[..len as usize]));
        keep -= len;
    }
    kept
}

impl File for FaultyFile {
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        let Some(fault) = strike(&self.plan, Operation::Write) else {
            return self.inner.append_vectored(parts);
        };
        if let Fault::ShortWrite(keep) = fault {
            self.inner.append_vectored(&first_bytes(parts, keep))?;
        }
        Err(Error::new(Operation::Write, &self.path, fault.error()))
    }

    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let Some(fault) = strike(&self.plan, Operation::Write) else {
            return self.inner.write_at(offset, parts);
        };
        if let Fault::ShortWrite(keep) = fault {
            self.inner.write_at(offset, &first_bytes(parts, keep))?;
        }
        Err(Error::new(Operation::Write, &self.path, fault.error()))
    }

    fn sync_data(&self) -> Result<()> {
        check(&self.plan, Operation::Sync, &self.path)?;
        self.inner.sync_data()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        check(&self.plan, Operation::Truncate, &self.path)?;
        self.inner.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        check(&self.plan, Operation::Stat, &self.path)?;
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        check(&self.plan, Operation::Read, &self.path)?;
        self.inner.read_at(offset, buf)
    }
}

impl Disk for FaultyDisk {
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        check(&self.plan, Operation::CreateDir, path)?;
        self.inner.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        check(&self.plan, Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        check(&self.plan, Operation::Create, path)?;
        Ok(self.wrap(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        check(&self.plan, Operation::Open, path)?;
        Ok(self.wrap(path, self.inner.open(path)?))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        check(&self.plan, Operation::Map, path)?;
        self.inner.map(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        check(&self.plan, Operation::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        check(&self.plan, Operation::Remove, path)?;
        self.inner.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        check(&self.plan, Operation::RemoveDir, path)?;
        self.inner.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        check(&self.plan, Operation::SyncDir, path)?;
        self.inner.sync_dir(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        check(&self.plan, Operation::Stat, path)?;
        self.inner.exists(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        check(&self.plan, Operation::FreeSpace, path)?;
        self.inner.free_space(path)
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>> {
        check(&self.plan, Operation::Lock, path)?;
        self.inner.lock(path, note)
    }
}
