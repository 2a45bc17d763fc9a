//! `gw cache`: report, invalidate, evaluate.

use std::fmt::Write as _;

use gw_config::{EvaluatedCache, Share, evaluate_cache};
use serde_json::Value;

use crate::{
    arguments::{AdminOptions, CacheCommand, EvaluateOptions, Format, InvalidateOptions},
    output, wire,
};

/// Runs a command.
pub(crate) fn run(command: &CacheCommand) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("error: the runtime does not start: {error}"))?;
    runtime.block_on(async {
        match command {
            CacheCommand::Report(options) => report(&options.admin).await,
            CacheCommand::Invalidate(options) => invalidate(options).await,
            CacheCommand::Evaluate(options) => evaluate(options).await,
        }
    })
}

async fn report(options: &AdminOptions) -> Result<(), String> {
    let report = ask(options, "/admin/v1/cache", false).await?;
    match options.format {
        Format::Json => output::line(pretty(&report)),
        Format::Text => output::line(report_text(&report).trim_end()),
    }
}

async fn invalidate(options: &InvalidateOptions) -> Result<(), String> {
    let mut path = format!("/admin/v1/cache/invalidate?dry_run={}", !options.apply);
    let epoch = options.epoch.map(|epoch| epoch.to_string());
    for (name, value) in [
        ("tenant", options.tenant.as_ref().map(|tenant| tenant.as_str())),
        ("route", options.route.as_ref().map(|route| route.as_str())),
        ("before_epoch", epoch.as_deref()),
    ] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", escaped(value)));
        }
    }
    let answer = ask(&options.admin, &path, true).await?;
    match options.admin.format {
        Format::Json => output::line(pretty(&answer)),
        Format::Text => {
            let what =
                if options.apply { "forgotten" } else { "would be forgotten (dry run; `--apply` forgets)" };
            let entries = &answer["entries"];
            output::line(format_args!(
                "{what}: {}, {}",
                tier("exact", &entries["exact"]),
                tier("semantic", &entries["semantic"])
            ))
        }
    }
}

async fn evaluate(options: &EvaluateOptions) -> Result<(), String> {
    let file = options.pairs.display();
    let lines = std::fs::read_to_string(&options.pairs)
        .map_err(|error| format!("error: `{file}` cannot be read: {error}"))?;
    let evaluated = evaluate_cache(&lines).await.map_err(|error| format!("error: `{file}`: {error}"))?;
    match options.format {
        Format::Json => {
            let value = serde_json::to_value(&evaluated).map_err(|error| format!("error: {error}"))?;
            output::line(pretty(&value))
        }
        Format::Text => output::line(evaluation_text(&evaluated).trim_end()),
    }
}

