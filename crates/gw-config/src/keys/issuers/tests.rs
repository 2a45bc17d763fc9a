//! Claims against keys: tables, and every set of keys against a search through all of them.

use std::net::{IpAddr, Ipv4Addr};

use gw_types::{IssuerName, KeyIdentity, KeyName, TenantId, UtcTime};
use proptest::{collection, prelude::*};
use serde_json::{Map, Value, json};

use super::{Access, Caller, Claims, Issuer, Jwks, NotACaller, asks_for};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn claims(of: &[(&str, &[&str])]) -> Claims {
    of.iter()
        .map(|(name, values)| ((*name).to_owned(), values.iter().map(|value| (*value).to_owned()).collect()))
        .collect()
}

fn identity(tenant: &str) -> KeyIdentity {
    KeyIdentity { tenant: TenantId::new(tenant).unwrap(), key: KeyName::new("sso").unwrap() }
}

fn caller(claims: Claims, tenant: &str) -> Caller {
    Caller { claims, identity: identity(tenant), access: Access::default() }
}

fn issuer() -> Issuer {
    Issuer::new(IssuerName::new("corp").unwrap(), "https://corp".to_owned(), Jwks::Text("{}".into()))
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Whose caller a token with these claims is, where the tenants `a`, `b`, ... ask for these.
fn check(keys: &[&[(&str, &[&str])]], token: &Value, expected: Result<&str, NotACaller>) {
    let mut issuer = issuer();
    for (key, tenant) in keys.iter().zip(["a", "b", "c", "d"]) {
        issuer.add(caller(claims(key), tenant)).unwrap();
    }
    let found = issuer.caller(&members(token), HERE, UtcTime::from_micros(0));
    assert_eq!(found.map(|found| found.tenant.to_string()), expected.map(str::to_owned), "{token}");
}

#[test]
fn a_claim_is_a_value_or_one_of_a_list() {
    let by_group: &[&[(&str, &[&str])]] = &[&[("groups", &["batch", "night"])], &[("groups", &["web"])]];
    check(by_group, &json!({"groups": "web"}), Ok("b"));
    check(by_group, &json!({"groups": ["x", "night"]}), Ok("a"));
    check(by_group, &json!({"groups": ["batch", "night"]}), Ok("a"));
    check(by_group, &json!({"groups": ["batch", "web"]}), Err(NotACaller::Ambiguous));
    check(by_group, &json!({"groups": ["we"]}), Err(NotACaller::Unknown));
    check(by_group, &json!({"groups": {"web": true}}), Err(NotACaller::Unknown));
    check(by_group, &json!({"groups": [["web"]]}), Err(NotACaller::Unknown));
    check(by_group, &json!({"groups": "batch web"}), Err(NotACaller::Unknown));
    check(by_group, &json!({}), Err(NotACaller::Unknown));
}

#[test]
fn other_values_count_by_their_text() {
    check(&[&[("email_verified", &["true"])]], &json!({"email_verified": true}), Ok("a"));
    check(&[&[("email_verified", &["true"])]], &json!({"email_verified": false}), Err(NotACaller::Unknown));
    check(&[&[("level", &["3"])]], &json!({"level": 3}), Ok("a"));
    check(&[&[("level", &["null"])]], &json!({"level": null}), Err(NotACaller::Unknown));
}

#[test]
fn scopes_are_words() {
    check(&[&[("scope", &["gw.use"])]], &json!({"scope": "openid gw.use"}), Ok("a"));
    check(&[&[("scp", &["gw.use"])]], &json!({"scp": "openid gw.use"}), Ok("a"));
    check(&[&[("scope", &["gw.use"])]], &json!({"scope": "gw.use.not"}), Err(NotACaller::Unknown));
}

#[test]
fn names_are_taken_as_they_are_and_pointers_are_followed() {
    check(&[&[("https://corp/tenant", &["x"])]], &json!({"https://corp/tenant": "x"}), Ok("a"));
    let nested = json!({"realm_access": {"roles": ["gw"]}, "a/b": {"~": "x"}});
    check(&[&[("/realm_access/roles", &["gw"])]], &nested, Ok("a"));
    check(&[&[("/a~1b/~0", &["x"])]], &nested, Ok("a"));
    check(&[&[("/realm_access/roles/0", &["gw"])]], &nested, Err(NotACaller::Unknown));
    check(&[&[("realm_access.roles", &["gw"])]], &nested, Err(NotACaller::Unknown));
}

#[test]
fn the_key_that_asks_for_most_counts() {
    let keys: &[&[(&str, &[&str])]] = &[&[], &[("org", &["x"])], &[("org", &["x"]), ("role", &["admin"])]];
    check(keys, &json!({"sub": "1"}), Ok("a"));
    check(keys, &json!({"org": "x"}), Ok("b"));
    check(keys, &json!({"org": "x", "role": "admin"}), Ok("c"));
    check(keys, &json!({"role": "admin"}), Ok("a"));
    check(
        &[&[("org", &["x"])], &[("role", &["y"])]],
        &json!({"org": "x", "role": "y"}),
        Err(NotACaller::Ambiguous),
    );
}

#[test]
fn the_same_claims_have_one_owner_and_a_key_holds_where_it_may_be_used() {
    let mut issuer = issuer();
    let access = Access { networks: ["10.0.0.0/8".parse().unwrap()].into(), expires: None };
    issuer.add(Caller { access, ..caller(claims(&[("org", &["x"])]), "a") }).unwrap();
    let again = issuer.add(caller(claims(&[("org", &["x"])]), "b"));
    assert_eq!(again, Err(identity("a")));
    let token = members(&json!({"org": "x"}));
    assert_eq!(issuer.caller(&token, HERE, UtcTime::from_micros(0)), Err(NotACaller::NotPermitted));
    let inside = "10.1.1.1".parse().unwrap();
    assert_eq!(issuer.caller(&token, inside, UtcTime::from_micros(0)), Ok(identity("a")));
}

/// Claims that often meet: three names, three values.
fn some_claims() -> impl Strategy<Value = Claims> {
    let values = collection::btree_set(prop_oneof!["x", "y", "z"], 1..3);
    collection::btree_map(prop_oneof!["scope", "groups", "/deep/er"], values, 0..3)
}

fn some_value() -> impl Strategy<Value = Value> {
    let one = prop_oneof![
        prop_oneof!["x", "y", "z", "x y"].prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    prop_oneof![one.clone(), collection::vec(one, 0..4).prop_map(Value::from)]
}

proptest! {
    #[test]
    fn a_token_is_whose_a_search_through_all_keys_says(
        keys in collection::vec(some_claims(), 0..8),
        (scope, groups, deep) in (some_value(), some_value(), some_value()),
    ) {
        let mut issuer = issuer();
        let mut kept: Vec<(Claims, KeyIdentity)> = Vec::new();
        for (at, key) in keys.into_iter().enumerate() {
            let owner = format!("t{at}");
            let is_new = kept.iter().all(|(known, _)| *known != key);
            prop_assert_eq!(issuer.add(caller(key.clone(), &owner)).is_ok(), is_new);
            if is_new {
                kept.push((key, identity(&owner)));
            }
        }
        let token = members(&json!({"scope": scope, "groups": groups, "deep": {"er": deep}}));
        let matching: Vec<_> = kept.iter().filter(|(wanted, _)| asks_for(wanted, &token)).collect();
        let most = matching.iter().map(|(wanted, _)| wanted.len()).max();
        let best: Vec<_> = matching.iter().filter(|(wanted, _)| Some(wanted.len()) == most).collect();
        let expected = match best.as_slice() {
            [] => Err(NotACaller::Unknown),
            [(_, owner)] => Ok(owner.clone()),
            [_, _, ..] => Err(NotACaller::Ambiguous),
        };
        prop_assert_eq!(issuer.caller(&token, HERE, UtcTime::from_micros(0)), expected);
    }
}
