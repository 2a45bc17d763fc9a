//! `generate_many` against the built-in echo model, or against a URL: `cargo run --example generate_many -- URL MODEL`.

use std::{error::Error, num::NonZeroUsize};

use futures_util::{StreamExt, stream};
use gw_config::{Composition, Config, Endpoint, FixedEnvironment, GenerationSpec, Seams, SystemEnvironment};
use gw_exec::BatchConfig;
use gw_types::KeyIdentity;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let config = match (arguments.next(), arguments.next()) {
        (Some(base_url), Some(model)) => {
            Config::of_endpoint(&Endpoint::new(base_url, model), &SystemEnvironment)?
        }
        _ => Config::built_in(&FixedEnvironment::new())?.config,
    };
    let gateway = Composition::build(&config, Seams::system()?, |ledger| ledger).await?.gateway;
    let caller = KeyIdentity { tenant: "local".parse()?, key: "example".parse()? };
    let requests: Result<Vec<_>, _> = (0..10)
        .map(|number| GenerationSpec::of_prompt(format!("item-{number}"), format!("say {number}")))
        .map(|spec| spec.into_request(Some("demo-echo")))
        .collect();
    let batch = BatchConfig::new(caller, NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN));
    let mut results = gateway.generate_many(stream::iter(requests?), batch);
    while let Some(result) = results.next().await {
        let text = result.completions.first().map_or("", |choice| choice.text.as_str());
        println!("{} {} {text:?} {:?}", result.request_id, result.status.as_str(), result.error_class);
    }
    Ok(())
}
