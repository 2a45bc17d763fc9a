//! Recorded exchanges of providers, through gw's readers and writers.
//!
//! Every answer is read, a stream both whole and byte by byte, held against the table of what it says, and written for
//! every kind of caller; every request goes through gw and must come out as it was recorded. `GW_FIXTURES=DIR` does the
//! same with another folder of recordings, of which the table says nothing.

mod equivalent;
mod exchange;
mod expected;
mod reencoded;
mod report;
mod requests;
mod schema;
mod spoken;
mod stated;
mod told;
mod understood;

use gw_types::{ErrorKind, GatewayError};

pub(crate) use self::exchange::{beside_the_workspace, is_absent};
use self::{
    exchange::{Corpus, Exchange, corpus},
    expected::Table,
    report::{Report, Verdict},
    schema::schemas,
    spoken::{Spoken, spoken},
    told::Told,
};

#[test]
fn every_recorded_answer_is_understood_and_reaches_every_caller() {
    let Some(corpus) = corpus() else { return };
    let table = corpus.is_known.then(Table::read);
    let mut report = Report::default();
    let mut all_told = Vec::new();
    for exchange in &corpus.exchanges {
        let verdict = match spoken(&exchange.api) {
            None => Verdict::Skipped(format!("gw does not speak {}", exchange.api)),
            Some(spoken) => {
                let (told, faults) = examine(exchange, spoken, table.as_ref());
                all_told.push((exchange, told));
                if faults.is_empty() { Verdict::Passed } else { Verdict::Failed(faults) }
            }
        };
        report.add(&exchange.provider, &exchange.id, verdict);
    }
    if let Some(table) = table {
        expected::update(&all_told);
        assert_complete(&corpus, &table, &report);
    }
    report.conclude("answers");
}

#[test]
fn every_recorded_request_reaches_its_provider_as_it_was() {
    let Some(corpus) = corpus() else { return };
    let mut report = Report::default();
    for exchange in &corpus.exchanges {
        report.add(&exchange.provider, &exchange.id, requests::check(exchange));
    }
    let [passed, failed, _] = report.totals();
    assert!(!corpus.is_known || passed + failed > 140, "{passed} passed, {failed} failed");
    report.conclude("requests");
}

/// Nothing of the known recordings is missing or passed over.
fn assert_complete(corpus: &Corpus, table: &Table, report: &Report) {
    assert_eq!(table.orphans(corpus), Vec::<&str>::new(), "rows without an exchange");
    let [passed, failed, skipped] = report.totals();
    assert!(passed + failed > 300, "{passed} passed, {failed} failed, {skipped} skipped");
}

/// Returns what an answer says, and everything that is wrong about it.
fn examine(exchange: &Exchange, spoken: Spoken, table: Option<&Table>) -> (Told, Vec<String>) {
    let mut faults = Vec::new();
    let told = understood::understand(exchange, spoken, &mut faults);
    faults.extend(told.error().and_then(|error| unfit(exchange, error)));
    if let Err(fault) = stated::compare(&exchange.body, told.usage())
        && told.error().is_none()
    {
        faults.push(fault);
    }
    if let Spoken::Answers(format) = spoken {
        faults.extend(reencoded::check(exchange, format, &told, schemas()));
    }
    faults.extend(table.and_then(|table| table.compare(exchange, &told)));
    (told, faults)
}

/// Says why an error cannot be what the answer means.
fn unfit(exchange: &Exchange, error: &GatewayError) -> Option<String> {
    use ErrorKind::{
        ContentFiltered, ContextLengthExceeded, DeploymentMissing, InvalidRequest, ProviderAuth,
        ProviderRateLimited, ProviderTimeout, ProviderUnavailable,
    };
    let fitting: &[ErrorKind] = match exchange.status {
        // An error of the provider's own inside a success; what gw cannot read is none.
        200..=299 => &[
            ContentFiltered,
            ContextLengthExceeded,
            InvalidRequest,
            ProviderAuth,
            ProviderRateLimited,
            ProviderTimeout,
            ProviderUnavailable,
            DeploymentMissing,
        ],
        // Some providers answer 400 to a bad key and to a model that they do not know.
        400 => &[InvalidRequest, ContextLengthExceeded, ContentFiltered, ProviderAuth, DeploymentMissing],
        401 => &[ProviderAuth],
        403 => &[ProviderAuth, ContentFiltered],
        // Two providers whose documents know no 402 refuse a request with it.
        402 => &[ProviderRateLimited, InvalidRequest],
        404 | 410 => &[DeploymentMissing],
        408 => &[ProviderTimeout],
        413 => &[InvalidRequest, ContextLengthExceeded, ProviderRateLimited],
        // 498 and 499 are servers' own ways to say that they gave up.
        424 | 498 | 499 | 500..=503 | 529 => &[ProviderUnavailable],
        429 => &[ProviderRateLimited],
        504 => &[ProviderTimeout, ProviderUnavailable],
        405..=499 => &[InvalidRequest],
        _ => &[ProviderUnavailable],
    };
    let kind = error.kind();
    if kind == ErrorKind::MalformedResponse && exchange.is_success() && stated::gave_up(&exchange.body) {
        return None;
    }
    if !fitting.contains(&kind) {
        return Some(format!("{kind} does not fit status {}: {error:?}", exchange.status));
    }
    (error.is_unclassified() && exchange.is_recorded).then(|| format!("{kind} is a guess: {error:?}"))
}

#[test]
fn wrong_recordings_of_another_folder_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let chat = |finish: &str| {
        format!(
            r#"{{"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"Hi"}}{finish}}}]}}"#
        )
    };
    let made_up = [
        ("right", "x.chat", 200, serde_json::from_str(&chat(r#","finish_reason":"stop""#)).unwrap(), true),
        ("unreadable", "x.chat", 200, serde_json::json!("no answer"), false),
        ("cut", "anthropic.messages", 200, serde_json::Value::Null, false),
        ("refused", "x.chat", 404, serde_json::json!({"error": {"message": "no such model"}}), true),
        ("a-guess", "x.chat", 418, serde_json::json!({"error": {"message": "a teapot"}}), false),
    ];
    let mut index = Vec::new();
    for (id, api, status, body, _) in &made_up {
        let is_cut = body.is_null();
        let text =
            is_cut.then_some("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n");
        let exchange = serde_json::json!({
            "id": id, "provider": "x", "api": api, "stream": is_cut, "fidelity": "recorded",
            "request": {"body": null},
            "response": {"status": status, "headers": {}, "body": body, "body_text": text},
        });
        std::fs::write(folder.path().join(id), exchange.to_string()).unwrap();
        index.push(serde_json::json!({"id": id, "file": id}));
    }
    let index = serde_json::json!({"count": index.len(), "exchanges": index});
    std::fs::write(folder.path().join("index.json"), index.to_string()).unwrap();
    let exchanges = exchange::read_folder(folder.path());
    assert_eq!(exchanges.len(), made_up.len());
    for exchange in &exchanges {
        let (_, faults) = examine(exchange, spoken(&exchange.api).unwrap(), None);
        let expected = made_up.iter().find(|one| one.0 == exchange.id).unwrap().4;
        assert_eq!(faults.is_empty(), expected, "{}: {faults:?}", exchange.id);
    }
}
