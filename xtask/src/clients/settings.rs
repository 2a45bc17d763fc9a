//! The `gw.toml` that the client suite runs against.

use std::fmt::Write as _;

/// The key that the suite's clients present. It opens a gateway that lives for one run on the loopback interface.
pub(super) const CLIENT_KEY: &str = "gw-client-suite-key-for-loopback-only";
/// Where `gw` finds that key.
pub(super) const CLIENT_KEY_VARIABLE: &str = "GW_CLIENTS_KEY";
/// Where `gw` finds the provider's key; the suite's provider takes any that does not begin with `sk-bad`.
pub(super) const UPSTREAM_KEY_VARIABLE: &str = "GW_CLIENTS_UPSTREAM_KEY";

/// What differs from run to run.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// The suite's provider.
    pub(super) upstream_port: u16,
    /// The gateway's data plane.
    pub(super) port: u16,
    /// The gateway's admin plane.
    pub(super) admin_port: u16,
    /// Each becomes one deployment with one route.
    pub(super) models: &'a [String],
}

impl Settings<'_> {
    /// Writes the configuration; every key of the file format that the suite uses stands here and nowhere else.
    ///
    /// One attempt and no cache: the suite counts the calls that reach the provider.
    pub(super) fn to_toml(&self) -> String {
        let Self { upstream_port, port, admin_port, models } = self;
        let mut text = format!(
            r#"version = 1

[server]
listen = "127.0.0.1:{port}"
admin_listen = "127.0.0.1:{admin_port}"

[ledger]
store = "none"

[tenants.clients]
keys = [{{ name = "clients", secret = {{ env = "{CLIENT_KEY_VARIABLE}" }} }}]

[providers.mock]
kind = "openai"
base_url = "http://127.0.0.1:{upstream_port}/v1"
api_key = {{ env = "{UPSTREAM_KEY_VARIABLE}" }}

[providers.claude]
kind = "anthropic"
base_url = "http://127.0.0.1:{upstream_port}"
api_key = {{ env = "{UPSTREAM_KEY_VARIABLE}" }}

[providers.gemini]
kind = "gemini"
base_url = "http://127.0.0.1:{upstream_port}/v1beta"
api_key = {{ env = "{UPSTREAM_KEY_VARIABLE}" }}
"#
        );
        for model in *models {
            let provider =
                ["claude", "gemini"].into_iter().find(|kind| model.starts_with(kind)).unwrap_or("mock");
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                r#"
[deployments.{model}]
provider = "{provider}"
model = "{model}"
region = "local"
classification_ceiling = "restricted"
capabilities = ["chat", "streaming", "tools", "json_schema", "vision", "reasoning", "embeddings"]
context_window = 1_000_000
max_output_tokens = 200_000
price = "free"
expected_latency_ms = 1
attempt_timeout_ms = 20_000
max_attempts = 1

[[routes]]
name = "{model}"
priority = 10
match = {{ models = ["{model}"] }}
deployments = ["{model}"]
strategy = "ordered"
"#
            );
        }
        text
    }
}

/// Reads the model names from the provider's source: the strings of its list `NAMES`, as its three dialects call them.
pub(super) fn model_names(source: &str) -> Option<Vec<String>> {
    let start = source.lines().position(|line| line.starts_with("NAMES = ["))?;
    let list: String = source.lines().skip(start).collect::<Vec<_>>().join("\n");
    let (list, _) = list.split_once(']')?;
    let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    // Each name stands for a model in every dialect of the provider.
    let all = ["", "claude-", "gemini-"]
        .iter()
        .flat_map(|dialect| names.iter().map(move |name| format!("{dialect}{name}")));
    (!names.is_empty()).then(|| all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_list_over_several_lines() {
        let source = "X = [\"no\"]\nNAMES = [\"mock-echo\", \"mock-400\",\n         \"mock-embed\"]\nMODELS = [\"no\"]\n";
        let names = model_names(source).unwrap();
        assert_eq!(names[..4], ["mock-echo", "mock-400", "mock-embed", "claude-mock-echo"]);
        assert_eq!((names.len(), names[6].as_str()), (9, "gemini-mock-echo"));
        assert!(model_names("MODELS = []").is_none());
    }

    #[test]
    fn writes_one_deployment_and_one_route_for_each_model() {
        let models = ["mock-echo".to_owned(), "claude-mock-400".to_owned()];
        let settings = Settings { upstream_port: 9100, port: 8080, admin_port: 8081, models: &models };
        let table: toml::Table = settings.to_toml().parse().unwrap();
        assert_eq!(table["deployments"].as_table().unwrap().len(), 2);
        assert_eq!(table["routes"].as_array().unwrap().len(), 2);
        assert_eq!(table["deployments"]["mock-echo"]["provider"].as_str(), Some("mock"));
        assert_eq!(table["deployments"]["claude-mock-400"]["provider"].as_str(), Some("claude"));
        assert_eq!(table["providers"]["mock"]["base_url"].as_str(), Some("http://127.0.0.1:9100/v1"));
        assert_eq!(
            table["tenants"]["clients"]["keys"][0]["secret"]["env"].as_str(),
            Some(CLIENT_KEY_VARIABLE)
        );
    }
}
