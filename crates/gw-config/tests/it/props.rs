//! What holds for any text.

use gw_config::{FixedEnvironment, check};
use proptest::prelude::*;

/// Pieces that make texts which come near to a configuration.
const PIECES: [&str; 43] = [
    "version = 1\n",
    "[server]\n",
    "[server",
    "listen = ",
    "\"127.0.0.1:1\"\n",
    "[providers.p]\n",
    "kind = \"scripted\"\n",
    "kind = \"openai\"\n",
    "behaviour = \"echo\"\n",
    "api_key = { env = \"K\" }\n",
    "api_key = \"sk-canary-canary\"\n",
    "[deployments.d]\n",
    "provider = \"p\"\n",
    "model = \"m\"\n",
    "price = \"free\"\n",
    "price = { input = 1, output = 2 }\n",
    "[[routes]]\n",
    "name = \"r\"\n",
    "deployments = [\"d\"]\n",
    "match = { models = [\"m*\"] }\n",
    "[tenants.t]\n",
    "keys = [{ name = \"k\", secret = { env = \"K\" } }]\n",
    "budget = { limit_micros = 1, window = \"day\" }\n",
    "cache = {}\n",
    "[[refused]]\n",
    "strategy = \"weighted\"\n",
    "weights = { d = 1 }\n",
    "[ledger]\n",
    "store = \"none\"\n",
    "= ",
    "{ ",
    "}\n",
    "[",
    "]\n",
    "\"\"\"",
    "'",
    "\u{feff}",
    "é",
    "\0",
    "1e99\n",
    "-1\n",
    "a.b.c = 1\n",
    "\r\n",
];

fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60);
    prop_oneof![pieces.prop_map(|pieces| pieces.concat()), "\\PC{0,200}", any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// No text panics, and whatever is refused is refused with a place inside the text and in every form.
    #[test]
    fn any_text_is_accepted_or_explained(text in texts()) {
        let environment = FixedEnvironment::new().with_var("K", "canary-of-the-environment");
        let Err(faults) = check(&text, "gw.toml", &environment) else { return Ok(()) };
        prop_assert!(faults.iter().len() > 0);
        for fault in faults.iter() {
            prop_assert!(!fault.message().is_empty());
            let line = fault.line().unwrap_or(1);
            prop_assert!((1..=text.matches('\n').count() + 1).contains(&line), "{fault}");
            prop_assert!(fault.column().unwrap_or(1) >= 1);
        }
        let said = format!("{faults} {} {} {}", faults.render(false), faults.render(true), faults.to_json());
        prop_assert!(!said.contains("canary"), "{}", said);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&faults.to_json()).is_ok());
    }

    /// Reading is a function of the text: the same faults, in the same order.
    #[test]
    fn the_same_text_has_the_same_faults(text in texts()) {
        let environment = FixedEnvironment::new();
        let read = || check(&text, "gw.toml", &environment).map(|checked| checked.config.digest());
        match (read(), read()) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (one, other) => prop_assert_eq!(one.err(), other.err()),
        }
    }
}
