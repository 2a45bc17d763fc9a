//! The model list.

use bytes::Bytes;
use gw_types::ModelName;

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
        json.member_string("created_at", &rfc3339(created));
        json.member_string("lifecycle", "active");
    });
}

/// Returns a time as `2030-01-31T00:00:00Z`. The calendar is Howard Hinnant's `civil_from_days`.
fn rfc3339(seconds: i64) -> String {
    const DAY: i64 = 86_400;
    let days = seconds.div_euclid(DAY) + 719_468;
    let rest = seconds.rem_euclid(DAY);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use gw_types::ModelName;

    use super::{model_body, models_body, rfc3339};

    #[test]
    fn models_are_listed() {
        let name = ModelName::new("a").unwrap();
        let one = r#"{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:07Z","lifecycle":"active"}"#;
        assert_eq!(model_body(&name, 7), one);
        let list = format!(r#"{{"data":[{one}],"has_more":false,"first_id":"a","last_id":"a"}}"#);
        assert_eq!(models_body(&[name], 7), list);
        assert_eq!(models_body(&[], 7), r#"{"data":[],"has_more":false,"first_id":null,"last_id":null}"#);
    }

    #[test]
    fn times() {
        assert_eq!(rfc3339(1_893_456_000), "2030-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_827_696), "2000-02-29T12:34:56Z");
    }
}
