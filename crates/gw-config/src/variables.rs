//! Every environment variable that gw reads by itself. A configuration may name others for its secrets.

use gw_types::Secret;

use crate::Environment;

/// Key of the OpenAI API. Without a configuration file its presence makes the route for `gpt-*` and its like.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// Key of the Anthropic API. Without a configuration file its presence makes the route for `claude-*`.
pub const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";

/// Key of the Gemini API. Without a configuration file its presence makes the route for `gemini-*`.
pub const GEMINI_API_KEY: &str = "GEMINI_API_KEY";

/// Google's older name for [`GEMINI_API_KEY`], which wins where both are set.
pub const GOOGLE_API_KEY: &str = "GOOGLE_API_KEY";

/// Keys that alone do not say enough for a route, and what is missing; without a configuration file their presence is noted.
/// (The variables of the OpenAI-compatible vendors stand in their presets.)
pub const KEYS_WITHOUT_ROUTE: [(&str, &str); 5] = [
    ("AWS_BEARER_TOKEN_BEDROCK", "nothing says which region"),
    ("GROQ_API_KEY", "nothing says which models"),
    ("HF_TOKEN", "nothing says which models"),
    ("OPENROUTER_API_KEY", "nothing says which models"),
    ("TOGETHER_API_KEY", "nothing says which models"),
];

/// AWS's own name for an access key's id; for `kind = "bedrock"` without another credential.
pub const AWS_ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";

/// AWS's own name for an access key.
pub const AWS_SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";

/// AWS's own name for the token that belongs to keys of a session.
pub const AWS_SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";

/// AWS's own name for the role to take with a token of the platform, where there are no keys.
pub const AWS_ROLE_ARN: &str = "AWS_ROLE_ARN";

/// AWS's own name for how that session is called; absent: `gw`.
pub const AWS_ROLE_SESSION_NAME: &str = "AWS_ROLE_SESSION_NAME";

/// AWS's own name for the file with the platform's token.
pub const AWS_WEB_IDENTITY_TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";

/// Proxy for `https` providers; `https_proxy` wins where both are set. Empty is as absent.
pub const HTTPS_PROXY: &str = "HTTPS_PROXY";

/// Proxy for `http` providers; `http_proxy` wins where both are set. Empty is as absent.
pub const HTTP_PROXY: &str = "HTTP_PROXY";

/// Hosts that are reached without a proxy, separated by commas; `no_proxy` wins where both are set.
pub const NO_PROXY: &str = "NO_PROXY";

/// Folder of the user's state. Without a configuration file the ledger is `gw/gw.db` in it; must be absolute.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";

/// The user's own folder; the state folder is `.local/state` in it where [`XDG_STATE_HOME`] is not set.
pub const HOME: &str = "HOME";

/// Returns a proxy variable in its lower-case spelling, else in its upper-case one; a proxy may carry a password.
pub(crate) fn proxy(environment: &dyn Environment, name: &str) -> Option<Secret> {
    [name.to_ascii_lowercase().as_str(), name]
        .into_iter()
        .filter_map(|name| environment.var(name).ok())
        .find_map(|value| Secret::new(&value))
}

#[cfg(test)]
mod tests {
    use super::{HTTPS_PROXY, proxy};
    use crate::FixedEnvironment;

    #[test]
    fn the_lower_case_spelling_wins_and_empty_is_absent() {
        let both =
            FixedEnvironment::new().with_var("HTTPS_PROXY", "http://a").with_var("https_proxy", "http://b");
        assert_eq!(proxy(&both, HTTPS_PROXY).unwrap().expose(), "http://b");
        let empty = FixedEnvironment::new().with_var("HTTPS_PROXY", "http://a").with_var("https_proxy", "");
        assert_eq!(proxy(&empty, HTTPS_PROXY).unwrap().expose(), "http://a");
        assert_eq!(proxy(&FixedEnvironment::new(), HTTPS_PROXY), None);
    }
}
