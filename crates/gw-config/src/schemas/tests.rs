//! The published schemas name exactly the fields that are read, and exactly the words.

use std::collections::{BTreeMap, BTreeSet};

use gw_dialects::vendors::PRESETS;
use gw_types::{
    AccountingRecord, AttemptRecord, Capability, Classification, DecisionRecord, ErrorKind, ExclusionRecord,
    FactsRecord, LatencySplit, LimiterVerdict, Outcome, SideCost, TagRecord, Usage,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CONFIG, RECORD, REQUEST, RESULT};
use crate::{FixedEnvironment, GenerationSpec, Sampling, reader::asked};

fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).unwrap()
}

/// Returns the names of an object's properties in the schema.
fn properties(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

fn words(schema: &Value) -> BTreeSet<String> {
    schema["enum"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Returns the fields that a closed struct reads, from what it says about one that it does not know.
fn fields<T: DeserializeOwned>() -> BTreeSet<String> {
    let Err(error) = serde_json::from_str::<T>("{\"no such field\": 1}") else { panic!("not closed") };
    let said = error.to_string();
    let (_, expected) = said.split_once("expected").unwrap_or_else(|| panic!("{said}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[track_caller]
fn check<T: DeserializeOwned>(schema: &Value) {
    assert_eq!(properties(schema), fields::<T>());
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn the_schema_of_an_item_has_its_fields() {
    let schema = parsed(REQUEST);
    check::<GenerationSpec>(&schema);
    check::<Sampling>(&schema["properties"]["sampling"]);
}

#[test]
fn the_schema_of_a_record_has_its_fields() {
    let schema = parsed(RECORD);
    let of = |name: &str| &schema["properties"][name];
    check::<AccountingRecord>(&schema);
    check::<FactsRecord>(of("facts"));
    check::<DecisionRecord>(of("decision"));
    check::<ExclusionRecord>(&of("decision")["properties"]["exclusions"]["items"]);
    check::<LimiterVerdict>(&of("decision")["properties"]["limiter"]);
    check::<AttemptRecord>(&of("attempts")["items"]);
    check::<Usage>(of("usage"));
    check::<SideCost>(&of("side_costs")["items"]);
    check::<TagRecord>(&of("facts")["properties"]["tags"]["items"]);
    check::<LatencySplit>(of("latency"));
    assert_eq!(words(&schema["$defs"]["error"]), ErrorKind::ALL.map(|kind| kind.as_str().to_owned()).into());
    assert_eq!(words(of("outcome")), Outcome::ALL.map(|outcome| outcome.as_str().to_owned()).into());
}

#[test]
fn the_schema_of_a_result_has_the_words_of_the_taxonomy() {
    let schema = parsed(RESULT);
    let classes = ErrorKind::ALL.map(|kind| kind.as_str().to_owned()).into();
    assert_eq!(words(&schema["$defs"]["error_class"]), classes);
    check::<Usage>(&schema["properties"]["usage"]["oneOf"][1]);
}

#[test]
fn the_schema_of_the_configuration_has_its_words() {
    let schema = parsed(CONFIG);
    let of = |name: &str| words(&schema["$defs"][name]);
    assert_eq!(of("capability"), Capability::ALL.map(|one| one.as_str().to_owned()).into());
    let classes = CLASSIFICATIONS.map(|one| one.as_str().to_owned()).into();
    assert_eq!(of("classification"), classes);
    let vendors = PRESETS.iter().map(|preset| preset.name.to_owned()).collect();
    assert_eq!(words(&schema["$defs"]["provider"]["properties"]["vendor"]), vendors);
    let strategies = gw_routing::Strategy::ALL.map(|one| one.as_str().to_owned()).into();
    assert_eq!(words(&schema["$defs"]["route"]["properties"]["strategy"]), strategies);
}

const CLASSIFICATIONS: [Classification; 4] = [
    Classification::Public,
    Classification::Internal,
    Classification::Confidential,
    Classification::Restricted,
];

/// A configuration in which every kind of table stands.
const EVERYTHING: &str = r#"
version = 1
[server]
admin_keys = [{ env = "K" }]
[server.tls]
[residency]
eu = ["a"]
[providers.p]
kind = "openai"
credentials = [{ name = "a", api_key = { env = "K" } }]
[providers.b]
kind = "bedrock"
region = "r"
credentials = [{ name = "a", api_key = { env = "K" } }]
[providers.v]
kind = "vertex"
location = "l"
credentials = [{ name = "a", credentials = { env = "K" } }]
[deployments.d]
provider = "p"
model = "m"
price = { input = 1, output = 1, tier = {} }
tokens = {}
budget = [{ limit_micros = 1, window = { rolling_s = 1 } }]
[[routes]]
name = "r"
deployments = ["d"]
match = { share_percent = 100 }
cache = { semantic = { threshold = 0.9 } }
[[routes]]
name = "s"
deployments = ["d"]
cache = { semantic = { wrong_per_hit = 0.1, embedder = { deployment = "d" } } }
[[refused]]
models = ["x"]
[tenants.t]
keys = [{ name = "k", secret = { env = "K" }, previous = {} }]
[organisations.o]
[issuers.i]
[models.m]
[limits]
[cache]
exact = {}
semantic = {}
[ledger]
[cluster]
on_loss = {}
[telemetry]
endpoint = "http://127.0.0.1:4318"
"#;

/// Follows a path of the reader (`routes[0].cache`) to every part of the schema that may describe its table.
fn follow<'s>(root: &'s Value, path: &str) -> Vec<(String, &'s Value)> {
    let mut places = vec![(String::from("#"), root)];
    let path = path.replace('[', ".[");
    for step in path.split('.').filter(|step| !step.is_empty()) {
        places = places
            .into_iter()
            .flat_map(|place| resolve(root, place))
            .flat_map(|place| down(place, step))
            .collect();
    }
    places
        .into_iter()
        .flat_map(|place| resolve(root, place))
        .filter(|(_, part)| part.get("properties").is_some())
        .collect()
}

fn resolve<'s>(root: &'s Value, (at, part): (String, &'s Value)) -> Vec<(String, &'s Value)> {
    if let Some(target) = part["$ref"].as_str() {
        let name = target.rsplit('/').next().unwrap();
        return resolve(root, (target.to_owned(), &root["$defs"][name]));
    }
    match part["oneOf"].as_array() {
        Some(parts) if part.get("properties").is_none() => {
            let each = parts.iter().enumerate().map(|(index, part)| (format!("{at}/oneOf/{index}"), part));
            each.flat_map(|place| resolve(root, place)).collect()
        }
        _ => vec![(at, part)],
    }
}

fn down<'s>((at, part): (String, &'s Value), step: &str) -> Option<(String, &'s Value)> {
    if step.starts_with('[') {
        return Some((format!("{at}/items"), part.get("items")?));
    }
    let own = part.get("properties").and_then(|properties| properties.get(step));
    let any = part.get("additionalProperties").filter(|any| any.is_object());
    own.map(|own| (format!("{at}/{step}"), own)).or_else(|| any.map(|any| (format!("{at}/*"), any)))
}

/// Every part of the schema that describes a table with keys of its own.
fn tables(at: &str, part: &Value, found: &mut BTreeSet<String>) {
    match part {
        Value::Object(members) => {
            if part["type"] == "object" && members.contains_key("properties") {
                found.insert(at.to_owned());
            }
            for (name, part) in members {
                let next = match name.as_str() {
                    "properties" => at.to_owned(),
                    "additionalProperties" => format!("{at}/*"),
                    name => format!("{at}/{name}"),
                };
                tables(&next, part, found);
            }
        }
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                tables(&format!("{at}/{index}"), part, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_schema_of_the_configuration_has_every_key_that_is_read_and_no_other() {
    let schema = parsed(CONFIG);
    asked::take();
    // What is wrong with it is no matter: every table is read all the same.
    drop(crate::check(EVERYTHING, "gw.toml", &FixedEnvironment::new().with_var("K", "k")));
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, keys) in asked::take() {
        let places = follow(&schema, &path);
        assert_eq!(places.len(), 1, "`{path}` is described {} times", places.len());
        let known = read.entry(places[0].0.clone()).or_default();
        known.extend(keys.into_iter().map(str::to_owned));
    }
    let mut written = BTreeSet::new();
    tables("#", &schema, &mut written);
    assert_eq!(read.keys().cloned().collect::<BTreeSet<_>>(), written);
    for (place, keys) in &read {
        let part = find(&schema, place);
        assert_eq!(&properties(part), keys, "{place}");
    }
}

/// Returns the part of the schema at a place as `tables` writes it.
fn find<'s>(schema: &'s Value, place: &str) -> &'s Value {
    place.split('/').skip(1).fold(schema, |part, step| {
        let index = step.parse::<usize>().ok();
        match step {
            "*" => &part["additionalProperties"],
            _ if part.is_array() => &part[index.unwrap()],
            _ if part["properties"].get(step).is_some() => &part["properties"][step],
            _ => &part[step],
        }
    })
}
