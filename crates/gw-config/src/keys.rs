//! Keys that gw makes: format `gwk1`.
//!
//! ```text
//! shown once   gwk1_<public id: 16 hex>_<secret: 64 hex>_<checksum: 8 hex>
//! kept         gwk1:<public id: 16 hex>:<blake2b-256 of public id and key: 64 hex>
//! ```
//!
//! The secret has 256 bits, so the hash needs no salt, no stretching and no secret of the server: there is nothing to
//! guess. The public id finds the entry without a comparison of secrets; the checksum lets a tool tell a mistyped key
//! from an unknown one.

mod issuers;
mod live;
mod table;

use blake2b_simd::Params;
use gw_types::Secret;
use serde::{Serialize, Serializer};
use subtle::ConstantTimeEq;

pub use self::issuers::{Issuer, IssuerTable, Jwks, NotACaller, TokenAlgorithm};
pub(crate) use self::{
    issuers::Claims,
    live::LiveKeys,
    table::{Access, KeyTable, Presented},
};

/// What every shown key begins with.
const SHOWN: &str = "gwk1_";

/// What every stored line begins with.
const STORED: &str = "gwk1:";

const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
const DIGEST_BYTES: usize = 32;

/// `gwk1_`, the three parts in hexadecimal digits, and what separates them.
const SHOWN_LEN: usize = SHOWN.len() + 2 * (ID_BYTES + SECRET_BYTES + CHECKSUM_BYTES) + 2;

/// A key's public id.
pub(crate) type PublicId = [u8; ID_BYTES];

/// A hash of a key. Compared in constant time; prints as redacted, since it stands for the key.
#[derive(Clone, Copy)]
pub(crate) struct KeyDigest([u8; DIGEST_BYTES]);

impl KeyDigest {
    /// Returns the digest of a key and the public id that it is found by; empty for a key without one.
    pub(crate) fn of(id: &[u8], key: &str) -> Self {
        // Without separator: the id has one length, and a key without id is hashed under another prefix.
        let prefix: &[u8] = if id.is_empty() { b"named:" } else { b"gwk1:" };
        let mut digest = Params::new().hash_length(DIGEST_BYTES).to_state();
        digest.update(prefix).update(id).update(key.as_bytes());
        Self(digest.finalize().as_bytes().try_into().unwrap_or_default())
    }

    /// Returns whether the two are equal, in constant time.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        bool::from(self.0.ct_eq(&other.0))
    }

    /// Returns bits to file the digest under.
    pub(crate) fn bytes(&self) -> &[u8; DIGEST_BYTES] {
        &self.0
    }
}

impl std::fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyDigest([redacted])")
    }
}

/// A key as the configuration keeps it: enough to recognise it, not enough to use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredKey {
    pub(crate) id: PublicId,
    pub(crate) digest: KeyDigest,
}

impl StoredKey {
    /// Reads a stored line; `None` if it is none.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (id, digest) = line.strip_prefix(STORED)?.split_once(':')?;
        Some(Self { id: unhex(id)?, digest: KeyDigest(unhex(digest)?) })
    }

    fn line(&self) -> String {
        format!("{STORED}{}:{}", hex(&self.id), hex(&self.digest.0))
    }
}

impl Serialize for StoredKey {
    /// Writes the stored line: it is what the file says, and it opens nothing.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.line())
    }
}

/// A key that was just made. The key itself is shown once and kept nowhere.
///
/// ```
/// let key = gw_config::NewKey::from_entropy([7; gw_config::NewKey::ENTROPY_BYTES]);
/// assert!(key.shown().expose().starts_with("gwk1_0707070707070707_"));
/// assert!(key.line().starts_with("gwk1:0707070707070707:"));
/// assert!(!format!("{key:?}").contains("07070707070707070"));
/// ```
#[derive(Clone, Debug)]
pub struct NewKey {
    shown: Secret,
    line: String,
}

/// Says that the operating system has no entropy to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random bytes")]
pub struct NoEntropy;

