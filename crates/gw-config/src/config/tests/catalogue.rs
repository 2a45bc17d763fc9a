//! What a deployment may leave out because its model is known.

use super::{SOUND, check, environment, parse};

const COMPATIBLE: &str = "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"";
const FACTS: &str = "capabilities = [\"chat\", \"streaming\"]\nprice = { input = 1, output = 2 }\n";

/// Returns the sound file with a provider of a kind, and these lines for the facts of a deployment of a model.
fn text(kind: &str, model: &str, facts: &str) -> String {
    let provider = match kind {
        "openai" => "kind = \"openai\"".to_owned(),
        "openai-compatible" => COMPATIBLE.to_owned(),
        kind => format!("kind = \"{kind}\"\nbase_url = \"https://x.example\""),
    };
    SOUND
        .replace(COMPATIBLE, &provider)
        .replace("model = \"m\"", &format!("model = \"{model}\""))
        .replace(FACTS, facts)
}

/// Returns a fact of the deployment in force.
#[track_caller]
fn fact(text: &str, fact: &str) -> serde_json::Value {
    let effective: serde_json::Value = serde_json::from_str(&parse(text).unwrap().effective()).unwrap();
    effective["deployments"]["a"][fact].clone()
}

#[test]
fn a_known_model_fills_what_is_left_out() {
    for kind in ["openai", "azure-openai"] {
        let known = text(kind, "gpt-4.1", "");
        assert_eq!(fact(&known, "context_window"), 1_047_576);
        assert_eq!(fact(&known, "max_output_tokens"), 32_768);
        assert_eq!(fact(&known, "price")["PerToken"]["cached_input"], 500_000);
        assert!(fact(&known, "capabilities").as_array().unwrap().contains(&"json_schema".into()));
        assert_eq!(fact(&known, "catalogue"), "openai/gpt-4.1");
    }
}

#[test]
fn long_prompts_have_their_price() {
    let tier = &fact(&text("openai", "gpt-5.6", ""), "price")["PerToken"]["tier"];
    assert_eq!(
        (&tier["threshold"], &tier["input"], &tier["scope"]),
        (&272_000.into(), &8_000_000.into(), &"whole_request".into())
    );
}

#[test]
fn what_the_file_says_wins() {
    let own = text("openai", "gpt-4.1", "context_window = 8_000\nprice = { input = 1, output = 2 }\n");
    assert_eq!(fact(&own, "price")["PerToken"]["input"], 1);
    assert_eq!((fact(&own, "context_window"), fact(&own, "max_output_tokens")), (8_000.into(), 8_000.into()));
    let warnings = crate::check(&own, "gw.toml", &environment()).unwrap().warnings;
    let said: Vec<String> = warnings
        .iter()
        .filter(|one| one.code() == Some("differs_from_catalogue"))
        .map(ToString::to_string)
        .collect();
    let fix = |setting: &str| {
        format!(
            "remove `{setting}` to take what `openai/gpt-4.1` has as of 2026-11-29, or `catalogue = \"none\"` if it is \
             another model"
        )
    };
    assert_eq!(
        said,
        [
            format!(
                "gw.toml:16:18: `deployments.a.context_window` says 8000, the catalogue 1047576; {}",
                fix("context_window")
            ),
            format!(
                "gw.toml:17:9: `deployments.a.price` says `input` 1, the catalogue 2000000; `output` 2, the catalogue \
                 8000000; {}",
                fix("price")
            ),
        ]
    );
}

#[test]
fn other_servers_say_which_model_it_is() {
    let missing = "missing `price` in `deployments.a`; write `price = { input = 2_000_000, output = 8_000_000 }`, \
                   `price = \"free\"` or `price = \"unpriced\"`";
    let refused = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(refused(&text("openai-compatible", "gpt-4.1", "")), format!("gw.toml:12:14: {missing}"));
    let named = text("openai-compatible", "served", "catalogue = \"groq/openai/gpt-oss-120b\"\n");
    assert_eq!(fact(&named, "catalogue"), "groq/openai/gpt-oss-120b");
    assert!(fact(&named, "price")["PerToken"]["input"].as_u64().unwrap() > 0);
    let vendor = text("openai-compatible", "openai/gpt-oss-120b", "")
        .replace("kind = \"openai-compatible\"", "kind = \"openai-compatible\"\nvendor = \"groq\"");
    assert_eq!(fact(&vendor, "catalogue"), "groq/openai/gpt-oss-120b");
    let none = text("openai", "gpt-4.1", "catalogue = \"none\"\n");
    assert!(refused(&none).contains("missing `price`"));
    check(
        "model = \"m\"",
        "model = \"m\"\ncatalogue = \"opneai/gpt-4.1\"",
        "15:13: unknown model `opneai/gpt-4.1` in `deployments.a.catalogue`; did you mean `openai/gpt-4.1`?",
    );
}

#[test]
fn a_misspelt_model_is_met_with_the_nearest() {
    let refused = parse(&text("openai", "gpt-4.1-mni", "")).unwrap_err().to_string();
    assert!(
        refused.ends_with("`price = \"unpriced\"`, or a model of the catalogue, such as `gpt-4.1-mini`"),
        "{refused}"
    );
}

#[test]
fn a_model_whose_price_is_disputed_needs_one() {
    let refused = parse(&text("gemini", "gemini-3.8-flash", "")).unwrap_err().to_string();
    assert!(refused.contains("missing `price`"), "{refused}");
}
