//! The public keys of an issuer (RFC 7517), fetched when they are needed and kept.
//!
//! A key that is not among them may be new, so they are fetched again; how often is bounded, because anybody can name a
//! key that there is not. What was fetched is used for a day where the issuer does not answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_config::{Jwks, TokenAlgorithm};
use gw_types::{Clock, FetchRequest, HttpFetch, MonoTime};
use jsonwebtoken::{
    AlgorithmFamily, DecodingKey,
    jwk::{Jwk, KeyOperations, PublicKeyUse},
};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::Mutex;

use super::TokenFault;

/// The shortest time between two fetches of the same keys.
const PAUSE: Duration = Duration::from_secs(10);
/// The same, behind a fetch that has failed while there are no keys at all.
const PAUSE_WITHOUT: Duration = Duration::from_secs(2);
/// How long keys are used without a look for newer ones: so soon a key that its issuer has withdrawn counts no more.
const FRESH: Duration = Duration::from_secs(600);
/// How long keys are used at most where no newer ones can be had.
const USABLE: Duration = Duration::from_secs(86_400);
/// How long one fetch may take: requests wait for it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest set that is read, in bytes.
const SET_BYTES_MAX: usize = 256 << 10;
/// Keys of a set that are looked at.
const KEYS_MAX: usize = 64;

/// The keys at one place.
#[derive(Debug)]
pub(super) struct KeySource {
    /// Absent: they are given, and stay what they are.
    url: Option<Arc<str>>,
    kept: RwLock<Option<Kept>>,
    /// Held by who fetches; no fetch before the instant.
    turn: Mutex<MonoTime>,
}

#[derive(Clone, Debug)]
struct Kept {
    keys: Arc<[PublicKey]>,
    at: MonoTime,
}

/// A key that signatures can be checked with.
#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    /// The one algorithm that it is for, by its own statement.
    algorithm: Option<String>,
    family: AlgorithmFamily,
    key: Arc<DecodingKey>,
}

impl KeySource {
    pub(super) fn new(at: &Jwks) -> Self {
        let (url, kept) = match at {
            Jwks::Url(url) => (Some(Arc::clone(url)), None),
            Jwks::Text(text) => (None, Some(Kept { keys: read(text.as_bytes()), at: MonoTime::ZERO })),
        };
        Self { url, kept: RwLock::new(kept), turn: Mutex::new(MonoTime::ZERO) }
    }

    /// Returns the key that a token of that algorithm names.
    pub(super) async fn key(
        &self,
        id: Option<&str>,
        algorithm: TokenAlgorithm,
        fetch: &dyn HttpFetch,
        clock: &dyn Clock,
    ) -> Result<Arc<DecodingKey>, TokenFault> {
        let found = self.find(id, algorithm);
        let Some(url) = &self.url else { return found.map(|(key, _)| key).ok_or(TokenFault::Key) };
        let now = clock.now();
        if let Some((key, since)) = found {
            if now.saturating_since(since) < FRESH {
                return Ok(key);
            }
            // One request looks for newer ones; the others need not wait for it.
            if let Ok(mut next) = self.turn.try_lock() {
                self.fetch(url, &mut next, fetch, clock).await;
            }
        } else {
            let mut next = self.turn.lock().await;
            // Whoever had the turn before may have brought what is wanted.
            if self.find(id, algorithm).is_none() {
                self.fetch(url, &mut next, fetch, clock).await;
            }
        }
        let since = self.kept.read().as_ref().map(|kept| kept.at);
        if since.is_none_or(|since| now.saturating_since(since) >= USABLE) {
            return Err(TokenFault::KeysAway);
        }
        self.find(id, algorithm).map(|(key, _)| key).ok_or(TokenFault::Key)
    }

    /// Returns the key among those that are kept, and since when they are.
    fn find(&self, id: Option<&str>, algorithm: TokenAlgorithm) -> Option<(Arc<DecodingKey>, MonoTime)> {
        let kept = self.kept.read();
        let kept = kept.as_ref()?;
        Some((find(&kept.keys, id, algorithm)?, kept.at))
    }

