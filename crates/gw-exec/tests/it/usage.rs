//! What providers report, and what becomes of it where it cannot be true or passes what was reserved.

use std::sync::Arc;

use futures_util::StreamExt;
use gw_exec::{Relay, RelayItem, StreamBody};
use gw_limits::{BudgetConfig, QuotaConfig, TenantLimitsConfig, Window};
use gw_types::{
    AnswerFacts, CompleteAnswer, Deployment, FrameFacts, Money, Outcome, StreamItem, TokenCount, Usage,
};

use crate::{
    provider::Provider,
    support::{
        House, MockProvider, Plan, content, deployment, provider, request, stop, stream, streaming, terminal,
        used,
    },
};

fn tokens(n: u64) -> TokenCount {
    TokenCount::new(n)
}

fn reported(input: u64, output: u64) -> Usage {
    Usage { input: tokens(input), output: tokens(output), ..Usage::default() }
}

fn windowed() -> Deployment {
    let mut windowed = deployment("up");
    windowed.context_window = Some(tokens(8_000));
    windowed
}

fn budgeted(deployment: Deployment, mock: MockProvider) -> House {
    let mut plan = Plan::new(vec![(deployment, mock)]);
    plan.limits = TenantLimitsConfig {
        tokens_per_minute: Some(10_000),
        budget: Some(BudgetConfig { limit: Money::from_micros(10_000), window: Window::Day }),
        ..TenantLimitsConfig::default()
    };
    plan.build()
}

fn daily(micros: u64) -> QuotaConfig {
    BudgetConfig { limit: Money::from_micros(micros), window: Window::Day }.into()
}

fn plain(usage: Option<Usage>, content_bytes: u64) -> MockProvider {
    provider(1, move || {
        Ok(gw_types::Answer::Complete(CompleteAnswer {
            raw: bytes::Bytes::from_static(b"{}"),
            facts: AnswerFacts { usage, content_bytes, ..AnswerFacts::default() },
            upstream_request_id: None,
        }))
    })
}

fn streams(items: Vec<StreamItem>) -> MockProvider {
    provider(1, move || Ok(stream(items.iter().cloned().map(Ok).collect())))
}

async fn read(house: &House) -> (usize, RelayItem) {
    let StreamBody::Relay(mut relay) = house.ask_stream(streaming()).await.unwrap().body else {
        panic!("no cache here")
    };
    read_on(&mut relay).await
}

