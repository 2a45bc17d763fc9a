//! A small HTTP client: whole answers, and streams that are read piece by piece.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

use super::within;

/// A request in the making.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    client: Client<HttpConnector, Full<Bytes>>,
    to: SocketAddr,
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer whose body is still coming. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    seen: Vec<u8>,
}

/// Returns a client that keeps its connections.
pub(crate) fn client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

impl Call {
    pub(crate) fn new(
        client: &Client<HttpConnector, Full<Bytes>>,
        to: SocketAddr,
        method: Method,
        path: &str,
    ) -> Self {
        Self {
            client: client.clone(),
            to,
            method,
            path: path.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Shows a key.
    #[must_use]
    pub(crate) fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    /// Sends bytes as a JSON body.
    #[must_use]
    pub(crate) fn bytes(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
    }

    /// Sends a JSON body.
    #[must_use]
    pub(crate) fn json(self, body: &Value) -> Self {
        self.bytes(body.to_string())
    }

    /// Sends the request and reads the whole answer.
    pub(crate) async fn send(self) -> Answer {
        let response = self.begin().await;
        let (head, body) = response.into_parts();
        let body = within("the end of an answer", body.collect()).await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Sends the request and returns with the head of the answer.
    pub(crate) async fn stream(self) -> Streamed {
        let (head, body) = self.begin().await.into_parts();
        Streamed { status: head.status.as_u16(), headers: head.headers, body, seen: Vec::new() }
    }

    /// Sends the request; `None` where the connection broke off or nobody listens.
    pub(crate) async fn try_send(self) -> Option<Answer> {
        let client = self.client.clone();
        let response = client.request(self.request()).await.ok()?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    async fn begin(self) -> Response<Incoming> {
        let client = self.client.clone();
        within("an answer", client.request(self.request())).await.unwrap()
    }

    fn request(self) -> Request<Full<Bytes>> {
        let mut request =
            Request::builder().method(self.method).uri(format!("http://{}{}", self.to, self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body)).unwrap()
    }
}

/// Returns a header's value, empty if it is not there.
fn value_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

impl Answer {
    /// Returns a header's value, empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        value_of(&self.headers, name)
    }

    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the text of the first choice.
    pub(crate) fn said(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        super::said(&self.body)
    }

    /// Returns the error after checking its shape: message and type are text, param and code text or null.
    pub(crate) fn error(&self) -> Value {
        let body = self.json();
        let error = body["error"].clone();
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert!(error["type"].is_string(), "{body}");
        for field in ["param", "code"] {
            let value = error.get(field).unwrap_or_else(|| panic!("no {field}: {body}"));
            assert!(value.is_string() || value.is_null(), "{body}");
        }
        assert_eq!(self.header("content-type"), "application/json");
        error
    }
}

impl Streamed {
    /// Returns a header's value, empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        value_of(&self.headers, name)
    }

    /// Reads until the text has come; returns everything so far.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        while !self.seen().contains(text) {
            let frame = within(text, self.body.frame()).await;
            match frame {
                Some(frame) => self.seen.extend_from_slice(&frame.unwrap().into_data().unwrap()),
                None => panic!("the stream ended before `{text}`: {}", self.seen()),
            }
        }
        self.seen()
    }

    /// Reads to the end; returns everything.
    pub(crate) async fn rest(mut self) -> String {
        while let Some(frame) = within("the end of a stream", self.body.frame()).await {
            self.seen.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        self.seen()
    }

    fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}
