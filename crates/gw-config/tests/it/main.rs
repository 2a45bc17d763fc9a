//! What holds for any text, and the design's own example.

mod example;
mod props;
