//! Lines of both forms, and what is said of bad ones.

use gw_types::Operation;

use super::{GenerationForm, GenerationSpec, read_generation};

#[track_caller]
fn check(line: &str, expected: Result<(&str, GenerationForm, Operation), &str>) {
    let read = read_generation(line.as_bytes(), Some("m"));
    match (read, expected) {
        (Ok((request, form)), Ok((id, wanted, operation))) => {
            assert_eq!(
                (request.request_id.as_str(), form, request.request.operation),
                (id, wanted, operation),
                "{line}"
            );
        }
        (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{line}: {error}"),
        (read, expected) => {
            panic!("{line}: {:?}, expected {expected:?}", read.map(|(request, _)| request.request_id))
        }
    }
}

#[test]
fn both_forms_are_read() {
    use GenerationForm::{Gw, OpenAiBatch};
    check(r#"{"request_id":"a","prompt":"hi"}"#, Ok(("a", Gw, Operation::Chat)));
    check(
        r#"{"request_id":"a","task_id":"t","messages":[{"role":"user","content":"hi"}],"model":"x","sampling":{"temperature":0.5,"max_tokens":7,"n":2}}"#,
        Ok(("a", Gw, Operation::Chat)),
    );
    let batch =
        |url: &str, body: &str| format!(r#"{{"custom_id":"b","method":"POST","url":"{url}","body":{body}}}"#);
    let chat = r#"{"model":"x","messages":[{"role":"user","content":"hi"}],"anything":1}"#;
    check(&batch("/v1/chat/completions", chat), Ok(("b", OpenAiBatch, Operation::Chat)));
    check(
        &batch("/v1/responses", r#"{"model":"x","input":"hi"}"#),
        Ok(("b", OpenAiBatch, Operation::Responses)),
    );
    check(
        &batch("/v1/completions", r#"{"model":"x","prompt":"hi"}"#),
        Ok(("b", OpenAiBatch, Operation::Completions)),
    );
    check(
        &batch("/v1/embeddings", r#"{"model":"x","input":"hi"}"#),
        Ok(("b", OpenAiBatch, Operation::Embeddings)),
    );
}

#[test]
fn bad_lines_say_what_is_wrong() {
    for (line, said) in [
        ("", "no JSON"),
        ("nonsense", "no JSON"),
        ("[1]", "invalid"),
        (r#"{"request_id":"a""#, "column 17: no JSON"),
        (r#"{"prompt":"hi"}"#, "missing field `request_id`"),
        (r#"{"request_id":"","prompt":"hi"}"#, "1 to 512"),
        (r#"{"request_id":1,"prompt":"hi"}"#, "expected a string"),
        (r#"{"request_id":"a"}"#, "neither `prompt` nor `messages`"),
        (r#"{"request_id":"a","prompt":"hi","messages":[]}"#, "both"),
        (r#"{"request_id":"a","promt":"hi"}"#, "unknown field `promt`"),
        (r#"{"request_id":"a","prompt":"hi","sampling":{"temp":1}}"#, "unknown field `temp`"),
        (r#"{"request_id":"a","prompt":"hi","sampling":{"max_tokens":"x"}}"#, "expected u64"),
        (r#"{"request_id":"a","prompt":"hi","sampling":{"max_tokens":0}}"#, "max_tokens"),
        (r#"{"custom_id":"b","method":"GET","url":"/v1/chat/completions","body":{}}"#, "`POST` is expected"),
        (r#"{"custom_id":"b","method":"POST","url":"/v1/files","body":{}}"#, "`/v1/files`"),
        (
            r#"{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}"#,
            "messages",
        ),
        (
            r#"{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}}"#,
            "`stream`",
        ),
    ] {
        check(line, Err(said));
    }
}

#[test]
fn no_message_repeats_a_prompt() {
    let said = read_generation(br#"{"request_id":"a","sampling":"CANARY","prompt":"hi"}"#, Some("m"));
    assert!(!said.map(|_| ()).unwrap_err().to_string().contains("CANARY"));
}

#[test]
fn a_prompt_is_one_user_message() {
    let request = GenerationSpec::of_prompt("a", "say \"hi\"").into_request(Some("m")).unwrap();
    assert_eq!(
        std::str::from_utf8(&request.request.body).unwrap(),
        r#"{"model":"m","messages":[{"role":"user","content":"say \"hi\""}]}"#
    );
    assert_eq!(request.identity.endpoint_type(), Some("openai-chat"));
    let nobody = GenerationSpec::of_prompt("a", "hi").into_request(None).unwrap_err();
    assert!(nobody.to_string().contains("`--model`"));
}
