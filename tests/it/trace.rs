//! The traced request of the design's first source, step by step.

use std::time::Duration;

use gw_types::{CacheState, Classification, ErrorKind, Money, Outcome, RequestContext, TenantId, UtcTime};

use crate::support::{Ask, House, Toml, cost_by, said};

/// A primary at Azure that says 429 once, and one in the EU that answers.
fn toml() -> Toml {
    Toml::new()
        .part("[residency]\nonshore = [\"uk-south\", \"west-europe\"]")
        .scripted_with("ptu", &["429 retry-after=1", "ok text=of ptu"], "region = \"uk-south\"\nexpected_latency_ms = 900\nmodel_version = \"2025-04-14\"")
        .scripted_with(
            "eu",
            &["delay=40 ok text=of eu"],
            "region = \"west-europe\"\nexpected_latency_ms = 1_200\nmodel_version = \"2025-04-14\"",
        )
        .scripted("other", &["ok text=other"])
        .route_with(
            "reasoning",
            &["ptu", "eu"],
            "priority = 10\ncache = { exact = true, ttl_s = 300 }\nmatch = { models = [\"reasoner\"], \
             task_classes = [\"reasoning\"], classifications = [\"internal\", \"restricted\"], tenants = [\"wholesale\"] }",
        )
        .route_with("everything", &["other"], "priority = 20\nmatch = { models = [\"*\"], tenants = [\"retail\"] }")
        .tenant(
            "wholesale",
            "residency = \"onshore\"\nrequests_per_minute = 600\ntokens_per_minute = 600\n\
             budget = { limit_micros = 50_000, window = \"day\" }",
        )
        .tenant("retail", "")
}

fn reasoning(context: &mut RequestContext) {
    context.task_class = Some("reasoning".parse().unwrap());
    context.classification = Some(Classification::Internal);
    context.deadline = Some(Duration::from_millis(3_000));
}

fn traced() -> Ask {
    Ask::of("wholesale", "reasoner", "why does the primary fail over")
        .with("max_tokens", 50)
        .context(reasoning)
}

