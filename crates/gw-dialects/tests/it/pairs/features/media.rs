//! Images, documents, sound.

use gw_types::Operation;
use serde_json::{Value, json};

use super::{Feature, chat_parts, input_parts, says};

pub(super) fn media() -> Vec<Feature> {
    let url = "https://mark.example/a.png";
    let pdf = "https://mark.example/a.pdf";
    vec![
        says("image at an address", &["https://mark.example/a.png"])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "image_url", "image_url": {"url": url}}])))
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_image", "image_url": url}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "image", "source": {"type": "url", "url": url}}]))),
        says("image in the request", &["bWFyaw=="])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,bWFyaw=="}}])))
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_image", "image_url": "data:image/png;base64,bWFyaw=="}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "bWFyaw=="}}]))),
        says("image at the provider", &["file-mark"])
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_image", "file_id": "file-mark"}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "image", "source": {"type": "file", "file_id": "file-mark"}}]))),
        says("closeness of an image", &["high"])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "image_url", "image_url": {"url": url, "detail": "high"}}])))
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_image", "image_url": url, "detail": "high"}])))
            .each(|said, caller| said.beside = match caller {
                Operation::Responses => input_parts(json!([{"type": "input_image", "image_url": url}])),
                _ => chat_parts(json!([{"type": "image_url", "image_url": {"url": url}}])),
            }),
        says("document in the request", &["bWFyaw=="])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "file", "file": {"file_data": "data:application/pdf;base64,bWFyaw=="}}])))
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_file", "file_data": "data:application/pdf;base64,bWFyaw=="}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "bWFyaw=="}}]))),
        says("document at an address", &["https://mark.example/a.pdf"])
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_file", "file_url": pdf}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "source": {"type": "url", "url": pdf}}]))),
        says("document at the provider", &["file-mark"])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "file", "file": {"file_id": "file-mark"}}])))
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_file", "file_id": "file-mark"}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "source": {"type": "file", "file_id": "file-mark"}}]))),
        says("document of text", &["mark-d"])
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "mark-d"}}]))),
        says("document of parts", &["mark-d"])
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "mark-d"}]}}]))),
        says("a document's title", &["mark-t"])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "file", "file": {"filename": "mark-t", "file_data": "data:application/pdf;base64,bWFyaw=="}}])))
            .responses("input[0].content[0]", input_parts(json!([{"type": "input_file", "filename": "mark-t", "file_data": "data:application/pdf;base64,bWFyaw=="}])))
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "title": "mark-t", "source": {"type": "base64", "media_type": "application/pdf", "data": "bWFyaw=="}}]))).each(|said, caller| said.beside = without_titles(caller)),
        says("what is said about a document", &["mark-c"])
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "context": "mark-c", "source": {"type": "base64", "media_type": "application/pdf", "data": "bWFyaw=="}}]))),
        says("citations of a document", &["citations"])
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "document", "citations": {"enabled": true}, "source": {"type": "base64", "media_type": "application/pdf", "data": "bWFyaw=="}}]))),
        says("sound", &["bWFyaw=="])
            .chat("messages[0].content[0]", chat_parts(json!([{"type": "input_audio", "input_audio": {"format": "wav", "data": "bWFyaw=="}}]))),
        says("search result", &["mark-r"])
            .messages("messages[0].content[0]", chat_parts(json!([{"type": "search_result", "source": "https://mark.example", "title": "t", "content": [{"type": "text", "text": "mark-r"}]}]))),
    ]
}

fn without_titles(caller: Operation) -> Value {
    let data = "data:application/pdf;base64,bWFyaw==";
    match caller {
        Operation::Responses => input_parts(json!([{"type": "input_file", "file_data": data}])),
        Operation::Messages => chat_parts(json!([{"type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "bWFyaw=="}}])),
        _ => chat_parts(json!([{"type": "file", "file": {"file_data": data}}])),
    }
}
