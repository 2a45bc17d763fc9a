//! A gateway as a configuration describes it, with one caller.

use gw_config::{Composition, Config, FixedEnvironment, Seams};
use gw_types::{KeyIdentity, Secret};

pub(crate) struct House {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) built: Composition,
    /// Who has the key in the variable `K`.
    pub(crate) caller: KeyIdentity,
}

impl House {
    pub(crate) fn of(text: &str) -> Self {
        let environment = FixedEnvironment::new().with_var("K", "key");
        let config = Config::parse(text, "gw.toml", &environment).expect("the text is sound");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let seams = Seams::system().expect("entropy");
        let built = Composition::build(&config, seams, |ledger| ledger);
        let built = runtime.block_on(built).expect("the parts fit");
        let caller = built.key_store.identify(&Secret::new("key").expect("text")).expect("the key is known");
        Self { runtime, built, caller }
    }
}