#[tokio::test(start_paused = true)]
async fn the_traced_request_takes_every_step_in_its_order() {
    let house = House::new(&toml()).await;
    let before = house.snapshot("wholesale");
    let answer = house.ask(&traced()).await.unwrap();
    let record = house.last_record().await;

    // Quota and rates let it through, and were settled with what was used.
    assert!(record.decision.limiter.as_ref().unwrap().admitted);
    let after = house.snapshot("wholesale");
    assert_eq!(after.requests.unwrap().remaining, before.requests.unwrap().remaining - 1);
    assert_eq!(
        after.tokens.unwrap().remaining,
        before.tokens.unwrap().remaining - record.usage.total().get()
    );
    assert_eq!(after.budget.as_ref().unwrap().spent, record.cost);
    assert!(after.budget.unwrap().reserved.is_zero());

    // The first rule that matches, its whole chain admissible.
    assert_eq!(record.route.as_ref().unwrap().as_str(), "reasoning");
    let chain: Vec<_> = record.decision.candidates.iter().map(|name| name.as_str()).collect();
    assert_eq!(chain, ["ptu", "eu"]);
    assert!(record.decision.exclusions.is_empty());

    // The cache was asked under the primary and had nothing.
    assert_eq!((record.cache, record.primary.as_ref().unwrap().as_str()), (CacheState::Miss, "ptu"));
    assert!(record.decision.cache_key.is_some());

    // `ptu` said 429, which falls over; enough of the budget was left for `eu`, which answered.
    let attempts: Vec<_> = record
        .attempts
        .iter()
        .map(|attempt| (attempt.deployment.as_str(), attempt.error, attempt.status))
        .collect();
    assert_eq!(attempts, [("ptu", Some(ErrorKind::ProviderRateLimited), Some(429)), ("eu", None, None)]);
    assert_eq!(record.serving.as_ref().unwrap().as_str(), "eu");
    assert_eq!((said(&answer.body).as_str(), record.outcome), ("of eu", Outcome::Ok));
    let facts = record.facts.as_ref().unwrap();
    assert_eq!((facts.classification, facts.deadline_ms), (Classification::Internal, 3_000));
    assert_eq!(facts.task_class.as_ref().unwrap().as_str(), "reasoning");

    // Priced by what was used: 6 words in, 2 words out.
    assert_eq!(record.cost, Money::from_micros(6 + 2 * 2));
    assert!(record.reserved >= record.cost && record.overrun.is_zero());
    assert_eq!((answer.head.attempts, answer.head.cost), (2, record.cost));
    assert_eq!(record.latency.total_us, 40_000);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_the_fallback_is_found_under_the_key_of_the_primary() {
    let house = House::new(&toml()).await;
    let first = house.ask(&traced()).await.unwrap();
    let second = house.ask(&traced()).await.unwrap();
    assert_eq!(second.body, first.body);
    let records = house.records().await;
    let hit = &records[1];
    assert_eq!(records[0].decision.cache_key, hit.decision.cache_key);
    assert_eq!((hit.cache, hit.cost, hit.attempts.len()), (CacheState::Exact, Money::ZERO, 0));
    assert_eq!(
        (hit.primary.as_ref().unwrap().as_str(), hit.serving.as_ref().unwrap().as_str()),
        ("ptu", "eu")
    );
    assert_eq!(hit.outcome, Outcome::Ok);
    // `ptu` has its second step still to play, once it has rested: the hit called nobody.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let other = house.ask(&traced().with("seed", 1)).await.unwrap();
    assert_eq!(said(&other.body), "of ptu");
}

#[tokio::test(start_paused = true)]
async fn too_little_time_for_the_fallback_is_said_and_not_tried() {
    let house = House::new(&toml()).await;
    let hurried = traced().context(|context| context.deadline = Some(Duration::from_millis(1_100)));
    let failure = house.ask(&hurried).await.unwrap_err();
    assert_eq!(failure.error.kind(), ErrorKind::BudgetExhausted);
    assert_eq!((failure.error.subject(), failure.head.attempts), (Some("eu"), 1));
}

#[tokio::test(start_paused = true)]
async fn costs_are_summed_in_a_sorted_and_reproducible_report() {
    let report = || async {
        let house = House::new(&toml()).await;
        house.ask(&traced()).await.unwrap();
        house.ask(&traced()).await.unwrap();
        house.ask(&Ask::of("retail", "anything", "three little words").with("max_tokens", 5)).await.unwrap();
        // `ptu` asked for a rest of a second.
        tokio::time::sleep(Duration::from_secs(1)).await;
        house.tell(&traced().with("seed", 2)).await.unwrap();
        let records = house.records().await;
        let by_tenant = cost_by(&records, |record| record.tenant.to_string());
        let by_deployment =
            cost_by(&records, |record| record.serving.as_ref().map_or_else(String::new, ToString::to_string));
        let spent = house.composition.ledger.spend_since(UtcTime::from_micros(0)).await.unwrap();
        for row in &spent {
            let sum = by_tenant.iter().find(|(tenant, _)| *tenant == row.tenant.as_str()).unwrap().1;
            assert_eq!(row.spent, sum, "{}", row.tenant);
        }
        assert_eq!(spent.len(), by_tenant.len());
        let wholesale = TenantId::new("wholesale").unwrap();
        let budget = house.snapshot(wholesale.as_str()).budget.unwrap();
        assert_eq!(budget.spent, by_tenant[1].1, "the quota holds what the records add up to");
        (by_tenant, by_deployment)
    };
    let (by_tenant, by_deployment) = report().await;
    let tenants: Vec<_> = by_tenant.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(tenants, ["retail", "wholesale"]);
    let deployments: Vec<_> = by_deployment.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(deployments, ["eu", "other", "ptu"]);
    assert_eq!(by_tenant[0].1, Money::from_micros(3 + 2), "three words in, one word out");
    assert_eq!(report().await, (by_tenant, by_deployment));
}
