//! A route whose similar answers are served under a measured bound: from shadow to serving to off.

use gw_exec::PartitionReport;
use gw_types::{CacheState, Money};

use crate::support::{Ask, House, Toml};

const QUESTION: &str = "please tell me how the weather in the town by the sea will be tomorrow morning";

/// Questions that differ by one word without a meaning, so that each is a would-be hit and no exact one.
fn ask(number: usize) -> Ask {
    let letters = b"bcdfghjklmnpqrstvwxz";
    let mut word = String::new();
    let mut rest = number;
    for _ in 0..3 {
        word.push(char::from(letters[rest % letters.len()]));
        word.push('a');
        rest /= letters.len();
    }
    Ask::of("a", "m", &format!("{QUESTION} {word}"))
}

/// The model echoes the question, so no two answers are equal and all that differ are the judge's to tell apart.
async fn house(cache: &str, judge: &[&str]) -> House {
    let toml = Toml::new()
        .scripted("up", &["ok"])
        .scripted("judge", judge)
        .route_with("m", &["up"], &format!("cache = {{ {cache} }}"))
        .route("judges", &["judge"])
        .tenant("a", "");
    House::new(&toml).await
}

fn partition(house: &House) -> PartitionReport {
    let mut report = house.composition.gateway.cache_report();
    assert_eq!(report.partitions.len(), 1);
    report.partitions.remove(0)
}

/// Asks, and waits for whatever is judged in the background.
async fn asked(house: &House, number: usize) -> CacheState {
    let state = house.ask(&ask(number)).await.unwrap().head.cache;
    house.composition.gateway.finish().await;
    state
}

#[tokio::test(start_paused = true)]
async fn a_verified_route_is_in_shadow_then_serves_and_is_off_after_the_judge_turns_hostile() {
    const FRIENDLY: usize = 260;
    let judge: Vec<&str> =
        std::iter::repeat_n("ok text=SAME", FRIENDLY).chain(["ok text=DIFFERENT"]).collect();
    let house = house("exact = true, semantic = { wrong_per_hit = 0.1, judge = \"judge\" }", &judge).await;
    assert_eq!(asked(&house, 0).await, CacheState::Miss);
    let mut states = vec![partition(&house).state];
    let mut semantic = 0;
    for number in 1..1_500 {
        let state = asked(&house, number).await;
        let report = partition(&house);
        if states.last() == Some(&"shadow") {
            assert_eq!(state, CacheState::Miss, "nothing is served in shadow");
        }
        semantic += u64::from(state == CacheState::Semantic);
        if states.last() != Some(&report.state) {
            states.push(report.state);
        }
        if report.state == "off" {
            break;
        }
    }
    assert_eq!(states, ["shadow", "serving", "off"]);
    let report = partition(&house);
    assert_eq!((report.why, report.served), ("explored answers were wrong too often", semantic));
    assert!(report.labelled > 200 && report.labelled_wrong > 0 && semantic > 100, "{report:?}");
    assert_eq!(asked(&house, 1_600).await, CacheState::Miss, "nothing is served when it is off");
    let records = house.records().await;
    let judged: Vec<_> = records.iter().filter(|record| !record.side_costs.is_empty()).collect();
    assert!(judged.len() > 200);
    for record in judged {
        assert_eq!((record.side_costs[0].purpose.as_str(), record.cost), ("judge", Money::ZERO));
        assert_eq!(record.side_costs[0].deployment.as_str(), "judge");
    }
    // The page of records does not reach back to the first answers.
    let called = |id| records.iter().find(|one| one.id == id).is_none_or(|one| !one.attempts.is_empty());
    for record in &records {
        assert_eq!(record.origin.is_some(), record.cache == CacheState::Semantic, "{record:?}");
        assert!(
            record.origin.iter().all(|origin| *origin != record.id && called(origin.clone())),
            "{record:?}"
        );
    }
    house.holds_nothing("a");
}

#[tokio::test(start_paused = true)]
async fn without_a_judge_feedback_is_the_label_and_with_one_it_checks_it() {
    for (cache, judge) in [("", 0), (", judge = \"judge\"", 1)] {
        let cache = format!("exact = true, semantic = {{ wrong_per_hit = 0.1{cache} }}");
        let house = house(&cache, &["ok text=SAME"]).await;
        asked(&house, 0).await;
        asked(&house, 1).await;
        let id = house.records().await.into_iter().find(|record| record.decision.similarity_milli.is_some());
        let id = id.unwrap().id;
        let gateway = &house.composition.gateway;
        assert!(gateway.feedback(&id, false), "a would-be hit waits for its label");
        assert!(!gateway.feedback(&id, false), "and takes one");
        let report = partition(&house);
        assert_eq!((report.labelled, report.labelled_wrong), (1, 1 - judge));
        let checks = gateway.cache_report().judge;
        assert_eq!((checks.checked, checks.wrong), (judge, judge));
        assert!(!gateway.feedback(&gw_types::RequestId::from_bits(77), true));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_counted_before() {
    let house = house("exact = true, semantic = { threshold = 0.95 }", &["ok"]).await;
    asked(&house, 0).await;
    let gateway = &house.composition.gateway;
    let scope = |tenant: &str| gw_exec::InvalidationScope {
        tenant: Some(tenant.parse().unwrap()),
        ..gw_exec::InvalidationScope::default()
    };
    assert_eq!(gateway.cache_matching(&scope("b")).exact.entries, 0);
    let matching = gateway.cache_matching(&scope("a"));
    assert_eq!((matching.exact.entries, matching.semantic.entries), (1, 1));
    assert_eq!(gateway.invalidate_cache(&scope("a")), matching);
    assert_eq!(asked(&house, 0).await, CacheState::Miss);
}

#[tokio::test(start_paused = true)]
async fn another_epoch_and_another_header_are_other_answers() {
    let toml = |epoch: &str| {
        Toml::new().scripted("up", &["ok"]).route_with(
            "m",
            &["up"],
            &format!("cache = {{ exact = true{epoch} }}"),
        )
    };
    let house = House::new(&toml(", epoch = 2").tenant("a", "")).await;
    let beta = |value: &'static str| {
        ask(0).context(|context| {
            context.passed.push((gw_types::PassedHeader::OpenAiBeta, value.into()));
        })
    };
    let mut states = Vec::new();
    for ask in [ask(0), ask(0), beta("one"), beta("one"), beta("two")] {
        states.push(house.ask(&ask).await.unwrap().head.cache);
    }
    let (miss, exact) = (CacheState::Miss, CacheState::Exact);
    assert_eq!(states, [miss, exact, miss, exact, miss]);
    let before = gw_exec::InvalidationScope { before_epoch: Some(3), ..Default::default() };
    assert_eq!(house.composition.gateway.cache_matching(&before).exact.entries, 3);
    let before = gw_exec::InvalidationScope { before_epoch: Some(2), ..Default::default() };
    assert_eq!(house.composition.gateway.cache_matching(&before).exact.entries, 0);
}
