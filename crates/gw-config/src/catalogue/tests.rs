//! What the catalogue holds, and where configurations differ from it.

use gw_types::{Capability, CapabilitySet, Price, Pricing, TokenCount};

use super::{Catalogue, CatalogueFilter, Written, differences};
use crate::source::Span;

fn catalogue() -> &'static Catalogue {
    Catalogue::built_in()
}

#[test]
fn every_line_reads_and_makes_sense() {
    assert!(Catalogue::read(super::TEXT).is_ok());
    let models = catalogue().list(&CatalogueFilter::default());
    assert!(models.len() > 200);
    for listed in models {
        let model = catalogue().find(listed.provider, listed.name).unwrap();
        assert!(!model.window.is_zero(), "{}", listed.name);
        assert!(model.output.is_none_or(|output| output <= model.window), "{}", listed.name);
        let answers = [Capability::Chat, Capability::Embeddings].map(|one| model.can.contains(one));
        assert_eq!(answers.iter().filter(|can| **can).count(), 1, "{}", listed.name);
        if let Some(price) = &model.price {
            assert!(price.input > 0, "{}", listed.name);
            let tier = price.tier.as_ref();
            assert!(tier.is_none_or(|tier| tier.input >= price.input && tier.output >= price.output));
        }
    }
}

#[test]
fn what_is_no_catalogue_is_refused() {
    for text in [
        "version = 2\nas_of = \"2026-01-01\"",
        "version = 1\nas_of = \"2026-01-01\"\n[openai]\nm = { window = 1, can = \"chta\" }",
        "version = 1\nas_of = \"2026-01-01\"\n[openai]\nm = { windw = 1, can = \"chat\" }",
    ] {
        assert!(Catalogue::read(text).is_err(), "{text}");
    }
}

#[test]
fn models_are_found_by_the_kind_of_their_provider() {
    let found = |kind: &str| catalogue().find_of_kind(kind, "gpt-4.1").map(|(name, _)| name);
    assert_eq!(found("openai").as_deref(), Some("openai/gpt-4.1"));
    assert_eq!(found("azure-openai").as_deref(), Some("openai/gpt-4.1"));
    assert_eq!(found("openai-compatible"), None);
    assert_eq!(found("anthropic"), None);
    assert!(catalogue().find_named("groq/openai/gpt-oss-120b").is_some());
}

#[track_caller]
fn differs(written: &Written, expected: &[&str]) {
    let known = catalogue().find("openai", "gpt-5.6").unwrap();
    let found = differences(written, known);
    let found: Vec<String> = found.iter().map(|one| format!("{} {}", one.setting, one.said)).collect();
    assert_eq!(found, expected);
}

#[test]
fn only_what_both_say_differs() {
    let span = Span::default();
    differs(&Written::default(), &[]);
    let window = Some((TokenCount::new(922_000), span));
    differs(&Written { window, ..Written::default() }, &[]);
    let window = Some((TokenCount::new(128_000), span));
    differs(&Written { window, ..Written::default() }, &["context_window says 128000, the catalogue 922000"]);
    let can: CapabilitySet = [
        Capability::Chat,
        Capability::Streaming,
        Capability::Tools,
        Capability::ParallelTools,
        Capability::JsonSchema,
        Capability::Vision,
        Capability::Documents,
        Capability::Reasoning,
        Capability::Seed,
    ]
    .into_iter()
    .collect();
    differs(&Written { capabilities: Some((can, span)), ..Written::default() }, &[]);
    let can = Some(([Capability::Chat, Capability::Embeddings].into_iter().collect(), span));
    differs(
        &Written { capabilities: can, ..Written::default() },
        &[
            "capabilities lists `embeddings` and leaves out `streaming`, `tools`, `parallel_tools`, `json_schema`, \
           `vision`, `documents`, `reasoning`, unlike the catalogue",
        ],
    );
}

#[test]
fn a_price_differs_by_class_and_by_a_tier_that_is_left_out() {
    let price = |price: Price| Written {
        price: Some((Pricing::PerToken(Box::new(price)), Span::default())),
        ..Written::default()
    };
    let known = catalogue().find("openai", "gpt-5.6").unwrap().price.clone().unwrap();
    differs(&price(known.clone()), &[]);
    differs(&price(Price { cached_input: None, ..known.clone() }), &[]);
    differs(
        &price(Price { input: 1, tier: None, ..known }),
        &[
            "price says `input` 1, the catalogue 4000000; no `tier`, the catalogue one above 272000 input tokens",
        ],
    );
    let free = Written { price: Some((Pricing::Free, Span::default())), ..Written::default() };
    differs(&free, &[]);
}

#[test]
fn the_listing_filters_and_reads_back() {
    let models = catalogue()
        .list(&CatalogueFilter { provider: Some("openai".to_owned()), name: "gpt-4.1-mini".to_owned() });
    let table = catalogue().table(&models);
    assert!(table.contains("openai/gpt-4.1-mini     1047576      32768      0.40      1.60"), "{table}");
    assert!(table.ends_with("`+`: more for long prompts"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&catalogue().to_json(&models)).unwrap();
    assert_eq!(json["models"][0]["price"]["cached_input"], 100_000);
    assert_eq!(json["as_of"], catalogue().as_of());
    assert!(catalogue().providers().contains(&"anthropic"));
}
