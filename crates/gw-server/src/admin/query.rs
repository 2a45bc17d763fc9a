//! The query of a path, read strictly.

use std::borrow::Cow;

use gw_types::{ErrorKind, GatewayError, RecordQuery};
use percent_encoding::percent_decode_str;

/// Records on a page that does not say how many.
const LIMIT: u32 = 100;
/// Records on a page at most.
const LIMIT_MAX: u32 = 1_000;

/// Reads which records are wanted: `limit` (1 to 1,000, 100 unless said), `before` (a `seq`), `tenant`.
///
/// # Errors
/// `InvalidRequest` for an unknown name, a name that stands there twice, and a value that is none.
pub(super) fn records(query: Option<&str>) -> Result<RecordQuery, GatewayError> {
    let mut wanted = RecordQuery { tenant: None, before: None, limit: LIMIT };
    let mut seen = 0_u8;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().unwrap_or(Cow::Borrowed(""));
        let (bit, taken) = match name {
            "limit" => (1, limit(&value).map(|limit| wanted.limit = limit)),
            "before" => (2, value.parse().ok().map(|before| wanted.before = Some(before))),
            "tenant" => (4, value.parse().ok().map(|tenant| wanted.tenant = Some(tenant))),
            _ => return Err(malformed("unknown parameter; known: `limit`, `before`, `tenant`", "query")),
        };
        if taken.is_none() || seen & bit != 0 {
            let message =
                "the parameter is malformed or stands there twice; `limit` is 1 to 1000, `before` a number";
            return Err(malformed(message, name));
        }
        seen |= bit;
    }
    Ok(wanted)
}

fn limit(text: &str) -> Option<u32> {
    text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit))
}

fn malformed(message: &'static str, param: &str) -> GatewayError {
    GatewayError::new(ErrorKind::InvalidRequest, message).with_param(param)
}

#[cfg(test)]
mod tests {
    use gw_types::{RecordQuery, TenantId};

    fn check(query: &str, expected: Option<(Option<&str>, Option<u64>, u32)>) {
        let expected = expected.map(|(tenant, before, limit)| RecordQuery {
            tenant: tenant.map(|tenant| TenantId::new(tenant).unwrap()),
            before,
            limit,
        });
        assert_eq!(super::records(Some(query)).ok(), expected, "{query}");
    }

    #[test]
    fn a_query_is_read_strictly() {
        check("", Some((None, None, 100)));
        check("limit=5&before=17&tenant=a", Some((Some("a"), Some(17), 5)));
        check("tenant=a%2Fb", Some((Some("a/b"), None, 100)));
        check("limit=1000&", Some((None, None, 1_000)));
        for query in ["limit=0", "limit=1001", "limit=-1", "limit", "before=x", "tenant=", "tenant=%ff"] {
            check(query, None);
        }
        check("limit=1&limit=1", None);
        check("order=asc", None);
    }
}
