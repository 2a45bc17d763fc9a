//! The numbered invariants, as far as the caches alone answer for them.

use gw_cache::{CacheConfig, CacheUsage, ExactCache, NotStored, WriteRule, may_read, storable};
use gw_types::{CacheControl, Classification, FinishReason, RequestId, Temperature, ToolCall};

use crate::support::{
    Names, Semantic, TTL, answer, at, completion, policy, question, rule, sized_answer, stored,
};

#[test]
fn i08_a_hit_names_the_original_request_and_its_serving_deployment() {
    let (cache, names) = (ExactCache::new(CacheConfig::default()), Names::new("t", "chat", "ptu"));
    cache.put(names.key("{}"), stored(7), at(0));
    let hit = cache.get(&names.key("{}"), at(1)).unwrap();
    assert_eq!((hit.serving.as_str(), hit.origin.clone()), ("eu", RequestId::from_bits(7)));
}

#[test]
fn i09_answers_stay_with_their_tenant() {
    let (cache, semantic) = (ExactCache::new(CacheConfig::default()), Semantic::new(Default::default()));
    let (one, other) = (Names::of("one"), Names::of("other"));
    cache.put(one.key("{}"), stored(1), at(0));
    semantic.put(&one, &question("what is new"), 1, at(0));
    assert!(cache.get(&one.key("{}"), at(0)).is_some());
    assert!(cache.get(&other.key("{}"), at(0)).is_none());
    assert!(semantic.get(&one, &question("what is new"), at(0)).is_some());
    assert_eq!(semantic.get(&other, &question("what is new"), at(0)), None);
    assert_eq!(semantic.get_at(&other, &question("what is new"), 0, at(0)), None);
}

#[test]
fn i09_semantic_partitions_are_per_tenant_route_and_primary() {
    let semantic = Semantic::new(Default::default());
    let asked = question("what is new");
    semantic.put(&Names::new("t", "chat", "ptu"), &asked, 1, at(0));
    assert!(semantic.get(&Names::new("t", "chat", "ptu"), &asked, at(0)).is_some());
    for other in
        [Names::new("u", "chat", "ptu"), Names::new("t", "fast", "ptu"), Names::new("t", "chat", "eu")]
    {
        assert_eq!(semantic.get(&other, &asked, at(0)), None);
    }
}