    /// Fetches the keys if it is time to. What cannot be fetched, or holds no key, changes nothing.
    async fn fetch(&self, url: &str, next: &mut MonoTime, fetch: &dyn HttpFetch, clock: &dyn Clock) {
        let now = clock.now();
        if now < *next {
            return;
        }
        // Noted first: a caller that goes away must not open the door to a fetch for each of many that do.
        *next = now.saturating_add(if self.kept.read().is_some() { PAUSE } else { PAUSE_WITHOUT });
        let request = FetchRequest {
            method: "GET",
            url: url.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: TIMEOUT,
            body_bytes_max: SET_BYTES_MAX,
        };
        let answer = match fetch.fetch(request).await {
            Ok(answer) if answer.status == 200 => answer,
            Ok(answer) => {
                return tracing::warn!(%url, status = answer.status, "the keys of an issuer are not there");
            }
            Err(error) => {
                return tracing::warn!(%url, error = error.kind().as_str(), "the keys of an issuer cannot be fetched");
            }
        };
        let keys = read(&answer.body);
        if keys.is_empty() {
            return tracing::warn!(%url, "an issuer shows no key that a signature can be checked with");
        }
        *next = clock.now().saturating_add(PAUSE);
        *self.kept.write() = Some(Kept { keys, at: clock.now() });
    }
}

/// Reads the keys of a set that signatures can be checked with; what is none of them is left out.
fn read(set: &[u8]) -> Arc<[PublicKey]> {
    let set: Value = serde_json::from_slice(set).unwrap_or(Value::Null);
    let keys = set["keys"].as_array().map_or(&[][..], Vec::as_slice);
    keys.iter().take(KEYS_MAX).filter_map(public_key).collect()
}

fn public_key(key: &Value) -> Option<PublicKey> {
    // A member whose type surprises the library makes that key unreadable, and no other.
    let jwk: Jwk = serde_json::from_value(key.clone()).ok()?;
    let is_for_signatures =
        jwk.common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
    let operations = jwk.common.key_operations.as_ref();
    let may_verify = operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let decoding = DecodingKey::from_jwk(&jwk).ok()?;
    // A key that is shared is no public one: whoever may check with it can sign.
    let is_public = decoding.family() != AlgorithmFamily::Hmac;
    (is_for_signatures && may_verify && is_public).then(|| PublicKey {
        id: jwk.common.key_id,
        algorithm: jwk.common.key_algorithm.map(|algorithm| algorithm.to_string()),
        family: decoding.family(),
        key: Arc::new(decoding),
    })
}

/// Returns the key of that id; where the token or the key has none, the only one that it could be.
fn find(keys: &[PublicKey], id: Option<&str>, algorithm: TokenAlgorithm) -> Option<Arc<DecodingKey>> {
    let fits = |key: &&PublicKey| {
        key.family == family(algorithm)
            && key.algorithm.as_ref().is_none_or(|only| only == algorithm.as_str())
    };
    let is_it = |key: &&PublicKey| key.id.is_some() && key.id.as_deref() == id;
    if let Some(key) = keys.iter().filter(fits).find(is_it) {
        return Some(Arc::clone(&key.key));
    }
    let mut possible = keys.iter().filter(fits).filter(|key| id.is_none() || key.id.is_none());
    match (possible.next(), possible.next()) {
        (Some(key), None) => Some(Arc::clone(&key.key)),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

const fn family(algorithm: TokenAlgorithm) -> AlgorithmFamily {
    match algorithm {
        TokenAlgorithm::Rs256
        | TokenAlgorithm::Rs384
        | TokenAlgorithm::Rs512
        | TokenAlgorithm::Ps256
        | TokenAlgorithm::Ps384
        | TokenAlgorithm::Ps512 => AlgorithmFamily::Rsa,
        TokenAlgorithm::Es256 | TokenAlgorithm::Es384 => AlgorithmFamily::Ec,
        TokenAlgorithm::EdDsa => AlgorithmFamily::Ed,
    }
}
