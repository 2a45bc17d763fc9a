//! The chain that seals records: each link holds its record, its number and the link before.

use blake2b_simd::{Params, State};

/// 32 bytes of blake2b.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SealHash([u8; 32]);

impl SealHash {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// Returns the hash with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the hash with these bytes, or `None` if they are not 32.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digest of a record's canonical bytes: its blake2b with 32 bytes of output.
    pub fn of_record(canonical: &[u8]) -> Self {
        Self::end(start().update(canonical))
    }

    /// Returns the digest of several parts, each with its length before it, so that no two lists of parts are one.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut digest = start();
        for part in parts {
            digest.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        Self::end(&digest)
    }

    /// Returns the start of a ledger's chain, which no other ledger shares: the link before its first record.
    pub fn genesis(ledger: &[u8; 16]) -> Self {
        Self::end(start().update(b"gw ledger 1").update(ledger))
    }

    /// Returns the link of a record: blake2b over the link before, the number (8 bytes, big-endian) and the digest of the
    /// canonical bytes.
    ///
    /// The link holds a digest and not the bytes, so that a receipt can show the links after a record without showing
    /// other callers' records.
    #[must_use]
    pub fn next(self, seq: u64, digest: Self) -> Self {
        Self::end(start().update(&self.0).update(&seq.to_be_bytes()).update(&digest.0))
    }

    fn end(state: &State) -> Self {
        Self::from_slice(state.finalize().as_bytes()).unwrap_or_default()
    }
}

fn start() -> State {
    Params::new().hash_length(SealHash::BYTES).to_state()
}

impl std::fmt::Display for SealHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for SealHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealHash({self})")
    }
}

impl std::str::FromStr for SealHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let digits = text.as_bytes();
        if digits.len() != 2 * Self::BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(NotAHash);
        }
        let mut bytes = [0; Self::BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| NotAHash)?;
        }
        Ok(Self(bytes))
    }
}

/// Says that a text is no hash: 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 hexadecimal digits")]
pub struct NotAHash;

/// A record as a ledger seals it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRecord {
    /// The number in the chain, counting up from 1 without a gap.
    pub seq: u64,
    /// The link before.
    pub prev: SealHash,
    /// This record's link.
    pub hash: SealHash,
    /// The canonical bytes.
    pub canonical: Vec<u8>,
}

impl SealedRecord {
    /// Seals canonical bytes after a link.
    pub fn seal(prev: SealHash, seq: u64, canonical: Vec<u8>) -> Self {
        let hash = prev.next(seq, SealHash::of_record(&canonical));
        Self { seq, prev, hash, canonical }
    }

    /// Returns whether the link belongs to number, bytes and link before.
    pub fn holds(&self) -> bool {
        self.prev.next(self.seq, SealHash::of_record(&self.canonical)) == self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::{SealHash, SealedRecord};

    #[test]
    fn hashes_read_back() {
        let hash = SealHash::of_record(b"abc");
        // The published digest of `abc` under blake2b with 32 bytes of output.
        assert_eq!(hash.to_string(), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<SealHash>().is_err());
        }
    }

    #[test]
    fn a_link_holds_number_bytes_and_the_link_before() {
        let start = SealHash::genesis(&[7; 16]);
        let sealed = SealedRecord::seal(start, 1, b"{}".to_vec());
        assert!(sealed.holds());
        for altered in [
            SealedRecord { seq: 2, ..sealed.clone() },
            SealedRecord { prev: SealHash::genesis(&[8; 16]), ..sealed.clone() },
            SealedRecord { hash: start, ..sealed.clone() },
            SealedRecord { canonical: b"{ }".to_vec(), ..sealed },
        ] {
            assert!(!altered.holds());
        }
    }
}