fn refuses(change: impl FnOnce(&mut WriteRule<'_>), expected: NotStored) {
    let policy = policy();
    let mut rule = rule(&policy);
    change(&mut rule);
    assert_eq!(storable(&rule, answer(1)).map(|_| ()), Err(expected));
}

#[test]
fn i10_only_requests_that_may_be_cached_leave_an_answer() {
    refuses(|rule| rule.cache_control = CacheControl::NoStore, NotStored::NoStore);
    refuses(|rule| rule.side_effecting = true, NotStored::SideEffecting);
    refuses(|rule| rule.complete = false, NotStored::Incomplete);
    for control in [CacheControl::Default, CacheControl::NoCache, CacheControl::OnlyIfCached] {
        assert!(storable(&WriteRule { cache_control: control, ..rule(&policy()) }, answer(1)).is_ok());
    }
    let check = |change: fn(&mut gw_cache::CachePolicy), expected: NotStored| {
        let mut policy = policy();
        change(&mut policy);
        assert_eq!(storable(&rule(&policy), answer(1)).map(|_| ()), Err(expected));
    };
    check(|policy| (policy.exact, policy.semantic) = (false, None), NotStored::Off);
    check(|policy| policy.ttl = Default::default(), NotStored::Off);
    check(|policy| policy.cache_ceiling = Classification::Public, NotStored::Classification);
}

#[test]
fn i10_only_complete_stop_answers_are_kept() {
    let check = |change: fn(&mut gw_cache::CachedAnswer), expected: Result<(), NotStored>| {
        let mut answer = answer(1);
        change(&mut answer);
        assert_eq!(storable(&rule(&policy()), answer).map(|_| ()), expected);
    };
    check(|_| {}, Ok(()));
    check(|answer| answer.completion = Some(completion("hi").into()), Ok(()));
    check(|answer| (answer.raw, answer.completion) = (None, Some(completion("hi").into())), Ok(()));
    check(|answer| answer.facts.finish = None, Err(NotStored::NotStop));
    for finish in [
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::ContentFilter,
        FinishReason::Refusal,
        FinishReason::Other,
    ] {
        let mut cut = answer(1);
        cut.facts.finish = Some(finish);
        assert_eq!(storable(&rule(&policy()), cut).map(|_| ()), Err(NotStored::NotStop));
        let mut second = completion("hi");
        second.choices.extend(completion("cut").choices);
        second.choices[1].finish = finish;
        let one_of_two = gw_cache::CachedAnswer { completion: Some(second.into()), ..answer(1) };
        assert_eq!(storable(&rule(&policy()), one_of_two).map(|_| ()), Err(NotStored::NotStop));
    }
    check(|answer| answer.facts.tool_calls = true, Err(NotStored::ToolCalls));
    check(
        |answer| {
            let mut calling = completion("");
            let call = ToolCall { id: "1".into(), name: "f".into(), arguments: "{}".into() };
            calling.choices[0].tool_calls.push(call);
            answer.completion = Some(calling.into());
        },
        Err(NotStored::ToolCalls),
    );
    check(
        |answer| {
            let mut refused = completion("");
            refused.choices[0].refusal = Some("no".into());
            answer.completion = Some(refused.into());
        },
        Err(NotStored::NotStop),
    );
    check(|answer| answer.facts.content_bytes = 0, Err(NotStored::Empty));
    check(|answer| answer.raw = None, Err(NotStored::Empty));
}

#[test]
fn i10_the_read_rule_mirrors_the_write_rule() {
    let read = |control, side_effecting, classification, temperature| {
        may_read(&policy(), control, side_effecting, classification, temperature)
    };
    let (plain, internal, zero) = (CacheControl::Default, Classification::Internal, Temperature::Zero);
    assert!(read(plain, false, internal, zero));
    assert!(read(CacheControl::OnlyIfCached, false, Classification::Restricted, Temperature::Above));
    assert!(!read(CacheControl::NoStore, false, internal, zero));
    assert!(!read(CacheControl::NoCache, false, internal, zero));
    assert!(!read(plain, true, internal, zero));
    let low = gw_cache::CachePolicy { cache_ceiling: Classification::Public, ..policy() };
    assert!(!may_read(&low, plain, false, internal, zero));
    assert!(may_read(&low, plain, false, Classification::Public, zero));
    assert!(!may_read(&gw_cache::CachePolicy::default(), plain, false, internal, zero));
}

#[test]
fn i18_nothing_prints_a_question_or_an_answer() {
    let (cache, names) = (ExactCache::new(CacheConfig::default()), Names::of("t"));
    let semantic = Semantic::new(Default::default());
    let mut answer = answer(1);
    answer.raw = Some("canary".into());
    answer.completion = Some(completion("canary").into());
    let stored = storable(&rule(&policy()), answer).unwrap();
    let key = names.key(r#"{"prompt":"canary"}"#);
    semantic.put(&names, &question("canary"), 1, at(0));
    let printed = format!("{stored:?} {key:?} {:?} {:?}", names.partition(), semantic.0);
    cache.put(key, stored, at(0));
    assert!(!format!("{printed} {cache:?}").contains("canary"));
}

#[test]
fn expired_answers_are_misses_and_leave() {
    let (cache, names) = (ExactCache::new(CacheConfig::default()), Names::of("t"));
    cache.put(names.key("{}"), stored(1), at(5));
    let last = at(5).saturating_add(TTL);
    assert!(cache.get(&names.key("{}"), gw_types::MonoTime::from_nanos(last.nanos() - 1)).is_some());
    assert_eq!(cache.usage().entries, 1);
    assert!(cache.get(&names.key("{}"), last).is_none());
    assert_eq!(cache.usage(), CacheUsage::default());
}

#[test]
fn an_answer_above_the_bound_replaces_nothing_and_leaves_nothing() {
    let cache = ExactCache::new(CacheConfig { entry_bytes_max: 2_000, ..CacheConfig::default() });
    let names = Names::of("t");
    let put = |bytes| {
        let stored = storable(&rule(&policy()), sized_answer(1, bytes)).unwrap();
        cache.put(names.key("{}"), stored, at(0));
    };
    put(1_000);
    assert_eq!(cache.usage().entries, 1);
    put(10_000);
    assert_eq!(cache.usage(), CacheUsage::default());
    for nothing in [
        CacheConfig { capacity_bytes: 0, ..CacheConfig::default() },
        CacheConfig { capacity_entries: 0, ..CacheConfig::default() },
        CacheConfig { entry_bytes_max: 0, ..CacheConfig::default() },
    ] {
        let cache = ExactCache::new(nothing);
        cache.put(names.key("{}"), stored(1), at(0));
        assert_eq!(cache.usage(), CacheUsage::default());
    }
}

#[test]
fn what_is_asked_for_again_outlives_a_flood_of_single_requests() {
    let cache = ExactCache::new(CacheConfig { capacity_entries: 50, ..CacheConfig::default() });
    let names = Names::of("t");
    let hot = names.key("{}");
    cache.put(hot.clone(), stored(0), at(0));
    for number in 0..1_000 {
        cache.get(&hot, at(0));
        cache.put(names.key(&format!("{{\"n\":{number}}}")), stored(number), at(0));
    }
    assert!(cache.get(&hot, at(0)).is_some());
    assert_eq!(cache.usage().entries, 50);
}
