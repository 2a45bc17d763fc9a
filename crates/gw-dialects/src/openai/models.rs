//! The model list.

use bytes::Bytes;
use gw_types::ModelName;
use serde::Serialize;

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    owned_by: &'static str,
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
}

fn model(name: &ModelName, created: i64) -> Model<'_> {
    Model { id: name.as_str(), object: "model", created, owned_by: "gw" }
}

/// Returns the answer to `GET /v1/models`; `created` is in seconds since 1970.
pub fn models_body(names: &[ModelName], created: i64) -> Bytes {
    let data = names.iter().map(|name| model(name, created)).collect();
    Bytes::from(
        serde_json::to_vec(&List { object: "list", data }).expect("text and integers always serialise"),
    )
}

/// Returns the answer to `GET /v1/models/{id}`.
pub fn model_body(name: &ModelName, created: i64) -> Bytes {
    Bytes::from(serde_json::to_vec(&model(name, created)).expect("text and integers always serialise"))
}

#[cfg(test)]
mod tests {
    use gw_types::ModelName;

    use super::{model_body, models_body};

    #[test]
    fn models_are_listed() {
        let names: Vec<ModelName> =
            ["a", "b"].into_iter().map(|name| ModelName::new(name).unwrap()).collect();
        let one = r#"{"id":"a","object":"model","created":7,"owned_by":"gw"}"#;
        assert_eq!(model_body(&names[0], 7), one);
        let list = format!(r#"{{"object":"list","data":[{one},{}]}}"#, one.replace("\"a\"", "\"b\""));
        assert_eq!(models_body(&names, 7), list);
        assert_eq!(models_body(&[], 7), r#"{"object":"list","data":[]}"#);
    }
}