async fn read_on(relay: &mut Relay) -> (usize, RelayItem) {
    let mut bytes = 0;
    loop {
        match relay.next().await.unwrap() {
            RelayItem::Bytes(some) => bytes += some.len(),
            end => return (bytes, end),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_true_is_an_estimate_and_the_record_says_so() {
    let flagged = Usage { implausible: true, ..reported(5, 5) };
    for absurd in [reported(8_000, 101), reported(u64::MAX, u64::MAX), reported(0, u64::MAX), flagged] {
        // 40 bytes of prompt and its frame are 17 tokens, 12 bytes of answer are 3.
        let house = budgeted(windowed(), plain(Some(absurd), 12));
        house.ask(request()).await.unwrap();
        let record = house.only_record();
        let expected = Usage { estimated: true, implausible: true, ..reported(17, 3) };
        assert_eq!((record.usage, record.cost), (expected, Money::from_micros(17 + 2 * 3)));
        assert_eq!((house.spent(), record.overrun), (record.cost, Money::ZERO));
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["usage"]["implausible"], true);

        let items = vec![content("word"), content("word"), stop(), used(absurd), terminal()];
        let house = budgeted(windowed(), streams(items));
        read(&house).await;
        let record = house.only_record();
        assert_eq!(record.usage, Usage { estimated: true, implausible: true, ..reported(17, 2) });
    }
    // A full window and the whole bound are plausible.
    let house = budgeted(windowed(), plain(Some(reported(8_000, 100)), 12));
    house.ask(request()).await.unwrap();
    assert_eq!(house.only_record().usage, reported(8_000, 100));
}

#[tokio::test(start_paused = true)]
async fn what_is_absurd_where_no_window_is_known_is_no_panic_and_no_refund() {
    let house = budgeted(deployment("up"), plain(Some(reported(u64::MAX, 1)), 12));
    let head = house.ask(request()).await.unwrap().head;
    assert!(house.only_record().usage.implausible);
    assert_eq!(head.tokens.unwrap().remaining, 10_000 - 17 - 3);
}

#[tokio::test(start_paused = true)]
async fn absent_usage_is_estimated() {
    let house = budgeted(windowed(), plain(None, 12));
    house.ask(request()).await.unwrap();
    assert_eq!(house.only_record().usage, Usage { estimated: true, ..reported(17, 3) });
}

#[tokio::test(start_paused = true)]
async fn i15_a_plain_answer_that_overruns_is_charged_as_billed_and_the_excess_is_recorded() {
    let house = budgeted(deployment("up"), plain(Some(reported(41, 400)), 1_600));
    house.ask(request()).await.unwrap();
    let record = house.only_record();
    assert_eq!((record.cost, record.reserved), (Money::from_micros(841), Money::from_micros(247)));
    assert_eq!((record.overrun, house.spent()), (Money::from_micros(841 - 247), record.cost));
}

#[tokio::test(start_paused = true)]
async fn i15_a_stream_that_ignores_its_bound_is_cut_there_however_it_is_cut_into_pieces() {
    let many = |pieces: u32, bytes: u32| StreamItem {
        raw: vec![b'x'; bytes as usize].into(),
        facts: FrameFacts { content_frames: pieces, content_bytes: bytes, ..FrameFacts::default() },
    };
    // One token a piece; several pieces together; few pieces of very much text; everything at once.
    for (items, delivered) in [
        (vec![content("word"); 300], 400),
        (vec![many(30, 120); 10], 360),
        (vec![many(1, 500); 10], 500),
        (vec![many(1, 5_000)], 0),
    ] {
        let house = budgeted(deployment("up"), streams(items));
        let (bytes, end) = read(&house).await;
        assert!(matches!(end, RelayItem::Capped { .. }));
        assert_eq!(bytes, delivered);
        let record = house.only_record();
        assert_eq!((record.outcome, record.usage.output), (Outcome::Capped, tokens(100)));
        assert_eq!((record.overrun, house.spent()), (Money::ZERO, record.cost));
        assert!(record.cost <= record.reserved);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_reports_as_it_goes_is_cut_by_its_own_report() {
    let item = |output| StreamItem {
        raw: "some".into(),
        facts: FrameFacts {
            content_frames: 1,
            content_bytes: 4,
            usage: Some(Box::new(reported(41, output))),
            ..FrameFacts::default()
        },
    };
    let house = budgeted(deployment("up"), streams((1..9).map(|n| item(n * 30)).collect()));
    let (bytes, end) = read(&house).await;
    assert!(matches!(end, RelayItem::Capped { .. }));
    assert_eq!(bytes, 3 * 4);
    // Reports are charged as they are: the provider bills them.
    assert_eq!(house.only_record().usage, reported(41, 120));
}

#[tokio::test(start_paused = true)]
async fn a_report_that_a_stream_begins_with_hides_nothing_of_what_follows() {
    // Anthropic's way: the first event reports the input and one token.
    let first = used(reported(41, 1));
    // Past its bound of 100 it is cut as if there had been no report.
    let mut items = vec![content("some"); 300];
    items.insert(0, first.clone());
    let house = budgeted(deployment("up"), streams(items));
    let (bytes, end) = read(&house).await;
    assert!(matches!(end, RelayItem::Capped { .. }));
    assert_eq!(bytes, 99 * 4);
    let usage = house.only_record().usage;
    assert!(usage.estimated);
    assert_eq!((usage.input.get(), usage.output.get()), (41, 100));
    // Broken off it is charged for what was delivered.
    let house = budgeted(deployment("up"), streams(vec![first, content("some"), content("more")]));
    let (_, end) = read(&house).await;
    assert!(matches!(end, RelayItem::Failed(_)), "{end:?}");
    let usage = house.only_record().usage;
    assert!(usage.estimated);
    assert_eq!((usage.input.get(), usage.output.get()), (41, 3));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_honours_its_bound_is_never_cut() {
    // A hundred tokens of long words, and an end that comes in the same item as more pieces than tokens.
    let mut items = vec![content(" longer"); 99];
    let mut last = content("ly");
    last.facts.content_frames = 3;
    last.facts.finish = Some(gw_types::FinishReason::Length);
    items.extend([last, used(reported(41, 100)), terminal()]);
    let house = budgeted(deployment("up"), streams(items));
    let (bytes, end) = read(&house).await;
    assert!(matches!(end, RelayItem::Done));
    assert_eq!(bytes, 99 * " longer".len() + 2);
    assert_eq!(house.only_record().usage, reported(41, 100));
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_as_a_bound_is_what_was_reserved_and_both_are_recorded() {
    let sent = async |named: Option<u64>, longest: Option<u64>, limited: bool| {
        let mut up = deployment("up");
        up.max_output_tokens = longest.map(tokens);
        let mut plan = Plan::new(Vec::new());
        plan.limits.tokens_per_minute = limited.then_some(10_000);
        plan.scopes.global.budgets = if limited { vec![daily(10_000)] } else { vec![] };
        let adapter = Arc::new(Provider::new(10, &["word"]));
        let house = plan.build_with(vec![adapter.at(up)]);
        let mut asked = request();
        asked.facts.output = asked.facts.output.filter(|_| named.is_some());
        house.ask(asked).await.unwrap();
        let record = house.only_record();
        let facts = record.facts.unwrap();
        let bound = adapter.bounds.lock()[0];
        assert_eq!((facts.requested_output, facts.output_bound), (named.map(tokens), bound));
        if let Some(bound) = bound {
            // 47 tokens of input at 1, the bound at 2 micro-USD.
            assert_eq!(record.reserved, Money::from_micros(47 + 2 * bound.get()));
        }
        bound.map(TokenCount::get)
    };
    assert_eq!(sent(Some(100), Some(100), true).await, Some(100));
    assert_eq!(sent(None, None, true).await, Some(4_096));
    assert_eq!(sent(None, Some(60), true).await, Some(60));
    // Without a limit the body is left alone.
    assert_eq!(sent(Some(100), None, false).await, None);
    assert_eq!(sent(None, Some(60), false).await, None);
}

#[tokio::test(start_paused = true)]
async fn estimates_are_counted_and_shown() {
    let mut plan = Plan::new(Vec::new());
    plan.limits.tokens_per_minute = Some(1_000_000);
    let house = plan.build_with(vec![Arc::new(Provider::new(20, &["word"; 4])).at(deployment("up"))]);
    for _ in 0..60 {
        house.ask(request()).await.unwrap();
    }
    let accuracy = house.gateway.snapshot().accuracy;
    assert_eq!((accuracy.inputs, accuracy.outputs, accuracy.outputs_covered), (60, 30, 30));
    assert!(accuracy.inputs_covered >= 10);
    // By then the estimate is what the provider counts, and it stands beside that in the record.
    let record = house.records().pop().unwrap();
    let facts = record.facts.unwrap();
    assert_eq!((facts.estimated_input, facts.calibrated_input), (tokens(17), Some(tokens(20))));
    assert_eq!(record.usage.input, tokens(20));
    assert_eq!((facts.estimated_output, record.usage.output), (Some(tokens(4)), tokens(4)));
}
