//! Citations: what Gemini found and what it copied.

use crate::{json::Node, neutral::Citation};

/// The most citations that one document may hold; more are left out.
const CITATIONS_MAX: usize = 256;

/// Reads the citations of a candidate whose visible text so far is `text`.
///
/// Places are counted in bytes by Gemini and in characters here; a place that is none in the text is left out.
pub(super) fn read(candidate: &Node<'_>, text: &str) -> Vec<Citation> {
    let mut citations = Vec::new();
    if let Some(grounding) = candidate.get("groundingMetadata") {
        read_grounding(grounding, text, &mut citations);
    }
    if let Some(metadata) = candidate.get("citationMetadata") {
        // Vertex AI and the Gemini API have different names.
        for list in ["citations", "citationSources"] {
            let sources = metadata.get(list).map(Node::items).unwrap_or_default();
            citations.extend(sources.iter().map(|source| Citation {
                url: source.filled("uri"),
                title: source.filled("title"),
                span: span(source, text),
                ..Citation::default()
            }));
        }
    }
    citations.truncate(CITATIONS_MAX);
    citations
}

/// Reads which pieces of text are supported by which of the things found.
fn read_grounding(grounding: &Node<'_>, text: &str, citations: &mut Vec<Citation>) {
    let chunks = grounding.get("groundingChunks").map(Node::items).unwrap_or_default();
    let supports = grounding.get("groundingSupports").map(Node::items).unwrap_or_default();
    for support in supports.iter().take(CITATIONS_MAX) {
        let place = support.get("segment").and_then(|segment| span(segment, text));
        let indexes = support.get("groundingChunkIndices").map(Node::items).unwrap_or_default();
        for index in indexes.iter().take(CITATIONS_MAX).filter_map(Node::as_u64) {
            let chunk = usize::try_from(index).ok().and_then(|index| chunks.get(index));
            let source = chunk.and_then(|chunk| {
                ["web", "retrievedContext", "maps"].into_iter().find_map(|kind| chunk.get(kind))
            });
            if let Some(source) = source {
                citations.push(Citation {
                    url: source.filled("uri"),
                    title: source.filled("title"),
                    quote: source.filled("text"),
                    span: place,
                    native: None,
                });
            }
        }
    }
}

/// Returns the place that a segment says, in characters. The start is left out where it is 0.
fn span(segment: &Node<'_>, text: &str) -> Option<(u64, u64)> {
    let start = usize::try_from(segment.count("startIndex").unwrap_or(0)).ok()?;
    let end = usize::try_from(segment.count("endIndex")?).ok()?;
    let before = text.get(..start)?.chars().count() as u64;
    let inside = text.get(start..end)?.chars().count() as u64;
    Some((before, before + inside))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::json::Node;

    #[test]
    fn supports_become_citations_with_places_in_characters() {
        let candidate = r#"{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u","title":"t"}},{"retrievedContext":{"text":"q"}},{"x":{}}],
            "groundingSupports":[{"segment":{"endIndex":3},"groundingChunkIndices":[0,1,2,9]},{"segment":{"startIndex":3,"endIndex":99},"groundingChunkIndices":[0]}]}}"#;
        let found = read(&Node::read(candidate).unwrap(), "é bc");
        let facts: Vec<_> = found.iter().map(|c| (c.url.as_deref(), c.quote.as_deref(), c.span)).collect();
        assert_eq!(
            facts,
            [(Some("u"), None, Some((0, 2))), (None, Some("q"), Some((0, 2))), (Some("u"), None, None)]
        );
    }

    #[test]
    fn copies_become_citations_under_both_names() {
        for list in ["citations", "citationSources"] {
            let candidate =
                format!(r#"{{"citationMetadata":{{"{list}":[{{"startIndex":1,"endIndex":2,"uri":"u"}}]}}}}"#);
            let found = read(&Node::read(&candidate).unwrap(), "abc");
            assert_eq!((found[0].url.as_deref(), found[0].span), (Some("u"), Some((1, 2))));
        }
    }

    #[test]
    fn places_inside_of_a_character_are_none() {
        let candidate = r#"{"citationMetadata":{"citations":[{"startIndex":1,"endIndex":2}]}}"#;
        assert_eq!(read(&Node::read(candidate).unwrap(), "é")[0].span, None);
    }
}
