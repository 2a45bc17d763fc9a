//! Sequences against a model, and what may and may not change a key.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use gw_cache::{CacheConfig, CacheKey, CachePolicy, ExactCache, storable};
use gw_types::{MonoTime, RequestId};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use crate::support::{Names, policy, rule, sized_answer};

// === The exact cache against a map ===

const TENANTS: [&str; 3] = ["a", "b", "a:b"];
const REQUESTS: u8 = 24;

#[derive(Clone, Debug)]
enum Step {
    Put { tenant: usize, request: u8, bytes: usize, ttl_ms: u64 },
    Get { tenant: usize, request: u8 },
    Wait { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let tenant = 0..TENANTS.len();
    prop_oneof![
        4 => (tenant.clone(), 0..REQUESTS, 0_usize..3_000, 1_u64..200)
            .prop_map(|(tenant, request, bytes, ttl_ms)| Step::Put { tenant, request, bytes, ttl_ms }),
        5 => (tenant, 0..REQUESTS).prop_map(|(tenant, request)| Step::Get { tenant, request }),
        1 => (0_u64..80).prop_map(|ms| Step::Wait { ms }),
    ]
}

fn key(tenant: usize, request: u8) -> CacheKey {
    static KEYS: LazyLock<Vec<Vec<CacheKey>>> = LazyLock::new(|| {
        let keys = |tenant| (0..REQUESTS).map(move |n| Names::of(tenant).key(&format!("{{\"n\":{n}}}")));
        TENANTS.iter().map(|tenant| keys(tenant).collect()).collect()
    });
    KEYS[tenant][usize::from(request)].clone()
}

/// Runs the steps and returns what each lookup found; `evicts` says that the bounds may take entries.
fn run(config: CacheConfig, steps: &[Step], evicts: bool) -> Result<Vec<Option<RequestId>>, TestCaseError> {
    let cache = ExactCache::new(config);
    let mut model: HashMap<(usize, u8), (u128, MonoTime)> = HashMap::new();
    let mut now = MonoTime::ZERO;
    let mut trace = Vec::new();
    for (number, step) in (0_u128..).zip(steps) {
        match *step {
            Step::Put { tenant, request, bytes, ttl_ms } => {
                let ttl = Duration::from_millis(ttl_ms);
                let policy = CachePolicy { ttl, ..policy() };
                let stored = storable(&rule(&policy), sized_answer(number, bytes)).unwrap();
                cache.put(key(tenant, request), stored, now);
                model.insert((tenant, request), (number, now.saturating_add(ttl)));
            }
            Step::Get { tenant, request } => {
                let found = cache.get(&key(tenant, request), now).map(|answer| answer.origin.clone());
                let alive = model.get(&(tenant, request)).filter(|(_, expires)| now < *expires);
                let expected = alive.map(|(number, _)| RequestId::from_bits(*number));
                if !(evicts && found.is_none()) {
                    prop_assert_eq!(&found, &expected);
                }
                trace.push(found);
            }
            Step::Wait { ms } => now = now.saturating_add(Duration::from_millis(ms)),
        }
        let usage = cache.usage();
        prop_assert!(usage.bytes <= config.capacity_bytes && usage.entries <= config.capacity_entries);
        prop_assert!((usage.entries == 0) == (usage.bytes == 0));
    }
    Ok(trace)
}

proptest! {
    #[test]
    fn i09_a_roomy_cache_is_a_map_with_expiry(steps in vec(step(), 1..300)) {
        run(CacheConfig::default(), &steps, false)?;
    }

    #[test]
    fn a_tight_cache_never_gives_a_foreign_or_expired_answer_nor_passes_its_bounds(
        steps in vec(step(), 1..400),
        capacity_bytes in 0_u64..40_000,
        capacity_entries in 0_usize..40,
        entry_bytes_max in 0_usize..4_000,
    ) {
        run(CacheConfig { capacity_bytes, capacity_entries, entry_bytes_max }, &steps, true)?;
    }

    #[test]
    fn i13_two_caches_built_alike_evict_alike(steps in vec(step(), 1..200)) {
        let config = CacheConfig { capacity_bytes: 12_000, capacity_entries: 8, entry_bytes_max: 4_000 };
        prop_assert_eq!(run(config, &steps, true)?, run(config, &steps, true)?);
    }
}

#[test]
fn a_tight_cache_still_hits() {
    let steps: Vec<Step> = (0..400_u32)
        .map(|n| match n % 4 {
            0 => Step::Put { tenant: 0, request: (n % 24) as u8, bytes: 100, ttl_ms: 100 },
            _ => Step::Get { tenant: 0, request: (n / 4 * 4 % 24) as u8 },
        })
        .collect();
    let config = CacheConfig { capacity_bytes: 12_000, capacity_entries: 4, entry_bytes_max: 4_000 };
    assert!(run(config, &steps, true).unwrap().iter().flatten().count() > 100);
}

// === Keys ===

/// JSON values whose numbers are written in different ways.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-999_i32..999, 0_u8..4).prop_map(|(n, places)| json!(f64::from(n) / 10_f64.powi(places.into()))),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((any::<String>(), inner), 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    vec(("[a-z_]{1,6}", value()), 0..6).prop_map(|members| members.into_iter().collect())
}

