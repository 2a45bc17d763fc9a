//! Records as the admin plane shows them: with every field, also what the ledger leaves out.

use gw_types::{CacheControl, StoredRecord};
use serde_json::{Map, Value, json};

/// What a serialised record leaves out: the object that holds it, the field, and its value.
const LEFT_OUT: [(&[&str], &[&str], Left); 14] = [
    (
        &[],
        &[
            "client_request_id",
            "traceparent",
            "prompt_version",
            "schema_version",
            "facts",
            "route",
            "primary",
            "serving",
            "model_version",
            "served_model",
            "replay_of",
            "origin",
            "error",
            "answer_schema",
        ],
        Left::Null,
    ),
    (&[], &["side_costs", "loss"], Left::List),
    (&["facts"], &["task_class", "requested_output", "output_bound", "user"], Left::Null),
    (&["decision"], &["limiter", "cache_key", "similarity_milli"], Left::Null),
    (&["decision"], &["exclusions", "draws"], Left::List),
    (&["decision"], &["last_resort"], Left::False),
    (
        &["usage"],
        &[
            "cached_input",
            "cache_write",
            "cache_write_long",
            "reasoning",
            "audio_input",
            "audio_output",
            "image_input",
        ],
        Left::Zero,
    ),
    (&["usage"], &["estimated", "inconsistent", "implausible"], Left::False),
    (&[], &["priced_by_fallback"], Left::False),
    (&[], &["reserved", "overrun"], Left::Zero),
    (&["facts"], &["audio", "side_effecting"], Left::False),
    (&["facts"], &["tool_bytes", "images"], Left::Zero),
    (&["facts"], &["cache_control"], Left::DefaultControl),
    (&["latency"], &["queue_us", "backoff_us"], Left::Zero),
];

/// What stands for a field that was left out.
#[derive(Clone, Copy)]
enum Left {
    Null,
    List,
    Zero,
    False,
    DefaultControl,
}

impl Left {
    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::List => Value::Array(Vec::new()),
            Self::Zero => json!(0),
            Self::False => json!(false),
            Self::DefaultControl => json!(CacheControl::Default),
        }
    }
}

/// Returns a record with its number in the ledger, whole.
///
/// # Errors
/// The record cannot be written as JSON.
pub(super) fn whole(stored: &StoredRecord) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(&stored.record)?;
    for (path, fields, left) in LEFT_OUT {
        fill(&mut value, path, fields, left);
    }
    for attempt in value.get_mut("attempts").and_then(Value::as_array_mut).into_iter().flatten() {
        fill(attempt, &[], &["credential", "error", "status", "upstream_request_id"], Left::Null);
        fill(attempt, &[], &["unclassified"], Left::False);
    }
    fill(&mut value, &["facts"], &["residency"], Left::List);
    fill(&mut value, &["decision", "limiter"], &["refused_by"], Left::List);
    if let Some(record) = value.as_object_mut() {
        record.insert("seq".to_owned(), json!(stored.seq));
    }
    Ok(value)
}

fn fill(value: &mut Value, path: &[&str], fields: &[&str], left: Left) {
    let Some(object) = path.iter().try_fold(value, |value, name| value.get_mut(*name)) else { return };
    let Some(object): Option<&mut Map<String, Value>> = object.as_object_mut() else { return };
    for field in fields {
        object.entry(*field).or_insert_with(|| left.value());
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{CacheControl, StoredRecord};
    use serde_json::Value;

    use super::whole;

    /// Collects the paths of every field; all elements of a list count as one.
    fn paths(value: &Value, at: &str, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    into.push(format!("{at}.{name}"));
                    paths(value, &format!("{at}.{name}"), into);
                }
            }
            Value::Array(elements) => elements.iter().take(1).for_each(|element| paths(element, at, into)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_field_is_there_whatever_the_ledger_left_out() {
        let full = gw_testkit::sample_record(1);
        let mut sparse = full.clone();
        for field in [
            &mut sparse.client_request_id,
            &mut sparse.traceparent,
            &mut sparse.prompt_version,
            &mut sparse.schema_version,
            &mut sparse.model_version,
            &mut sparse.served_model,
        ] {
            *field = None;
        }
        sparse.answer_schema = None;
        (sparse.route, sparse.primary, sparse.serving, sparse.error) = (None, None, None, None);
        (sparse.usage, sparse.side_costs, sparse.loss) = (gw_types::Usage::default(), Vec::new(), Vec::new());
        if let Some(facts) = &mut sparse.facts {
            (facts.task_class, facts.requested_output, facts.output_bound, facts.user) =
                (None, None, None, None);
            facts.residency = Vec::new();
        }
        (sparse.priced_by_fallback, sparse.latency) = (false, gw_types::LatencySplit::default());
        (sparse.reserved, sparse.overrun) = (gw_types::Money::ZERO, gw_types::Money::ZERO);
        if let Some(facts) = &mut sparse.facts {
            (facts.audio, facts.side_effecting, facts.cache_control) = (false, false, CacheControl::Default);
            (facts.tool_bytes, facts.images) = (0, 0);
        }
        let decision = &mut sparse.decision;
        (decision.exclusions, decision.draws) = (Vec::new(), Vec::new());
        (decision.cache_key, decision.similarity_milli) = (None, None);
        for attempt in &mut sparse.attempts {
            (attempt.error, attempt.status, attempt.upstream_request_id) = (None, None, None);
            attempt.credential = None;
        }
        let of = |record| {
            let mut found = Vec::new();
            paths(&whole(&StoredRecord { seq: 7, record }).expect("a record is JSON"), "", &mut found);
            found.retain(|path| {
                !path.starts_with(".side_costs.") && !path.starts_with(".decision.exclusions.")
            });
            found.sort();
            found
        };
        assert_eq!(of(sparse), of(full));
    }
}
