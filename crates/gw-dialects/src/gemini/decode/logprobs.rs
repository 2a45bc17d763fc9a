//! Log probabilities, as OpenAI chat writes them.

use crate::{
    json::{Node, Writer},
    neutral::RawJson,
};

/// Translates a `logprobsResult`: the tokens chosen, and beside each the likeliest.
pub(super) fn read(result: &Node<'_>) -> Option<RawJson> {
    let chosen = result.get("chosenCandidates").map(Node::items).unwrap_or_default();
    let likeliest = result.get("topCandidates").map(Node::items).unwrap_or_default();
    if chosen.is_empty() {
        return None;
    }
    let mut json = Writer::default();
    json.object(|json| {
        json.member_array("content", |json| {
            for (place, token) in chosen.iter().enumerate() {
                let others = likeliest.get(place).and_then(|top| top.get("candidates")).map(Node::items);
                json.object(|json| {
                    write_token(json, token);
                    json.member_array("top_logprobs", |json| {
                        for other in others.unwrap_or_default() {
                            json.object(|json| write_token(json, other));
                        }
                    });
                });
            }
        });
        json.member_null("refusal");
    });
    RawJson::new(std::str::from_utf8(&json.into_bytes()).ok()?)
}

fn write_token(json: &mut Writer, token: &Node<'_>) {
    let text = token.text("token").unwrap_or_default();
    json.member_string("token", &text);
    json.member_raw("logprob", token.get("logProbability").map_or("0", |number| number.raw));
    json.member_array("bytes", |json| text.bytes().for_each(|byte| json.raw(&byte.to_string())));
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::json::Node;

    #[track_caller]
    fn check(result: &str, expected: Option<&str>) {
        let read = read(&Node::read(result).unwrap());
        assert_eq!(read.as_ref().map(|logprobs| logprobs.as_str()), expected);
    }

    #[test]
    fn tokens_and_their_rivals_are_translated() {
        check(
            r#"{"chosenCandidates":[{"token":"é","tokenId":7,"logProbability":-0.5}],
            "topCandidates":[{"candidates":[{"token":"a","logProbability":-1.25e-3}]}]}"#,
            Some(
                r#"{"content":[{"token":"é","logprob":-0.5,"bytes":[195,169],"top_logprobs":[{"token":"a","logprob":-1.25e-3,"bytes":[97]}]}],"refusal":null}"#,
            ),
        );
        check(
            r#"{"chosenCandidates":[{"token":"x"}]}"#,
            Some(r#"{"content":[{"token":"x","logprob":0,"bytes":[120],"top_logprobs":[]}],"refusal":null}"#),
        );
        check(r#"{"avg":1}"#, None);
    }
}
