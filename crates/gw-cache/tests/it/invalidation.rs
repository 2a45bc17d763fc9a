//! Forgetting by tenant, route and epoch.

use gw_cache::{CacheConfig, CacheUsage, ExactCache, InvalidationScope};
use gw_types::{RouteName, TenantId};

use crate::support::{Names, Semantic, at, question, ready, stored};

fn names() -> [Names; 4] {
    [
        Names::new("one", "chat", "ptu"),
        Names::new("one", "fast", "ptu"),
        Names::new("two", "chat", "ptu"),
        Names::new("two", "fast", "eu"),
    ]
}

fn scope(tenant: Option<&str>, route: Option<&str>, before_epoch: Option<u64>) -> InvalidationScope {
    InvalidationScope {
        tenant: tenant.map(|name| TenantId::new(name).unwrap()),
        route: route.map(|name| RouteName::new(name).unwrap()),
        before_epoch,
    }
}

/// Checks which of the four names keep their answers; each has an entry in epoch 0 and one in epoch 1 of both caches.
fn check(scope: &InvalidationScope, stay: [[bool; 2]; 4]) {
    let exact = ExactCache::new(CacheConfig::default());
    let semantic = Semantic::new(Default::default());
    let asked = question("is the card lost");
    for names in &names() {
        for epoch in 0..2 {
            exact.put(names.key("{}").at_epoch(epoch), stored(1), at(0));
            let partition = names.partition().at_epoch(epoch);
            ready(semantic.0.put(&partition, &asked, stored(1), at(0))).unwrap();
        }
    }
    let gone = stay.iter().flatten().filter(|stays| !**stays).count();
    let (exact_before, semantic_before) = (exact.usage(), semantic.0.counts());
    let planned = (exact.matching(scope), semantic.0.matching(scope));
    // A dry run removes nothing.
    assert_eq!((exact.usage(), semantic.0.counts()), (exact_before, semantic_before));
    assert_eq!((exact.invalidate(scope), semantic.0.invalidate(scope)), planned);
    assert_eq!((planned.0.entries, planned.1.entries), (gone, gone));
    assert_eq!((planned.0.bytes > 0, planned.1.bytes > 0), (gone > 0, gone > 0));
    for (names, stays) in names().iter().zip(stay) {
        for (epoch, stays) in (0..).zip(stays) {
            assert_eq!(exact.get(&names.key("{}").at_epoch(epoch), at(0)).is_some(), stays);
            let partition = names.partition().at_epoch(epoch);
            let found = ready(semantic.0.get(&partition, &asked, &Default::default(), at(0))).unwrap();
            assert_eq!(found.is_some(), stays);
        }
    }
    assert_eq!(exact.invalidate(scope), CacheUsage::default());
}

#[test]
fn what_fits_the_scope_goes_and_nothing_else() {
    let (both, none, newer) = ([true; 2], [false; 2], [false, true]);
    check(&scope(None, None, None), [none; 4]);
    check(&scope(Some("one"), None, None), [none, none, both, both]);
    check(&scope(None, Some("chat"), None), [none, both, none, both]);
    check(&scope(Some("two"), Some("fast"), None), [both, both, both, none]);
    check(&scope(None, None, Some(1)), [newer; 4]);
    check(&scope(Some("two"), None, Some(1)), [both, both, newer, newer]);
    check(&scope(None, None, Some(0)), [both; 4]);
    check(&scope(Some("three"), None, None), [both; 4]);
}

#[test]
fn an_epoch_and_a_locale_are_apart_from_all_others() {
    let names = Names::of("t");
    assert_ne!(names.key("{}"), names.key("{}").at_epoch(0));
    assert_ne!(names.key("{}").at_epoch(1), names.key("{}").at_epoch(2));
    let partition = || names.partition();
    let all = [
        partition(),
        partition().at_epoch(1),
        partition().in_locale("de"),
        partition().in_locale("en"),
        partition().in_locale("de").at_epoch(1),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all[at + 1..].iter().all(|other| one != other));
    }
}
