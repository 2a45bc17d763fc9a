//! Every recorded embeddings exchange, through the readers.

use bytes::Bytes;
use gw_dialects::embeddings::{
    EmbeddingsEdits, Encoding, in_encoding, read_answer, read_request, rewrite, wanted_encoding,
};
use gw_types::{ErrorKind, NormalizedRequest, Operation, RequestContext};
use serde_json::Value;

use crate::fixtures::exchanges_of;

/// What an answer holds: vectors, their encoding, the input tokens, the served model.
type Answer = (&'static str, u32, Encoding, Option<u64>, &'static str);

const ANSWERS: [Answer; 8] = [
    ("azure-embeddings--embedding--20cdf8", 3, Encoding::Float, Some(4), "embed-english-v3.0"),
    ("azure-embeddings--embedding-base64--4c5ea9", 1, Encoding::Base64, Some(8), "text-embedding-3-large"),
    ("mistral-embeddings--embedding--2524df", 1, Encoding::Float, Some(5), "mistral-embed"),
    ("openai-embeddings--embedding-base64--7f135f", 2, Encoding::Base64, Some(20), "text-embedding-3-small"),
    ("openai-embeddings--embedding-base64--e17006", 1, Encoding::Base64, Some(8), "text-embedding-3-large"),
    (
        "openai-embeddings--embedding-base64--fba8ff",
        1,
        Encoding::Base64,
        Some(4),
        "text-embedding-ada-002-v2",
    ),
    ("openrouter-embeddings--embedding--5fac5c", 1, Encoding::Float, Some(7), "text-embedding-3-small"),
    ("voyage-embeddings--embedding-base64--a40f48", 3, Encoding::Base64, Some(18), "voyage-3-lite"),
];

const ERRORS: [(&str, ErrorKind); 4] = [
    ("azure-embeddings--401--5f3e68", ErrorKind::ProviderAuth),
    ("openai-embeddings--404-model-not-found--406685", ErrorKind::DeploymentMissing),
    ("openai-embeddings--404-model-not-found--f7485a", ErrorKind::DeploymentMissing),
    ("voyage-embeddings--400--539a0f", ErrorKind::DeploymentMissing),
];

#[test]
fn every_recorded_answer_is_read() {
    for exchange in exchanges_of("embeddings").into_iter().filter(|exchange| exchange.status == 200) {
        let id = &exchange.id;
        let Some((_, vectors, encoding, tokens, model)) = ANSWERS.iter().find(|row| row.0 == id) else {
            panic!("{id} is not in the table");
        };
        let raw = Bytes::copy_from_slice(&exchange.body);
        let read = read_answer(&raw).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        assert_eq!((read.vectors, read.encoding), (*vectors, *encoding), "{id}");
        let usage = read.facts.usage;
        assert_eq!(usage.map(|usage| usage.input.get()), *tokens, "{id}");
        assert!(usage.is_none_or(|usage| usage.output_total().is_zero() && !usage.inconsistent), "{id}");
        assert_eq!(read.facts.served_model.unwrap().as_str(), *model, "{id}");
        // What already is as it was asked for is not touched.
        assert_eq!(in_encoding(&raw, *encoding).unwrap().as_ptr(), raw.as_ptr(), "{id}");
    }
}

#[test]
fn recorded_vectors_survive_the_other_encoding() {
    let vector = |raw: &Bytes| -> Value {
        let body: Value = serde_json::from_slice(raw).unwrap();
        body["data"][0]["embedding"].clone()
    };
    for exchange in exchanges_of("embeddings").into_iter().filter(|exchange| exchange.status == 200) {
        let raw = Bytes::copy_from_slice(&exchange.body);
        let floats = in_encoding(&raw, Encoding::Float).unwrap();
        let encoded = in_encoding(&floats, Encoding::Base64).unwrap();
        let again = in_encoding(&encoded, Encoding::Float).unwrap();
        let (first, second) = (vector(&floats), vector(&again));
        let near = first.as_array().unwrap().iter().zip(second.as_array().unwrap()).all(|(a, b)| {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 1e-6
        });
        assert!(near, "{}", exchange.id);
        if read_answer(&raw).unwrap().encoding == Encoding::Base64 {
            assert_eq!(vector(&encoded), vector(&raw), "{}", exchange.id);
        }
    }
}

#[test]
fn every_recorded_request_is_read_and_sent_on() {
    for exchange in exchanges_of("embeddings") {
        let id = &exchange.id;
        let body = Bytes::from(serde_json::to_vec(&exchange.request).unwrap());
        let facts = read_request(&body).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        let inputs = exchange.request["input"].as_array().map_or(1, Vec::len);
        assert_eq!(facts.messages as usize, inputs, "{id}");
        let asked = exchange.request["encoding_format"] == "base64";
        assert_eq!(wanted_encoding(&body) == Encoding::Base64, asked, "{id}");
        let context = RequestContext::default();
        let request = NormalizedRequest { operation: Operation::Embeddings, body, facts, context };
        let model = exchange.request["model"].as_str().unwrap();
        let edits = EmbeddingsEdits { model, floats_only: false };
        assert_eq!(rewrite(&request, &edits), request.body, "{id}");
    }
}

#[test]
fn every_recorded_error_has_its_kind() {
    for exchange in exchanges_of("embeddings").into_iter().filter(|exchange| exchange.status != 200) {
        let id = &exchange.id;
        let expected = ERRORS.iter().find(|(name, _)| name == id).map(|(_, kind)| *kind);
        let error = exchange.error();
        assert_eq!((Some(error.kind()), error.is_unclassified()), (expected, false), "{id}");
    }
}
