//! AWS Signature Version 4 over a call.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use bytes::Bytes;
use gw_types::{Clock, ErrorKind, GatewayError, Secret, UtcTime};
use http::{HeaderName, header};

use super::{CallHeaders, WebIdentity, sensitive};
use crate::transport::Target;

/// The keys of an account or a role. `Debug` shows none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AwsKeys {
    pub(crate) access_key_id: Secret,
    pub(crate) secret_access_key: Secret,
    pub(crate) session_token: Option<Secret>,
}

/// Where keys come from.
#[derive(Debug)]
pub(crate) enum KeySource {
    /// The configuration.
    Static(AwsKeys),
    /// The security token service, for a token of the platform that gw runs on.
    WebIdentity(Box<WebIdentity>),
}

/// Signs calls.
#[derive(Debug)]
pub(crate) struct AwsSigner {
    keys: KeySource,
    region: String,
    service: &'static str,
    clock: Arc<dyn Clock>,
}

impl AwsSigner {
    pub(crate) fn new(keys: KeySource, region: String, service: &'static str, clock: Arc<dyn Clock>) -> Self {
        Self { keys, region, service, clock }
    }

    /// Adds the headers of a signature over the call: method, address, host, content type, date and body.
    ///
    /// # Errors
    /// Why no keys could be had; `Internal` if the call cannot be signed.
    pub(crate) async fn sign(
        &self,
        target: &Target,
        body: &Bytes,
        headers: &mut CallHeaders,
    ) -> Result<(), GatewayError> {
        let keys = match &self.keys {
            KeySource::Static(keys) => keys.clone(),
            KeySource::WebIdentity(identity) => identity.keys().await?,
        };
        let call = Call {
            method: target.method().as_str(),
            address: &target.address().to_string(),
            headers: &[(header::CONTENT_TYPE.as_str(), "application/json")],
            body,
        };
        let place = Place { region: &self.region, service: self.service, at: self.clock.utc() };
        headers.extend(signature(&keys, &place, &call)?);
        Ok(())
    }

    /// Drops keys that were fetched a while ago.
    pub(crate) fn forget(&self) {
        match &self.keys {
            KeySource::Static(_) => {}
            KeySource::WebIdentity(identity) => identity.forget(),
        }
    }
}

/// Where and when a call is made.
struct Place<'a> {
    region: &'a str,
    service: &'a str,
    at: UtcTime,
}

/// What is signed.
struct Call<'a> {
    method: &'a str,
    /// With the path encoded as it is sent.
    address: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a [u8],
}

/// Returns the headers of the signature. Path segments are encoded twice, as every service but S3 wants it.
fn signature(keys: &AwsKeys, place: &Place<'_>, call: &Call<'_>) -> Result<CallHeaders, GatewayError> {
    let micros = u64::try_from(place.at.micros()).unwrap_or(0);
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
    let session = keys.session_token.as_ref().map(|token| token.expose().to_owned());
    let (id, secret) = (keys.access_key_id.expose(), keys.secret_access_key.expose());
    let identity = Credentials::new(id, secret, session, None, "gw").into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(place.region)
        .name(place.service)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| unsigned())?
        .into();
    let body = SignableBody::Bytes(call.body);
    let request = SignableRequest::new(call.method, call.address, call.headers.iter().copied(), body)
        .map_err(|_| unsigned())?;
    let (instructions, _) = sign(request, &params).map_err(|_| unsigned())?.into_parts();
    instructions
        .headers()
        .map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, sensitive(value)?))
        })
        .collect::<Option<CallHeaders>>()
        .ok_or_else(unsigned)
}

fn unsigned() -> GatewayError {
    GatewayError::new(ErrorKind::Internal, "a call cannot be signed")
}

#[cfg(test)]
mod tests {
    use gw_types::{Secret, UtcTime};

    use super::{AwsKeys, Call, Place, signature};

    /// 2015-08-30T12:36:00Z, the instant of AWS's test suite.
    const AT: UtcTime = UtcTime::from_micros(1_440_938_160_000_000);

    const HOST: &str = "https://example.amazonaws.com";

