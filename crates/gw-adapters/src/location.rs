//! Where a configured URL points: taken apart once, and refused where it could mean two things.

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What RFC 3986 calls unreserved stays; everything else in a name is data and must not read as syntax.
pub(crate) const DATA: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A URL's origin and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// Scheme and authority, with the path `/`.
    pub(crate) origin: Uri,
    /// The path without a slash at its end; empty for the root.
    pub(crate) path: String,
    /// The query, without its question mark.
    pub(crate) query: Option<String>,
}

impl Location {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence that begins with its name.
    pub(crate) fn parse(url: &str) -> Result<Self, &'static str> {
        if url.contains('#') {
            return Err("has a fragment (`#`), which is never sent");
        }
        let uri: Uri = url.parse().map_err(|_| "is no URL; `https://host/path` is expected")?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("must begin with `http://` or `https://`");
        }
        let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
            return Err("has no host");
        };
        if authority.as_str().contains('@') {
            return Err("carries a user or password; the key has its own setting");
        }
        if authority.port_u16().is_none() && authority.as_str().len() != authority.host().len() {
            return Err("has a port that is none; 1 to 65535 is expected");
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        let query = uri.query().map(str::to_owned);
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        let origin = Uri::from_parts(parts).map_err(|_| "is no URL")?;
        Ok(Self { origin, path, query })
    }
}

#[cfg(test)]
mod tests {
    use super::Location;

    fn check(url: &str, expected: Result<(&str, &str, Option<&str>), &str>) {
        let found = Location::parse(url).map(|at| (at.origin.to_string(), at.path, at.query));
        let expected = expected
            .map(|(origin, path, query)| (origin.to_owned(), path.to_owned(), query.map(str::to_owned)));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn takes_apart_what_is_one_thing() {
        check("https://a.example", Ok(("https://a.example/", "", None)));
        check("https://a.example:8443/v1/", Ok(("https://a.example:8443/", "/v1", None)));
        check("http://[::1]:80/x/y?q=1", Ok(("http://[::1]:80/", "/x/y", Some("q=1"))));
    }

    #[test]
    fn refuses_what_could_mean_two_things() {
        check("https://a.example/#x", Err("has a fragment (`#`), which is never sent"));
        check("https://u:p@a.example", Err("carries a user or password; the key has its own setting"));
        check("https://a.example:99999", Err("has a port that is none; 1 to 65535 is expected"));
        check("ftp://a.example", Err("must begin with `http://` or `https://`"));
        check("a.example/v1", Err("is no URL; `https://host/path` is expected"));
        check("", Err("is no URL; `https://host/path` is expected"));
        check("/v1", Err("must begin with `http://` or `https://`"));
    }
}
