//! What the systems of a trace say to each other beside it: the header `tracestate`.
//!
//! Source: W3C Trace Context, section 3.3. gw adds nothing of its own. A list that is none is dropped, as the standard has
//! it; `traceparent` goes on without it.

use std::sync::Arc;

use http::HeaderMap;

const NAME: &str = "tracestate";

/// Members of a list at most.
const MEMBERS_MAX: usize = 32;
/// The longest list that is passed on, in bytes; members beyond it are left out.
const BYTES_MAX: usize = 512;
/// A member of more bytes is the first to be left out.
const LONG_BYTES: usize = 128;
/// The longest key, and the longest value, in bytes.
const PART_BYTES_MAX: usize = 256;
/// The longest name of a tenant in a key, and of a system.
const TENANT_BYTES_MAX: usize = 241;
const SYSTEM_BYTES_MAX: usize = 14;

/// Returns the list as it is passed on; `None` where there is none, or one that the standard does not know.
pub(super) fn read(headers: &HeaderMap) -> Option<Arc<str>> {
    let mut members: Vec<&str> = Vec::new();
    for piece in headers.get_all(NAME) {
        for member in piece.to_str().ok()?.split(',').map(|member| member.trim_matches([' ', '\t'])) {
            if member.is_empty() {
                continue;
            }
            let key = key_of(member)?;
            let is_there = |other: &&str| other.split_once('=').is_some_and(|(other, _)| other == key);
            if members.len() == MEMBERS_MAX || members.iter().any(is_there) {
                return None;
            }
            members.push(member);
        }
    }
    let length = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>();
    while length(&members) > BYTES_MAX + 1 {
        // The newest stand first.
        let long = members.iter().rposition(|member| member.len() > LONG_BYTES);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    (!members.is_empty()).then(|| Arc::from(members.join(",")))
}

/// Returns the key of a member; `None` if it is none.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let is_key = match key.split_once('@') {
        Some((tenant, system)) => {
            is_name(tenant, TENANT_BYTES_MAX, true) && is_name(system, SYSTEM_BYTES_MAX, false)
        }
        None => is_name(key, PART_BYTES_MAX, false),
    };
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    let is_value = (1..=PART_BYTES_MAX).contains(&value.len()) && value.bytes().all(is_plain);
    (is_key && is_value).then_some(key)
}

/// Returns whether a name begins with a small letter, or with a digit where it may, and goes on as keys do.
fn is_name(name: &str, bytes_max: usize, may_begin_with_digit: bool) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || (may_begin_with_digit && first.is_ascii_digit()));
    let goes_on = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/')
    };
    begins && name.len() <= bytes_max && bytes.all(goes_on)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    fn check(pieces: &[&str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for piece in pieces {
            headers.append(super::NAME, HeaderValue::from_str(piece).unwrap());
        }
        assert_eq!(super::read(&headers).as_deref(), expected, "{pieces:?}");
    }

    #[test]
    fn lists_are_passed_on_as_they_are() {
        check(&[], None);
        check(&["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        check(&["a=1", "b=2,c=a b"], Some("a=1,b=2,c=a b"));
        check(&["fw529a3039@dt=FfAAAAA, 0t@sys=x"], Some("fw529a3039@dt=FfAAAAA,0t@sys=x"));
        // Empty members are allowed, and blanks around any.
        check(&["", " a=1 ,\t, b=2,"], Some("a=1,b=2"));
        check(&[" , "], None);
    }

    #[test]
    fn what_is_no_list_is_dropped_whole() {
        for list in [
            "a", "a=", "=1", "A=1", "1a=1", "a=1,b", "a=1,a=2", "a=1=2", "a b=1", "a@=1", "@b=1", "a@B=1",
            "a@1=2", "a@b@c=1", "a;b=1",
        ] {
            check(&[list], None);
        }
        let members = |count: usize| (0..count).map(|at| format!("k{at}=1")).collect::<Vec<_>>().join(",");
        check(&[&members(32)], Some(&members(32)));
        check(&[&members(33)], None);
        check(&["a=1", "a=2"], None);
        let (longest, longer) = ("k".repeat(256), "k".repeat(257));
        check(&[&format!("{longest}=1")], Some(&format!("{longest}=1")));
        check(&[&format!("{longer}=1")], None);
        check(&[&format!("a={longest}")], Some(&format!("a={longest}")));
        check(&[&format!("a={longer}")], None);
    }

    #[test]
    fn a_long_list_loses_long_members_first_and_then_the_last() {
        let long = |key: &str| format!("{key}={}", "v".repeat(198));
        let list = [long("a"), "b=1".to_owned(), long("c"), long("d"), "e=1".to_owned()].join(",");
        check(&[&list], Some(&[long("a"), "b=1".to_owned(), long("c"), "e=1".to_owned()].join(",")));
        let short = |key: u32| format!("k{key}={}", "v".repeat(97));
        let all: Vec<String> = (0..8).map(short).collect();
        check(&[&all.join(",")], Some(&all[..5].join(",")));
        // 512 bytes, to the byte.
        let whole = format!("{},z={}", all[..4].join(","), "v".repeat(105));
        assert_eq!(whole.len(), 511);
        check(&[&format!("{whole}v")], Some(&format!("{whole}v")));
    }
}
