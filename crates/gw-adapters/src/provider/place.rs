//! Where a provider is, and what is particular to its kind.

use crate::{
    InvalidProvider, ProviderKind,
    credential::ServiceAccount,
    http::{Habits, Site},
    location::Location,
};

/// Returns how the kind lays out its addresses.
///
/// # Errors
/// What of the kind's own settings cannot be used.
pub(super) fn site(kind: &ProviderKind, account: Option<&ServiceAccount>) -> Result<Site, InvalidProvider> {
    Ok(match kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible { .. } => Site::OpenAi,
        ProviderKind::AzureOpenAi { api_version } => {
            if api_version.trim().is_empty() {
                return Err(InvalidProvider::ApiVersion);
            }
            Site::Azure { api_version: api_version.clone() }
        }
        ProviderKind::Anthropic => Site::Anthropic,
        ProviderKind::Gemini => Site::Gemini,
        ProviderKind::Ollama => Site::Ollama,
        ProviderKind::Vertex { project, location } => {
            let own = || account.and_then(|account| account.project_id.clone());
            let project = Some(project.clone()).filter(|project| !project.is_empty()).or_else(own);
            // Older projects belong to a domain: `example.com:name`.
            let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
            let project = project
                .filter(|project| !project.is_empty() && project.bytes().all(named))
                .ok_or(InvalidProvider::Project)?;
            if !is_place(location) {
                return Err(InvalidProvider::Location);
            }
            Site::Vertex { project, location: location.clone() }
        }
        ProviderKind::Bedrock { region } => {
            if !is_place(region) {
                return Err(InvalidProvider::Region);
            }
            Site::Bedrock
        }
    })
}

/// Returns whether a text names a region: it becomes part of a host's name and must not read as another.
fn is_place(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns where the provider is: where the configuration says, else the kind's own place.
///
/// # Errors
/// [`InvalidProvider::MissingBaseUrl`], [`InvalidProvider::BaseUrl`].
pub(super) fn locate(kind: &ProviderKind, base_url: &str) -> Result<Location, InvalidProvider> {
    let own;
    let url = if base_url.is_empty() {
        own = own_base_url(kind).ok_or(InvalidProvider::MissingBaseUrl)?;
        &own
    } else {
        base_url
    };
    let location = Location::parse(url).map_err(InvalidProvider::BaseUrl)?;
    match location.query {
        Some(_) => Err(InvalidProvider::BaseUrl("has a query (`?`), which a base cannot have")),
        None => Ok(location),
    }
}

fn own_base_url(kind: &ProviderKind) -> Option<String> {
    Some(match kind {
        ProviderKind::OpenAi => "https://api.openai.com/v1".to_owned(),
        ProviderKind::OpenAiCompatible { preset } => (*preset)?.base_url.to_owned(),
        ProviderKind::AzureOpenAi { .. } => return None,
        ProviderKind::Anthropic => "https://api.anthropic.com".to_owned(),
        ProviderKind::Gemini => "https://generativelanguage.googleapis.com".to_owned(),
        ProviderKind::Ollama => "http://127.0.0.1:11434".to_owned(),
        ProviderKind::Vertex { location, .. } => match location.as_str() {
            "global" => "https://aiplatform.googleapis.com".to_owned(),
            // The multi-regions, which keep data inside of them.
            "eu" | "us" => format!("https://aiplatform.{location}.rep.googleapis.com"),
            _ => format!("https://{location}-aiplatform.googleapis.com"),
        },
        ProviderKind::Bedrock { region } => {
            format!("https://bedrock-runtime.{region}.{}", aws_domain(region))
        }
    })
}

/// Returns where a region's security token service is.
pub(super) fn token_service(region: &str) -> String {
    format!("https://sts.{region}.{}", aws_domain(region))
}

/// China's regions are apart from the others.
fn aws_domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

/// Returns what is particular to the kind where it speaks OpenAI's formats.
pub(super) fn habits(kind: &ProviderKind) -> Habits {
    match kind {
        ProviderKind::OpenAi | ProviderKind::AzureOpenAi { .. } => Habits::OPENAI,
        ProviderKind::OpenAiCompatible { preset: Some(preset) } => Habits::of(preset),
        ProviderKind::OpenAiCompatible { preset: None }
        | ProviderKind::Anthropic
        | ProviderKind::Gemini
        | ProviderKind::Ollama
        | ProviderKind::Vertex { .. }
        | ProviderKind::Bedrock { .. } => Habits::COMPATIBLE,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_place, own_base_url, token_service};
    use crate::ProviderKind;

    #[track_caller]
    fn check(kind: &ProviderKind, expected: &str) {
        assert_eq!(own_base_url(kind).as_deref(), Some(expected));
    }

    #[test]
    fn kinds_have_places_of_their_own() {
        let vertex =
            |location: &str| ProviderKind::Vertex { project: String::new(), location: location.to_owned() };
        let bedrock = |region: &str| ProviderKind::Bedrock { region: region.to_owned() };
        check(&ProviderKind::Anthropic, "https://api.anthropic.com");
        check(&vertex("global"), "https://aiplatform.googleapis.com");
        check(&vertex("eu"), "https://aiplatform.eu.rep.googleapis.com");
        check(&vertex("europe-west4"), "https://europe-west4-aiplatform.googleapis.com");
        check(&bedrock("eu-central-1"), "https://bedrock-runtime.eu-central-1.amazonaws.com");
        check(&bedrock("cn-north-1"), "https://bedrock-runtime.cn-north-1.amazonaws.com.cn");
        assert_eq!(token_service("us-east-1"), "https://sts.us-east-1.amazonaws.com");
    }

    #[test]
    fn a_place_is_no_host_of_another() {
        assert!(is_place("us-gov-west-1"));
        for text in ["", "-a", "a.example/", "a@b", "a:1", "A", "é"] {
            assert!(!is_place(text), "{text}");
        }
    }
}
