//! Properties of the event-stream codec, and the recorded streams.

use bytes::Bytes;
use gw_dialects::event_stream::{Decoder, FrameFault, HeaderValue, encode};
use proptest::prelude::*;

use crate::fixtures::exchanges_of;

/// What came out: headers and payloads of the frames, the fault, and whether the stream may end.
type Decoded = (Vec<(String, Vec<u8>)>, Option<FrameFault>, bool);

fn decode(chunks: &[&[u8]]) -> Decoded {
    let mut decoder = Decoder::new();
    let (mut frames, mut fault) = (Vec::new(), None);
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = decoder.next_frame() {
            match frame {
                Ok(frame) => {
                    let headers = frame.headers().collect::<Vec<_>>();
                    frames.push((format!("{headers:?}"), frame.payload.to_vec()));
                }
                Err(found) => {
                    assert_eq!(fault.replace(found), None, "a fault is told once");
                }
            }
        }
    }
    (frames, fault, decoder.is_between_frames())
}

/// Cuts bytes at the places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut from = 0;
    ends.into_iter().map(|end| &bytes[std::mem::replace(&mut from, end)..end]).collect()
}

fn header_value() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<bool>().prop_map(OwnedValue::Bool),
        any::<i32>().prop_map(OwnedValue::Integer),
        any::<i64>().prop_map(OwnedValue::Timestamp),
        any::<[u8; 16]>().prop_map(OwnedValue::Uuid),
        "\\PC{0,12}".prop_map(OwnedValue::Text),
        prop::collection::vec(any::<u8>(), 0..12).prop_map(OwnedValue::Bytes),
    ]
}

#[derive(Clone, Debug)]
enum OwnedValue {
    Bool(bool),
    Integer(i32),
    Timestamp(i64),
    Uuid([u8; 16]),
    Text(String),
    Bytes(Vec<u8>),
}

impl OwnedValue {
    fn borrowed(&self) -> HeaderValue<'_> {
        match self {
            Self::Bool(value) => HeaderValue::Bool(*value),
            Self::Integer(value) => HeaderValue::Integer(*value),
            Self::Timestamp(value) => HeaderValue::Timestamp(*value),
            Self::Uuid(value) => HeaderValue::Uuid(*value),
            Self::Text(value) => HeaderValue::Text(value),
            Self::Bytes(value) => HeaderValue::Bytes(value),
        }
    }
}

/// Headers and payload.
type OwnedFrame = (Vec<(String, OwnedValue)>, Vec<u8>);

fn frames() -> impl Strategy<Value = Vec<OwnedFrame>> {
    let headers = prop::collection::vec((":?[a-z-]{1,8}", header_value()), 0..4);
    prop::collection::vec((headers, prop::collection::vec(any::<u8>(), 0..40)), 0..5)
}

fn written(frames: &[OwnedFrame]) -> Vec<u8> {
    let encode_one = |(headers, payload): &OwnedFrame| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.borrowed())).collect();
        encode(&headers, payload)
    };
    frames.iter().flat_map(|frame| encode_one(frame).to_vec()).collect()
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_wherever_it_is_cut(
        frames in frames(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = written(&frames);
        let (found, fault, between) = decode(&cut(&bytes, &places));
        prop_assert_eq!((fault, between), (None, true));
        prop_assert_eq!(found.len(), frames.len());
        for ((headers, payload), (found_headers, found_payload)) in frames.iter().zip(found) {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.borrowed())).collect();
            prop_assert_eq!((format!("{headers:?}"), payload), (found_headers, &found_payload));
        }
    }

    #[test]
    fn a_changed_byte_never_passes(
        frames in frames(),
        place: prop::sample::Index,
        change in 1..=255_u8,
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let sound = written(&frames);
        prop_assume!(!sound.is_empty());
        let mut bytes = sound.clone();
        bytes[place.index(sound.len())] ^= change;
        let (whole, ..) = decode(&[&sound]);
        let (found, fault, between) = decode(&cut(&bytes, &places));
        // A length that grew beyond the stream is no fault yet, but the stream may not end there.
        prop_assert!(fault.is_some() || !between);
        prop_assert!(found.len() < whole.len());
        prop_assert_eq!(&found[..], &whole[..found.len()]);
    }

    #[test]
    fn any_bytes_are_read_or_refused_alike(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        prop_assert_eq!(decode(&[&bytes]), decode(&cut(&bytes, &places)));
    }
}

#[test]
fn every_recorded_stream_is_whole() {
    for exchange in ["converse-stream", "invoke-stream"].into_iter().flat_map(exchanges_of) {
        if exchange.status != 200 || !exchange.stream {
            continue;
        }
        let whole = decode(&[&exchange.body]);
        let bytes: Vec<&[u8]> = exchange.body.chunks(1).collect();
        assert_eq!(whole, decode(&bytes), "{}", exchange.id);
        assert!(!whole.0.is_empty() && whole.1.is_none() && whole.2, "{}", exchange.id);
    }
}