    /// Signs as the account of AWS's test suite does; returns the names of the signed headers and the signature.
    fn sign(call: &Call<'_>, session_token: Option<&str>) -> (String, String) {
        let keys = keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", session_token);
        sign_with(&keys, call)
    }

    fn keys(id: &str, secret: &str, session_token: Option<&str>) -> AwsKeys {
        AwsKeys {
            access_key_id: Secret::new(id).unwrap(),
            secret_access_key: Secret::new(secret).unwrap(),
            session_token: session_token.and_then(Secret::new),
        }
    }

    fn sign_with(keys: &AwsKeys, call: &Call<'_>) -> (String, String) {
        let place = Place { region: "us-east-1", service: "service", at: AT };
        let headers = signature(keys, &place, call).unwrap();
        let value = |name: &str| {
            let found = headers.iter().find(|(header, _)| header == name);
            found.map(|(_, value)| value.to_str().unwrap())
        };
        assert_eq!(value("x-amz-date"), Some("20150830T123600Z"));
        assert_eq!(value("x-amz-security-token"), keys.session_token.as_ref().map(Secret::expose));
        assert!(headers.iter().all(|(_, value)| value.is_sensitive()));
        let id = keys.access_key_id.expose();
        let scope = "20150830/us-east-1/service/aws4_request";
        let head = format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders=");
        let rest = value("authorization").unwrap().strip_prefix(&head).unwrap();
        let (signed, signature) = rest.split_once(", Signature=").unwrap();
        (signed.to_owned(), signature.to_owned())
    }

    fn get(address: &str) -> Call<'_> {
        Call { method: "GET", address, headers: &[], body: b"" }
    }

    #[track_caller]
    fn check(call: &Call<'_>, expected: &str) {
        assert_eq!(sign(call, None), ("host;x-amz-date".to_owned(), expected.to_owned()));
    }

    /// The expected signatures here and below are those of AWS's published Signature Version 4 test suite.
    #[test]
    fn addresses_are_signed_as_in_the_test_suite() {
        check(&get(HOST), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
        let post = Call { method: "POST", ..get(HOST) };
        check(&post, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        let unreserved = "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        check(
            &get(&format!("{HOST}{unreserved}")),
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        );
        check(
            &get(&format!("{HOST}/?Param2=value2&Param1=value1")),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        );
    }

    #[test]
    fn a_session_is_signed_as_in_the_test_suite() {
        let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
        let expected = "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8";
        let signed = "host;x-amz-date;x-amz-security-token".to_owned();
        assert_eq!(sign(&get(HOST), Some(token)), (signed, expected.to_owned()));
    }

    #[test]
    fn body_and_headers_are_signed_as_in_the_test_suite() {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "13"),
            ("x-amz-content-sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"),
        ];
        let call = Call { method: "POST", address: HOST, headers: &headers, body: b"Param1=value1" };
        let signed = "content-length;content-type;host;x-amz-content-sha256;x-amz-date".to_owned();
        let expected = "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b".to_owned();
        assert_eq!(sign(&call, None), (signed, expected));
        let other = Call { body: b"Param1=value2", ..call };
        assert_ne!(sign(&other, None).1, sign(&Call { body: b"Param1=value1", ..other }, None).1);
    }

    /// The expected signature is the one in the tests of AWS's own development kits.
    #[test]
    fn an_encoded_path_is_encoded_once_more() {
        let host = "https://tj9n5r0m12.execute-api.us-east-1.amazonaws.com";
        let address = format!("{host}/test/@connections/JBDvjfGEIAMCERw%3D");
        let call = Call { method: "POST", ..get(&address) };
        let keys = keys("ANOTREAL", "notrealrnrELgWzOk3IfjzDKtFBhDby", None);
        let expected = "57d157672191bac40bae387e48bbe14b15303c001fdbb01f4abf295dccb09705";
        assert_eq!(sign_with(&keys, &call).1, expected);
    }

    #[test]
    fn i18_keys_are_never_printed() {
        let shown = format!("{:?}", keys("canary-id", "canary-key", Some("canary-token")));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
