//! What the tests of the gw model gateway play against: a provider that fails on command.
//!
//! [`FakeProvider`] is a server on a real socket that speaks OpenAI chat and plays a [`FaultScript`]: every byte,
//! pause, reset and half-closed socket stands in the script. [`ScriptAdapter`] is the same idea without a socket, in
//! virtual time. A [`FaultProxy`] stands between and does to connections what networks do. A [`Recording`] is what a
//! provider once answered, to be answered again. The `sample_` functions build filled values of the vocabulary.
//!
//! `gw demo` and `gw smoke` use the provider too, so it answers bad input and never panics.
//!
//! ```
//! use gw_testkit::{FaultScript, ok, status};
//!
//! // The first request gets a 429, every later one an answer.
//! let script = FaultScript::of(status(429).retry_after(60)).then(ok("hello"));
//! let text = serde_json::to_string(&script).unwrap();
//! assert_eq!(serde_json::from_str::<FaultScript>(&text).unwrap(), script);
//! ```

#![forbid(unsafe_code)]

mod adapter;
mod issuer;
mod postgres;
mod provider;
mod proxy;
mod recording;
mod redis;
mod request;
mod samples;
mod script;

pub use self::{
    adapter::{AdapterCall, AdapterStep, CallEnd, ScriptAdapter, TimedItem},
    issuer::{NoSigner, TokenSigner},
    postgres::{HeldSession, PostgresServer},
    provider::{CallOutcome, FakeProvider, SeenCall},
    proxy::{FaultProxy, Link, ProxySnapshot},
    recording::Recording,
    redis::RedisServer,
    request::{RequestBuilder, sample_request},
    samples::{sample_deployment, sample_record},
    script::{
        ChatEnd, FakeAnswer, FakeChat, FakeStream, Fault, FaultScript, Framing, Step, content_filter,
        error_event_first, html_200, ok, status, stream_cut_after,
    },
};
