//! Configurations, put together from parts.

use gw_testkit::FakeProvider;

use super::key_of;

/// Everything that a deployment may be able to do.
const ALL_CAPABILITIES: &str = "capabilities = [\"chat\", \"streaming\", \"tools\", \"parallel_tools\", \
     \"json_schema\", \"vision\", \"audio\", \"documents\", \"reasoning\", \"logprobs\", \"seed\"]";

/// The key that gw shows its upstreams.
const UPSTREAM_KEY: &str = "sk-upstream-key-of-the-gateway";

/// A `gw.toml` in the making, and the environment that it refers to.
///
/// Every deployment costs 1 micro-USD an input token and 2 an output token, can do everything, is expected to take
/// 10 ms and may see restricted data, unless its own lines say otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Toml {
    server: String,
    parts: String,
    ledger: String,
    whole: Option<String>,
    environment: Vec<(String, String)>,
}

impl Toml {
    /// Returns a configuration that listens on free ports and keeps its records in memory.
    pub(crate) fn new() -> Self {
        Self {
            server: "listen = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n".to_owned(),
            parts: String::new(),
            ledger: "store = \"none\"\n".to_owned(),
            whole: None,
            environment: vec![("UPSTREAM_KEY".to_owned(), UPSTREAM_KEY.to_owned())],
        }
    }

    /// Adds lines to `[server]`.
    #[must_use]
    pub(crate) fn server(mut self, lines: &str) -> Self {
        self.server.push_str(&format!("{lines}\n"));
        self
    }

    /// Keeps the records in a file beside the configuration.
    #[must_use]
    pub(crate) fn sqlite(self) -> Self {
        self.store("\"sqlite:gw.db\"")
    }

    /// Keeps the records where the value says; the lines of `[ledger]` begin anew.
    #[must_use]
    pub(crate) fn store(mut self, value: &str) -> Self {
        self.ledger = format!("store = {value}\n");
        self
    }

    /// Adds lines to `[ledger]`.
    #[must_use]
    pub(crate) fn ledger(mut self, lines: &str) -> Self {
        self.ledger.push_str(&format!("{lines}\n"));
        self
    }

    /// Adds any part.
    #[must_use]
    pub(crate) fn part(mut self, text: &str) -> Self {
        self.parts.push_str(&format!("{text}\n"));
        self
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a provider over HTTP and a deployment of the same name.
    #[must_use]
    pub(crate) fn upstream(self, name: &str, provider: &FakeProvider) -> Self {
        self.upstream_with(name, &provider.base_url(), "", "")
    }

    /// The same, with more lines for the provider and for the deployment.
    #[must_use]
    pub(crate) fn upstream_with(self, name: &str, base_url: &str, provider: &str, deployment: &str) -> Self {
        let kind = if provider.contains("kind") { "" } else { "kind = \"openai-compatible\"" };
        let key = "api_key = { env = \"UPSTREAM_KEY\" }";
        self.part(&format!("[providers.{name}]\n{kind}\nbase_url = \"{base_url}\"\n{key}\n{provider}"))
            .deployment(name, name, deployment)
    }

    /// Adds a provider that plays a script, and a deployment of the same name.
    #[must_use]
    pub(crate) fn scripted(self, name: &str, steps: &[&str]) -> Self {
        self.scripted_with(name, steps, "")
    }

    /// The same, with more lines for the deployment.
    #[must_use]
    pub(crate) fn scripted_with(self, name: &str, steps: &[&str], deployment: &str) -> Self {
        let steps: Vec<String> = steps.iter().map(|step| format!("\"{step}\"")).collect();
        let script = format!("script = [{}]", steps.join(", "));
        self.part(&format!("[providers.{name}]\nkind = \"scripted\"\n{script}"))
            .deployment(name, name, deployment)
    }

    /// Adds a deployment at a provider.
    #[must_use]
    pub(crate) fn deployment(self, name: &str, provider: &str, lines: &str) -> Self {
        let mut text = format!("[deployments.{name}]\nprovider = \"{provider}\"\n{lines}\n");
        for (key, line) in [
            ("model =", format!("model = \"{name}-model\"")),
            ("family", "family = \"one\"".to_owned()),
            ("price", "price = { input = 1_000_000, output = 2_000_000 }".to_owned()),
            ("capabilities", ALL_CAPABILITIES.to_owned()),
            ("expected_latency_ms", "expected_latency_ms = 10".to_owned()),
            ("min_attempt_ms", "min_attempt_ms = 5".to_owned()),
            ("classification_ceiling", "classification_ceiling = \"restricted\"".to_owned()),
        ] {
            if !lines.contains(key) {
                text.push_str(&format!("{line}\n"));
            }
        }
        self.part(&text)
    }

    /// Adds a route for one model.
    #[must_use]
    pub(crate) fn route(self, model: &str, chain: &[&str]) -> Self {
        self.route_with(model, chain, "")
    }

    /// The same, with more lines.
    #[must_use]
    pub(crate) fn route_with(self, model: &str, chain: &[&str], lines: &str) -> Self {
        let chain: Vec<String> = chain.iter().map(|name| format!("\"{name}\"")).collect();
        let matches = if lines.contains("match =") {
            String::new()
        } else {
            format!("match = {{ models = [\"{model}\"] }}\n")
        };
        self.part(&format!(
            "[[routes]]\nname = \"{model}\"\n{matches}deployments = [{}]\n{lines}",
            chain.join(", ")
        ))
    }

    /// Adds a tenant with the key that [`key_of`] returns.
    #[must_use]
    pub(crate) fn tenant(self, name: &str, lines: &str) -> Self {
        let var = format!("KEY_{}", name.to_uppercase());
        self.part(&format!(
            "[tenants.{name}]\nkeys = [{{ name = \"dev\", secret = {{ env = \"{var}\" }} }}]\n{lines}"
        ))
        .var(&var, &key_of(name))
    }

    /// Replaces the whole text, and keeps the environment.
    #[must_use]
    pub(crate) fn whole(mut self, text: &str) -> Self {
        self.whole = Some(text.to_owned());
        self
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        format!("version = 1\n\n[server]\n{}\n{}\n[ledger]\n{}", self.server, self.parts, self.ledger)
    }

    /// Returns the variables that the text refers to.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}
