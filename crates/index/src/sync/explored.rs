//! Twins of what threads share, for a scheduler that explores interleavings. Only for executions of `shuttle`.
//!
//! All accesses are as if sequentially consistent: that an `Ordering` is too weak is not found here.

use std::ops::Deref;
use std::sync::{Arc, LockResult, TryLockError};

pub(crate) use shuttle::sync::MutexGuard;
use shuttle::sync::{RwLockReadGuard, RwLockWriteGuard};

/// Lets the scheduler go on with any thread.
pub(crate) fn point() {
    shuttle::sync::atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}

/// A panic of one thread ends the execution: no other sees the lock that it held.
fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As that of `parking_lot`.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        unpoisoned(self.0.lock())
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        }
    }
}

/// As that of `parking_lot`.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        RwLock(shuttle::sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        unpoisoned(self.0.read())
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        unpoisoned(self.0.write())
    }

    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Err(TryLockError::WouldBlock) => None,
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        }
    }
}

/// As that of `arc_swap`: an exchange is one step, and what was there before is dropped after it.
#[derive(Debug)]
pub(crate) struct ArcSwap<T>(parking_lot::Mutex<Arc<T>>);

/// What was behind a pointer.
pub(crate) struct Loaded<T>(Arc<T>);

impl<T> Deref for Loaded<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        ArcSwap(parking_lot::Mutex::new(value))
    }

    pub(crate) fn from_pointee(value: T) -> Self {
        ArcSwap(parking_lot::Mutex::new(Arc::new(value)))
    }

    pub(crate) fn load(&self) -> Loaded<T> {
        Loaded(self.load_full())
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        point();
        Arc::clone(&self.0.lock())
    }

    pub(crate) fn swap(&self, value: Arc<T>) -> Arc<T> {
        point();
        std::mem::replace(&mut self.0.lock(), value)
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        drop(self.swap(value));
    }
}

pub(crate) mod atomic {
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic;
    pub(crate) use std::sync::atomic::Ordering;

    /// An atomic of `std`, before each access of which the scheduler may go on with another thread. It is as large as that:
    /// graphs lay out their memory by it.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub(crate) struct Explored<A>(A);

    impl<A> Deref for Explored<A> {
        type Target = A;

        fn deref(&self) -> &A {
            super::point();
            &self.0
        }
    }

    impl<A> DerefMut for Explored<A> {
        fn deref_mut(&mut self) -> &mut A {
            &mut self.0
        }
    }

    pub(crate) type AtomicU8 = Explored<atomic::AtomicU8>;
    pub(crate) type AtomicU16 = Explored<atomic::AtomicU16>;
    pub(crate) type AtomicU32 = Explored<atomic::AtomicU32>;
    pub(crate) type AtomicU64 = Explored<atomic::AtomicU64>;
    pub(crate) type AtomicUsize = Explored<atomic::AtomicUsize>;
    pub(crate) type AtomicPtr<T> = Explored<atomic::AtomicPtr<T>>;

    impl AtomicU16 {
        pub(crate) const fn new(value: u16) -> Self {
            Explored(atomic::AtomicU16::new(value))
        }
    }

    impl AtomicU32 {
        pub(crate) const fn new(value: u32) -> Self {
            Explored(atomic::AtomicU32::new(value))
        }
    }

    impl AtomicU64 {
        pub(crate) const fn new(value: u64) -> Self {
            Explored(atomic::AtomicU64::new(value))
        }
    }

    impl AtomicUsize {
        pub(crate) const fn new(value: usize) -> Self {
            Explored(atomic::AtomicUsize::new(value))
        }
    }

    impl<T> AtomicPtr<T> {
        pub(crate) const fn new(value: *mut T) -> Self {
            Explored(atomic::AtomicPtr::new(value))
        }
    }
}
