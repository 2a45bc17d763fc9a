//! One endpoint as a whole configuration, and what a batch adds to any: for work that needs no file.

use std::num::NonZeroU32;

use gw_types::{Capability, TokenCount};

use crate::{Config, Diagnostics, Environment, file::Callers};

/// How the configuration is called where a file would be named.
const NAME: &str = "the endpoint of the command line";

/// An OpenAI-compatible endpoint with one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is, up to `/v1`.
    pub base_url: String,
    /// The model as the endpoint knows it.
    pub model: String,
    /// The environment variable that holds its key; `None`: it asks for none.
    pub key: Option<String>,
    /// What input and output cost, in micro-USD per million tokens; `None`: not known.
    pub price: Option<(u64, u64)>,
    /// Tokens of input and output that the model takes; `None`: not known.
    pub context_window: Option<u64>,
    /// Calls for one request, retries included; from 1 to 10.
    pub max_attempts: u32,
    /// The time of one call, in milliseconds.
    pub attempt_timeout_ms: u64,
}

impl Endpoint {
    /// Returns an endpoint that asks for no key, with a price and a window that nobody knows: 3 calls of 2 minutes each.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            price: None,
            context_window: None,
            max_attempts: 3,
            attempt_timeout_ms: 120_000,
        }
    }
}

/// What a batch sets for every deployment of its configuration, where the configuration does not set less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchLimits {
    /// Calls a second at a deployment, in thousandths.
    pub requests_per_second_milli: Option<NonZeroU32>,
    /// Tokens in flight at a deployment: input and output bound of all its calls together.
    pub in_flight_tokens: Option<TokenCount>,
}

impl Config {
    /// Returns the configuration of one endpoint: every model name goes there, records stay in memory, nobody is limited.
    ///
    /// # Errors
    /// The URL is none, the key's variable is not set, or a number is out of its range.
    pub fn of_endpoint(endpoint: &Endpoint, environment: &dyn Environment) -> Result<Self, Diagnostics> {
        let Endpoint { base_url, model, key, price, context_window, max_attempts, attempt_timeout_ms } =
            endpoint;
        let quoted = crate::built_in::quoted;
        let key =
            key.as_ref().map_or(String::new(), |name| format!("api_key = {{ env = {} }}\n", quoted(name)));
        let price = match price {
            None => "\"unpriced\"".to_owned(),
            Some((0, 0)) => "\"free\"".to_owned(),
            Some((input, output)) => format!("{{ input = {input}, output = {output} }}"),
        };
        let window = context_window.map_or(String::new(), |tokens| format!("context_window = {tokens}\n"));
        let capabilities: Vec<_> =
            Capability::ALL.iter().map(|one| format!("\"{}\"", one.as_str())).collect();
        let text = format!(
            "version = 1\n\n[server]\nmax_concurrency = {SLOTS}\nmax_deadline_ms = {DEADLINE_MS_MAX}\n\n[providers.endpoint]\nkind = \"openai-compatible\"\nbase_url = {}\n{key}\n\
             [deployments.endpoint]\nprovider = \"endpoint\"\nmodel = {}\ncatalogue = \"none\"\nclassification_ceiling = \"restricted\"\n\
             capabilities = [{}]\nprice = {price}\n{window}max_attempts = {max_attempts}\nattempt_timeout_ms = {attempt_timeout_ms}\n\n\
             [[routes]]\nname = \"endpoint\"\ndeployments = [\"endpoint\"]\n\n[tenants.local]\n\n[ledger]\nstore = \"none\"\n",
            quoted(base_url),
            quoted(model),
            capabilities.join(", "),
        );
        Self::read(&text, NAME, environment, Callers::Anyone)
    }

    /// Returns the configuration with a batch's limits, each where the configuration does not set less. Where no store
    /// is set, only the latest record is kept: a batch's results say what its records would.
    #[must_use]
    pub fn for_batch(mut self, limits: BatchLimits) -> Self {
        fn less<T: Ord>(own: Option<T>, other: Option<T>) -> Option<T> {
            match (own, other) {
                (Some(own), Some(other)) => Some(own.min(other)),
                (own, other) => own.or(other),
            }
        }
        self.memory_records = 1;
        for deployment in self.file.deployments.values_mut() {
            let entry = &mut deployment.value;
            entry.requests_per_second_milli =
                less(entry.requests_per_second_milli, limits.requests_per_second_milli);
            entry.in_flight_tokens = less(entry.in_flight_tokens, limits.in_flight_tokens);
        }
        self
    }
}

/// Calls at once that the configuration of one endpoint allows: as many as a batch may have workers.
const SLOTS: usize = gw_exec::BATCH_WORKERS_MAX;

/// The longest time that the configuration of one endpoint allows a request: a day.
const DEADLINE_MS_MAX: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::{BatchLimits, Endpoint};
    use crate::{Checked, Config, FixedEnvironment};

    fn endpoint() -> Endpoint {
        Endpoint::new("http://127.0.0.1:9/v1", "m/1")
    }

    #[test]
    fn an_endpoint_is_a_whole_configuration() {
        let environment = FixedEnvironment::new().with_var("K", "canary-secret");
        let priced = Endpoint {
            key: Some("K".to_owned()),
            price: Some((1, 2)),
            context_window: Some(9_000),
            ..endpoint()
        };
        for endpoint in [endpoint(), priced, Endpoint { price: Some((0, 0)), ..endpoint() }] {
            let config = Config::of_endpoint(&endpoint, &environment).unwrap();
            Checked::of(config.clone()).unwrap();
            assert!(!config.effective().contains("canary"), "{}", config.effective());
        }
    }

    #[test]
    fn what_is_wrong_with_an_endpoint_is_said() {
        let environment = FixedEnvironment::new();
        let no_url = Endpoint { base_url: "nowhere".to_owned(), ..endpoint() };
        let refused = Config::of_endpoint(&no_url, &environment).and_then(Checked::of).unwrap_err();
        assert!(refused.to_string().contains("base_url"), "{refused}");
        let no_key = Endpoint { key: Some("GW_NO_SUCH".to_owned()), ..endpoint() };
        assert!(Config::of_endpoint(&no_key, &environment).unwrap_err().to_string().contains("GW_NO_SUCH"));
    }

    #[test]
    fn a_batch_only_lowers_limits() {
        let environment = FixedEnvironment::new();
        let config = Config::of_endpoint(&endpoint(), &environment).unwrap();
        let limits = |tokens| BatchLimits {
            in_flight_tokens: Some(gw_types::TokenCount::new(tokens)),
            ..BatchLimits::default()
        };
        let config = config.for_batch(limits(500)).for_batch(limits(900));
        assert!(config.effective().contains("\"in_flight_tokens\": 500"), "{}", config.effective());
    }
}
