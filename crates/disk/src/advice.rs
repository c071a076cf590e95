//! What the system is told of mapped files, and what it tells.

/// Asks for the pages that hold these bytes, without waiting for them: several requests are read at once. Of bytes that
/// are in memory nothing is read.
pub fn will_need(bytes: &[u8]) {
    advise(bytes, libc::MADV_WILLNEED);
}

/// Has single pages of these bytes read, rather than many around each.
pub fn read_by_pages(bytes: &[u8]) {
    advise(bytes, libc::MADV_RANDOM);
}

/// Lets go of the pages that hold these bytes, if nobody else has them mapped: they are read from the disk when they are read
/// again.
pub(crate) fn let_go(bytes: &[u8]) {
    #[cfg(target_os = "linux")]
    advise(bytes, libc::MADV_PAGEOUT);
    let _ = bytes;
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: the call takes no pointers.
    #[allow(unsafe_code)]
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(4096)
}

/// Of each page that holds some of these bytes whether it is in memory. Where the system does not tell, all are.
pub(crate) fn are_in_memory(bytes: &[u8]) -> Vec<bool> {
    let page = page_bytes();
    let before = bytes.as_ptr().addr() % page;
    let mut told = vec![1u8; (before + bytes.len()).div_ceil(page)];
    #[cfg(target_os = "linux")]
    if !bytes.is_empty() {
        let start = bytes.as_ptr().wrapping_sub(before).cast_mut();
        // SAFETY: the call changes nothing but `told`, which has an element for each page; what else lies on these pages,
        // which are mapped since the slice is, is not looked at. What it fails to tell stays as it is.
        #[allow(unsafe_code)]
        unsafe {
            libc::mincore(start.cast(), before + bytes.len(), told.as_mut_ptr());
        }
    }
    told.into_iter().map(|told| told & 1 == 1).collect()
}

/// Advice that cannot be taken is no error: reading is slower then.
fn advise(bytes: &[u8], advice: libc::c_int) {
    if bytes.is_empty() {
        return;
    }
    let before = bytes.as_ptr().addr() % page_bytes();
    let start = bytes.as_ptr().wrapping_sub(before).cast_mut();
    // SAFETY: no advice that is given here changes what any byte is, so whatever else lies on these pages, which are mapped since the
    // slice is, stays as it is.
    #[allow(unsafe_code)]
    unsafe {
        libc::madvise(start.cast(), bytes.len() + before, advice);
    }
}

/// A number that grows whenever this thread has something read from a disk: waits for a page of a mapped file, asks for it
/// beforehand, or reads otherwise. 0 where the system does not tell that of threads.
#[must_use]
pub fn reads() -> u64 {
    #[cfg(not(target_os = "linux"))]
    return 0;
    #[cfg(target_os = "linux")]
    thread_reads()
}

#[cfg(target_os = "linux")]
fn thread_reads() -> u64 {
    use std::mem::MaybeUninit;

    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, all of whose bytes may be zero.
    #[allow(unsafe_code)]
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    // Asking for a page is no fault, but counts as blocks; a page that another thread asked for is neither.
    let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
    count(usage.ru_majflt) + count(usage.ru_inblock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, RealDisk};

    #[test]
    fn advice_leaves_bytes_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        RealDisk.write_atomic(&path, &bytes).expect("a sound disk");
        let map = RealDisk.map(&path).expect("it is there");
        let before = reads();
        read_by_pages(&map);
        for (from, to) in [
            (0, 0),
            (0, 1),
            (4_095, 4_097),
            (50_001, 99_999),
            (0, 100_000),
        ] {
            will_need(&map[from..to]);
            assert_eq!(map[from..to], bytes[from..to]);
        }
        // Memory of the program's own, too.
        will_need(&bytes[17..]);
        assert!(map == bytes && reads() >= before);
    }
}
