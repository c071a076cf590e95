//! What is said when the server is up.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use longbow_kernels::Kernels;
use longbow_server::Started;
use longbow_types::{Config, Host, Value, WalSyncMethod};

/// What a reader wants to know of a server that is up.
pub struct Banner<'a> {
    config: &'a Config,
    started: &'a Started,
    path: PathBuf,
    simd: String,
}

impl<'a> Banner<'a> {
    /// Of a server that has just started.
    pub fn new(config: &'a Config, started: &'a Started) -> Banner<'a> {
        let path = std::path::absolute(&config.data_path);
        Banner {
            config,
            started,
            path: path.unwrap_or_else(|_| config.data_path.clone()),
            simd: Kernels::get().isa().to_string(),
        }
    }

    /// The line that scripts wait for on standard output. The path comes last, because it may hold spaces.
    pub fn ready_line(&self) -> String {
        ready_line(self.started, &self.path)
    }

    /// Says it all on standard error: as a page on a terminal, as one line of the log elsewhere.
    pub fn announce(&self) {
        longbow_types::metrics().set_build_info(env!("CARGO_PKG_VERSION"), &self.simd);
        if Host::probe().terminal {
            eprintln!("{}", self.page());
            return;
        }
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            data = %self.started.data,
            meta = %self.started.meta,
            http = %self.started.http,
            path = %self.path.display(),
            recovery = %self.started.recovery,
            simd = %self.simd,
            sync = %self.sync(),
            memory_limit = self.config.memory_limit,
            "ready"
        );
    }

    fn sync(&self) -> String {
        if self.config.wal_sync_method == WalSyncMethod::None {
            return "by checkpoints only: a power loss may take what came since the last"
                .to_owned();
        }
        if !self.config.storage_async_fsync {
            return "before every acknowledgement".to_owned();
        }
        let window = Value::Unsynced(self.config.wal_max_unsynced).to_string();
        format!(
            "behind acknowledgements, at most {}",
            window.replace(',', " and ")
        )
    }

    fn page(&self) -> String {
        let Banner {
            config,
            started,
            path,
            simd,
        } = self;
        let mut page = format!(
            "Longbow {}, node {}\n",
            env!("CARGO_PKG_VERSION"),
            config.node_id
        );
        for (name, value) in [
            ("data", format!("grpc://{}", started.data)),
            ("meta", format!("grpc://{}", started.meta)),
            ("http", format!("http://{}", started.http)),
            ("folder", path.display().to_string()),
            ("recovery", started.recovery.clone()),
            ("kernels", simd.clone()),
            ("log sync", self.sync()),
            (
                "memory limit",
                Value::Bytes(config.memory_limit).to_string(),
            ),
        ] {
            // Writing into a string can't fail.
            let _ = writeln!(page, "  {name:<13} {value}");
        }
        page
    }
}

fn ready_line(started: &Started, path: &Path) -> String {
    let Started {
        data, meta, http, ..
    } = started;
    format!(
        "longbow ready data={data} meta={meta} http={http} path={}",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> Started {
        let addr = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Started {
            data: addr(1),
            meta: addr(2),
            http: addr(3),
            recovery: "empty".into(),
        }
    }

    #[test]
    fn the_ready_line_has_the_form_that_scripts_wait_for() {
        let line = ready_line(&started(), Path::new("/data of mine"));
        assert_eq!(
            line,
            "longbow ready data=127.0.0.1:1 meta=127.0.0.1:2 http=127.0.0.1:3 path=/data of mine"
        );
    }

    #[test]
    fn the_page_says_how_the_log_is_synced() {
        let started = started();
        let mut config = Config::default();
        let page = Banner::new(&config, &started).page();
        assert!(
            page.contains("at most 256MiB and 1s") && page.contains("grpc://127.0.0.1:2"),
            "{page}"
        );
        config.storage_async_fsync = false;
        let page = Banner::new(&config, &started).page();
        assert!(page.contains("before every acknowledgement"), "{page}");
    }
}
