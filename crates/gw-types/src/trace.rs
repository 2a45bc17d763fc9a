//! W3C trace context: whose trace a request belongs to, and which spans gw adds to it.
//!
//! Ids are made of the request's own id, so that whoever has the record knows them: what was sent to a provider and what is
//! told of it later agree without a word between the two.

use crate::{AttemptRecord, BoundedText, RequestId, SealHash};

/// A place in a trace, as `traceparent` names it (W3C Trace Context, level 1, version 00).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

impl TraceContext {
    /// Reads a header's value; `None` if it is none that the standard knows. A later version is read as its beginning says.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_known = version == "00" && parts.next().is_none();
        let is_later = version != "00" && version != "ff" && hex(version, 2).is_some();
        if !is_known && !is_later {
            return None;
        }
        let trace = hex(trace, 32).filter(|trace| *trace != 0)?;
        let span = hex(span, 16).and_then(|span| u64::try_from(span).ok()).filter(|span| *span != 0)?;
        Some(Self { trace, span, is_sampled: hex(flags, 2)? & 1 == 1 })
    }

    /// Returns the place of the request itself: in its caller's trace, or at the root of one of its own, which is sampled.
    pub fn of_request(caller: Option<&BoundedText>, request: &RequestId) -> Self {
        Self::of(caller, request, &[b"gw request"])
    }

    /// Returns the place of one of the request's calls of providers. A call is known by its deployment and its beginning, not
    /// by its place among the calls: of two that run side by side, the record has the one last that answered.
    pub fn of_attempt(caller: Option<&BoundedText>, request: &RequestId, attempt: &AttemptRecord) -> Self {
        let began = attempt.start_us.to_be_bytes();
        Self::of(caller, request, &[b"gw attempt", &began, attempt.deployment.as_str().as_bytes()])
    }

    fn of(caller: Option<&BoundedText>, request: &RequestId, what: &[&[u8]]) -> Self {
        let id = request.as_str().as_bytes();
        let digest = SealHash::of_parts(&[&[id], what].concat());
        let span = digest.as_bytes().first_chunk().map_or(1, |bytes| u64::from_be_bytes(*bytes));
        // Zero is no id.
        let span = span.max(1);
        match caller.and_then(|caller| Self::parse(caller.as_str())) {
            Some(caller) => Self { span, ..caller },
            None => {
                let own = request.as_str().strip_prefix("req_").and_then(|bits| hex(bits, 32));
                let whole = SealHash::of_parts(&[id, b"gw trace"]);
                let hashed = whole.as_bytes().first_chunk().map_or(1, |bytes| u128::from_be_bytes(*bytes));
                Self { trace: own.unwrap_or(hashed).max(1), span, is_sampled: true }
            }
        }
    }

    /// Returns the id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Returns the id of the span: 16 hexadecimal digits.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// Returns whether whoever began the trace wants it kept.
    pub const fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

/// Writes the header's value.
impl std::fmt::Display for TraceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl std::fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TraceContext({self})")
    }
}

/// Reads lower-case hexadecimal digits, so many and no others.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TraceContext;
    use crate::{AttemptRecord, BoundedText, DeploymentName, ModelName, RequestId};

    const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn headers_read_back() {
        let check = |text: &str, expected: Option<&str>| {
            let read = TraceContext::parse(text).map(|context| context.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        };
        check(CALLER, Some(CALLER));
        check(&CALLER.replace("-01", "-00"), Some(&CALLER.replace("-01", "-00")));
        // Later versions may say more; what is known is taken.
        check(&format!("cc{}-what-comes", &CALLER[2..]), Some(CALLER));
        for wrong in [
            "",
            "00",
            &CALLER.replace("00-", "ff-"),
            &format!("{CALLER}-more"),
            &CALLER.to_uppercase(),
            &CALLER.replace("b7ad6b7169203331", "0000000000000000"),
            &CALLER.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &CALLER.replace("b7ad", "b7a"),
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn spans_stay_in_the_callers_trace_or_begin_their_own() {
        let (request, caller) = (RequestId::from_bits(7), BoundedText::new(CALLER));
        let own = TraceContext::of_request(Some(&caller), &request);
        assert_eq!(own.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        let call = |deployment: &str, start_us| AttemptRecord {
            deployment: DeploymentName::new(deployment).unwrap(),
            credential: None,
            model: ModelName::new("m").unwrap(),
            error: None,
            status: None,
            unclassified: false,
            start_us,
            duration_us: 0,
            upstream_request_id: None,
        };
        let calls = [call("a", 1), call("a", 2), call("b", 1)];
        let of = |call: &AttemptRecord| TraceContext::of_attempt(Some(&caller), &request, call).span_id();
        let spans: BTreeSet<String> = calls.iter().map(of).chain([own.span_id()]).collect();
        assert_eq!(spans.len(), 4);
        let root = TraceContext::of_request(None, &request);
        assert_eq!((root.trace_id(), root.is_sampled()), (format!("{:032x}", 7), true));
        // What is no context is nobody's.
        assert_eq!(TraceContext::of_request(Some(&BoundedText::new("x")), &request), root);
    }
}
