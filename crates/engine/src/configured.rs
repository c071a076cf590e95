//! From a configuration to the engine's options.

use std::time::Duration;

use longbow_index::{HnswParams, QuantizedParams, SpFreshParams};
use longbow_log::{SyncMethod, SyncMode};
use longbow_types::{Config, IndexChoice, QuantizationChoice, WalSyncMethod};

use crate::graph_options::GraphOptions;
use crate::index_kind::IndexKind;
use crate::index_policy::IndexPolicy;
use crate::options::Options;
use crate::quantization::Quantization;

/// Indexing that a checkpoint is made for.
const INDEX_WORK: Duration = Duration::from_secs(5);

impl Options {
    /// The keys of the configuration that an engine reads; the others are for a server.
    pub const KEYS: [&str; 29] = [
        "backup_path",
        "compact_interval",
        "doput_batch_size",
        "hnsw_ef_construction",
        "hnsw_ef_search",
        "hnsw_m",
        "hybrid_alpha",
        "hybrid_text_columns",
        "index_queue_size",
        "index_workers",
        "max_wal_size",
        "memory_limit",
        "quantization",
        "rabitq_ef_construction",
        "recall_share",
        "slow_query",
        "snapshot_interval",
        "spfresh_shards",
        "storage_async_fsync",
        "storage_segment_size",
        "vector_index",
        "wal_linger",
        "wal_max_queued",
        "wal_max_unsynced",
        "wal_retention_age",
        "wal_retention_size",
        "wal_segment_age",
        "wal_segment_size",
        "wal_sync_method",
    ];

    /// The engine's options as configured.
    pub fn configured(config: &Config) -> Options {
        let sync = if config.wal_sync_method == WalSyncMethod::None {
            SyncMode::Never
        } else if config.storage_async_fsync {
            SyncMode::Background {
                max_unsynced_bytes: config.wal_max_unsynced.bytes,
                max_unsynced_age: config.wal_max_unsynced.age,
            }
        } else {
            SyncMode::EveryAck
        };
        let defaults = Options::new(&config.data_path);
        Options {
            backup_path: config.backup_path.clone(),
            sync,
            sync_method: match config.wal_sync_method {
                WalSyncMethod::Dsync => SyncMethod::Dsync,
                WalSyncMethod::Fdatasync | WalSyncMethod::None => SyncMethod::Fdatasync,
            },
            log_prepared: 1,
            log_segment_bytes: config.wal_segment_size,
            log_segment_age: config.wal_segment_age,
            log_retain_age: config.wal_retention_age,
            log_retain_bytes: config.wal_retention_size,
            log_queued_bytes: config.wal_max_queued,
            linger: config.wal_linger,
            log_batch_entries: config.doput_batch_size,
            graphs: graph_options(config, defaults.graphs),
            ef_search: config.hnsw_ef_search,
            index_workers: config.index_workers,
            index_queue: config.index_queue_size,
            seal_bytes: config.storage_segment_size,
            tidy_interval: config.compact_interval,
            checkpoint_interval: config.snapshot_interval,
            index_work: match config.snapshot_interval {
                Duration::ZERO => defaults.index_work,
                _ => INDEX_WORK,
            },
            max_log_bytes: config.max_wal_size,
            memory_limit: config.memory_limit,
            recall_share: config.recall_share,
            hybrid_alpha: config.hybrid_alpha as f32,
            slow_query: config.slow_query,
            text_columns: config.hybrid_text_columns.clone(),
            ..defaults
        }
    }
}

/// How graphs are built as configured.
fn graph_options(config: &Config, defaults: GraphOptions) -> GraphOptions {
    GraphOptions {
        kind: match config.vector_index {
            IndexChoice::Flat => IndexPolicy::Fixed(IndexKind::Flat),
            IndexChoice::Hnsw => IndexPolicy::Fixed(IndexKind::Hnsw),
            IndexChoice::Spfresh => IndexPolicy::Fixed(IndexKind::SpFresh),
            IndexChoice::Auto => IndexPolicy::Auto,
        },
        quantization: match config.quantization {
            QuantizationChoice::Auto => None,
            QuantizationChoice::Rabitq => Some(Quantization::Rabitq),
            QuantizationChoice::Sq8 => Some(Quantization::Sq8),
            QuantizationChoice::None => Some(Quantization::None),
        },
        hnsw: HnswParams {
            m: config.hnsw_m,
            ef_construction: config.hnsw_ef_construction,
            ..defaults.hnsw
        },
        rabitq: QuantizedParams {
            ef_construction: config.rabitq_ef_construction,
            ..defaults.rabitq
        },
        spfresh: SpFreshParams {
            shards: config.spfresh_shards,
            ..defaults.spfresh
        },
        ..defaults
    }
}
