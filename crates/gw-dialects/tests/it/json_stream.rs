//! Properties of the value streams.

use bytes::Bytes;
use gw_dialects::json_stream::{ArrayDecoder, LineDecoder, ValueFault};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixtures::exchanges_of;

/// What came out: the values, the fault, and whether the stream may end (or what was left of it).
type Decoded = (Vec<Vec<u8>>, Option<ValueFault>, bool);

fn array(chunks: &[&[u8]]) -> Decoded {
    let mut decoder = ArrayDecoder::new();
    let (mut values, mut fault) = (Vec::new(), None);
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(value) = decoder.next_value() {
            match value {
                Ok(value) => values.push(value.to_vec()),
                Err(found) => assert_eq!(fault.replace(found), None, "a fault is told once"),
            }
        }
    }
    (values, fault, decoder.is_complete())
}

fn lines(chunks: &[&[u8]]) -> Decoded {
    let mut decoder = LineDecoder::new();
    let mut values = Vec::new();
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(value) = decoder.next_value() {
            values.push(value.expect("no line is that long").to_vec());
        }
    }
    let rest = decoder.finish().map(<[u8]>::to_vec);
    let has_rest = rest.is_some();
    values.extend(rest);
    (values, None, has_rest)
}

fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut from = 0;
    ends.into_iter().map(|end| &bytes[std::mem::replace(&mut from, end)..end]).collect()
}

fn places() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..8)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|number| json!(number)),
        "[\\[\\]{},\"\\\\a: \\né]{0,8}".prop_map(|text| json!(text)),
        Just(Value::Null),
        any::<bool>().prop_map(|word| json!(word)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a\\[\"]{0,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn texts(values: &[Value], blank: &str) -> Vec<String> {
    values
        .iter()
        .map(
            |value| {
                if blank.is_empty() {
                    value.to_string()
                } else {
                    serde_json::to_string_pretty(value).unwrap()
                }
            },
        )
        .collect()
}

proptest! {
    #[test]
    fn items_come_out_as_they_were_written(
        values in prop::collection::vec(value(), 0..5),
        blank in prop::sample::select(vec!["", " ", "\r\n", "\n\t "]),
        places in places(),
    ) {
        let items = texts(&values, blank);
        let body = format!("{blank}[{blank}{}{blank}]{blank}", items.join(&format!("{blank},{blank}")));
        let (found, fault, complete) = array(&cut(body.as_bytes(), &places));
        prop_assert_eq!((fault, complete), (None, true));
        let found: Vec<String> = found.into_iter().map(|value| String::from_utf8(value).unwrap()).collect();
        prop_assert_eq!(found, items);
    }

    #[test]
    fn lines_come_out_as_they_were_written(
        values in prop::collection::vec(value(), 0..5),
        end in prop::sample::select(vec!["\n", "\r\n", "\n\n", "\r\n \r\n"]),
        places in places(),
    ) {
        let body: String = texts(&values, "").iter().map(|value| format!("{value}{end}")).collect();
        let (found, _, rest) = lines(&cut(body.as_bytes(), &places));
        prop_assert!(!rest);
        let found: Vec<Value> = found.iter().map(|value| serde_json::from_slice(value).unwrap()).collect();
        prop_assert_eq!(found, values);
    }

    #[test]
    fn any_bytes_are_cut_alike(
        bytes in prop::collection::vec(prop::sample::select(b"[]{},:\"\\ \n\ra1\xff".to_vec()), 0..40),
        places in places(),
    ) {
        prop_assert_eq!(array(&[&bytes]), array(&cut(&bytes, &places)));
        prop_assert_eq!(lines(&[&bytes]), lines(&cut(&bytes, &places)));
    }

    #[test]
    fn a_cut_array_is_not_complete(values in prop::collection::vec(value(), 1..4), place: prop::sample::Index) {
        let body = json!(values).to_string();
        let cut = &body.as_bytes()[..place.index(body.len())];
        let (found, fault, complete) = array(&[cut]);
        prop_assert!(!complete && fault.is_none());
        prop_assert!(found.len() <= values.len());
    }
}

#[test]
fn every_recorded_line_stream_is_whole() {
    for exchange in ["chat", "generate"].into_iter().flat_map(exchanges_of) {
        let content = exchange.header("content-type").unwrap_or_default();
        if !exchange.stream || !content.contains("ndjson") {
            continue;
        }
        let bytes: Vec<&[u8]> = exchange.body.chunks(1).collect();
        let whole = lines(&[&exchange.body]);
        assert_eq!(whole, lines(&bytes), "{}", exchange.id);
        let values: Vec<Value> = whole.0.iter().map(|value| serde_json::from_slice(value).unwrap()).collect();
        assert!(values.last().is_some_and(|last| last["done"] == true), "{}", exchange.id);
    }
}