impl NewKey {
    /// Bytes of entropy in a key: 8 for the public id, 32 for the secret.
    pub const ENTROPY_BYTES: usize = ID_BYTES + SECRET_BYTES;

    /// Makes a key from the operating system's entropy.
    ///
    /// Not from [`gw_types::Random`]: that seam is for chance that may be repeated, and a key must not be.
    ///
    /// # Errors
    /// [`NoEntropy`], if the operating system has none.
    pub fn generate() -> Result<Self, NoEntropy> {
        let mut entropy = [0; Self::ENTROPY_BYTES];
        getrandom::fill(&mut entropy).map_err(|_| NoEntropy)?;
        Ok(Self::from_entropy(entropy))
    }

    /// Makes the key that the bytes say: the public id first, then the secret. The bytes must be unpredictable.
    pub fn from_entropy(entropy: [u8; Self::ENTROPY_BYTES]) -> Self {
        let (id, secret) = entropy.split_at(ID_BYTES);
        let body = format!("{SHOWN}{}_{}", hex(id), hex(secret));
        let shown = format!("{body}_{}", checksum(&body));
        let mut public = [0; ID_BYTES];
        public.copy_from_slice(id);
        let line = StoredKey { id: public, digest: KeyDigest::of(id, &shown) }.line();
        // The text is visible ASCII, so it is a secret.
        let shown = Secret::new(&shown).expect("hexadecimal digits are neither blank nor control characters");
        Self { shown, line }
    }

    /// Returns the key, to be shown once.
    pub fn shown(&self) -> &Secret {
        &self.shown
    }

    /// Returns the value of `hash` for the configuration.
    pub fn line(&self) -> &str {
        &self.line
    }
}

/// Returns the public id of a presented key, if it has the shape of one that gw made. Checks no checksum.
fn public_id(presented: &str) -> Option<PublicId> {
    if presented.len() != SHOWN_LEN {
        return None;
    }
    let (id, rest) = presented.strip_prefix(SHOWN)?.split_at_checked(2 * ID_BYTES)?;
    rest.starts_with('_').then(|| unhex(id)).flatten()
}

fn checksum(body: &str) -> String {
    let digest = Params::new().hash_length(DIGEST_BYTES).hash(body.as_bytes());
    hex(digest.as_bytes().get(..CHECKSUM_BYTES).unwrap_or_default())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads exactly `N` bytes of lower-case hexadecimal digits.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(*pair.first()?)? << 4 | digit(*pair.last()?)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{NewKey, StoredKey, public_id};

    #[test]
    fn a_new_key_and_its_line_belong_together() {
        let key = NewKey::generate().unwrap();
        let stored = StoredKey::parse(key.line()).unwrap();
        assert_eq!(public_id(key.shown().expose()), Some(stored.id));
        assert_eq!(stored.line(), key.line());
        assert_ne!(NewKey::generate().unwrap().line(), key.line());
    }

    #[test]
    fn the_format_is_fixed() {
        let key = NewKey::from_entropy([0xab; NewKey::ENTROPY_BYTES]);
        let expected = format!("gwk1_{}_{}_", "ab".repeat(8), "ab".repeat(32));
        assert_eq!(key.shown().expose().len(), 95);
        assert!(key.shown().expose().starts_with(&expected));
    }

    #[test]
    fn other_texts_are_no_stored_key() {
        let line = NewKey::from_entropy([1; NewKey::ENTROPY_BYTES]).line().to_owned();
        for text in ["", "gwk1:", "gwk1:00:11", &line.to_uppercase(), &line[1..], &format!("{line}0")] {
            assert!(StoredKey::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn i18_a_key_prints_as_redacted() {
        let key = NewKey::from_entropy([5; NewKey::ENTROPY_BYTES]);
        assert!(!format!("{key:?}").contains(key.shown().expose()));
        let stored = StoredKey::parse(key.line()).unwrap();
        assert!(format!("{stored:?}").contains("[redacted]"));
    }
}
