//! Keys: who asked, what would answer, and the canonical request, as a digest beside the tenant.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use blake2::{
    Blake2b, Digest,
    digest::consts::{U16, U32},
};
use gw_types::{BoundedText, DeploymentName, Operation, RouteName, TenantId};

use crate::canonical::Canonical;

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
    /// Hashes every part behind its length, so that no two lists of parts give the same bytes.
    fn hash(&self, domain: &str) -> Blake2b<U32> {
        let mut hasher = Blake2b::<U32>::new();
        for part in [domain, self.tenant.as_str(), self.route.as_str(), self.primary.as_str()] {
            field(&mut hasher, part.as_bytes());
        }
        hasher.update([u8::from(self.model_version.is_some())]);
        for part in [self.model_version.unwrap_or_default(), self.operation.as_str(), self.policy_digest] {
            field(&mut hasher, part.as_bytes());
        }
        hasher
    }
}

fn field(hasher: &mut Blake2b<U32>, bytes: &[u8]) {
    hasher.update(length(bytes.len()));
    hasher.update(bytes);
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
    tenant: TenantId,
    digest: [u8; 32],
}

impl CacheKey {
    /// Returns the key of a request; `None` if the body is not a JSON object, is nested deeper than 100 levels, or
    /// has a number whose exponent needs more than 63 bits: such a request is not cached.
    ///
    /// Order of keys, blanks, spelling of numbers and escapes of strings do not matter, nor do the top-level fields
    /// `stream`, `stream_options` and `user`. Everything else does, unknown fields included. Of equal keys the last
    /// counts. Costs one pass over the body; a few microseconds a kilobyte.
    pub fn new(parts: &KeyParts<'_>, body: &[u8]) -> Option<Self> {
        let request = Canonical::read(body)?;
        let mut hasher = parts.hash("gw exact 1");
        hasher.update(length(request.members().map(<[u8]>::len).sum()));
        request.members().for_each(|member| hasher.update(member));
        Some(Self { tenant: parts.tenant.clone(), digest: hasher.finalize().into() })
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns the digest as 64 hexadecimal digits, for the record.
    pub fn digest_hex(&self) -> BoundedText {
        BoundedText::new(&hex(&self.digest))
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
        write!(f, "CacheKey({}, {})", self.tenant, hex(&self.digest))
    }
}

/// The part of the semantic cache that a request may look into: one tenant, one route, one primary.
///
/// There is no way to name entries without a tenant, and no index over more than one (I9).
#[derive(Clone, PartialEq, Eq)]
pub struct Partition {
    tenant: TenantId,
    digest: [u8; 32],
}

impl Partition {
    /// Returns the partition of the parts; every one of them keeps entries apart.
    pub fn new(parts: &KeyParts<'_>) -> Self {
        Self { tenant: parts.tenant.clone(), digest: parts.hash("gw semantic 1").finalize().into() }
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }
}

impl Hash for Partition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(leading(&self.digest));
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partition({}, {})", self.tenant, hex(&self.digest))
    }
}

/// BLAKE2b-128 of bytes that are compared and never shown.
pub(crate) fn short_digest(bytes: &[u8]) -> [u8; 16] {
    Blake2b::<U16>::digest(bytes).into()
}

fn leading(digest: &[u8; 32]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
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
}
