//! Reported faults of caches, named by their case.

use gw_cache::{CacheConfig, CachePolicy, ExactCache, TemperaturePolicy, may_read, storable};
use gw_types::{CacheControl, Classification, RequestId, Temperature};

use crate::support::{Names, Semantic, answer, at, policy, question, rule, stored};

const R0: &str = r#"{"model":"m","temperature":0,"messages":[{"role":"user","content":"hi"}]}"#;

#[test]
fn cache_never_crosses_tenants() {
    let (cache, semantic) = (ExactCache::new(CacheConfig::default()), Semantic::new(Default::default()));
    let (one, two) = (Names::of("T1"), Names::of("T2"));
    cache.put(one.key(R0), stored(1), at(0));
    assert!(cache.get(&two.key(R0), at(0)).is_none());
    cache.put(two.key(R0), stored(2), at(0));
    assert_eq!(cache.get(&one.key(R0), at(0)).unwrap().origin, RequestId::from_bits(1));

    semantic.put(&one, &question("how do I turn on dark mode"), 1, at(0));
    assert_eq!(semantic.get(&two, &question("how do I turn on dark mode?"), at(0)), None);
    semantic.put(&two, &question("how do I turn on dark mode"), 2, at(0));
    assert_eq!(
        semantic.get(&two, &question("how do I turn on dark mode?"), at(0)),
        Some(RequestId::from_bits(2))
    );
}

#[test]
fn cache_never_crosses_tenants_v3() {
    let apart = [
        (Names::new("a", "b:c", "d"), Names::new("a:b", "c", "d")),
        (Names::new("a", "b", "c:d"), Names::new("a", "b:c", "d")),
        (Names::new("ab", "c", "d"), Names::new("a", "bc", "d")),
    ];
    for (one, other) in apart {
        assert_ne!(one.key(R0), other.key(R0));
        assert_ne!(one.key(R0).digest_hex(), other.key(R0).digest_hex());
        assert_ne!(one.partition(), other.partition());
    }
}

#[test]
fn exact_key_covers_everything_that_changes_the_answer() {
    let names = Names::of("t");
    let mut digests = vec![names.key(R0).digest_hex()];
    for change in [
        r#""max_tokens":16"#,
        r#""top_p":0.5"#,
        r#""stop":["x"]"#,
        r#""n":2"#,
        r#""seed":1"#,
        r#""tools":[{"type":"function","function":{"name":"f","description":"d"}}]"#,
        r#""tools":[{"type":"function","function":{"name":"f","description":"e"}}]"#,
        r#""tool_choice":"none""#,
        r#""parallel_tool_calls":false"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"S1","schema":{}}}"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"S2","schema":{}}}"#,
        r#""reasoning_effort":"low""#,
        r#""logit_bias":{"1":5}"#,
        r#""logit_bias":{"1":-5}"#,
        r#""x_new":1"#,
        r#""x_new":null"#,
        r#""messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]"#,
        r#""messages":[{"role":"user","content":"hi"},{"role":"system","content":"s"}]"#,
        r#""messages":[{"role":"user","content":"hi "}]"#,
        r#""messages":[{"role":"user","content":"Hi"}]"#,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u1"}}]}]"#,
        r#""messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u2"}}]}]"#,
        r#""messages":[{"role":"user","content":"hi","name":"n"}]"#,
        r#""model":"alias""#,
        r#""temperature":0.1"#,
        r#""temperature":null"#,
    ] {
        // Of equal keys the last counts, so that one text serves for added and for changed fields.
        let body = R0.strip_suffix('}').map(|head| format!("{head},{change}}}")).unwrap();
        digests.push(names.key(&body).digest_hex());
    }
    digests.push(names.key(&R0.replace("\"temperature\":0,", "")).digest_hex());
    let all = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), all);
}

#[test]
fn exact_key_covers_everything_that_changes_the_answer_controls() {
    let names = Names::of("t");
    for control in [
        r#"{"messages":[{"content":"hi","role":"user"}],"temperature":0,"model":"m"}"#,
        "{ \"model\" : \"m\",\n\t\"temperature\":0 , \"messages\":[ {\"role\":\"user\", \"content\":\"hi\"} ] }\n",
        r#"{"model":"m","temperature":0.0,"messages":[{"role":"user","content":"\u0068i"}]}"#,
        r#"{"model":"m","temperature":-0e3,"messages":[{"role":"user","content":"hi"}],"stream":true}"#,
    ] {
        assert_eq!(names.key(control), names.key(R0), "{control}");
    }
    // BLAKE2b-256 by another implementation: no process and no machine has a key of its own.
    let expected = "ccb8426269fb103d0604218de79afb83e73a00c72b56ee6448e8d80d6f37cd9f";
    assert_eq!(names.key(R0).digest_hex().as_str(), expected);
}

#[test]
fn exact_key_covers_everything_around_the_request() {
    let names = Names::of("t");
    let parts = names.parts();
    let digest = |parts| gw_cache::CacheKey::new(&parts, R0.as_bytes()).unwrap().digest_hex();
    let others = [
        gw_cache::KeyParts { model_version: Some("2"), ..parts },
        gw_cache::KeyParts { model_version: Some(""), ..parts },
        gw_cache::KeyParts { model_version: None, ..parts },
        gw_cache::KeyParts { operation: gw_types::Operation::Responses, ..parts },
        gw_cache::KeyParts { policy_digest: "e", ..parts },
    ];
    let mut all: Vec<_> = others.into_iter().chain([parts]).map(digest).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn exact_key_covers_everything_that_changes_the_answer_v2() {
    let zero_only = CachePolicy { temperature: TemperaturePolicy::Zero, ..policy() };
    let check = |policy: &CachePolicy, temperature, expected| {
        let rule = gw_cache::WriteRule { temperature, ..rule(policy) };
        let read = may_read(policy, CacheControl::Default, false, Classification::Internal, temperature);
        assert_eq!((storable(&rule, answer(1)).is_ok(), read), (expected, expected));
    };
    check(&zero_only, Temperature::Absent, false);
    check(&zero_only, Temperature::Above, false);
    check(&zero_only, Temperature::Zero, true);
    check(&policy(), Temperature::Absent, true);
    check(&policy(), Temperature::Above, true);
}

#[test]
fn semantic_cache_rejects_opposite_meaning() {
    let check = |cached: &str, asked: &str, expected: bool| {
        let (semantic, names) = (Semantic::new(Default::default()), Names::of("t"));
        semantic.put(&names, &question(cached), 1, at(0));
        assert_eq!(semantic.get(&names, &question(asked), at(0)).is_some(), expected, "{cached} / {asked}");
        if !expected {
            // No threshold lets the pair through: it is the guards that tell them apart.
            assert_eq!(semantic.get_at(&names, &question(asked), 0, at(0)), None, "{cached} / {asked}");
        }
    };
    check("How do I turn on dark mode?", "How do I turn off dark mode?", false);
    check("The payment is held.", "The payment is not held.", false);
    check("Is port 6379 open by default?", "Is port 6379 closed by default?", false);
    check("Can I take it with alcohol?", "Can I take it without alcohol?", false);
    check("Allow only admins to delete", "Allow everyone except admins to delete", false);
    check("How do I turn on dark mode?", "how do i turn on dark mode", true);
}

#[test]
fn semantic_cache_is_off_unless_switched_on() {
    assert_eq!(CachePolicy::default().semantic, None);
    assert!(!CachePolicy::default().is_on());
}
