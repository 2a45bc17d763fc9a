//! What holds for any text, and the design's own example.

mod broken;
mod example;
mod props;
