//! A configured provider: one origin, its credential, and an adapter for each of its deployments.

mod headers;
mod place;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use gw_types::{Adapter, Clock, Deployment, Secret};

use crate::{
    InvalidProvider, ProviderConfig, ProviderCredentials, ProviderKind, TransportConfig, TransportSnapshot,
    credential::{
        AwsKeys, AwsSigner, Credential, GoogleTokens, KeySource, ServiceAccount, WebIdentity,
        WebIdentityParts,
    },
    http::{Habits, HttpAdapter, HttpAdapterParts, Layout, Services},
    transport::Upstream,
};

/// One provider account or server, with its own connections.
///
/// Destination and credential are fixed here, from the configuration; nothing in a request changes either.
#[derive(Debug)]
pub struct Provider {
    upstream: Arc<Upstream>,
    layout: Layout,
    habits: Habits,
    credential: Arc<Credential>,
    secrets: Arc<[Secret]>,
    clock: Arc<dyn Clock>,
}

impl Provider {
    /// Returns the provider. No connection is opened before the first call.
    ///
    /// Costs some milliseconds for the first `https` provider of the process, which reads the system's certificates.
    ///
    /// # Errors
    /// [`InvalidProvider`] says which setting cannot be used.
    pub fn new(config: ProviderConfig, clock: Arc<dyn Clock>) -> Result<Self, InvalidProvider> {
        Self::over(config, clock, None)
    }

    /// Returns the same provider with what another configuration of it says, its credential above all, over the same
    /// connections: their limits and ways stay, and what the configuration says of them is not looked at.
    ///
    /// # Errors
    /// [`InvalidProvider`] says which setting cannot be used.
    pub fn with_account(&self, config: ProviderConfig) -> Result<Self, InvalidProvider> {
        Self::over(config, Arc::clone(&self.clock), Some(Arc::clone(&self.upstream)))
    }

    fn over(
        config: ProviderConfig,
        clock: Arc<dyn Clock>,
        upstream: Option<Arc<Upstream>>,
    ) -> Result<Self, InvalidProvider> {
        let ProviderConfig { name, kind, base_url, api_key, credentials, headers, transport } = config;
        let account = match &credentials {
            Some(ProviderCredentials::ServiceAccount(text)) => Some(ServiceAccount::parse(text.expose())?),
            Some(ProviderCredentials::AwsKeys { .. } | ProviderCredentials::AwsWebIdentity { .. }) | None => {
                None
            }
        };
        let site = place::site(&kind, account.as_ref())?;
        let location = place::locate(&kind, &base_url)?;
        let fixed = headers::fixed(&kind, api_key.as_ref(), &headers)?;
        let outside = Outside { name: &name, transport: &transport, clock: &clock };
        let credential = outside.credential(&kind, account, credentials.as_ref())?;
        headers::check(&kind, &fixed, &credential)?;
        let secrets = secrets(api_key, headers, credentials);
        let upstream = match upstream {
            Some(upstream) => upstream,
            None => Arc::new(Upstream::new(name, location.origin, &transport)?),
        };
        Ok(Self {
            upstream,
            layout: Layout { site, base: location.path, headers: fixed },
            habits: place::habits(&kind),
            credential: Arc::new(credential),
            secrets,
            clock,
        })
    }

    /// Returns the adapter of one of the provider's deployments. Line and headers of its calls are worked out here.
    ///
    /// # Errors
    /// [`InvalidProvider::BaseUrl`] if base URL and model make no path.
    pub fn adapter(&self, deployment: &Deployment) -> Result<Arc<dyn Adapter>, InvalidProvider> {
        let services = Services::new(&self.upstream, self.layout.clone(), &self.habits, &deployment.model)?;
        Ok(Arc::new(HttpAdapter::new(HttpAdapterParts {
            upstream: Arc::clone(&self.upstream),
            services,
            habits: self.habits,
            credential: Arc::clone(&self.credential),
            secrets: Arc::clone(&self.secrets),
            clock: Arc::clone(&self.clock),
        })))
    }

    /// Returns how the provider's connections stand.
    pub fn snapshot(&self) -> TransportSnapshot {
        self.upstream.snapshot()
    }
}

/// What a credential needs that is fetched.
struct Outside<'a> {
    name: &'a gw_types::ProviderName,
    transport: &'a TransportConfig,
    clock: &'a Arc<dyn Clock>,
}

impl Outside<'_> {
    fn credential(
        &self,
        kind: &ProviderKind,
        account: Option<ServiceAccount>,
        configured: Option<&ProviderCredentials>,
    ) -> Result<Credential, InvalidProvider> {
        const OTHER_KIND: InvalidProvider =
            InvalidProvider::Credentials("is of a sort that this kind of provider does not take");
        let Some(configured) = configured else { return Ok(Credential::Fixed) };
        match kind {
            ProviderKind::Vertex { .. } => {
                let account = account.ok_or(OTHER_KIND)?;
                let clock = Arc::clone(self.clock);
                let tokens = GoogleTokens::new(account, self.name.clone(), self.transport, clock)?;
                Ok(Credential::Google(Box::new(tokens)))
            }
            ProviderKind::Bedrock { region } => {
                let keys = self.keys(region, configured)?.ok_or(OTHER_KIND)?;
                let signer = AwsSigner::new(keys, region.clone(), "bedrock", Arc::clone(self.clock));
                Ok(Credential::Aws(Box::new(signer)))
            }
            ProviderKind::OpenAi
            | ProviderKind::AzureOpenAi { .. }
            | ProviderKind::OpenAiCompatible { .. }
            | ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::Ollama => Err(OTHER_KIND),
        }
    }

    fn keys(
        &self,
        region: &str,
        configured: &ProviderCredentials,
    ) -> Result<Option<KeySource>, InvalidProvider> {
        Ok(Some(match configured {
            ProviderCredentials::ServiceAccount(_) => return Ok(None),
            ProviderCredentials::AwsKeys { access_key_id, secret_access_key, session_token } => {
                KeySource::Static(AwsKeys {
                    access_key_id: access_key_id.clone(),
                    secret_access_key: secret_access_key.clone(),
                    session_token: session_token.clone(),
                })
            }
            ProviderCredentials::AwsWebIdentity { role, session, token_file, endpoint } => {
                let or = |text: &str, other: String| if text.is_empty() { other } else { text.to_owned() };
                let parts = WebIdentityParts {
                    role: role.clone(),
                    session: or(session, "gw".to_owned()),
                    token_file: token_file.clone(),
                    endpoint: or(endpoint, place::token_service(region)),
                };
                let clock = Arc::clone(self.clock);
                let identity = WebIdentity::new(parts, self.name.clone(), self.transport, clock)?;
                KeySource::WebIdentity(Box::new(identity))
            }
        }))
    }
}

/// Returns everything that gw sends or signs with, and a provider may echo.
fn secrets(
    api_key: Option<Secret>,
    headers: Vec<(String, Secret)>,
    credentials: Option<ProviderCredentials>,
) -> Arc<[Secret]> {
    let credentials = match credentials {
        Some(ProviderCredentials::AwsKeys { access_key_id, secret_access_key, session_token }) => {
            [Some(access_key_id), Some(secret_access_key), session_token]
        }
        Some(ProviderCredentials::ServiceAccount(_) | ProviderCredentials::AwsWebIdentity { .. }) | None => {
            [None, None, None]
        }
    };
    let headers = headers.into_iter().map(|(_, secret)| secret);
    api_key.into_iter().chain(headers).chain(credentials.into_iter().flatten()).collect()
}
