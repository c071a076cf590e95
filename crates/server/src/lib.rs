//! The server: Arrow Flight for data and for status, HTTP for metrics, health and JSON, around one engine.
//!
//! Two Flight servers on two ports, so that a long transfer never holds up a status call. Both speak the same
//! service; a call on the wrong one says which has it.
//!
//! # What it is not
//! It decides nothing about data: a call is read, handed to the engine, and its answer written. It has no state of its
//! own beyond the calls under way.
//!
//! # Invariants
//! - It alone knows Flight, gRPC and HTTP.
//! - Every error text is `code: text`, with a stable code, the value that was wrong, and what to do.
//! - Nothing depends on a client reading its answers.
//! - A request's unknown key or value is refused, never ignored.
//!
//! # Example
//! ```no_run
//! let config = longbow_types::Config::default();
//! let stop = std::future::pending();
//! let run = longbow_server::run(config, |at| println!("data server at {}", at.data), stop);
//! # let _ = run;
//! ```
#![forbid(unsafe_code)]

mod actions;
mod ask;
mod connection;
mod context;
mod encode;
mod error;
mod exchange;
mod feed;
mod follow;
mod front;
mod gateway;
mod get;
mod health;
#[cfg(test)]
mod hostile;
mod http;
mod info;
mod json;
mod listen;
mod loops;
mod member;
mod pieces;
mod put;
mod service;
mod sql;
mod status;
mod vigil;
mod wire;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longbow_engine::{Engine, Options};
use longbow_query::sql::{Limits, Session, Setting};
use longbow_types::Config;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::context::Context;
use crate::front::Front;
use crate::health::NodeHealth;
use crate::listen::Listeners;
use crate::sql::Prepared;

pub use ask::{AskError, ask};
pub use error::Error;
pub use feed::FeedRequest;
pub use follow::{FollowError, follow};
pub use listen::Started;

/// How long calls that are under way may take to end once the node stops. What was acknowledged is safe, and a client
/// that neither reads nor ends its call would hold the node up for ever.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Serves until `shutdown` is done, then gives what is under way ten seconds to end, and closes the engine. `started` is called once all
/// servers accept calls; before, while the engine is opened, HTTP says that.
///
/// # Errors
/// If an address cannot be bound or the data folder cannot be opened; nothing was served then.
pub async fn run(
    config: Config,
    started: impl FnOnce(&Started),
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    // Addresses first: a port in use should not cost a recovery.
    let (listeners, http) = Listeners::bind(&config).await?;
    let (stop, stopped) = watch::channel(false);
    let front = Front::default();
    let mut http = std::pin::pin!(front.clone().serve(http, stopped.clone()));
    let options = Options::configured(&config);
    let opening = tokio::task::spawn_blocking(move || Engine::open_folder(options));
    let engine = tokio::select! {
        opened = opening => opened.map_err(|_| Error::Panicked)??,
        ended = &mut http => return ended,
    };
    let context = Arc::new(Context {
        sql: session(&engine, &config)?,
        prepared: Prepared::default(),
        engine: engine.clone(),
        data: listeners.data_addr(),
        meta: listeners.meta_addr(),
        stopped: stopped.clone(),
        stop_began: OnceLock::new(),
        config,
    });
    let told = listeners.started(&engine);
    let health = Arc::new(NodeHealth::new(engine.clone()));
    front.open(http::router(health, gateway::router(&context)));
    let serving = listeners.serve(&context, http, stopped);
    started(&told);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = shutdown => {
            let _ = context.stop_began.set(Instant::now());
            let _ = stop.send(true);
            match tokio::time::timeout(END_WITHIN, serving).await {
                Ok(served) => served,
                Err(_) => {
                    tracing::warn!(after = ?END_WITHIN, "calls that do not end are cut off");
                    Ok(())
                }
            }
        }
    };
    let closed = tokio::task::spawn_blocking(move || engine.close())
        .await
        .map_err(|_| Error::Panicked)?;
    served?;
    Ok(closed?)
}

/// SQL within the configured limits.
fn session(engine: &Engine, config: &Config) -> Result<Session, Error> {
    let told = config.texts().into_iter();
    let settings = told.map(|(name, value, meaning)| Setting {
        name: name.to_owned(),
        value,
        meaning: meaning.to_owned(),
    });
    Session::new(engine, Limits::configured(config), settings.collect()).map_err(Error::Sql)
}
