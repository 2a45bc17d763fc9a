//! Citations.

use crate::{
    json::Node,
    neutral::{Citation, Origin, RawJson},
};

/// Reads one citation.
pub(super) fn read(node: &Node<'_>) -> Citation {
    let web = node.get("location").and_then(|location| location.get("web"));
    let contents = node.get("sourceContent").map(Node::items).unwrap_or_default();
    let quote: Vec<String> = contents.iter().filter_map(|content| content.filled("text")).collect();
    Citation {
        url: web.and_then(|web| web.filled("url")),
        title: node.filled("title").or_else(|| web.and_then(|web| web.filled("domain"))),
        quote: (!quote.is_empty()).then(|| quote.join("\n")),
        span: None,
        native: RawJson::new(node.raw).map(|raw| (Origin::Bedrock, raw)),
    }
}
