//! Keys: who asked, what would answer, and the canonical request, as a digest beside the tenant.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use blake2b_simd::{Params, State};
use gw_types::{BoundedText, DeploymentName, Operation, RouteName, TenantId};

use crate::{canonical::Canonical, invalidate::Origin};

/// Bytes of a key's digest.
const DIGEST_BYTES: usize = 32;

/// What a key is made of, beside the request.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// Whose answer it is.
    pub tenant: &'a TenantId,
    /// The route that was chosen.
    pub route: &'a RouteName,
    /// The first candidate, whoever answers in the end: the next equal request computes the same one.
    pub primary: &'a DeploymentName,
    /// The version of the primary's model.
    pub model_version: Option<&'a str>,
    /// What is wanted; also names the wire format of the body.
    pub operation: Operation,
    /// The digest of the route and its deployments as configured, so that a changed route starts with no answers.
    pub policy_digest: &'a str,
}

impl KeyParts<'_> {
    fn origin(&self) -> Origin {
        Origin { tenant: self.tenant.clone(), route: self.route.clone(), epoch: 0 }
    }

    /// Hashes every part behind its length, so that no two lists of parts give the same bytes.
    fn hash(&self, domain: &str) -> State {
        let mut hasher = hasher();
        for part in [domain, self.tenant.as_str(), self.route.as_str(), self.primary.as_str()] {
            field(&mut hasher, part.as_bytes());
        }
        hasher.update(&[u8::from(self.model_version.is_some())]);
        for part in [self.model_version.unwrap_or_default(), self.operation.as_str(), self.policy_digest] {
            field(&mut hasher, part.as_bytes());
        }
        hasher
    }
}

/// BLAKE2b-256 with the vector code that the processor has: a key costs a third of the time that it takes without.
fn hasher() -> State {
    Params::new().hash_length(DIGEST_BYTES).to_state()
}

fn finish(hasher: &State) -> [u8; DIGEST_BYTES] {
    hasher.finalize().as_bytes().try_into().unwrap_or_default()
}

fn field(hasher: &mut State, bytes: &[u8]) {
    hasher.update(&length(bytes.len()));
    hasher.update(bytes);
}

/// Derives a digest for one more part.
fn derived(digest: &[u8; 32], domain: &str, part: &[u8]) -> [u8; 32] {
    let mut hasher = hasher();
    for part in [domain.as_bytes(), digest, part] {
        field(&mut hasher, part);
    }
    finish(&hasher)
}

fn length(bytes: usize) -> [u8; 8] {
    u64::try_from(bytes).unwrap_or(u64::MAX).to_le_bytes()
}

/// The key of an exact answer: the tenant, and BLAKE2b-256 over all parts and the canonical request.
///
/// The tenant is in the digest and beside it: a lookup compares both, so that even equal digests of two tenants would
/// never meet (I9). The digest is the same in every process and on every machine.
#[derive(Clone, PartialEq, Eq)]
pub struct CacheKey {
    origin: Origin,
    digest: [u8; 32],
}

impl CacheKey {
    /// Returns the key of a request; `None` if the body is not a JSON object, is nested deeper than 100 levels, or
    /// has a number whose exponent needs more than 63 bits: such a request is not cached.
    ///
    /// Order of keys, blanks, spelling of numbers and escapes of strings do not matter, nor do a few top-level fields that
    /// cannot change the answer (`stream`, `stream_options`, `user` and other labels of the end user, hints about the
    /// provider's own prompt cache), nor defaults that are spelled out (`"n": 1`). Everything else does, unknown fields
    /// included. Of equal keys the last counts. Costs one pass over the body; a few microseconds a kilobyte.
    pub fn new(parts: &KeyParts<'_>, body: &[u8]) -> Option<Self> {
        let request = Canonical::read(body, parts.operation)?;
        let mut hasher = parts.hash("gw exact 1");
        hasher.update(&length(request.members().map(<[u8]>::len).sum()));
        for member in request.members() {
            hasher.update(member);
        }
        Some(Self { origin: parts.origin(), digest: finish(&hasher) })
    }

    /// Returns the key for an epoch of the route's knowledge: answers of one epoch are never found in another. Without
    /// this the epoch is 0.
    #[must_use]
    pub fn at_epoch(mut self, epoch: u64) -> Self {
        (self.origin.epoch, self.digest) = (epoch, derived(&self.digest, "gw epoch 1", &epoch.to_le_bytes()));
        self
    }

    /// Returns the key of a request that carries something beside its body that may change the answer, such as a
    /// caller's header that its provider gets.
    #[must_use]
    pub fn beside(mut self, name: &str, value: &str) -> Self {
        self.digest =
            derived(&derived(&self.digest, "gw beside 1", name.as_bytes()), "gw value 1", value.as_bytes());
        self
    }

