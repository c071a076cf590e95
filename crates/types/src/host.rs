//! What the machine says of itself: memory, cores, name. This is the one place outside the `disk` crate that opens files,
//! because `/proc`, `/sys` and the configuration file are read before there is a data folder.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The most that is read of any one file here, in bytes. A configuration file is a few kilobytes.
const MAX_FILE: u64 = 1 << 20;

/// What defaults depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The host's name, or `longbow` where it has none.
    pub name: String,
    /// Bytes of memory that this process may use: the smaller of the machine's and the cgroup's.
    pub memory: u64,
    /// Cores that this process may use, at least 1.
    pub cores: usize,
    /// Whether standard error is a terminal.
    pub terminal: bool,
}

impl Host {
    /// Asks the machine.
    pub fn probe() -> Host {
        let system = rustix::system::uname();
        let name = system.nodename().to_string_lossy().trim().to_owned();
        Host {
            name: if name.is_empty() {
                "longbow".into()
            } else {
                name
            },
            memory: memory(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            terminal: io::stderr().is_terminal(),
        }
    }

    /// A made-up machine, for documentation and tests: 8 GiB, 4 cores, no terminal.
    pub fn example() -> Host {
        Host {
            name: "example".into(),
            memory: 8 << 30,
            cores: 4,
            terminal: false,
        }
    }
}

/// Bytes of memory that this process holds in RAM now, from `/proc/self/status`; `None` where there is no such file.
pub fn resident_bytes() -> Option<u64> {
    resident("VmRSS:")
}

/// Of [`resident_bytes`], those that are of no file: the system cannot drop them when memory is short.
pub fn anonymous_bytes() -> Option<u64> {
    resident("RssAnon:")
}

fn resident(key: &str) -> Option<u64> {
    let kib = number_in(Path::new("/proc/self/status"), key)?;
    kib.checked_mul(1024)
}

/// Bytes that the disk was asked for on behalf of this process since its start, from `/proc/self/io`: what was found in
/// memory does not count. `None` where the system does not tell.
pub fn disk_read_bytes() -> Option<u64> {
    number_in(Path::new("/proc/self/io"), "read_bytes:")
}

/// The number behind a key at the beginning of a line.
fn number_in(file: &Path, key: &str) -> Option<u64> {
    let text = read_text(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Reads a small text file whole; one larger than 1 MiB is refused rather than cut.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other("the file is larger than 1 MiB"));
    }
    Ok(text)
}

fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = info
        .totalram
        .saturating_mul(u64::from(info.mem_unit.max(1)));
    cgroup_limits().into_iter().fold(machine, u64::min)
}

/// The limits of the control groups that this process is in: every level of version 2, and version 1's memory group.
fn cgroup_limits() -> Vec<u64> {
    let groups = read_text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    cgroup_files(&groups)
        .iter()
        .filter_map(|file| parse_limit(&read_text(file).ok()?))
        .collect()
}

/// The files that may hold a limit, for the text of `/proc/self/cgroup`.
fn cgroup_files(groups: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut files = vec![root.join("memory/memory.limit_in_bytes")];
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let path = Path::new(path.trim_start_matches('/'));
        if controllers.is_empty() {
            files.extend(
                path.ancestors()
                    .map(|level| root.join(level).join("memory.max")),
            );
        } else if controllers.split(',').any(|name| name == "memory") {
            files.push(root.join("memory").join(path).join("memory.limit_in_bytes"));
        }
    }
    files
}

/// A limit in bytes; `max`, and version 1's "no limit" number near 2^63, mean none.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim()
        .parse()
        .ok()
        .filter(|bytes| (1..1 << 60).contains(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_answers() {
        let host = Host::probe();
        assert!(host.memory > 16 << 20, "{host:?}");
        assert!(host.cores >= 1 && !host.name.is_empty(), "{host:?}");
        let resident = resident_bytes().expect("Linux has /proc/self/status");
        assert!(resident > 64 << 10 && resident < host.memory, "{resident}");
        let anonymous = anonymous_bytes().expect("it tells them apart");
        assert!(anonymous > 0 && anonymous < resident, "{anonymous}");
    }

    #[test]
    fn every_level_of_a_group_is_looked_at() {
        let files = cgroup_files("0::/pod/container\n");
        for expected in [
            "/sys/fs/cgroup/pod/container/memory.max",
            "/sys/fs/cgroup/pod/memory.max",
        ] {
            assert!(
                files.contains(&PathBuf::from(expected)),
                "{expected} in {files:?}"
            );
        }
        let files = cgroup_files("5:cpu,memory:/docker/abc\nnonsense\n");
        assert!(
            files.contains(&PathBuf::from(
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"
            )),
            "{files:?}"
        );
    }

    #[test]
    fn no_limit_is_no_limit() {
        for (text, expected) in [
            ("max\n", None),
            ("9223372036854771712\n", None),
            ("536870912\n", Some(512 << 20)),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(parse_limit(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_file_too_large_is_refused() {
        let error = read_text(Path::new("/dev/zero")).expect_err("endless");
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }
}
