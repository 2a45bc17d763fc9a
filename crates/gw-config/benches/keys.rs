//! What it costs to know a presented key.

use gw_config::{Composition, Config, FixedEnvironment, NewKey, Seams};
use gw_types::{KeyStore, Secret};
use std::sync::Arc;

fn main() {
    divan::main();
}

/// A store with a hundred keys that gw made and one from the environment.
fn store() -> (Arc<dyn KeyStore>, NewKey) {
    let made: Vec<NewKey> = (0..100).map(|n| NewKey::from_entropy([n; NewKey::ENTROPY_BYTES])).collect();
    let lines: String = made
        .iter()
        .enumerate()
        .map(|(n, key)| format!("{{ name = \"k{n}\", hash = \"{}\" }},", key.line()))
        .collect();
    let text = format!(
        "version = 1\n[providers.p]\nkind = \"scripted\"\nbehaviour = \"echo\"\n[deployments.d]\nprovider = \"p\"\n\
         model = \"m\"\nprice = \"free\"\n[[routes]]\nname = \"r\"\ndeployments = [\"d\"]\n[tenants.t]\n\
         keys = [{lines} {{ name = \"n\", secret = {{ env = \"K\" }} }}]\n[ledger]\nstore = \"none\"\n"
    );
    let environment = FixedEnvironment::new().with_var("K", "a key of the environment");
    let config = Config::parse(&text, "gw.toml", &environment).expect("the text is sound");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let seams = Seams::system().expect("entropy");
    let built = runtime.block_on(Composition::build(&config, seams, |ledger| ledger)).expect("the parts fit");
    (built.key_store, made[50].clone())
}

#[divan::bench]
fn a_key_that_gw_made(bencher: divan::Bencher<'_, '_>) {
    let (store, key) = store();
    bencher.bench(|| store.identify(divan::black_box(key.shown())));
}

#[divan::bench]
fn a_key_of_the_environment(bencher: divan::Bencher<'_, '_>) {
    let (store, _) = store();
    let key = Secret::new("a key of the environment").expect("text");
    bencher.bench(|| store.identify(divan::black_box(&key)));
}

#[divan::bench]
fn an_unknown_key(bencher: divan::Bencher<'_, '_>) {
    let (store, _) = store();
    let key = Secret::new("no key of anybody").expect("text");
    bencher.bench(|| store.identify(divan::black_box(&key)));
}
