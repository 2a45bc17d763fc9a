//! `gw generate` as its users run it: files, pipes, kills, and what is wrong with the input.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output, Stdio},
};

use gw_testkit::{FakeProvider, Fault, FaultScript, html_200, ok, status};
use serde_json::Value;

use crate::support::Program;

fn generate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(Program::path());
    command
        .current_dir(folder)
        .env_remove("OPENAI_API_KEY")
        .env("GENERATE_KEY", "a key")
        .arg("generate")
        .args(arguments);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a batch against the provider, off the runtime that the provider runs on.
async fn run(folder: &Path, provider: &FakeProvider, more: &[&str]) -> Output {
    let base_url = provider.base_url();
    let mut arguments = vec!["--base-url", &base_url, "--model", "m"];
    arguments.extend(more);
    let mut command = generate(folder, &arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn results(folder: &Path) -> Vec<Value> {
    lines(&std::fs::read_to_string(folder.join("out.jsonl")).unwrap())
}

fn items(count: usize) -> String {
    (0..count)
        .map(|number| format!("{{\"request_id\":\"{number}\",\"prompt\":\"say {number}\"}}\n"))
        .collect()
}

const FILES: [&str; 4] = ["--input", "in.jsonl", "--output", "out.jsonl"];

#[tokio::test(flavor = "multi_thread")]
async fn every_item_has_one_result() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(30)).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("hello"))).await.unwrap();
    let output =
        run(folder.path(), &provider, &[&FILES[..], &["--ordered", "--price", "2,8"]].concat()).await;
    assert!(output.status.success(), "{}", said(&output));
    let results = results(folder.path());
    let ids: Vec<_> =
        results.iter().map(|result| result["request_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..30).map(|number| number.to_string()).collect::<Vec<_>>());
    let first = &results[0];
    assert_eq!((&first["status"], &first["completions"][0]["text"]), (&"ok".into(), &"hello".into()));
    assert_eq!((&first["completions"][0]["finish_reason"], &first["attempts"]), (&"stop".into(), &1.into()));
    assert_eq!(first["cost_micros"], 28);
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(summary.contains("answered        30"), "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_10_000_items_that_is_killed_twice_ends_with_one_result_an_id() {
    const ITEMS: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(ITEMS)).unwrap();
    // The calls of the first two runs stop at the gate when some results are there.
    let gated = |seen: &gw_testkit::SeenCall| {
        let answer = Fault::from(ok("hello"));
        let waits = [3_000, 3_001, 3_002, 3_003, 7_000, 7_001, 7_002, 7_003].contains(&seen.number);
        if waits { Fault::AtGate { then: Box::new(answer) } } else { answer }
    };
    let provider = FakeProvider::start_with(gated).await.unwrap();
    let base_url = provider.base_url();
    for calls in [3_003, 7_003] {
        let arguments =
            [&FILES[..], &["--base-url", &base_url, "--model", "m", "--max-concurrency", "4", "--resume"]]
                .concat();
        let mut child =
            generate(folder.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        provider.wait_for_calls(calls).await;
        child.kill().unwrap();
        child.wait().unwrap();
        // As if the kill had come in the middle of a line.
        let path = folder.path().join("out.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"request_id\":\"5");
        std::fs::write(&path, text).unwrap();
    }
    let output = run(folder.path(), &provider, &[&FILES[..], &["--resume"]].concat()).await;
    assert!(output.status.success(), "{}", said(&output));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for result in results(folder.path()) {
        assert_eq!(result["status"], "ok");
        *counts.entry(result["request_id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!((counts.len(), counts.values().max()), (ITEMS, Some(&1)));
    let again = run(folder.path(), &provider, &[&FILES[..], &["--resume"]].concat()).await;
    assert!(
        again.status.success() && String::from_utf8_lossy(&again.stdout).contains("finished before  10000"),
        "{}",
        said(&again)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_have_their_class_and_are_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(3)).unwrap();
    let script = FaultScript::of(ok("a")).then(status(400)).then(ok("b"));
    let provider = FakeProvider::start(script).await.unwrap();
    let output = run(folder.path(), &provider, &[&FILES[..], &["--max-concurrency", "1"]].concat()).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("1 item failed"), "{}", said(&output));
    let failed: Vec<_> =
        results(folder.path()).into_iter().filter(|result| result["status"] == "failed").collect();
    assert_eq!(
        (failed.len(), &failed[0]["error_class"], &failed[0]["upstream_status"]),
        (1, &"invalid_request".into(), &400.into())
    );
    let output = run(folder.path(), &provider, &[&FILES[..], &["--resume"]].concat()).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(results(folder.path()).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_every_item_would_share_stops_the_run_with_one_message() {
    for (fault, message) in [
        (Fault::from(status(401)), "look at the key"),
        (html_200().into(), "does not answer as an OpenAI-compatible API"),
        (Fault::from(status(404)), "look at the model's name"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.jsonl"), items(2_000)).unwrap();
        let provider = FakeProvider::start(FaultScript::of(fault)).await.unwrap();
        let output = run(folder.path(), &provider, &[&FILES[..], &["--max-concurrency", "4"]].concat()).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(message), "{}", said(&output));
        assert!(provider.calls().len() < 20, "{}", provider.calls().len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_keeps_what_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(9)).unwrap();
    let provider = FakeProvider::start_with(|seen| match seen.number {
        1 => ok("hello").into(),
        _ => Fault::AtGate { then: Box::new(ok("hello").into()) },
    })
    .await
    .unwrap();
    let base_url = provider.base_url();
    let arguments =
        [&FILES[..], &["--base-url", &base_url, "--model", "m", "--max-concurrency", "2"]].concat();
    let mut command = generate(folder.path(), &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who waits for the third call has the result of the first in the file.
    provider.wait_for_calls(3).await;
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("interrupted; what is written stays"), "{}", said(&output));
    assert_eq!(results(folder.path()).len(), 1);
    provider.wait_for_client_gone(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_stops_before_its_cost_would_be_passed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), {
        let rows: String = (0..200).map(|number| format!("{number},say {number},100\n")).collect();
        format!("request_id,prompt,max_tokens\n{rows}")
    })
    .unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    let bounds = ["--price", "2,8", "--max-cost", "0.003", "--format", "json"];
    let files = ["--input", "in.csv", "--output", "out.jsonl"];
    let output = run(folder.path(), &provider, &[&files[..], &bounds].concat()).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("the next item might pass `--max-cost`"), "{}", said(&output));
    let summary = &lines(&String::from_utf8(output.stdout).unwrap())[0];
    let spent: u64 =
        results(folder.path()).iter().map(|result| result["cost_micros"].as_u64().unwrap()).sum();
    assert!(0 < spent && spent <= 3_000, "{spent}");
    assert_eq!(summary["cost_micros"], spent);
    assert_eq!(summary["answered"], results(folder.path()).len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_can_never_be_served_fails_without_a_call_and_the_rest_goes_on() {
    let long = "long ".repeat(4_000);
    let folder = tempfile::tempdir().unwrap();
    let many = r#"{"request_id":"many","prompt":"x","sampling":{"max_tokens":400,"n":3}}"#;
    let text = format!(
        "{{\"request_id\":\"long\",\"prompt\":\"{long}\"}}\n{many}\n{}",
        items(2).replace('}', ",\"sampling\":{\"max_tokens\":9}}")
    );
    std::fs::write(folder.path().join("in.jsonl"), text).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    let bounds = ["--context-window", "1500", "--in-flight-tokens", "1000", "--qps", "500"];
    let output = run(folder.path(), &provider, &[&FILES[..], &bounds].concat()).await;
    assert_eq!(output.status.code(), Some(1));
    let classes: BTreeMap<_, _> = results(folder.path())
        .into_iter()
        .map(|result| (result["request_id"].as_str().unwrap().to_owned(), result["error_class"].clone()))
        .collect();
    assert_eq!(classes["long"], "context_length_exceeded");
    assert_eq!(classes["many"], "rate_limited");
    assert_eq!((&classes["0"], &classes["1"]), (&Value::Null, &Value::Null));
    assert_eq!(provider.calls().len(), 2);
}

/// A file that a server uses too names keys, certificates and addresses that only callers would need.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_needs_the_credentials_of_providers_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(2)).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    let config = format!(
        "version = 1\n\n[server]\nlisten = \"0.0.0.0:443\"\nadmin_keys = [{{ env = \"GW_TEST_ADMIN_KEY\" }}]\n\n\
         [server.tls]\ncertificate_file = \"gw.pem\"\nkey_file = \"gw.key\"\n\n[providers.p]\n\
         kind = \"openai-compatible\"\nbase_url = \"{}\"\napi_key = {{ env = \"GW_TEST_PROVIDER_KEY\" }}\n\n\
         [deployments.d]\nprovider = \"p\"\nmodel = \"m\"\nprice = \"free\"\n\n[[routes]]\nname = \"r\"\n\
         deployments = [\"d\"]\n\n[tenants.a]\nkeys = [{{ name = \"k\", secret = {{ env = \"GW_TEST_CALLER_KEY\" }} }}, \
         {{ name = \"l\", secret = {{ file = \"caller.key\" }} }}]\n\n[ledger]\nstore = \"none\"\n",
        provider.base_url()
    );
    std::fs::write(folder.path().join("gw.toml"), config).unwrap();
    refused(folder.path(), &FILES, "environment variable `GW_TEST_PROVIDER_KEY` is not set");
    let mut command = generate(folder.path(), &[&FILES[..], &["--model", "m"]].concat());
    command.env("GW_TEST_PROVIDER_KEY", "k");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((results(folder.path()).len(), provider.calls().len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_says_who_answers_and_who_pays() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(2)).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    // Nobody has a key: a batch shows none.
    let config = format!(
        "version = 1\n\n[providers.p]\nkind = \"openai-compatible\"\nbase_url = \"{}\"\n\n[deployments.d]\n\
         provider = \"p\"\nmodel = \"small\"\nprice = \"free\"\n\n[[routes]]\nname = \"r\"\n\
         match = {{ models = [\"small\"] }}\ndeployments = [\"d\"]\n\n[tenants.a]\n\n[tenants.b]\n\n[ledger]\nstore = \"sqlite:gw.db\"\n",
        provider.base_url()
    );
    std::fs::write(folder.path().join("gw.toml"), config).unwrap();
    refused(folder.path(), &FILES, "say with `--tenant` as whom");
    refused(folder.path(), &[&FILES[..], &["--tenant", "c"]].concat(), "known: `a`, `b`");
    let play = |more: &[&str]| {
        let mut command = generate(folder.path(), &[&FILES[..], &["--tenant", "b"], more].concat());
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let output = play(&["--model", "large"]).await.unwrap();
    assert_eq!((output.status.code(), provider.calls().len()), (Some(1), 0), "{}", said(&output));
    assert!(results(folder.path()).iter().all(|result| result["error_class"] == "unknown_model"));
    let output = play(&["--model", "small", "--resume"]).await.unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let results = results(folder.path());
    assert!(results.iter().all(|result| result["deployment"] == "d"), "{results:?}");
    let report = Command::new(Program::path())
        .current_dir(folder.path())
        .args(["ledger", "export", "--store", "sqlite:gw.db"])
        .output();
    let records = lines(&String::from_utf8(report.unwrap().stdout).unwrap());
    let by_batch = records
        .iter()
        .filter(|record| record["record"]["tenant"] == "b" && record["record"]["outcome"] == "ok");
    assert_eq!(by_batch.count(), 2);
}

/// "API keys are [...] not placed in generation results": nor in what is printed.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_goes_to_the_endpoint_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(3)).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a")).then(status(400))).await.unwrap();
    let base_url = provider.base_url();
    let arguments =
        [&FILES[..], &["--base-url", &base_url, "--model", "m", "--api-key-env", "CANARY"]].concat();
    let mut command = generate(folder.path(), &arguments);
    command.env("CANARY", "sk-canary-of-the-batch");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(provider.calls()[0].header("authorization"), Some("Bearer sk-canary-of-the-batch"));
    let written = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    let printed = [output.stdout, output.stderr].concat();
    assert!(!written.contains("canary") && !String::from_utf8_lossy(&printed).contains("canary"));
}

/// "The gateway owns a single reusable [client] for its lifetime": one worker needs one connection.
#[tokio::test(flavor = "multi_thread")]
async fn calls_one_after_the_other_share_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(20)).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    let output = run(folder.path(), &provider, &[&FILES[..], &["--max-concurrency", "1"]].concat()).await;
    assert!(output.status.success(), "{}", said(&output));
    let calls = provider.calls();
    assert_eq!((calls.len(), calls.iter().filter(|call| call.connection != 1).count()), (20, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_lines_are_numbered_and_left_out_unless_strict() {
    let text = format!(
        "{}nonsense\n{{\"request_id\":\"0\",\"prompt\":\"again\"}}\n{{\"request_id\":\"9\",\"promt\":\"x\"}}\n",
        items(2)
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), text).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    let output = run(folder.path(), &provider, &FILES).await;
    assert!(output.status.success(), "{}", said(&output));
    for part in [
        "in.jsonl:3: column 2: no JSON",
        "in.jsonl:4: an earlier line has the same id",
        "in.jsonl:5: ",
        "unknown field `promt`",
    ] {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    assert_eq!(results(folder.path()).len(), 2);
    let strict =
        run(folder.path(), &provider, &["--input", "in.jsonl", "--output", "strict.jsonl", "--strict"]).await;
    assert_eq!(strict.status.code(), Some(1));
    assert!(said(&strict).contains("in.jsonl:3"), "{}", said(&strict));
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_files_and_csv_run_and_pipes_carry_only_results() {
    let folder = tempfile::tempdir().unwrap();
    let batch = r#"{"custom_id":"x","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"hi"}]}}"#;
    std::fs::write(folder.path().join("batch.jsonl"), batch).unwrap();
    std::fs::write(folder.path().join("in.csv"), "request_id,prompt,max_tokens\nc,\"say \"\"hi\"\"\",5\n")
        .unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("hello"))).await.unwrap();
    let output = run(folder.path(), &provider, &["--input", "batch.jsonl", "--output", "-"]).await;
    let written = lines(&String::from_utf8(output.stdout.clone()).unwrap());
    assert_eq!(
        (written.len(), &written[0]["custom_id"], &written[0]["response"]["status_code"]),
        (1, &"x".into(), &200.into())
    );
    assert_eq!(written[0]["response"]["body"]["choices"][0]["message"]["content"], "hello");
    let output = run(folder.path(), &provider, &["--input", "in.csv", "--output", "-"]).await;
    let written = lines(&String::from_utf8(output.stdout.clone()).unwrap());
    assert_eq!((&written[0]["request_id"], &written[0]["status"]), (&"c".into(), &"ok".into()));
    assert_eq!(provider.calls()[1].json()["messages"][0]["content"], "say \"hi\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_the_run_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.jsonl"), items(50)).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a"))).await.unwrap();
    let output = run(folder.path(), &provider, &["--input", "in.jsonl", "--output", "/dev/full"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("`/dev/full` cannot be written: No space left"), "{}", said(&output));
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], message: &str) {
    let output = generate(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains(message), "{}", said(&output));
}

#[test]
fn what_cannot_begin_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("in.jsonl"), items(1)).unwrap();
    std::fs::write(at("empty.jsonl"), "").unwrap();
    std::fs::write(at("other.txt"), "my notes\nof a day\n").unwrap();
    let endpoint = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    let with = |files: [&'static str; 4], more: &[&'static str]| [&files[..], &endpoint, more].concat();
    let files = |input, output| ["--input", input, "--output", output];
    refused(folder.path(), &with(files("none.jsonl", "a.jsonl"), &[]), "`none.jsonl` cannot be read");
    refused(folder.path(), &with(files("empty.jsonl", "b.jsonl"), &[]), "`empty.jsonl` is empty");
    refused(
        folder.path(),
        &with(files("in.jsonl", "other.txt"), &[]),
        "exists; go on with it with `--resume`",
    );
    refused(
        folder.path(),
        &with(files("in.jsonl", "other.txt"), &["--resume"]),
        "`other.txt:1` is no result",
    );
    refused(
        folder.path(),
        &with(files("in.jsonl", "c.jsonl"), &["--max-cost", "1"]),
        "say `--price INPUT,OUTPUT`",
    );
    refused(
        folder.path(),
        &with(files("in.jsonl", "d.jsonl"), &["--api-key-env", "GW_NO_SUCH_KEY"]),
        "GW_NO_SUCH_KEY",
    );
    refused(folder.path(), &files("in.jsonl", "e.jsonl"), "there is no `gw.toml`");
    assert_eq!(std::fs::read_to_string(at("other.txt")).unwrap(), "my notes\nof a day\n");
}
