//! Finds one value of a document, without reading the rest into anything.

use std::ops::Range;

use bytes::Bytes;

use super::{Fault, Kind, Reader};

/// Returns the value that stands under a path of names, as it stands in the text; of equal names the last, as providers
/// read it. Linear in the text, without a copy.
pub(crate) fn value_at(body: &Bytes, path: &[&str]) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    find(&mut Reader::new(text), path).ok().flatten().map(|range| body.slice(range))
}

fn find(reader: &mut Reader<'_>, path: &[&str]) -> Result<Option<Range<usize>>, Fault> {
    let Some((name, rest)) = path.split_first() else { return reader.skip().map(Some) };
    if reader.kind()? != Kind::Object {
        return reader.skip().map(|_| None);
    }
    let mut found = None;
    reader.object::<Fault>(|reader, key| {
        if key.is(name) {
            found = find(reader, rest)?;
            Ok(())
        } else {
            reader.skip().map(drop)
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::value_at;

    #[track_caller]
    fn check(body: &'static str, expected: Option<&'static str>) {
        let found = value_at(&Bytes::from_static(body.as_bytes()), &["a", "b"]);
        assert_eq!(found, expected.map(Bytes::from));
    }

    #[test]
    fn a_value_is_found_by_its_path() {
        check(r#"{"x": [1], "a": {"b": {"c": 1}, "d": 2}}"#, Some(r#"{"c": 1}"#));
        check(r#"{"a": {"b": 1}, "a": {"b": 2}}"#, Some("2"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        check(r#"{"b": 1}"#, None);
        check(r#"{"a": null}"#, None);
        check("[]", None);
        check(r#"{"a": {"b": "#, None);
    }
}
