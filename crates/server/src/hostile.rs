//! What tests of hostile requests share: a node, and good bytes made bad.

use std::sync::{Arc, LazyLock, OnceLock};

use longbow_engine::{Engine, Options};
use longbow_query::sql::{Limits, Session};
use longbow_types::Config;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::context::{Context, Shared};
use crate::sql::Prepared;

/// A node without its listeners, which lives as long as the tests.
pub(crate) struct Node {
    pub context: Shared,
    pub runtime: Runtime,
    _folder: tempfile::TempDir,
}

/// It holds the dataset `docs` of two rows.
pub(crate) static NODE: LazyLock<Node> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::open_folder(Options::new(folder.path())).expect("an engine");
    let limits = Limits {
        timeout: std::time::Duration::from_secs(5),
        ..Limits::default()
    };
    let nowhere = "127.0.0.1:0".parse().expect("an address");
    let (_, stopped) = tokio::sync::watch::channel(false);
    let context = Context {
        sql: Session::new(&engine, limits, Vec::new()).expect("a session"),
        prepared: Prepared::default(),
        engine,
        data: nowhere,
        meta: nowhere,
        stopped,
        stop_began: OnceLock::new(),
        config: Config::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().build();
    let node = Node {
        context: Arc::new(context),
        runtime: runtime.expect("threads"),
        _folder: folder,
    };
    let rows = r#"[{"id": 1, "vector": [0.5, 1], "word": "a"}, {"id": 2, "vector": [1, 2]}]"#;
    let put = longbow_query::rows::read(rows.as_bytes(), None, &Default::default());
    let put = put.expect("good rows");
    let mut session = node
        .context
        .engine
        .put("docs", &put.schema())
        .expect("a put");
    let pending = session.record_batch(&put).expect("good rows");
    pending.wait().expect("acknowledged");
    node
});

/// A change of bytes: where, how many go, and what comes in their place.
pub(crate) type Change = (prop::sample::Index, usize, Vec<u8>);

/// Some changes.
pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let text = prop::sample::select(vec![
        "\u{0}", "ä", "\\ud800", "[", "{\"a\":", "1e999", "-", "null", "$9", "'",
    ]);
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        text.prop_map(|text| text.as_bytes().to_vec()),
        (1..3_000usize).prop_map(|count| b"[".repeat(count)),
        (1..3_000usize).prop_map(|count| b"1,".repeat(count)),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0..5usize, bytes), 0..4)
}

/// Bytes with changes.
pub(crate) fn changed(good: &[u8], changes: Vec<Change>) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, count, new) in changes {
        let begin = at.index(bytes.len() + 1);
        let end = (begin + count).min(bytes.len());
        bytes.splice(begin..end, new);
    }
    bytes
}
