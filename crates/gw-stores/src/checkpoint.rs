//! Signed checkpoints: what nobody can write again who does not hold the key.

use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use gw_types::SealHash;

use crate::ledger::Tip;

/// Signs checkpoints with Ed25519 (RFC 8032). Clones share the key.
#[derive(Clone)]
pub struct CheckpointKey(Arc<Ed25519KeyPair>);

/// The public half of a [`CheckpointKey`], 32 bytes; written as 64 hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CheckpointSigner([u8; 32]);

/// Says that a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a checkpoint key is 64 hexadecimal digits")]
pub struct NotAKey;

/// A place in the chain, signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last record that is signed.
    pub seq: u64,
    /// Its link.
    pub hash: SealHash,
    /// The latest start of a record so far, in microseconds since 1970-01-01T00:00:00Z; 0 before the first.
    pub newest: i64,
    /// Who signed.
    pub signer: CheckpointSigner,
    /// The signature, 64 bytes.
    pub signature: [u8; Self::SIGNATURE_BYTES],
}

// === impl CheckpointKey ===

impl CheckpointKey {
    /// Returns the key of a secret: 32 bytes as 64 hexadecimal digits, from a good source of chance.
    ///
    /// # Errors
    /// The text is no key.
    pub fn from_secret(secret: &str) -> Result<Self, NotAKey> {
        let seed: SealHash = secret.trim().parse().map_err(|_| NotAKey)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_bytes()).map_err(|_| NotAKey)?;
        Ok(Self(Arc::new(pair)))
    }

    /// Returns the public half.
    pub fn signer(&self) -> CheckpointSigner {
        CheckpointSigner(self.0.public_key().as_ref().try_into().unwrap_or_default())
    }

    pub(crate) fn sign(&self, ledger: &[u8; 16], tip: Tip, newest: i64) -> Checkpoint {
        let Tip { seq, hash } = tip;
        let signature = self.0.sign(&message(ledger, seq, hash, newest));
        let signature = signature.as_ref().try_into().unwrap_or([0; Checkpoint::SIGNATURE_BYTES]);
        Checkpoint { seq, hash, newest, signer: self.signer(), signature }
    }
}

impl std::fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointKey({})", self.signer())
    }
}

// === impl CheckpointSigner ===

impl CheckpointSigner {
    /// Returns the signer with these bytes, or `None` if they are not 32.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl std::str::FromStr for CheckpointSigner {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        text.parse::<SealHash>().map(|bytes| Self(*bytes.as_bytes())).map_err(|_| NotAKey)
    }
}

impl std::fmt::Display for CheckpointSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        SealHash::from_bytes(self.0).fmt(f)
    }
}

impl std::fmt::Debug for CheckpointSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CheckpointSigner({self})")
    }
}

// === impl Checkpoint ===

impl Checkpoint {
    /// Length of a signature.
    pub const SIGNATURE_BYTES: usize = 64;

    /// Returns whether the signer has signed this place of this ledger.
    pub fn holds(&self, ledger: &[u8; 16]) -> bool {
        let message = message(ledger, self.seq, self.hash, self.newest);
        UnparsedPublicKey::new(&ED25519, self.signer.0).verify(&message, &self.signature).is_ok()
    }
}

/// Returns what is signed: a fixed opening, the ledger, number, link and latest start; integers are big-endian.
fn message(ledger: &[u8; 16], seq: u64, hash: SealHash, newest: i64) -> Vec<u8> {
    let mut message = b"gw checkpoint 1".to_vec();
    message.extend_from_slice(ledger);
    message.extend_from_slice(&seq.to_be_bytes());
    message.extend_from_slice(hash.as_bytes());
    message.extend_from_slice(&newest.to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use gw_types::SealHash;

    use super::{Checkpoint, CheckpointKey, CheckpointSigner, NotAKey};
    use crate::ledger::Tip;

    /// The first test vector of RFC 8032, section 7.1.
    const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    #[test]
    fn keys_are_those_of_the_rfc_and_do_not_show_their_secret() {
        let key = CheckpointKey::from_secret(SECRET).unwrap();
        assert_eq!(key.signer().to_string(), PUBLIC);
        assert_eq!(PUBLIC.parse(), Ok(key.signer()));
        assert_eq!(format!("{key:?}"), format!("CheckpointKey({PUBLIC})"));
        assert_eq!(CheckpointKey::from_secret("00").unwrap_err(), NotAKey);
        assert_eq!("zz".parse::<CheckpointSigner>(), Err(NotAKey));
    }

    #[test]
    fn a_signature_holds_for_one_place_of_one_ledger() {
        let key = CheckpointKey::from_secret(SECRET).unwrap();
        let (ledger, hash) = ([1; 16], SealHash::from_bytes([2; 32]));
        let signed = key.sign(&ledger, Tip { seq: 3, hash }, 4);
        assert!(signed.holds(&ledger));
        assert!(!signed.holds(&[9; 16]));
        let other = CheckpointKey::from_secret(PUBLIC).unwrap().signer();
        for altered in [
            Checkpoint { seq: 4, ..signed.clone() },
            Checkpoint { hash: SealHash::default(), ..signed.clone() },
            Checkpoint { newest: 5, ..signed.clone() },
            Checkpoint { signer: other, ..signed },
        ] {
            assert!(!altered.holds(&ledger));
        }
    }
}
