//! `longbow serve`: from a configuration to a running server, and to its end.

use std::process::ExitCode;

use longbow_types::{Config, ConfigError, Inputs, resolve};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::banner::Banner;
use crate::logging;
use crate::out::{BAD_CONFIGURATION, complain, print};

/// Runs the server until it is told to stop. The exit code is 0 after a clean stop.
pub fn serve(inputs: Result<Inputs, ConfigError>) -> ExitCode {
    let config = match inputs.and_then(|inputs| resolve(&inputs)) {
        Ok(resolved) => resolved.config(),
        Err(error) => return complain(&error.to_string(), BAD_CONFIGURATION),
    };
    logging::start(&config);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start the network threads: {error}"), 1),
    };
    match runtime.block_on(run(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => complain(&message, 1),
    }
}

async fn run(config: Config) -> Result<(), String> {
    // The handlers are set before anything else, so that a signal during recovery is not lost.
    let terminate = listen(SignalKind::terminate())?;
    let interrupt = listen(SignalKind::interrupt())?;
    let shown = config.clone();
    let started = |started: &longbow_server::Started| {
        let banner = Banner::new(&shown, started);
        banner.announce();
        // A reader of standard output that has gone away does not stop the server.
        print(&banner.ready_line());
    };
    let served = longbow_server::run(config, started, stop(terminate, interrupt)).await;
    served.map_err(|error| error.to_string())
}

fn listen(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|error| format!("cannot listen for signals: {error}"))
}

async fn stop(mut terminate: Signal, mut interrupt: Signal) {
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = name, "stopping");
}