/// Writes a value in one of many ways that say the same, led by a list of choices.
fn write(value: &Value, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    blank(choices, out);
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::Number(number) => write_number(&number.to_string(), choices, out),
        Value::String(text) => write_string(text, choices, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(item, choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if choices.next() > Some(127) {
                members.reverse();
            }
            out.push('{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                blank(choices, out);
                write_string(key, choices, out);
                blank(choices, out);
                out.push(':');
                write(value, choices, out);
            }
            out.push('}');
        }
    }
    blank(choices, out);
}

fn blank(choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    out.push_str(["", "", "", " ", "\n", "\r\n\t "][usize::from(choices.next().unwrap_or(0)) % 6]);
}

fn write_number(plain: &str, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    out.push_str(plain);
    let (whole, exponent) = (!plain.contains('.'), plain.contains('e'));
    match choices.next().unwrap_or(0) % 4 {
        0 if whole && !exponent => out.push_str(".00"),
        1 if whole && !exponent => out.push_str("0e-1"),
        2 if !exponent => out.push_str("E+0"),
        _ => {}
    }
}

fn write_string(text: &str, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        let escapes = choices.next().unwrap_or(0).is_multiple_of(5);
        if escapes || character < ' ' || character == '"' || character == '\\' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

fn digest(body: &str) -> Option<String> {
    let key = CacheKey::new(&Names::of("t").parts(), body.as_bytes())?;
    Some(key.digest_hex().as_str().to_owned())
}

/// What two bodies must agree in to have one key.
fn meaning(mut value: Value) -> Value {
    fn plain(value: &mut Value) {
        match value {
            // The generator writes the whole numbers among floats as `1.0`; they are the integers of the same value.
            Value::Number(number) => {
                if let Some(float) = number.as_f64().filter(|float| !number.is_i64() && float.fract() == 0.0)
                {
                    *value = json!(float as i64);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(plain),
            Value::Object(members) => members.values_mut().for_each(plain),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    if let Some(members) = value.as_object_mut() {
        ["stream", "stream_options", "user"].iter().for_each(|field| drop(members.remove(*field)));
    }
    plain(&mut value);
    value
}

proptest! {
    #[test]
    fn order_blanks_and_spelling_do_not_change_a_key(object in object(), choices in vec(any::<u8>(), 0..400)) {
        let mut spelled = String::new();
        write(&object, &mut choices.into_iter().cycle().take(4_000), &mut spelled);
        prop_assert!(serde_json::from_str::<Value>(&spelled).is_ok());
        let key = digest(&object.to_string());
        prop_assert!(key.is_some());
        prop_assert_eq!(digest(&spelled), key);
    }

    #[test]
    fn fields_about_delivery_do_not_change_a_key(object in object(), value in value(), field in 0_usize..3) {
        let mut with = object.clone();
        with[["stream", "stream_options", "user"][field]] = value;
        prop_assert_eq!(digest(&with.to_string()), digest(&object.to_string()));
    }

    #[test]
    fn any_other_change_changes_a_key(one in object(), other in object()) {
        let same = meaning(one.clone()) == meaning(other.clone());
        prop_assert_eq!(digest(&one.to_string()) == digest(&other.to_string()), same);
    }

    #[test]
    fn one_changed_member_changes_a_key(object in object(), field in "[a-z_]{1,6}", value in value()) {
        let mut changed = object.clone();
        changed[field.as_str()] = value;
        let same = meaning(object.clone()) == meaning(changed.clone());
        prop_assert_eq!(digest(&changed.to_string()) == digest(&object.to_string()), same);
    }

    #[test]
    fn hostile_bytes_give_a_key_only_where_they_are_json(body in vec(any::<u8>(), 0..200)) {
        let json = serde_json::from_slice::<Value>(&body).is_ok_and(|value| value.is_object());
        prop_assert_eq!(CacheKey::new(&Names::of("t").parts(), &body).is_some(), json);
    }

    #[test]
    fn bent_json_gives_a_key_where_it_is_still_json(
        object in object(),
        at in any::<prop::sample::Index>(),
        byte in 0x20_u8..0x7f,
    ) {
        let mut body = object.to_string().into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        // The other way round does not hold: half a surrogate pair and 1e999 have a key, and no `Value`.
        if serde_json::from_slice::<Value>(&body).is_ok_and(|value| value.is_object()) {
            prop_assert!(CacheKey::new(&Names::of("t").parts(), &body).is_some());
        }
    }
}
