//! From values of options to fields of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::index_choice::IndexChoice;
use crate::quantization_choice::QuantizationChoice;
use crate::value::{LogFormat, Unsynced, Value, WalSyncMethod};

/// From the value of an option to the field of [`crate::Config`] that holds it.
pub(crate) trait FromValue: Sized {
    /// `None` if the option's kind does not fit the field, which a test of the whole table rules out.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $result:expr;)+) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    $pattern => $result,
                    _ => None,
                }
            }
        }
    )+};
}

from_value! {
    SocketAddr: Value::Addr(addr) => Some(*addr);
    PathBuf: Value::Path(path) => Some(path.clone());
    Vec<String>: Value::List(words) => Some(words.clone());
    String: Value::Text(text) => Some(text.clone());
    bool: Value::Flag(flag) => Some(*flag);
    f64: Value::Float(n) => Some(*n);
    u64: Value::Bytes(n) | Value::Int(n) => Some(*n);
    u32: Value::Int(n) => u32::try_from(*n).ok();
    usize: Value::Int(n) | Value::Bytes(n) => usize::try_from(*n).ok();
    Duration: Value::Span(time) => Some(*time);
    Unsynced: Value::Unsynced(window) => Some(*window);
    WalSyncMethod: Value::Text(text) => match text.as_str() {
        "fdatasync" => Some(WalSyncMethod::Fdatasync),
        "dsync" => Some(WalSyncMethod::Dsync),
        "none" => Some(WalSyncMethod::None),
        _ => None,
    };
    QuantizationChoice: Value::Text(text) => match text.as_str() {
        "auto" => Some(QuantizationChoice::Auto),
        "rabitq" => Some(QuantizationChoice::Rabitq),
        "sq8" => Some(QuantizationChoice::Sq8),
        "none" => Some(QuantizationChoice::None),
        _ => None,
    };
    IndexChoice: Value::Text(text) => match text.as_str() {
        "flat" => Some(IndexChoice::Flat),
        "hnsw" => Some(IndexChoice::Hnsw),
        "spfresh" => Some(IndexChoice::Spfresh),
        "auto" => Some(IndexChoice::Auto),
        _ => None,
    };
    LogFormat: Value::Text(text) => match text.as_str() {
        "json" => Some(LogFormat::Json),
        "console" => Some(LogFormat::Console),
        _ => None,
    };
}
