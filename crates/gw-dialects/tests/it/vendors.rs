//! What the recorded exchanges say of the presets.

use gw_dialects::vendors::{Preset, UsagePlace};
use serde_json::Value;

use crate::fixtures::{Exchange, chat_exchanges};

fn preset_of(exchange: &Exchange) -> Option<&'static Preset> {
    Preset::named(exchange.api.split('.').next().unwrap_or_default())
}

/// Returns how many chunks report usage: with a finish reason, without choices, others.
fn reports(exchange: &Exchange) -> (usize, usize, usize) {
    let text = String::from_utf8_lossy(&exchange.body);
    let mut reports = (0, 0, 0);
    for data in text.lines().filter_map(|line| line.strip_prefix("data: {")) {
        let chunk: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
        if !chunk["usage"].is_object() {
            continue;
        }
        let choices = chunk["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        if choices.iter().any(|choice| choice["finish_reason"].is_string()) {
            reports.0 += 1;
        } else if choices.is_empty() {
            reports.1 += 1;
        } else {
            reports.2 += 1;
        }
    }
    reports
}

#[test]
fn usage_is_reported_where_the_preset_says() {
    for exchange in chat_exchanges().into_iter().filter(|exchange| exchange.stream && exchange.status == 200)
    {
        let id = &exchange.id;
        let (Some(preset), (finish, last, other)) = (preset_of(exchange), reports(exchange)) else {
            continue;
        };
        if id.contains("error") || finish + last + other == 0 {
            continue;
        }
        let found = match (finish, last, other) {
            (1, 0, 0) => UsagePlace::FinishChunk,
            (0, 1, 0) => UsagePlace::LastChunk,
            (1, 1, 0) => UsagePlace::Both,
            _ => UsagePlace::EveryChunk,
        };
        assert_eq!(found, preset.usage, "{id}");
    }
}

#[test]
fn what_was_asked_for_and_answered_is_taken() {
    for exchange in chat_exchanges().into_iter().filter(|exchange| exchange.status == 200) {
        let Some(preset) = preset_of(exchange) else { continue };
        let Some(fields) = exchange.request.as_object() else { continue };
        assert!(preset.takes_stream_options || !fields.contains_key("stream_options"), "{}", exchange.id);
        if fields.contains_key("max_completion_tokens") {
            assert!(!preset.gaps.contains(&"max_completion_tokens"), "{}", exchange.id);
        }
    }
}