    /// Returns the key of the form that an answer in flight has: plain, a stream, a stream that reports usage. A
    /// remembered answer is given in every form; the bytes of one in flight have one only.
    #[must_use]
    pub fn in_form(&self, stream: bool, usage: bool) -> Self {
        let mut key = self.clone();
        // Four keys of one digest, and as far from those of another as the digests were: no need to hash again.
        key.digest[DIGEST_BYTES - 1] ^= u8::from(stream) << 1 | u8::from(usage);
        key
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.origin.tenant
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the digest as 64 hexadecimal digits, for the record.
    pub fn digest_hex(&self) -> BoundedText {
        let mut text = [0; 64];
        BoundedText::new(hex(&self.digest, &mut text))
    }

    /// Returns 64 bits of the digest: evenly spread, the same everywhere.
    pub(crate) fn fingerprint(&self) -> u64 {
        leading(&self.digest)
    }

    /// Returns a byte of the digest that the fingerprint does not hold.
    pub(crate) fn shard_byte(&self) -> usize {
        usize::from(self.digest[8])
    }
}

impl Hash for CacheKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl std::fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CacheKey({}, {})", self.origin.tenant, hex(&self.digest, &mut [0; 64]))
    }
}

/// The part of the semantic cache that a request may look into: one tenant, one route, one primary.
///
/// There is no way to name entries without a tenant, and no index over more than one (I9).
#[derive(Clone, PartialEq, Eq)]
pub struct Partition {
    origin: Origin,
    /// In the digest too; here for reports.
    primary: DeploymentName,
    digest: [u8; 32],
}

impl Partition {
    /// Returns the partition of the parts; every one of them keeps entries apart.
    pub fn new(parts: &KeyParts<'_>) -> Self {
        let digest = finish(&parts.hash("gw semantic 1"));
        Self { origin: parts.origin(), primary: parts.primary.clone(), digest }
    }

    /// Returns the partition for an epoch of the route's knowledge; without this the epoch is 0.
    #[must_use]
    pub fn at_epoch(mut self, epoch: u64) -> Self {
        (self.origin.epoch, self.digest) = (epoch, derived(&self.digest, "gw epoch 1", &epoch.to_le_bytes()));
        self
    }

    /// Returns the partition of requests that carry something beside their body that may change the answer.
    #[must_use]
    pub fn beside(mut self, name: &str, value: &str) -> Self {
        self.digest =
            derived(&derived(&self.digest, "gw beside 1", name.as_bytes()), "gw value 1", value.as_bytes());
        self
    }

    /// Returns the primary deployment.
    pub(crate) fn primary(&self) -> &DeploymentName {
        &self.primary
    }

    /// Returns the partition for a locale: questions in one language are never answered with another's.
    #[must_use]
    pub fn in_locale(mut self, locale: &str) -> Self {
        self.digest = derived(&self.digest, "gw locale 1", locale.as_bytes());
        self
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.origin.tenant
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Hash for Partition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(leading(&self.digest));
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partition({}, {})", self.origin.tenant, hex(&self.digest, &mut [0; 64]))
    }
}

/// BLAKE2b-128 of bytes that are compared and never shown.
pub(crate) fn short_digest(bytes: &[u8]) -> [u8; 16] {
    Params::new().hash_length(16).hash(bytes).as_bytes().try_into().unwrap_or_default()
}

/// The first 64 bits of [`short_digest`].
pub(crate) fn short_digest_u64(bytes: &[u8]) -> u64 {
    let mut leading = [0; 8];
    leading.copy_from_slice(&short_digest(bytes)[..8]);
    u64::from_le_bytes(leading)
}

fn leading(digest: &[u8; 32]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(bytes)
}

/// Writes the digest as hexadecimal digits, without an allocation: every request on a route with a cache has one.
fn hex<'a>(digest: &[u8; 32], text: &'a mut [u8; 64]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text.chunks_exact_mut(2).zip(digest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    std::str::from_utf8(text).unwrap_or_default()
}

/// Builds the hasher of maps over digests: the digest is the hash.
pub(crate) type DigestState = BuildHasherDefault<DigestHasher>;

/// Passes 64 bits of a digest on as they are: another hash would only cost time, and a random one determinism.
#[derive(Debug, Default)]
pub(crate) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Digests come through `write_u64`; for anything else this is FNV-1a.
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = bits;
    }

    fn write_u128(&mut self, bits: u128) {
        // Either half of a digest is as evenly spread as the whole.
        self.0 = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
    }
}