/// Asks the admin plane of a gateway.
async fn ask(options: &AdminOptions, path: &str, post: bool) -> Result<Value, String> {
    let bearer = options.admin_key.as_ref().map(|key| format!("Bearer {key}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    let asked = if post {
        wire::post(options.admin, path, &headers, "").await
    } else {
        wire::get(options.admin, path, &headers).await
    };
    let answer = asked.map_err(|error| {
        format!(
            "error: no gateway answers at {}: {error}; name its admin address with `--admin`",
            options.admin
        )
    })?;
    let status = answer.head.split(' ').nth(1).unwrap_or_default();
    let value: Value = serde_json::from_str(&answer.body)
        .map_err(|_| format!("error: what answers at {} is no admin plane of gw", options.admin))?;
    if status == "200" {
        return Ok(value);
    }
    Err(format!("error: {status}: {}", value["error"]["message"].as_str().unwrap_or("no message")))
}

fn report_text(report: &Value) -> String {
    let mut text = format!(
        "held: {}, {}; calls in flight that may be shared: {}\n",
        tier("exact", &report["held"]["exact"]),
        tier("semantic", &report["held"]["semantic"]),
        report["in_flight"]
    );
    let judge = &report["judge"];
    if judge["checked"].as_u64() > Some(0) {
        line(
            &mut text,
            format_args!("the judge: {} of {} checked labels were wrong", judge["wrong"], judge["checked"]),
        );
    }
    let partitions = report["partitions"].as_array().map_or(&[][..], Vec::as_slice);
    if partitions.is_empty() {
        line(&mut text, "no request was looked up in the semantic tier");
    }
    for one in partitions {
        let name = |field: &str| one[field].as_str().unwrap_or("?").to_owned();
        line(
            &mut text,
            format_args!(
                "\n{} / {} / {}, epoch {}\n  {}: {}\n  {} entries; {} of {} look-ups were hits ({}); {} would-be hits; {} labelled, {} wrong",
                name("tenant"),
                name("route"),
                name("primary"),
                one["epoch"],
                name("state"),
                name("why"),
                one["entries"],
                one["served"],
                one["lookups"],
                percent(one["hit_milli"].as_u64()),
                one["candidates"],
                one["labelled"],
                one["labelled_wrong"],
            ),
        );
        let verifier = &one["verifier"];
        if let Some(threshold) = verifier["threshold_milli"].as_u64() {
            line(
                &mut text,
                format_args!(
                    "  served from score {} on: {} of {} tested were wrong, per hit at most {}; explored since: {} of {} wrong, at most {}",
                    milli(threshold),
                    verifier["tested_wrong"],
                    verifier["tested"],
                    percent(verifier["wrong_milli_upper"].as_u64()),
                    verifier["explored_wrong"],
                    verifier["explored"],
                    percent(verifier["explored_wrong_milli_upper"].as_u64()),
                ),
            );
        }
    }
    text
}

fn evaluation_text(evaluated: &[EvaluatedCache]) -> String {
    let mut text = format!(
        "{:<16} {:>22} {:>26} {:>22} {:>26}\n",
        "decided by", "hits", "wrong per hit", "pairs that should hit", "traps answered"
    );
    for EvaluatedCache { decided_by, figures } in evaluated {
        line(
            &mut text,
            format_args!(
                "{decided_by:<16} {:>22} {:>26} {:>22} {:>26}",
                part(figures.hits),
                bounded(figures.wrong),
                part(figures.should_hit),
                bounded(figures.traps)
            ),
        );
    }
    line(&mut text, "in brackets: 95 % Clopper-Pearson");
    text
}

fn part(share: Share) -> String {
    format!("{} of {} ({:.1} %)", share.part, share.all, share.share() * 100.0)
}

fn bounded(share: Share) -> String {
    let (low, high) = share.interval();
    format!("{:.1} % ({:.1} to {:.1})", share.share() * 100.0, low * 100.0, high * 100.0)
}

fn tier(name: &str, held: &Value) -> String {
    format!("{} {name} entries of {} bytes", held["entries"], held["bytes"])
}

fn percent(milli: Option<u64>) -> String {
    milli.map_or_else(|| "?".to_owned(), |milli| format!("{}.{} %", milli / 10, milli % 10))
}

fn milli(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

fn line(text: &mut String, what: impl std::fmt::Display) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{what}");
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// Escapes what may not stand in a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{escaped, report_text};

    #[test]
    fn names_are_escaped() {
        assert_eq!((escaped("a:b/c").as_str(), escaped("a-b.c_d").as_str()), ("a%3Ab%2Fc", "a-b.c_d"));
    }

    #[test]
    fn a_report_says_state_and_why() {
        let tier = json!({"entries": 1, "bytes": 2});
        let text = report_text(&json!({
            "held": {"exact": tier, "semantic": tier}, "in_flight": 0, "judge": {"checked": 4, "wrong": 1},
            "partitions": [{"tenant": "t", "route": "r", "primary": "p", "epoch": 0, "state": "serving",
                "why": "the bound holds", "entries": 1, "served": 5, "lookups": 50, "hit_milli": 100, "candidates": 9,
                "labelled": 8, "labelled_wrong": 1, "verifier": {"threshold_milli": 851, "tested": 90, "tested_wrong": 1,
                "wrong_milli_upper": 99, "explored": 3, "explored_wrong": 0, "explored_wrong_milli_upper": 631}}],
        }));
        for part in [
            "t / r / p",
            "serving: the bound holds",
            "(10.0 %)",
            "score 0.851",
            "at most 9.9 %",
            "1 of 4 checked",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
