//! Whose caller a signed token is: what its claims say, held against the keys that name its issuer.
//!
//! Nothing here checks a signature: the claims must be those of a token that was found to be genuine.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use foldhash::fast::RandomState;
use gw_types::{IssuerName, KeyIdentity, UtcTime};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Access;

/// A signature algorithm with a public and a private half (RFC 7518, section 3.1; RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl TokenAlgorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Returns the name that a token's `alg` carries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl Serialize for TokenAlgorithm {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// Where the public keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Jwks {
    /// At an address, as a JSON Web Key Set.
    Url(Arc<str>),
    /// Here, as the text of a JSON Web Key Set.
    Text(Arc<str>),
}

/// Places of callers, by the value of one claim.
type ByValue = HashMap<String, Vec<usize>, RandomState>;

/// Claims that a key asks for: each by its name, or by a JSON pointer (RFC 6901) that begins with `/`, with the values
/// of which one must be there.
pub(crate) type Claims = BTreeMap<String, BTreeSet<String>>;

/// The issuers of a configuration.
#[derive(Debug, Default)]
pub struct IssuerTable {
    issuers: Vec<Issuer>,
}

/// Who signs tokens, and whose callers they are.
#[derive(Debug)]
pub struct Issuer {
    /// The name in the configuration.
    pub name: IssuerName,
    /// What `iss` must say.
    pub issuer: String,
    /// One of what `aud` must say.
    pub audience: Vec<String>,
    /// Where the public keys are.
    pub keys: Jwks,
    /// The algorithms that are taken.
    pub algorithms: Vec<TokenAlgorithm>,
    /// By how much the clocks may differ.
    pub leeway: Duration,
    callers: Vec<Caller>,
    /// Callers by the first claim that they ask for: its name, and each value.
    by_claim: Vec<(String, ByValue)>,
}

/// One key that names the issuer.
#[derive(Debug)]
struct Caller {
    claims: Claims,
    identity: KeyIdentity,
    access: Access,
}

/// Why a genuine token is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotACaller {
    /// No key asks for its claims.
    Unknown,
    /// Several keys ask for as many of its claims: which one counts would be a guess.
    Ambiguous,
    /// The key may not be used from there, or not any more.
    NotPermitted,
}

impl IssuerTable {
    /// Returns the issuers.
    pub fn issuers(&self) -> &[Issuer] {
        &self.issuers
    }

    /// Adds an issuer.
    pub(crate) fn push(&mut self, issuer: Issuer) {
        self.issuers.push(issuer);
    }

    /// Adds a key that names an issuer; returns whose the same claims are already, if they are somebody's.
    pub(crate) fn add(
        &mut self,
        issuer: &IssuerName,
        claims: &Claims,
        identity: KeyIdentity,
        access: Access,
    ) -> Result<(), KeyIdentity> {
        match self.issuers.iter_mut().find(|known| known.name == *issuer) {
            Some(issuer) => issuer.add(Caller { claims: claims.clone(), identity, access }),
            // Reported where the name stands.
            None => Ok(()),
        }
    }
}

impl Issuer {
    /// Returns an issuer that nobody names yet: no audience, no algorithm, no leeway.
    pub(crate) fn new(name: IssuerName, issuer: String, keys: Jwks) -> Self {
        Self {
            name,
            issuer,
            audience: Vec::new(),
            keys,
            algorithms: Vec::new(),
            leeway: Duration::ZERO,
            callers: Vec::new(),
            by_claim: Vec::new(),
        }
    }

    fn add(&mut self, caller: Caller) -> Result<(), KeyIdentity> {
        if let Some(other) = self.callers.iter().find(|other| other.claims == caller.claims) {
            return Err(other.identity.clone());
        }
        let at = self.callers.len();
        if let Some((name, values)) = caller.claims.first_key_value() {
            let place = self.by_claim.iter().position(|(known, _)| known == name);
            let place = place.unwrap_or_else(|| {
                self.by_claim.push((name.clone(), HashMap::default()));
                self.by_claim.len() - 1
            });
            for value in values {
                self.by_claim[place].1.entry(value.clone()).or_default().push(at);
            }
        }
        self.callers.push(caller);
        Ok(())
    }

    /// Returns whose caller the token with these claims is: the key that asks for the most of them. O(values of the
    /// claims that keys begin with), however many keys there are.
    ///
    /// # Errors
    /// [`NotACaller`] says why it is nobody's.
    pub fn caller(
        &self,
        claims: &Map<String, Value>,
        from: IpAddr,
        now: UtcTime,
    ) -> Result<KeyIdentity, NotACaller> {
        let mut found: BTreeSet<usize> =
            self.callers.iter().position(|caller| caller.claims.is_empty()).into_iter().collect();
        for (name, by_value) in &self.by_claim {
            for value in values(claims, name) {
                found.extend(by_value.get(value.as_ref()).into_iter().flatten());
            }
        }
        let matching = || {
            let callers = found.iter().filter_map(|at| self.callers.get(*at));
            callers.filter(|caller| asks_for(&caller.claims, claims))
        };
        let most = matching().map(|caller| caller.claims.len()).max().ok_or(NotACaller::Unknown)?;
        let mut best = matching().filter(|caller| caller.claims.len() == most);
        match (best.next(), best.next()) {
            (Some(caller), None) if caller.access.permits(from, now) => Ok(caller.identity.clone()),
            (Some(_), None) => Err(NotACaller::NotPermitted),
            (Some(_), Some(_)) => Err(NotACaller::Ambiguous),
            (None, _) => Err(NotACaller::Unknown),
        }
    }
}

/// Returns whether every claim that is asked for is there, with one of its values.
fn asks_for(wanted: &Claims, claims: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, wanted)| values(claims, name).any(|value| wanted.contains(value.as_ref())))
}

/// Returns what a claim says: the items of a list, the words of a `scope` (RFC 8693, section 4.2) or an `scp`, or the one
/// value. What is neither text nor number nor boolean says nothing.
fn values<'c>(claims: &'c Map<String, Value>, name: &str) -> impl Iterator<Item = std::borrow::Cow<'c, str>> {
    let found = match name.strip_prefix('/') {
        Some(path) => pointed(claims, path),
        None => claims.get(name),
    };
    let items = match found {
        Some(Value::Array(items)) => items.as_slice(),
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    let splits = matches!(name, "scope" | "scp");
    items.iter().flat_map(move |item| said(item, splits))
}

fn said(value: &Value, splits: bool) -> Vec<std::borrow::Cow<'_, str>> {
    match value {
        Value::String(text) if splits => text.split(' ').map(Into::into).collect(),
        Value::String(text) => vec![text.as_str().into()],
        Value::Number(number) => vec![number.to_string().into()],
        Value::Bool(flag) => vec![flag.to_string().into()],
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// Follows a JSON pointer, without its first slash.
fn pointed<'c>(claims: &'c Map<String, Value>, path: &str) -> Option<&'c Value> {
    let mut steps = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = claims.get(&steps.next()?)?;
    steps.try_fold(first, |value, step| match value {
        Value::Object(members) => members.get(&step),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    })
}

#[cfg(test)]
mod tests;
