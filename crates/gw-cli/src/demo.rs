//! `gw demo`: what gw does, in seconds, against a fake provider in the same process.

use std::{net::SocketAddr, sync::Arc};

use gw_config::{Composition, Config, FixedEnvironment, Seams};
use gw_server::{Listeners, Metrics, Server, ServerParts};
use gw_testkit::{FakeProvider, Fault, FaultScript, content_filter, ok, status, stream_cut_after};

use crate::{check::rendered, output, wire};

const KEY: &str = "demo-key";

/// Runs the scenes.
pub(crate) fn run() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("error: the runtime does not start: {error}"))?.block_on(scenes())
}

async fn scenes() -> Result<(), String> {
    let start = |script| FakeProvider::start(script);
    let cannot = |error: std::io::Error| format!("error: the fake provider does not start: {error}");
    let healthy = start(FaultScript::of(ok("The answer is 42."))).await.map_err(cannot)?;
    let busy = start(FaultScript::of(status(429).retry_after(60))).await.map_err(cannot)?;
    let strict = start(FaultScript::of(content_filter())).await.map_err(cannot)?;
    let dead = start(FaultScript::of(Fault::ResetBeforeHead)).await.map_err(cannot)?;
    let dying = start(FaultScript::of(stream_cut_after(2))).await.map_err(cannot)?;
    let config = configuration([&healthy, &busy, &strict, &dead, &dying]);
    output::line(format_args!("This configuration, against a fake provider on loopback:\n\n{config}"))?;
    let environment = FixedEnvironment::new().with_var("DEMO_KEY", KEY);
    let config = Config::parse(&config, "demo.toml", &environment).map_err(|faults| rendered(&faults))?;
    let seams = Seams::system().map_err(|error| format!("error: {error}"))?;
    let composition =
        Composition::build(&config, seams, |ledger| ledger).await.map_err(|faults| rendered(&faults))?;
    let listeners = Listeners::bind(&composition.server).await.map_err(|error| format!("error: {error}"))?;
    let address = listeners.data.local_addr().map_err(|error| format!("error: {error}"))?;
    let Composition { gateway, key_store: keys, ledger, server: settings, .. } = composition;
    let server =
        Server::new(ServerParts { gateway, keys, ledger, metrics: Arc::new(Metrics::default()), settings });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = server.run(listeners, async move { drop(stopped.await) });
    let playing = async move {
        let played = play(address).await;
        drop(stop);
        played
    };
    tokio::join!(playing, serving).0
}

async fn play(gateway: SocketAddr) -> Result<(), String> {
    let ask = |model: &str, stream: bool| {
        format!(
            r#"{{"model": "{model}", "stream": {stream}, "messages": [{{"role": "user", "content": "What is the answer?"}}]}}"#
        )
    };
    for (title, body) in [
        ("1. A plain answer", ask("answers", false)),
        ("2. The same as a stream", ask("answers", true)),
        (
            "3. The first deployment answers 429 with `retry-after: 60`; the fallback answers at once",
            ask("falls-over", false),
        ),
        ("4. A content filter refuses: no second call, and the provider's own code", ask("refuses", false)),
        (
            "5. The first deployment dies before its first word; the fallback's stream is all that the client sees",
            ask("dies-before", true),
        ),
        (
            "6. The deployment dies in the middle of its stream: an error, no made-up end, no `[DONE]`, no second answer",
            ask("dies-within", true),
        ),
    ] {
        output::line(format_args!("== {title}\n\n> POST /v1/chat/completions {body}\n"))?;
        let authorization = format!("Bearer {KEY}");
        let answer =
            wire::post(gateway, "/v1/chat/completions", &[("authorization", &authorization)], &body).await;
        let answer = answer.map_err(|error| format!("error: no answer: {error}"))?;
        for line in answer.head.lines() {
            output::line(format_args!("< {line}"))?;
        }
        output::line(format_args!("\n{}\n", answer.body.trim_end()))?;
    }
    Ok(())
}

fn configuration([healthy, busy, strict, dead, dying]: [&FakeProvider; 5]) -> String {
    let provider = |name: &str, provider: &FakeProvider| {
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"{}\"\n\n[deployments.{name}]\nprovider = \"{name}\"\nmodel = \"fake\"\n\
             price = {{ input = 2_000_000, output = 8_000_000 }}\nexpected_latency_ms = 100\n\n",
            provider.base_url()
        )
    };
    let route = |model: &str, chain: &str| {
        format!(
            "[[routes]]\nname = \"{model}\"\nmatch = {{ models = [\"{model}\"] }}\ndeployments = [{chain}]\n\n"
        )
    };
    format!(
        "version = 1\n\n{}{}{}{}{}{}{}{}{}{}[tenants.demo]\nrequests_per_minute = 60\nbudget = {{ limit_micros = 1_000_000, window = \"day\" }}\n\
         keys = [{{ name = \"demo\", secret = {{ env = \"DEMO_KEY\" }} }}]\n\n[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\ndrain_grace_ms = 0\n\n[ledger]\nstore = \"none\"\n",
        provider("healthy", healthy),
        provider("busy", busy),
        provider("strict", strict),
        provider("dead", dead),
        provider("dying", dying),
        route("answers", "\"healthy\""),
        route("falls-over", "\"busy\", \"healthy\""),
        route("refuses", "\"strict\", \"healthy\""),
        route("dies-before", "\"dead\", \"healthy\""),
        route("dies-within", "\"dying\", \"healthy\""),
    )
}
