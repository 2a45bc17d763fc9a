//! The members of a request that do not count: fields that cannot change the answer, and defaults that are spelled out.

use gw_types::Operation;

/// Returns the top-level fields that do not change the answer, with the reason beside each.
///
/// Everything that is not listed counts, fields that gw does not know included.
pub(super) const fn irrelevant(operation: Operation) -> &'static [&'static [u8]] {
    match operation {
        Operation::Chat | Operation::Completions | Operation::Responses | Operation::Embeddings => &[
            // How the answer travels: a stream says what the plain answer says.
            b"stream",
            b"stream_options",
            // Labels of the end user, for the provider's abuse checks; the models do not see them.
            b"user",
            b"safety_identifier",
            // Hints where the provider may keep the prompt's prefix: they change speed and price.
            b"prompt_cache_key",
            b"prompt_cache_retention",
            b"prompt_cache_options",
        ],
        Operation::Messages | Operation::CountTokens => &[b"stream"],
    }
}

/// Returns the members, in canonical text, that say what the API's description declares as the default.
///
/// Listed is only what every server of the format does where the field is absent. Left out with reason: `temperature`,
/// `top_p` and `parallel_tool_calls`, which compatible servers take from the model's own configuration where a request
/// does not name them, so that absent and 1 are two requests.
pub(super) const fn defaults(operation: Operation) -> &'static [&'static [u8]] {
    match operation {
        Operation::Chat => &[
            b"\"frequency_penalty\":0,",
            b"\"logprobs\":false,",
            b"\"n\":1,",
            b"\"presence_penalty\":0,",
            b"\"store\":false,",
        ],
        Operation::Responses => &[b"\"background\":false,", b"\"truncation\":\"disabled\","],
        Operation::Embeddings => &[b"\"encoding_format\":\"float\","],
        Operation::Completions | Operation::Messages | Operation::CountTokens => &[],
    }
}

#[cfg(test)]
mod tests {
    use gw_types::Operation;

    use super::{super::Canonical, defaults, irrelevant};

    const ALL: [Operation; 6] = [
        Operation::Chat,
        Operation::Responses,
        Operation::Messages,
        Operation::Completions,
        Operation::Embeddings,
        Operation::CountTokens,
    ];

    #[test]
    fn the_tables_are_in_canonical_text() {
        for operation in ALL {
            for member in defaults(operation) {
                let body = format!("{{{}}}", std::str::from_utf8(member).unwrap().trim_end_matches(','));
                let plain = Canonical::read(body.as_bytes(), Operation::CountTokens).unwrap();
                assert_eq!(plain.members().collect::<Vec<_>>(), [*member]);
                assert_eq!(Canonical::read(body.as_bytes(), operation).unwrap().members().count(), 0);
            }
            for field in irrelevant(operation) {
                let body = format!("{{\"{}\":[1]}}", std::str::from_utf8(field).unwrap());
                assert_eq!(Canonical::read(body.as_bytes(), operation).unwrap().members().count(), 0);
            }
        }
    }
}
