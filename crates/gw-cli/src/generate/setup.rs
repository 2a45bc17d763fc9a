//! From the command line to a gateway that is ready for a batch.

use gw_config::{
    BatchLimits, Composition, Config, Endpoint, Environment, Seams, SystemEnvironment, variables,
};
use gw_exec::{BatchConfig, Ids, OnFailure, Order};
use gw_types::{KeyIdentity, KeyName, Pricing, TokenCount};

use crate::{arguments::GenerateOptions, check::rendered};

/// The key by which records know what a batch has asked.
const KEY: &str = "gw-generate";

/// A gateway and how the batch runs on it.
pub(super) struct Ready {
    pub(super) composition: Composition,
    pub(super) batch: BatchConfig,
}

pub(super) async fn prepare(options: &GenerateOptions) -> Result<Ready, String> {
    let limits = BatchLimits {
        requests_per_second_milli: options.qps,
        in_flight_tokens: options.in_flight_tokens.map(TokenCount::new),
    };
    let config = config(options)?.for_batch(limits);
    let seams = Seams::system().map_err(|error| format!("error: {error}"))?;
    let built = Composition::build(&config, seams, |ledger| ledger).await;
    let composition = built.map_err(|faults| rendered(&faults))?;
    refuse_unknown_cost(options, &composition)?;
    let batch = BatchConfig {
        order: if options.ordered { Order::Input } else { Order::Completion },
        on_failure: if options.fail_fast { OnFailure::Stop } else { OnFailure::Continue },
        deadline: options.deadline,
        max_cost: options.max_cost,
        // The reader keeps equal ids out, with the numbers of their lines.
        ids: Ids::Unique,
        ..BatchConfig::new(caller(options, &composition)?, options.max_concurrency)
    };
    Ok(Ready { composition, batch })
}

fn config(options: &GenerateOptions) -> Result<Config, String> {
    let environment = SystemEnvironment;
    let config = match (&options.base_url, &options.model) {
        (Some(base_url), Some(model)) => {
            let is_set = |name: &str| environment.var(name).is_ok_and(|value| !value.trim().is_empty());
            let key = options.api_key_env.clone();
            let key = key.or_else(|| Some(variables::OPENAI_API_KEY.to_owned()).filter(|name| is_set(name)));
            let endpoint = Endpoint {
                base_url: base_url.clone(),
                model: model.clone(),
                key,
                price: options.price,
                context_window: options.context_window,
                max_attempts: options.max_attempts,
                attempt_timeout_ms: u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX),
            };
            Config::of_endpoint(&endpoint, &environment)
        }
        _ => {
            if !options.config.exists() {
                return Err(format!(
                    "error: there is no `{}`; name a configuration with `--config FILE`, or an endpoint with `--base-url URL --model MODEL`",
                    options.config.display()
                ));
            }
            Config::load_without_callers(&options.config, &environment)
        }
    };
    config.map_err(|faults| rendered(&faults))
}

fn refuse_unknown_cost(options: &GenerateOptions, composition: &Composition) -> Result<(), String> {
    let policy = composition.gateway.policy();
    let unpriced =
        policy.targets().iter().find(|target| matches!(target.deployment.pricing, Pricing::Unpriced));
    match (options.max_cost, unpriced) {
        (Some(_), Some(target)) => Err(format!(
            "error: `--max-cost` needs to know what `{}` costs: say `--price INPUT,OUTPUT` in USD per million tokens, or set `price` in the configuration",
            target.deployment.name
        )),
        (None, _) | (_, None) => Ok(()),
    }
}

fn caller(options: &GenerateOptions, composition: &Composition) -> Result<KeyIdentity, String> {
    let tenants = composition.tenants();
    let names = || tenants.iter().map(|tenant| format!("`{tenant}`")).collect::<Vec<_>>().join(", ");
    let tenant = match (&options.tenant, tenants.as_slice()) {
        (Some(named), known) if known.contains(named) => named.clone(),
        (Some(named), _) => return Err(format!("error: there is no tenant `{named}`; known: {}", names())),
        (None, [only]) => only.clone(),
        (None, _) => {
            return Err(format!("error: say with `--tenant` as whom the batch is run; known: {}", names()));
        }
    };
    let key = KeyName::new(KEY).map_err(|error| format!("error: {error}"))?;
    Ok(KeyIdentity { tenant, key })
}
