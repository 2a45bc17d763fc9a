//! Callers with a signed token of an issuer (OpenID Connect, RFC 7519) in the place of a key.
//!
//! The issuer that a token names decides which public keys count; a genuine token is then held against the keys of the
//! configuration that name this issuer. Nothing of a token is kept, logged or told.

mod fault;
mod key_set;
mod verify;

use std::{collections::HashMap, future::Future, net::IpAddr, pin::Pin, sync::Arc};

use gw_config::{IssuerTable, Issuers, Jwks};
use gw_types::{Clock, HttpFetch, KeyIdentity, Secret};
use parking_lot::Mutex;

pub(crate) use self::fault::TokenFault;
use self::{key_set::KeySource, verify::Token};

/// Finds out who presents a token.
type Identifying<'a> = Pin<Box<dyn Future<Output = Result<KeyIdentity, TokenFault>> + Send + 'a>>;

/// Knows the callers that present tokens.
#[derive(Debug)]
pub struct Tokens {
    issuers: Issuers,
    fetch: Arc<dyn HttpFetch>,
    clock: Arc<dyn Clock>,
    /// Keys that were fetched, by where from; those of the issuers in force.
    sources: Mutex<HashMap<Jwks, Arc<KeySource>>>,
}

impl Tokens {
    /// Knows the issuers; their keys are fetched when the first token comes.
    pub fn new(issuers: Issuers, fetch: Arc<dyn HttpFetch>, clock: Arc<dyn Clock>) -> Self {
        Self { issuers, fetch, clock, sources: Mutex::default() }
    }

    /// Returns who presents a token; `None`: it is no token, or nobody issues any. In a box: other requests do not carry
    /// room for it.
    pub(crate) fn identify<'a>(&'a self, presented: &'a Secret, from: IpAddr) -> Option<Identifying<'a>> {
        let table = self.issuers.in_force();
        let text = presented.expose();
        if table.issuers().is_empty() || !looks_like_one(text) {
            return None;
        }
        Some(Box::pin(async move { self.check(&table, text, from).await }))
    }

    /// Checks the signature, which costs the most, last; then finds whose caller it is.
    async fn check(&self, table: &IssuerTable, text: &str, from: IpAddr) -> Result<KeyIdentity, TokenFault> {
        let now = self.clock.utc();
        let token = Token::read(text)?;
        let issuer = token.issuer(table.issuers(), now)?;
        let algorithm = token.algorithm(issuer)?;
        let source = self.source(&issuer.keys);
        let key = source.key(token.key_id(), algorithm, &*self.fetch, &*self.clock).await?;
        token.verify(&key, algorithm)?;
        issuer.caller(token.claims(), from, now).map_err(TokenFault::from)
    }

    /// Returns the keys at a place; those of places that no issuer names any more are forgotten.
    fn source(&self, keys: &Jwks) -> Arc<KeySource> {
        let mut sources = self.sources.lock();
        if let Some(source) = sources.get(keys) {
            return Arc::clone(source);
        }
        let table = self.issuers.in_force();
        sources.retain(|known, _| table.issuers().iter().any(|issuer| issuer.keys == *known));
        Arc::clone(sources.entry(keys.clone()).or_insert_with(|| Arc::new(KeySource::new(keys))))
    }
}

/// Returns whether a text has the form of a signed token: three parts of base64url, the first of which begins a JSON object.
fn looks_like_one(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.starts_with("ey") && text.split('.').count() == 3 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests;
