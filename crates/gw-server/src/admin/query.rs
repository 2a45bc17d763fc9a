//! The query of a path, read strictly.

use std::{borrow::Cow, collections::BTreeMap};

use gw_types::{ErrorKind, GatewayError, TenantId};
use percent_encoding::percent_decode_str;

/// Records on a page that does not say how many.
const LIMIT: u32 = 100;
/// Records on a page at most.
const LIMIT_MAX: u32 = 1_000;

/// Which page of records is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageQuery {
    pub(super) tenant: Option<TenantId>,
    /// Of one gateway; absent: of all.
    pub(super) node: Option<i64>,
    pub(super) before: Before,
    pub(super) limit: u32,
}

/// Where the last page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nowhere: this is the first.
    Newest,
    /// Before this `seq`, where all records are one gateway's.
    Seq(u64),
    /// Before these of each gateway; of the others at the newest.
    Nodes(BTreeMap<i64, u64>),
}

impl Before {
    fn read(text: &str) -> Option<Self> {
        if let Ok(seq) = text.parse() {
            return Some(Self::Seq(seq));
        }
        let place = |place: &str| {
            let (node, seq) = place.split_once(':')?;
            Some((node.parse().ok()?, seq.parse().ok()?))
        };
        text.split(',').map(place).collect::<Option<_>>().map(Self::Nodes)
    }
}

/// Reads which records are wanted: `limit` (1 to 1,000, 100 unless said), `before` (the last page's `next_before`), `node`,
/// `tenant`.
///
/// # Errors
/// `InvalidRequest` for an unknown name, a name that stands there twice, and a value that is none.
pub(super) fn records(query: Option<&str>) -> Result<PageQuery, GatewayError> {
    let mut wanted = PageQuery { tenant: None, node: None, before: Before::Newest, limit: LIMIT };
    let mut seen = 0_u8;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().unwrap_or(Cow::Borrowed(""));
        let (bit, taken) = match name {
            "limit" => (1, limit(&value).map(|limit| wanted.limit = limit)),
            "before" => (2, Before::read(&value).map(|before| wanted.before = before)),
            "tenant" => (4, value.parse().ok().map(|tenant| wanted.tenant = Some(tenant))),
            "node" => (8, value.parse().ok().map(|node| wanted.node = Some(node))),
            _ => {
                return Err(malformed(
                    "unknown parameter; known: `limit`, `before`, `node`, `tenant`",
                    "query",
                ));
            }
        };
        if taken.is_none() || seen & bit != 0 {
            let message = "the parameter is malformed or stands there twice; `limit` is 1 to 1000, `before` a page's \
                           `next_before`, `node` a number";
            return Err(malformed(message, name));
        }
        seen |= bit;
    }
    Ok(wanted)
}

fn limit(text: &str) -> Option<u32> {
    text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit))
}

pub(super) fn malformed(message: &'static str, param: &str) -> GatewayError {
    GatewayError::new(ErrorKind::InvalidRequest, message).with_param(param)
}

#[cfg(test)]
mod tests {
    use gw_types::TenantId;

    use super::{Before, PageQuery};

    fn check(query: &str, expected: Option<(Option<&str>, Before, u32)>) {
        let expected = expected.map(|(tenant, before, limit)| PageQuery {
            tenant: tenant.map(|tenant| TenantId::new(tenant).unwrap()),
            node: query.contains("node=2").then_some(2),
            before,
            limit,
        });
        assert_eq!(super::records(Some(query)).ok(), expected, "{query}");
    }

    #[test]
    fn a_query_is_read_strictly() {
        check("", Some((None, Before::Newest, 100)));
        check("limit=5&before=17&tenant=a", Some((Some("a"), Before::Seq(17), 5)));
        check("tenant=a%2Fb", Some((Some("a/b"), Before::Newest, 100)));
        check("limit=1000&", Some((None, Before::Newest, 1_000)));
        for query in ["limit=0", "limit=1001", "limit=-1", "limit", "before=x", "tenant=", "tenant=%ff"] {
            check(query, None);
        }
        check("node=2&before=3", Some((None, Before::Seq(3), 100)));
        check("before=1:5,2:9", Some((None, Before::Nodes([(1, 5), (2, 9)].into()), 100)));
        for query in
            ["before=", "before=1:", "before=1:5,", "before=:5", "before=1:5:6", "node=x", "node=1&node=2"]
        {
            check(query, None);
        }
        check("limit=1&limit=1", None);
        check("order=asc", None);
    }
}
