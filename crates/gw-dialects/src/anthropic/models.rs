//! The model list.

use bytes::Bytes;
use gw_types::{ModelName, UtcTime};

use crate::json::Writer;

/// Returns the answer to `GET /v1/models` for a caller of the dialect; `created` is in seconds since 1970.
pub fn models_body(names: &[ModelName], created: i64) -> Bytes {
    let mut json = Writer::default();
    json.object(|json| {
        json.member_array("data", |json| names.iter().for_each(|name| model(json, name, created)));
        json.member_bool("has_more", false);
        for (member, name) in [("first_id", names.first()), ("last_id", names.last())] {
            match name {
                Some(name) => json.member_string(member, name.as_str()),
                None => json.member_null(member),
            }
        }
    });
    json.into_bytes()
}

/// Returns the answer to `GET /v1/models/{id}` for a caller of the dialect.
pub fn model_body(name: &ModelName, created: i64) -> Bytes {
    let mut json = Writer::default();
    model(&mut json, name, created);
    json.into_bytes()
}

fn model(json: &mut Writer, name: &ModelName, created: i64) {
    json.object(|json| {
        json.member_string("type", "model");
        json.member_string("id", name.as_str());
        json.member_string("display_name", name.as_str());
        json.member_string(
            "created_at",
            &UtcTime::from_micros(created.saturating_mul(1_000_000)).to_rfc3339(),
        );
        json.member_string("lifecycle", "active");
    });
}

#[cfg(test)]
mod tests {
    use gw_types::ModelName;

    use super::{model_body, models_body};

    #[test]
    fn models_are_listed() {
        let name = ModelName::new("a").unwrap();
        let one = r#"{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:07Z","lifecycle":"active"}"#;
        assert_eq!(model_body(&name, 7), one);
        let list = format!(r#"{{"data":[{one}],"has_more":false,"first_id":"a","last_id":"a"}}"#);
        assert_eq!(models_body(&[name], 7), list);
        assert_eq!(models_body(&[], 7), r#"{"data":[],"has_more":false,"first_id":null,"last_id":null}"#);
    }
}
