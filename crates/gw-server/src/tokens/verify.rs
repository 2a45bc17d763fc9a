//! One token: what it says before it is believed, and whether it may be believed.

use gw_config::{Issuer, TokenAlgorithm};
use gw_types::UtcTime;
use jsonwebtoken::{DecodingKey, Validation};
use serde_json::{Map, Value};

use super::TokenFault;

/// The longest token, in bytes. A head of gw's own limit holds no longer one either.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// A token whose parts can be read. Nothing that it says is true before its signature was checked.
pub(super) struct Token<'t> {
    text: &'t str,
    header: jsonwebtoken::Header,
    claims: Map<String, Value>,
}

impl<'t> Token<'t> {
    /// Reads the parts of a token.
    pub(super) fn read(text: &'t str) -> Result<Self, TokenFault> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenFault::Malformed);
        }
        // An algorithm that the library does not know, `none` among them, makes the header unreadable.
        let header = jsonwebtoken::decode_header(text).map_err(|_| TokenFault::Algorithm)?;
        if header.crit.is_some() {
            return Err(TokenFault::Malformed);
        }
        let claims =
            jsonwebtoken::dangerous::insecure_decode_claims(text).map_err(|_| TokenFault::Malformed)?;
        Ok(Self { text, header, claims })
    }

    /// Returns the claims. They are true only once the signature was checked.
    pub(super) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// Returns the issuer that the token names, if it is for this gateway and for now by what is known of the issuer.
    pub(super) fn issuer<'i>(&self, issuers: &'i [Issuer], now: UtcTime) -> Result<&'i Issuer, TokenFault> {
        let name = self.claims.get("iss").and_then(Value::as_str).ok_or(TokenFault::Issuer)?;
        let mut fault = TokenFault::Issuer;
        // Several entries may name one issuer, each with an audience of its own.
        for issuer in issuers.iter().filter(|issuer| issuer.issuer == name) {
            match self.check_for(issuer, now) {
                Ok(()) => return Ok(issuer),
                Err(found) => fault = found,
            }
        }
        Err(fault)
    }

    pub(super) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Returns whether the claims are for this gateway and for now (RFC 7519, section 4.1).
    fn check_for(&self, issuer: &Issuer, now: UtcTime) -> Result<(), TokenFault> {
        let is_ours = |audience: &str| issuer.audience.iter().any(|own| own == audience);
        let is_for_us = match self.claims.get("aud") {
            Some(Value::String(audience)) => is_ours(audience),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(is_ours),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
        };
        if !is_for_us {
            return Err(TokenFault::Audience);
        }
        let leeway = i64::try_from(issuer.leeway.as_secs()).unwrap_or(i64::MAX);
        let now = now.seconds();
        match self.seconds("exp")? {
            None => return Err(TokenFault::Endless),
            Some(ends) if now >= ends.saturating_add(leeway) => return Err(TokenFault::Expired),
            Some(_) => {}
        }
        match self.seconds("nbf")? {
            Some(begins) if now < begins.saturating_sub(leeway) => Err(TokenFault::NotYetValid),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns an instant, in whole seconds since 1970; of a fraction, which the standard allows, the seconds before it.
    fn seconds(&self, name: &str) -> Result<Option<i64>, TokenFault> {
        let Some(value) = self.claims.get(name) else { return Ok(None) };
        #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
        let floor = |seconds: f64| seconds.floor() as i64;
        let seconds = value.as_i64().or_else(|| value.as_f64().map(floor));
        seconds.map(Some).ok_or(TokenFault::Malformed)
    }

    /// Returns the algorithm, if it is taken from the issuer.
    pub(super) fn algorithm(&self, issuer: &Issuer) -> Result<TokenAlgorithm, TokenFault> {
        let found = issuer.algorithms.iter().find(|taken| known(**taken) == self.header.alg);
        found.copied().ok_or(TokenFault::Algorithm)
    }

    /// Checks the signature, by the one algorithm and the one key.
    pub(super) fn verify(&self, key: &DecodingKey, algorithm: TokenAlgorithm) -> Result<(), TokenFault> {
        let mut only = Validation::new(known(algorithm));
        // Times and audience were checked, by the gateway's own clock.
        only.validate_exp = false;
        only.validate_nbf = false;
        only.validate_aud = false;
        only.required_spec_claims.clear();
        match jsonwebtoken::decode::<serde::de::IgnoredAny>(self.text, key, &only) {
            Ok(_) => Ok(()),
            Err(_) => Err(TokenFault::Signature),
        }
    }
}

const fn known(algorithm: TokenAlgorithm) -> jsonwebtoken::Algorithm {
    use jsonwebtoken::Algorithm;
    match algorithm {
        TokenAlgorithm::Rs256 => Algorithm::RS256,
        TokenAlgorithm::Rs384 => Algorithm::RS384,
        TokenAlgorithm::Rs512 => Algorithm::RS512,
        TokenAlgorithm::Ps256 => Algorithm::PS256,
        TokenAlgorithm::Ps384 => Algorithm::PS384,
        TokenAlgorithm::Ps512 => Algorithm::PS512,
        TokenAlgorithm::Es256 => Algorithm::ES256,
        TokenAlgorithm::Es384 => Algorithm::ES384,
        TokenAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}
