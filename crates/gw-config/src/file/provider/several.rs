//! `credentials = [{ name = "...", ... }, ...]`: several accounts of one provider.

use gw_types::CredentialName;
use serde::Serialize;

use super::{CredentialsEntry, ProviderKindEntry, credentials};
use crate::{
    reader::{Node, Section},
    secret::{FoundSecret, Outside},
    source::Located,
};

/// The most credentials of one provider.
const CREDENTIALS_MAX: usize = gw_exec::Target::CREDENTIALS_MAX;

/// One of several credentials: a name, and what the provider itself would hold if it had this one alone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AccountEntry {
    pub(crate) name: CredentialName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key: Option<Located<FoundSecret>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<Located<CredentialsEntry>>,
}

/// Reads the list, if there is one; empty: there is none. `None` is a fault that was reported.
pub(super) fn read(
    section: &mut Section<'_>,
    kind: ProviderKindEntry,
    outside: Outside<'_>,
) -> Option<Vec<Located<AccountEntry>>> {
    let Some(node) = section.optional("credentials") else { return Some(Vec::new()) };
    if kind == ProviderKindEntry::Vertex && node.is_table() {
        return Some(Vec::new());
    }
    for key in own_keys(kind).iter().filter(|key| **key != "credentials") {
        section.refuse(key, "stands beside `credentials`, each of which has its own");
    }
    let items = node.filled_list()?;
    if items.len() > CREDENTIALS_MAX {
        let message = format!("`{}` has {} credentials", node.path(), items.len());
        node.fault(message, format!("write at most {CREDENTIALS_MAX}"));
        return None;
    }
    let read: Vec<_> = items.iter().map(|item| account(item, kind, outside)).collect();
    let accounts = read.into_iter().collect::<Option<Vec<_>>>()?;
    refuse_twins(&node, &items, &accounts).then_some(accounts)
}

/// Returns the keys that hold a kind's credential.
fn own_keys(kind: ProviderKindEntry) -> &'static [&'static str] {
    match kind {
        ProviderKindEntry::Vertex => &["api_key", "credentials"],
        ProviderKindEntry::Bedrock => &[
            "api_key",
            "access_key_id",
            "secret_access_key",
            "session_token",
            "role",
            "role_session",
            "web_identity_token_file",
        ],
        ProviderKindEntry::Openai
        | ProviderKindEntry::AzureOpenai
        | ProviderKindEntry::OpenaiCompatible
        | ProviderKindEntry::Anthropic
        | ProviderKindEntry::Gemini
        | ProviderKindEntry::Ollama => &["api_key"],
    }
}

fn account(node: &Node<'_>, kind: ProviderKindEntry, outside: Outside<'_>) -> Option<Located<AccountEntry>> {
    let mut section = node.section()?;
    let name = section.required("name", "\"main\"").and_then(|node| node.name::<CredentialName>());
    let api_key = match kind {
        ProviderKindEntry::Vertex => None,
        ProviderKindEntry::Bedrock => section.optional("api_key"),
        ProviderKindEntry::Openai
        | ProviderKindEntry::AzureOpenai
        | ProviderKindEntry::OpenaiCompatible
        | ProviderKindEntry::Anthropic
        | ProviderKindEntry::Gemini
        | ProviderKindEntry::Ollama => Some(section.required("api_key", "{ env = \"NAME\" }")?),
    };
    let api_key = match api_key {
        Some(node) => Some(outside.secret(&node)?),
        None => None,
    };
    let credentials = credentials::read(&mut section, kind, api_key.as_ref(), outside);
    section.finish();
    let entry = AccountEntry { name: name?.value, api_key, credentials: credentials? };
    Some(Located::new(entry, node.span()))
}

/// Finds names that stand twice, and one credential under two names: it would be asked again where it was refused.
fn refuse_twins(node: &Node<'_>, items: &[Node<'_>], accounts: &[Located<AccountEntry>]) -> bool {
    let mut is_well = true;
    for (at, (item, account)) in items.iter().zip(accounts).enumerate() {
        for other in &accounts[..at] {
            if other.value.name == account.value.name {
                let message = format!("`{}` names `{}` twice", node.path(), account.value.name);
                item.fault(message, "give each credential a name of its own");
                is_well = false;
            } else if secret_of(&other.value) == secret_of(&account.value) {
                let (name, twin) = (&account.value.name, &other.value.name);
                let message = format!("credentials `{name}` and `{twin}` of `{}` are the same", node.path());
                item.fault(message, "remove one of them, or name another variable or file");
                is_well = false;
            }
        }
    }
    is_well
}

fn secret_of(account: &AccountEntry) -> Option<&str> {
    let found = account.api_key.as_ref().map(|key| key.value.value.expose());
    found.or_else(|| match &account.credentials.as_ref()?.value {
        CredentialsEntry::ServiceAccount(found) => Some(found.value.expose()),
        CredentialsEntry::AwsKeys { access_key_id, .. } => Some(access_key_id.value.expose()),
        CredentialsEntry::AwsWebIdentity { role, .. } => Some(role),
    })
}
