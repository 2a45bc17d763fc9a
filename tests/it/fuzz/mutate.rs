//! Changes bytes by chance.

use gw_types::{Random, SeededRandom};

/// The longest input, in bytes.
const BYTES_MAX: usize = 4_096;

/// What grammars are made of: put in where single bytes would hardly ever get.
const TOKENS: [&[u8]; 39] = [
    b"data: ",
    b"event: ",
    b"\n\n",
    b"\r\n",
    b"\r",
    b": ",
    b"[DONE]",
    b"\xEF\xBB\xBF",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\u",
    b"\\ud800",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"18446744073709551616",
    b"\"choices\":",
    b"\"error\":",
    b"\"usage\":",
    b"\"delta\":",
    b"\x00\x00\x00\x10",
    b"gwk1:",
    b"\"alg\":\"none\",",
    b"\"aud\":",
    b"\"groups\":",
    b"\"team-b\",",
    b"\"act\":{\"kind\":\"job\"},",
    b"\"nbf\":",
    b" HTTP/1.1\r\n",
    b"content-length: ",
    b"transfer-encoding: chunked\r\n",
    b"expect: 100-continue\r\n",
    b"connection: upgrade\r\n",
    b"x-gw-",
    b"\0",
];

/// Draws mutations from one seed.
#[derive(Debug)]
pub(super) struct Mutator(SeededRandom);

impl Mutator {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// Returns a number below the bound; 0 if that is 0.
    pub(super) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap()
    }

    /// Returns one of the inputs, changed once or a few times.
    pub(super) fn mutate(&self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = inputs[self.below(inputs.len())].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, inputs);
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        let end = at + self.below((bytes.len() - at).min(64) + 1);
        match self.below(7) {
            0 => bytes.insert(at, self.byte()),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, TOKENS[self.below(TOKENS.len())].iter().copied())),
            3 => {
                let again = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let other = &inputs[self.below(inputs.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[self.below(other.len() + 1)..]);
            }
            5 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = self.byte();
                }
            }
        }
    }

    fn byte(&self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }
}
