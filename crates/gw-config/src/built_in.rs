//! The configuration without a file: a first request works with no key and no network.

use std::path::PathBuf;

use crate::{
    Config, Diagnostics, Environment,
    file::Callers,
    variables::{HOME, KEYS_NOT_AVAILABLE, OPENAI_API_KEY, XDG_STATE_HOME},
};

/// How the built-in configuration is called where a file would be named.
const NAME: &str = "built-in configuration";

/// Loopback only, one tenant without limits, and three models that need nothing. What is sent to them stays in the
/// process, so they may see everything.
const DEMO: &str = r#"version = 1

[providers.demo-echo]
kind = "scripted"
behaviour = "echo"

[providers.demo-slow]
kind = "scripted"
behaviour = "slow"

[providers.demo-busy]
kind = "scripted"
script = ["429 retry-after=1"]

[deployments.demo-echo]
provider = "demo-echo"
model = "demo-echo"
classification_ceiling = "restricted"
capabilities = ["chat", "streaming", "tools", "parallel_tools", "json_schema", "seed"]
price = "free"
expected_latency_ms = 10

[deployments.demo-slow]
provider = "demo-slow"
model = "demo-slow"
classification_ceiling = "restricted"
price = "free"
expected_latency_ms = 2_000

[deployments.demo-busy]
provider = "demo-busy"
model = "demo-flaky"
classification_ceiling = "restricted"
family = "demo-echo"
capabilities = ["chat", "streaming", "tools", "parallel_tools", "json_schema", "seed"]
price = "free"
expected_latency_ms = 10

[tenants.local]

[[routes]]
name = "demo-echo"
match = { models = ["demo-echo"] }
deployments = ["demo-echo"]

[[routes]]
name = "demo-flaky"
match = { models = ["demo-flaky"] }
deployments = ["demo-busy", "demo-echo"]

[[routes]]
name = "demo-slow"
match = { models = ["demo-slow"] }
deployments = ["demo-slow"]
"#;

/// What the configuration without a file is, and what is worth saying about it.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    /// The configuration.
    pub config: Config,
    /// One line each: what was found in the environment and is not used.
    pub notes: Vec<String>,
}

impl Config {
    /// Returns the configuration for a start without a file.
    ///
    /// It listens on loopback and knows callers without a key as tenant `local`. It offers `demo-echo`, `demo-slow`
    /// and `demo-flaky` (its first deployment always answers 429, so the second one does), and what the provider keys
    /// of the environment open. Its ledger is `gw/gw.db` in the user's state folder, or memory where there is none.
    ///
    /// # Errors
    /// A provider key of the environment cannot be used, or the state folder has a name that cannot be written down.
    pub fn built_in(environment: &dyn Environment) -> Result<BuiltIn, Diagnostics> {
        let is_set = |name: &str| environment.var(name).is_ok_and(|value| !value.trim().is_empty());
        let mut text = DEMO.to_owned();
        if is_set(OPENAI_API_KEY) {
            text.push_str(OPENAI);
        }
        let mut notes: Vec<String> = KEYS_NOT_AVAILABLE
            .into_iter()
            .filter(|name| is_set(name))
            .map(|name| format!("`{name}` is set, but its provider is not available in this version"))
            .collect();
        match state_folder(environment) {
            Some(folder) => {
                let store = format!("sqlite:{}", folder.join("gw").join("gw.db").display());
                text.push_str(&format!("\n[ledger]\nstore = {}\n", quoted(&store)));
            }
            None => {
                text.push_str("\n[ledger]\nstore = \"none\"\n");
                notes.push(format!(
                    "neither `{XDG_STATE_HOME}` nor `{HOME}` is set, so records are kept in memory only"
                ));
            }
        }
        let config = Self::read(&text, NAME, environment, Callers::Anyone)?;
        Ok(BuiltIn { config, notes })
    }
}

/// OpenAI's models, by the beginnings of their names; the provider gets the name that was asked for. No price is known
/// for a model that is not named, so the deployment says so; and no data above `internal` leaves without a file that
/// says that it may.
const OPENAI: &str = r#"
[providers.openai]
kind = "openai"
api_key = { env = "OPENAI_API_KEY" }

[deployments.openai]
provider = "openai"
model = "*"
capabilities = [
    "chat", "streaming", "tools", "parallel_tools", "json_schema", "vision", "audio", "documents", "reasoning",
    "logprobs", "seed",
]
price = "unpriced"
attempt_timeout_ms = 300_000

[[routes]]
name = "openai"
match = { models = ["gpt-*", "chatgpt-*", "o1*", "o3*", "o4*"] }
deployments = ["openai"]

[[refused]]
models = ["gpt-*", "chatgpt-*", "o1*", "o3*", "o4*"]
classifications = ["confidential", "restricted"]
"#;

/// Returns the user's state folder, as the XDG base directory specification finds it: a relative path is none.
fn state_folder(environment: &dyn Environment) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = environment.var(name).ok()?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    absolute(XDG_STATE_HOME).or_else(|| Some(absolute(HOME)?.join(".local").join("state")))
}

/// Returns a TOML string with the text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{BuiltIn, quoted};
    use crate::{Checked, Config, FixedEnvironment};

    fn built_in(environment: &FixedEnvironment) -> BuiltIn {
        let built_in = Config::built_in(environment).unwrap();
        Checked::of(built_in.config.clone()).unwrap();
        built_in
    }

    #[track_caller]
    fn check_store(environment: &FixedEnvironment, expected: &str) {
        let effective = built_in(environment).config.effective();
        assert!(effective.contains(expected), "{effective}");
    }

    #[test]
    fn records_go_into_the_state_folder() {
        let home = FixedEnvironment::new().with_var("HOME", "/u");
        check_store(&home, "\"sqlite\": \"/u/.local/state/gw/gw.db\"");
        check_store(&home.clone().with_var("XDG_STATE_HOME", "/s"), "\"sqlite\": \"/s/gw/gw.db\"");
        check_store(&home.with_var("XDG_STATE_HOME", "relative"), "/u/.local/state/gw/gw.db");
        check_store(&FixedEnvironment::new().with_var("HOME", "/a \"b\\c"), "/a \\\"b\\\\c/.local/state");
        let none = FixedEnvironment::new();
        check_store(&none, "\"store\": \"none\"");
        assert_eq!(built_in(&none).notes.len(), 1);
    }

    #[test]
    fn keys_of_the_environment_open_routes() {
        let environment = FixedEnvironment::new()
            .with_var("HOME", "/u")
            .with_var("OPENAI_API_KEY", "canary")
            .with_var("ANTHROPIC_API_KEY", "canary")
            .with_var("GEMINI_API_KEY", "");
        let with_key = built_in(&environment);
        let effective = with_key.config.effective();
        assert!(effective.contains("gpt-*") && effective.contains("OPENAI_API_KEY"), "{effective}");
        assert_eq!(
            with_key.notes,
            ["`ANTHROPIC_API_KEY` is set, but its provider is not available in this version"]
        );
        assert!(!format!("{with_key:?}").contains("canary"));
        let without = built_in(&FixedEnvironment::new().with_var("OPENAI_API_KEY", " ")).config.effective();
        assert!(!without.contains("gpt-*"));
    }

    #[test]
    fn any_text_can_be_written_down() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
