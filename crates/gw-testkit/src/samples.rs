//! Filled values of the vocabulary.

use std::num::NonZeroU32;

use gw_types::{
    AccountingRecord, AttemptRecord, BoundedText, CacheControl, CacheState, Capability, CapabilitySet,
    Classification, CredentialName, DecisionRecord, Deployment, DeploymentName, DeploymentTiming, ErrorKind,
    ExclusionRecord, FactsRecord, KeyName, LatencySplit, LimiterVerdict, ModelName, Money, Operation,
    Outcome, Price, Pricing, ProviderName, Region, RequestId, Residency, RouteName, SideCost, TagRecord,
    TaskClass, TenantId, TokenCount, Usage, UtcTime,
};

/// When the records of [`sample_record`] start: 2030-01-01T00:00:00Z, in microseconds since 1970.
const STARTED: i64 = 1_893_456_000_000_000;

/// Returns a record in which every field is filled; `number` makes its id, its start (in milliseconds past
/// 2030-01-01) and its cost (that many micro-USD).
pub fn sample_record(number: u32) -> AccountingRecord {
    let text = |text: &str| BoundedText::new(text);
    AccountingRecord {
        id: RequestId::from_bits(u128::from(number)),
        tenant: name(TenantId::new("wholesale")),
        key: name(KeyName::new("batch")),
        started: UtcTime::from_micros(STARTED + i64::from(number) * 1_000),
        config: text("sha256:0f1e2d"),
        client_request_id: Some(text("order-17")),
        traceparent: Some(text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        prompt_version: Some(text("summary-3")),
        schema_version: Some(text("2")),
        facts: Some(sample_facts()),
        route: Some(name(RouteName::new("restricted-reasoning"))),
        primary: Some(name(DeploymentName::new("ptu"))),
        serving: Some(name(DeploymentName::new("eu"))),
        model_version: Some(text("2025-04-14")),
        served_model: Some(text("gpt-4.1-2025-04-14")),
        replay_of: None,
        origin: None,
        decision: sample_decision(),
        attempts: sample_attempts(),
        cache: CacheState::Miss,
        usage: Usage {
            input: TokenCount::new(1_000),
            cached_input: TokenCount::new(200),
            output: TokenCount::new(90),
            reasoning: TokenCount::new(10),
            ..Usage::default()
        },
        cost: Money::from_micros(u64::from(number)),
        saved: Money::from_micros(3),
        priced_by_fallback: true,
        reserved: Money::from_micros(u64::from(number) + 10),
        overrun: Money::from_pico(1),
        side_costs: vec![SideCost {
            purpose: text("embedding"),
            deployment: name(DeploymentName::new("embed")),
            cost: Money::from_pico(3),
        }],
        loss: vec![text("logit_bias")],
        answer_schema: Some(gw_types::AnswerSchema::Kept),
        outcome: Outcome::Capped,
        error: Some(ErrorKind::StreamInterrupted),
        latency: LatencySplit {
            total_us: 900_000,
            queue_us: 1,
            backoff_us: 2,
            upstream_first_byte_us: 300_000,
            upstream_rest_us: 599_000,
            own_us: 997,
        },
    }
}

fn sample_facts() -> FactsRecord {
    FactsRecord {
        operation: Operation::Chat,
        model: BoundedText::new("reasoner"),
        stream: true,
        task_class: Some(name(TaskClass::new("reasoning"))),
        classification: Classification::Restricted,
        residency: vec![name(Residency::new("onshore"))],
        needs: CapabilitySet::from_iter([Capability::Chat, Capability::Streaming]),
        text_bytes: 1_234,
        messages: 3,
        tool_bytes: 56,
        images: 1,
        audio: false,
        choices: 1,
        estimated_input: TokenCount::new(1_305),
        calibrated_input: Some(TokenCount::new(1_290)),
        estimated_output: Some(TokenCount::new(100)),
        requested_output: Some(TokenCount::new(256)),
        output_bound: Some(TokenCount::new(256)),
        side_effecting: false,
        cache_control: CacheControl::NoCache,
        deadline_ms: 30_000,
        user: Some(BoundedText::new("user-7")),
        tags: vec![TagRecord { name: BoundedText::new("team"), value: BoundedText::new("blue \"7\"") }],
    }
}

fn sample_decision() -> DecisionRecord {
    DecisionRecord {
        candidates: vec![name(DeploymentName::new("ptu")), name(DeploymentName::new("eu"))],
        exclusions: vec![ExclusionRecord {
            route: name(RouteName::new("restricted-reasoning")),
            deployment: name(DeploymentName::new("us")),
            reason: BoundedText::new("residency"),
        }],
        last_resort: false,
        limiter: Some(LimiterVerdict {
            admitted: true,
            refused_by: vec![BoundedText::new("tokens_per_minute")],
            degraded: true,
        }),
        draws: vec![u64::MAX, 0],
        similarity_milli: Some(970),
        cache_key: Some(BoundedText::new("b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c")),
    }
}

fn sample_attempts() -> Vec<AttemptRecord> {
    let failed = AttemptRecord {
        deployment: name(DeploymentName::new("ptu")),
        credential: Some(name(CredentialName::new("main"))),
        model: name(ModelName::new("gpt-4.1")),
        error: Some(ErrorKind::ProviderRateLimited),
        status: Some(429),
        unclassified: false,
        start_us: 100,
        duration_us: 5_000,
        upstream_request_id: Some(BoundedText::new("req-1")),
    };
    let answered = AttemptRecord {
        deployment: name(DeploymentName::new("eu")),
        error: None,
        status: None,
        unclassified: false,
        start_us: 5_200,
        duration_us: 890_000,
        ..failed.clone()
    };
    vec![failed, answered]
}

/// Returns a deployment that can do everything a chat asks: provider `fake`, model `gpt-4.1`, region `uk-south`,
/// ceiling `restricted`, 2 and 8 USD a million tokens, default timing.
pub fn sample_deployment(deployment: &DeploymentName) -> Deployment {
    Deployment {
        name: deployment.clone(),
        provider: name(ProviderName::new("fake")),
        model: name(ModelName::new("gpt-4.1")),
        model_version: Some(BoundedText::new("2025-04-14")),
        region: name(Region::new("uk-south")),
        classification_ceiling: Classification::Restricted,
        capabilities: Capability::ALL.into_iter().collect(),
        context_window: Some(TokenCount::new(128_000)),
        max_output_tokens: Some(TokenCount::new(16_384)),
        pricing: Pricing::PerToken(Box::new(Price::new(2_000_000, 8_000_000))),
        timing: DeploymentTiming::default(),
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    }
}

fn name<N, E: std::fmt::Debug>(made: Result<N, E>) -> N {
    made.expect("the samples hold valid names")
}

#[cfg(test)]
mod tests {
    use gw_types::{AccountingRecord, DeploymentName};

    use super::{sample_deployment, sample_record};

    #[test]
    fn samples_are_filled_and_read_back() {
        let record = sample_record(7);
        let json = serde_json::to_value(&record).unwrap();
        let empty =
            |value: &serde_json::Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        assert!(!json.as_object().unwrap().values().any(empty));
        assert_eq!(serde_json::from_value::<AccountingRecord>(json).unwrap(), record);
        assert_eq!(sample_deployment(&DeploymentName::new("eu").unwrap()).name.as_str(), "eu");
    }
}
