//! `gw cache`, and what stands behind it on the admin plane.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Gw, Toml, chat, run_gw};

fn run(gw: &Gw, arguments: &[&str]) -> (Option<i32>, String) {
    let admin = gw.admin.to_string();
    let arguments: Vec<&str> =
        ["cache"].iter().chain(arguments).copied().chain(["--admin", &admin]).collect();
    let output = run_gw(&gw.folder(), &arguments, &[]);
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_gateway_says_what_its_cache_holds_and_forgets_it_when_told_twice() {
    let toml = Toml::new()
        .scripted("up", &["ok"])
        .route_with("m", &["up"], "cache = { semantic = { wrong_per_hit = 0.1 } }")
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    for text in ["how do i turn on dark mode here", "how do i turn on dark mode here please"] {
        assert_eq!(gw.chat("a", &chat("m", text)).send().await.status, 200);
    }
    let (code, text) = run(&gw, &["report"]);
    assert_eq!(code, Some(0), "{text}");
    for part in
        ["2 exact entries", "a / m / up", "shadow: too few labels for a test", "2 entries", "1 would-be"]
    {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let (_, json) = run(&gw, &["report", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["partitions"][0]["state"], "shadow");
    let id =
        gw.records(2).await.iter().find(|one| !one["decision"]["similarity_milli"].is_null()).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
    for (query, status) in [
        (format!("request={id}&right=maybe"), 400),
        ("right=true".to_owned(), 400),
        (format!("request={id}&right=false"), 200),
        (format!("request={id}&right=false"), 404),
    ] {
        let answer = gw.admin_post(&format!("/admin/v1/feedback?{query}")).send().await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
    }
    let (code, text) = run(&gw, &["invalidate", "--tenant", "a"]);
    assert!(code == Some(0) && text.starts_with("would be forgotten"), "{text}");
    assert!(run(&gw, &["report"]).1.contains("2 exact entries"));
    let (_, text) = run(&gw, &["invalidate", "--tenant", "a", "--route", "m", "--apply"]);
    assert!(text.starts_with("forgotten: 2 exact entries"), "{text}");
    assert!(run(&gw, &["report"]).1.contains("0 exact entries"));
    assert_eq!(run(&gw, &["invalidate"]).0, Some(2), "everything is named by `--all`");
}

#[test]
fn labelled_questions_are_tried_without_a_gateway() {
    let folder = TempDir::new().unwrap();
    let evaluate = |text: &str| {
        std::fs::write(folder.path().join("pairs.jsonl"), text).unwrap();
        run_gw(folder.path(), &["cache", "evaluate", "--pairs", "pairs.jsonl"], &[])
    };
    let row = r#"{"kind": "negation", "a": "The payment is held.", "b": "The payment is not held.", "same_answer": false}"#;
    let output = evaluate(row);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("threshold 0.800") && text.contains("verified 10.0 %"), "{text}");
    let output = evaluate("no row");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("pairs.jsonl"));
}
