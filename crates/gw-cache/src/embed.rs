//! The seam to whatever turns text into a vector, and the embedders that need no model.

mod hashing;
mod words;

use std::sync::Arc;

use async_trait::async_trait;
use gw_errors::GatewayError;

pub use self::{hashing::HashingEmbedder, words::WordEmbedder};

/// Turns text into a vector whose direction stands for what the text says.
///
/// # Contract
/// The same text gives the same vector, and every vector of one embedder has the same number of dimensions. The length
/// of the vector does not matter: the cache brings it to 1. A vector of zeros says that there is nothing to compare,
/// and so does one that is not finite. Dropping the future cancels the work. The caller bounds its time.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Returns the vector of the text.
    ///
    /// # Errors
    /// Any kind of the provider's side of the table, where a provider is asked; the request is then answered as if
    /// there were no semantic cache.
    async fn embed(&self, text: &str) -> Result<Vec<f32>, GatewayError>;
}

const _: fn(&dyn Embedder) = |_object_safe| {};

/// Names the embedders that need no model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltInEmbedder {
    /// [`HashingEmbedder`]: words, pairs of words and runs of characters.
    #[default]
    Hashing,
    /// [`WordEmbedder`]: words alone.
    Words,
}

impl BuiltInEmbedder {
    /// Returns the embedder in its default dimensions.
    pub fn embedder(self) -> Arc<dyn Embedder> {
        match self {
            Self::Hashing => Arc::new(HashingEmbedder::default()),
            Self::Words => Arc::new(WordEmbedder::default()),
        }
    }
}

/// Brings sums to length 1; zeros stay zeros.
fn unit(sums: &[i64]) -> Vec<f32> {
    // Sums of a text are far below 2^53: the conversion is exact.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let wide = || sums.iter().map(|&sum| sum as f64);
    let square: f64 = wide().map(|sum| sum * sum).sum();
    let scale = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "a unit vector loses the last bits only")]
    wide().map(|sum| (sum * scale) as f32).collect()
}
