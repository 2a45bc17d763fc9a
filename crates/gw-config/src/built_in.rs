//! The configuration without a file: a first request works with no key and no network.

mod known;

use std::path::PathBuf;

use self::known::KNOWN;
use crate::{
    Config, Diagnostics, Environment,
    file::Callers,
    variables::{HOME, KEYS_WITHOUT_ROUTE, XDG_STATE_HOME},
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
script = ["429"]

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
        text.extend(KNOWN.iter().filter_map(|known| known.text(is_set)));
        let mut notes: Vec<String> = KEYS_WITHOUT_ROUTE
            .into_iter()
            .filter(|(name, _)| is_set(name))
            .map(|(name, why)| format!("`{name}` is set, but {why}: that needs a configuration file"))
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

/// Returns the user's state folder, as the XDG base directory specification finds it: a relative path is none.
fn state_folder(environment: &dyn Environment) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = environment.var(name).ok()?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    absolute(XDG_STATE_HOME).or_else(|| Some(absolute(HOME)?.join(".local").join("state")))
}

/// Returns a TOML string with the text.
pub(crate) fn quoted(text: &str) -> String {
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

    /// Returns what opens with the variables set, as the effective configuration shows it.
    fn opened(variables: &[&str]) -> String {
        let home = FixedEnvironment::new().with_var("HOME", "/u");
        let environment =
            variables.iter().fold(home, |environment, name| environment.with_var(name, "canary"));
        let built_in = built_in(&environment);
        assert!(!format!("{built_in:?}").contains("canary"));
        built_in.config.effective()
    }

    #[test]
    fn keys_of_the_environment_open_routes() {
        for (variable, models) in [
            ("OPENAI_API_KEY", "gpt-*"),
            ("ANTHROPIC_API_KEY", "claude-*"),
            ("GEMINI_API_KEY", "gemini-*"),
            ("GOOGLE_API_KEY", "gemini-*"),
            ("MISTRAL_API_KEY", "mistral-*"),
            ("DEEPSEEK_API_KEY", "deepseek-*"),
            ("XAI_API_KEY", "grok-*"),
        ] {
            let effective = opened(&[variable]);
            assert!(effective.contains(models) && effective.contains(variable), "{effective}");
            assert!(!opened(&[]).contains(models));
        }
        let all = opened(&["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"]);
        assert!(
            all.contains("gpt-*") && all.contains("claude-*") && !all.contains("GOOGLE_API_KEY"),
            "{all}"
        );
        let blank = FixedEnvironment::new().with_var("HOME", "/u").with_var("OPENAI_API_KEY", " ");
        assert!(!built_in(&blank).config.effective().contains("gpt-*"));
    }

    #[test]
    fn keys_that_open_nothing_are_noted() {
        let environment =
            FixedEnvironment::new().with_var("HOME", "/u").with_var("AWS_BEARER_TOKEN_BEDROCK", "canary");
        let notes = built_in(&environment).notes;
        assert_eq!(
            notes,
            [
                "`AWS_BEARER_TOKEN_BEDROCK` is set, but nothing says which region: that needs a configuration file"
            ]
        );
    }

    #[test]
    fn any_text_can_be_written_down() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
