//! The proof that one record stands in the chain, for whoever has nothing but the signer's public key.

use gw_types::{RequestId, SealHash};
use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::value::RawValue;

use super::verify::checkpoint_after;
use crate::{
    Checkpoint, CheckpointSigner,
    ledger::{Tip, Unreadable, block_of, each_block, hash_before, record},
    sql::{Db, SqlError},
};

/// A record, its place in the chain, and the digests of the records after it up to a signed checkpoint.
///
/// Digests, so that a receipt shows nothing of other callers' records. Written as JSON, it can be checked years later,
/// without the ledger.
#[derive(Clone, Debug)]
pub struct RecordReceipt {
    ledger: [u8; 16],
    seq: u64,
    prev: SealHash,
    canonical: Box<RawValue>,
    following: Vec<SealHash>,
    checkpoint: Checkpoint,
}

/// Says why a receipt proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenReceipt {
    /// Somebody else has signed.
    #[error("the checkpoint is signed by another key")]
    Signer,
    /// The signature is not the signer's.
    #[error("the signature of the checkpoint does not hold")]
    Signature,
    /// The links do not lead from the record to the checkpoint.
    #[error("the record does not lead to the checkpoint")]
    Chain,
}

impl RecordReceipt {
    pub(crate) fn read(db: &Db, id: &RequestId) -> Result<Option<Self>, Unreadable> {
        Ok(Self::find(db, id)?)
    }

    /// Reads a receipt; `None` without the record or without a checkpoint after it.
    pub(super) fn find(db: &Db, id: &RequestId) -> Result<Option<Self>, SqlError> {
        let view = db.view()?;
        let Ok(Some(found)) = record(&view, id) else { return Ok(None) };
        let Some(checkpoint) = checkpoint_after(&view, found.seq)? else { return Ok(None) };
        let Some(block) = block_of(&view, found.seq)? else { return Ok(None) };
        let ledger = view.one("SELECT ledger FROM chain", &[], |row| Ok(row.bytes(0)?.try_into().ok()))?;
        let mut prev = hash_before(&view, block.first)?;
        for line in block.each().take_while(|line| line.seq < found.seq) {
            prev = prev.next(line.seq, SealHash::of_record(line.canonical));
        }
        let (mut canonical, mut following) = (None, Vec::new());
        let shown = found.seq..=checkpoint.seq;
        each_block(&view, &shown, |block| {
            for line in block.each().filter(|line| shown.contains(&line.seq)) {
                match canonical {
                    None => canonical = String::from_utf8(line.canonical.to_vec()).ok(),
                    Some(_) => following.push(SealHash::of_record(line.canonical)),
                }
            }
            true
        })?;
        let canonical = canonical.and_then(|text| RawValue::from_string(text).ok());
        Ok(canonical.map(|canonical| Self {
            ledger: ledger.unwrap_or_default(),
            seq: found.seq,
            prev,
            canonical,
            following,
            checkpoint,
        }))
    }

    /// Checks that the signer has signed a chain in which this record stands.
    ///
    /// # Errors
    /// [`BrokenReceipt`] says what does not hold.
    pub fn verify(&self, signer: &CheckpointSigner) -> Result<(), BrokenReceipt> {
        if self.checkpoint.signer != *signer {
            return Err(BrokenReceipt::Signer);
        }
        if !self.checkpoint.holds(&self.ledger) {
            return Err(BrokenReceipt::Signature);
        }
        let before = Tip { seq: self.seq.saturating_sub(1), hash: self.prev };
        let own = before.after(self.canonical.get().as_bytes());
        let end = self.following.iter().fold(own, |tip, digest| tip.then(*digest));
        let leads = self.seq > 0 && (end.seq, end.hash) == (self.checkpoint.seq, self.checkpoint.hash);
        leads.then_some(()).ok_or(BrokenReceipt::Chain)
    }

    /// Returns the canonical bytes of the record.
    pub fn canonical(&self) -> &str {
        self.canonical.get()
    }

    /// Returns the record's number in the chain.
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the signed place.
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }
}

/// The receipt as JSON: hashes, keys and signatures in hexadecimal, the record as it was sealed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    ledger: String,
    seq: u64,
    prev: String,
    record: Box<RawValue>,
    following: Vec<String>,
    checkpoint: WrittenCheckpoint,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCheckpoint {
    seq: u64,
    hash: String,
    newest: i64,
    signer: String,
    signature: String,
}

/// The version of the written form.
const WRITTEN: u32 = 1;

impl Serialize for RecordReceipt {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Checkpoint { seq, hash, newest, signer, signature } = &self.checkpoint;
        Written {
            version: WRITTEN,
            ledger: hex(&self.ledger),
            seq: self.seq,
            prev: self.prev.to_string(),
            record: self.canonical.clone(),
            following: self.following.iter().map(SealHash::to_string).collect(),
            checkpoint: WrittenCheckpoint {
                seq: *seq,
                hash: hash.to_string(),
                newest: *newest,
                signer: signer.to_string(),
                signature: hex(signature),
            },
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for RecordReceipt {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(from)?;
        if written.version != WRITTEN {
            return Err(D::Error::custom("a receipt of an unknown version"));
        }
        let read = || {
            let hash = |text: &String| text.parse::<SealHash>().ok();
            Some(Self {
                ledger: unhex(&written.ledger)?,
                seq: written.seq,
                prev: hash(&written.prev)?,
                following: written.following.iter().map(hash).collect::<Option<_>>()?,
                checkpoint: Checkpoint {
                    seq: written.checkpoint.seq,
                    hash: hash(&written.checkpoint.hash)?,
                    newest: written.checkpoint.newest,
                    signer: written.checkpoint.signer.parse().ok()?,
                    signature: unhex(&written.checkpoint.signature)?,
                },
                canonical: written.record.clone(),
            })
        };
        read().ok_or_else(|| D::Error::custom("a receipt with a malformed hash, key or signature"))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
