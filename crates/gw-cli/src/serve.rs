//! `gw serve`.

use std::{path::Path, sync::Arc};

use gw_config::{Composition, Config, Seams, ServerSettings, SystemEnvironment};
use gw_server::{Listeners, Metrics, MetricsLedger, Reloads, Server, ServerParts, Telemetry, Tokens};
use gw_types::Ledger;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{arguments::ServeOptions, check::rendered, log, output, signals};

/// The file that is taken where none is named.
const DEFAULT_FILE: &str = "gw.toml";

/// Serves until a signal says to stop, then drains.
pub(crate) fn run(options: &ServeOptions) -> Result<(), String> {
    log::start(&options.log, options.log_format)?;
    let start = read(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime
        .map_err(|error| format!("error: the runtime does not start: {error}"))?
        .block_on(serve(start, options))
}

/// A configuration, where it is from, and whether the demo models are in it.
struct Start {
    config: Config,
    from: String,
    built_in: bool,
}

fn read(options: &ServeOptions) -> Result<Start, String> {
    let named = options.config.as_deref();
    let file = named.or_else(|| Some(Path::new(DEFAULT_FILE)).filter(|path| path.exists()));
    if let Some(file) = file {
        let config = Config::load(file, &SystemEnvironment).map_err(|faults| rendered(&faults))?;
        return Ok(Start { config, from: file.display().to_string(), built_in: false });
    }
    let built_in = Config::built_in(&SystemEnvironment).map_err(|faults| rendered(&faults))?;
    for note in &built_in.notes {
        tracing::warn!("{note}");
    }
    Ok(Start { config: built_in.config, from: "the built-in configuration".to_owned(), built_in: true })
}

async fn serve(start: Start, options: &ServeOptions) -> Result<(), String> {
    let seams = Seams::system().map_err(|error| format!("error: {error}"))?;
    let metrics = Arc::new(Metrics::default());
    let observed = Arc::clone(&metrics);
    let telemetry = start.config.telemetry().map(|told| Telemetry::new(told, Arc::clone(&metrics)));
    let told = telemetry.clone();
    let observe =
        |ledger| Arc::new(MetricsLedger::new(ledger, observed).with_telemetry(told)) as Arc<dyn Ledger>;
    let (clock, instance) = (Arc::clone(&seams.clock), seams.ids.next_id());
    let composition =
        Composition::build(&start.config, seams, observe).await.map_err(|faults| rendered(&faults))?;
    for warning in composition.warnings.iter() {
        tracing::warn!("{warning}");
    }
    let mut settings = composition.server.clone();
    settings.listen = options.listen.unwrap_or(settings.listen);
    settings.admin_listen = options.admin_listen.unwrap_or(settings.admin_listen);
    refuse_open_planes(&settings, start.built_in)?;
    let listeners = Listeners::bind(&settings).await.map_err(|error| format!("error: {error}"))?;
    let stopped = stopped()?;
    announce(&start, &listeners)?;
    let reloader = composition.reloader(Arc::new(SystemEnvironment));
    let Composition { gateway, key_store: keys, ledger, fetch, issuers, .. } = composition;
    let tokens = Tokens::new(issuers, Arc::clone(&fetch), Arc::clone(&clock));
    let told = telemetry.clone();
    let telling = telemetry.map(|telemetry| telemetry.start(fetch, clock, instance));
    let server = Server::new(ServerParts { gateway, keys, ledger, metrics: Arc::clone(&metrics), settings })
        .with_tokens(tokens);
    let server = match &told {
        Some(telemetry) => server.with_telemetry(telemetry),
        None => server,
    };
    match reloader {
        Some(reloader) => {
            let reloads = Arc::new(Reloads::new(reloader, metrics).with_telemetry(told));
            let server = server.with_reloads(Arc::clone(&reloads));
            let reloading = reloading(&reloads)?;
            tokio::select! {
                () = server.run(listeners, stopped) => {}
                () = reloading => {}
            }
        }
        None => server.run(listeners, stopped).await,
    }
    if let Some(telling) = telling {
        // After the server, so that it can tell of the last requests too.
        telling.finish().await;
    }
    tracing::info!("drained and closed");
    Ok(())
}

/// Nobody may be let in from outside without a key.
fn refuse_open_planes(settings: &ServerSettings, built_in: bool) -> Result<(), String> {
    if built_in && !settings.listen.ip().is_loopback() {
        return Err(format!(
            "error: `{}` is not loopback, and without a configuration no key is asked; write a gw.toml with tenants and keys",
            settings.listen
        ));
    }
    if settings.admin_keys.is_empty() && !settings.admin_listen.ip().is_loopback() {
        return Err(format!(
            "error: `{}` is not loopback, and there are no admin keys; set `server.admin_keys`",
            settings.admin_listen
        ));
    }
    Ok(())
}

/// Says where gw listens, and with the demo models what to try first.
fn announce(start: &Start, listeners: &Listeners) -> Result<(), String> {
    let address =
        |listener: &TcpListener| listener.local_addr().map_or_else(|_| "?".to_owned(), |at| at.to_string());
    let data = address(&listeners.data);
    let admin = listeners.admin.as_ref().map_or_else(|| "-".to_owned(), address);
    tracing::info!(%data, %admin, config = start.from, digest = %start.config.digest(), "serving");
    output::line(format_args!(
        "gw serves on http://{data}, admin and metrics on http://{admin}, from {}",
        start.from
    ))?;
    if start.built_in {
        output::line(format_args!(
            "try:\n\n  curl -i http://{data}/v1/chat/completions -H 'content-type: application/json' \\\n    \
             -d '{{\"model\": \"demo-echo\", \"messages\": [{{\"role\": \"user\", \"content\": \"hello\"}}]}}'\n\n\
             more models: demo-flaky (falls over), demo-slow; `\"stream\": true` streams"
        ))?;
    }
    Ok(())
}

/// Reloads at each SIGHUP and whenever the file changes; never ends.
fn reloading(reloads: &Arc<Reloads>) -> Result<impl Future<Output = ()>, String> {
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|error| format!("error: cannot listen for signals: {error}"))?;
    let reloads = Arc::clone(reloads);
    Ok(async move {
        let signals = async {
            while hangup.recv().await.is_some() {
                // What became of it was told.
                drop(reloads.reload("signal").await);
            }
            std::future::pending::<()>().await;
        };
        tokio::join!(signals, reloads.watch());
    })
}

/// Resolves at the first SIGTERM or SIGINT.
fn stopped() -> Result<impl Future<Output = ()>, String> {
    let asked = signals::stop_asked()?;
    Ok(async move {
        asked.await;
        tracing::info!("draining");
    })
}
