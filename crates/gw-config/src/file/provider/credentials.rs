//! Credentials that are more than a key: a Google service account, AWS keys, an AWS role.

use std::path::PathBuf;

use serde::Serialize;

use super::ProviderKindEntry;
use crate::{
    reader::Section,
    secret::{FoundSecret, Outside},
    source::Located,
    variables::{
        AWS_ACCESS_KEY_ID, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
        AWS_WEB_IDENTITY_TOKEN_FILE,
    },
};

/// What takes a key's place. Prints and serializes as where it is found.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum CredentialsEntry {
    /// A Google service account's key file.
    ServiceAccount(FoundSecret),
    /// Keys of an AWS account or role.
    AwsKeys {
        access_key_id: FoundSecret,
        secret_access_key: FoundSecret,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_token: Option<FoundSecret>,
    },
    /// An AWS role for a token of the platform.
    AwsWebIdentity { role: String, role_session: String, web_identity_token_file: PathBuf },
}

/// Reads the credentials that a kind has beside a key. The outer `None` is a fault that was reported.
pub(super) fn read(
    section: &mut Section<'_>,
    kind: ProviderKindEntry,
    api_key: Option<&Located<FoundSecret>>,
    outside: Outside<'_>,
) -> Option<Option<Located<CredentialsEntry>>> {
    match kind {
        ProviderKindEntry::Vertex => {
            let node = section.required("credentials", "{ file = \"service-account.json\" }")?;
            let found = outside.secret(&node)?;
            Some(Some(Located::new(CredentialsEntry::ServiceAccount(found.value), found.span)))
        }
        ProviderKindEntry::Bedrock => bedrock(section, api_key, outside),
        ProviderKindEntry::Openai
        | ProviderKindEntry::AzureOpenai
        | ProviderKindEntry::OpenaiCompatible
        | ProviderKindEntry::Anthropic
        | ProviderKindEntry::Gemini
        | ProviderKindEntry::Ollama => Some(None),
    }
}

/// The ways to sign in at Bedrock, of which a provider has one.
const WAYS: &str = "write `api_key`, or `access_key_id` and `secret_access_key`, or `role` and \
                    `web_identity_token_file`; or none of them, and set the variables of AWS";

fn bedrock(
    section: &mut Section<'_>,
    api_key: Option<&Located<FoundSecret>>,
    outside: Outside<'_>,
) -> Option<Option<Located<CredentialsEntry>>> {
    let at = section.at();
    let keys = ["access_key_id", "secret_access_key", "session_token"].map(|key| section.optional(key));
    let role = ["role", "role_session", "web_identity_token_file"].map(|key| section.optional(key));
    let ways = [api_key.is_some(), keys.iter().any(Option::is_some), role.iter().any(Option::is_some)];
    if ways.iter().filter(|way| **way).count() > 1 {
        let message = format!("`{}` has more than one credential", section.path());
        section.faults().add(at, section.path(), message, WAYS);
        return None;
    }
    let located = |entry| Some(Some(Located::new(entry, at)));
    match (keys, role) {
        ([Some(id), Some(secret), token], [None, None, None]) => located(CredentialsEntry::AwsKeys {
            access_key_id: outside.secret(&id)?.value,
            secret_access_key: outside.secret(&secret)?.value,
            session_token: match token {
                Some(token) => Some(outside.secret(&token)?.value),
                None => None,
            },
        }),
        ([None, None, None], [Some(role), session, Some(file)]) => {
            located(CredentialsEntry::AwsWebIdentity {
                role: role.text()?.to_owned(),
                role_session: match session {
                    Some(session) => session.text()?.to_owned(),
                    None => SESSION.to_owned(),
                },
                web_identity_token_file: outside.path(file.text()?),
            })
        }
        ([None, None, None], [None, None, None]) if api_key.is_some() => Some(None),
        ([None, None, None], [None, None, None]) => {
            let found = of_environment(outside);
            if found.is_none() {
                let message = format!("missing credentials in `{}`", section.path());
                section.faults().add_absent(at, section.path(), message, WAYS);
            }
            found.map(|entry| Some(Located::new(entry, at)))
        }
        _ => {
            let message = format!("`{}` has half of a credential", section.path());
            section.faults().add(at, section.path(), message, WAYS);
            None
        }
    }
}

/// How a session is called where nothing says it.
const SESSION: &str = "gw";

/// Looks where AWS's own tools look first: keys, then a role for a token in a file.
fn of_environment(outside: Outside<'_>) -> Option<CredentialsEntry> {
    if let (Some(access_key_id), Some(secret_access_key)) =
        (outside.variable(AWS_ACCESS_KEY_ID), outside.variable(AWS_SECRET_ACCESS_KEY))
    {
        let session_token = outside.variable(AWS_SESSION_TOKEN);
        return Some(CredentialsEntry::AwsKeys { access_key_id, secret_access_key, session_token });
    }
    let text = |name| outside.variable(name).map(|found| found.value.expose().to_owned());
    Some(CredentialsEntry::AwsWebIdentity {
        role: text(AWS_ROLE_ARN)?,
        role_session: text(AWS_ROLE_SESSION_NAME).unwrap_or_else(|| SESSION.to_owned()),
        web_identity_token_file: text(AWS_WEB_IDENTITY_TOKEN_FILE)?.into(),
    })
}
