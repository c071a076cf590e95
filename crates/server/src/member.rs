//! This node as a member of a cluster of one.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::context::Shared;

/// The member that this node is. `Status` 0 is alive; `LastSeen` is in seconds since 1970.
pub(crate) fn member(context: &Shared) -> Value {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    json!({
        "ID": context.config.node_id,
        "Addr": context.data.to_string(),
        "GRPCAddr": context.data.to_string(),
        "MetaAddr": context.meta.to_string(),
        "Tags": {},
        "Status": 0,
        "Incarnation": 0,
        "LastSeen": now,
    })
}
