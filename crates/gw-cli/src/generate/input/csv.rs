//! CSV as RFC 4180 has it: a header names the columns; fields in quotes may hold commas, line ends and doubled quotes.

use std::io::{self, BufRead};

use serde_json::{Map, Value};

use super::{Entry, LINE_BYTES_MAX, read_line};

/// Columns that hold text of the item itself.
const TEXTS: [&str; 7] =
    ["request_id", "task_id", "prompt", "model", "endpoint_type", "model_revision", "tokenizer_revision"];

/// Columns that hold sampling settings: numbers.
const NUMBERS: [&str; 7] =
    ["temperature", "top_p", "max_tokens", "n", "seed", "presence_penalty", "frequency_penalty"];

/// The rows behind the header, as items in gw's own form.
pub(super) struct Csv {
    reader: Box<dyn BufRead + Send>,
    line: u64,
    bytes: u64,
    header: Option<Vec<String>>,
    ended: bool,
}

impl Csv {
    pub(super) fn new(reader: Box<dyn BufRead + Send>) -> Self {
        Self { reader, line: 0, bytes: 0, header: None, ended: false }
    }

    /// Reads one record: lines until all quotes are closed. `None` at the end.
    fn record(&mut self) -> io::Result<Option<Result<Vec<String>, String>>> {
        let mut text = Vec::new();
        loop {
            let before = text.len();
            let (read, whole) = read_line(&mut *self.reader, &mut text)?;
            if read == 0 {
                return Ok((before > 0).then(|| Err("a quote is opened and not closed".to_owned())));
            }
            self.line += 1;
            self.bytes += read;
            if !whole || text.len() > LINE_BYTES_MAX {
                return Ok(Some(Err(format!("the row has more than {LINE_BYTES_MAX} bytes"))));
            }
            // Doubled quotes count twice, so an even number says that all are closed.
            if text.iter().filter(|byte| **byte == b'"').count().is_multiple_of(2) {
                return Ok(Some(match String::from_utf8(text) {
                    Ok(text) => fields(text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r'])),
                    Err(_) => Err("the row is not valid UTF-8".to_owned()),
                }));
            }
        }
    }

    fn item(&self, fields: &[String]) -> Result<Vec<u8>, String> {
        let header = self.header.as_deref().unwrap_or_default();
        if fields.len() != header.len() {
            return Err(format!("the row has {} fields; the header has {}", fields.len(), header.len()));
        }
        let (mut item, mut sampling) = (Map::new(), Map::new());
        for (column, field) in header.iter().zip(fields).filter(|(_, field)| !field.is_empty()) {
            if NUMBERS.contains(&column.as_str()) {
                let number: Value = serde_json::from_str(field)
                    .ok()
                    .filter(Value::is_number)
                    .ok_or_else(|| format!("column `{column}` holds no number"))?;
                sampling.insert(column.clone(), number);
            } else {
                item.insert(column.clone(), Value::String(field.clone()));
            }
        }
        item.insert("sampling".to_owned(), Value::Object(sampling));
        Ok(Value::Object(item).to_string().into_bytes())
    }

    fn read_header(&mut self, fields: Vec<String>) -> Result<(), String> {
        let known = |column: &&String| TEXTS.contains(&column.as_str()) || NUMBERS.contains(&column.as_str());
        if let Some(unknown) = fields.iter().find(|column| !known(column)) {
            let shown: String = unknown.chars().take(60).collect();
            return Err(format!(
                "unknown column `{shown}`; known: {}, {}",
                TEXTS.join(", "),
                NUMBERS.join(", ")
            ));
        }
        for needed in ["request_id", "prompt"] {
            if !fields.iter().any(|column| column == needed) {
                return Err(format!("there is no column `{needed}`"));
            }
        }
        self.header = Some(fields);
        Ok(())
    }
}

impl Iterator for Csv {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let line = self.line + 1;
            let record = match self.record() {
                Ok(record) => record?,
                Err(error) => return Some(Err(error)),
            };
            let bytes = self.bytes;
            let text = match record {
                Ok(fields) if fields.iter().all(String::is_empty) => continue,
                Ok(fields) if self.header.is_none() => match self.read_header(fields) {
                    Ok(()) => continue,
                    // Without its header no row means anything.
                    Err(what) => {
                        self.ended = true;
                        return Some(Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            format!("line {line}: {what}"),
                        )));
                    }
                },
                Ok(fields) => self.item(&fields),
                Err(what) => Err(what),
            };
            return Some(Ok(Entry { line, bytes, text }));
        }
        None
    }
}

/// Splits a record whose quotes are all closed.
fn fields(record: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = record;
    loop {
        let (field, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (field, after) = unquote(quoted)?;
            if !(after.is_empty() || after.starts_with(',')) {
                return Err("something stands behind a closing quote".to_owned());
            }
            (field, after)
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            if field.contains('"') {
                return Err("a quote stands inside a field that does not begin with one".to_owned());
            }
            (field.to_owned(), after)
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(fields),
        }
    }
}

/// Returns the field up to its closing quote, and what stands behind that.
fn unquote(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            return Err("a quote is opened and not closed".to_owned());
        };
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Csv;

    fn check(text: &str, expected: &[Result<&str, &str>]) {
        let rows = Csv::new(Box::new(std::io::Cursor::new(text.to_owned())));
        let rows: Vec<_> = rows
            .map(|row| match row {
                Ok(entry) => entry.text.map(|text| String::from_utf8(text).unwrap()),
                Err(error) => Err(error.to_string()),
            })
            .collect();
        assert_eq!(rows.len(), expected.len(), "{rows:?}");
        for (row, expected) in rows.iter().zip(expected) {
            match (row, expected) {
                (Ok(row), Ok(expected)) => assert_eq!(row, expected),
                (Err(said), Err(expected)) => assert!(said.contains(expected), "{said}"),
                _ => panic!("{row:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn rows_are_items() {
        check(
            "request_id,prompt,max_tokens\r\na,hi,5\r\nb,\"x, \"\"y\"\"\nz\",\n",
            &[
                Ok(r#"{"prompt":"hi","request_id":"a","sampling":{"max_tokens":5}}"#),
                Ok(r#"{"prompt":"x, \"y\"\nz","request_id":"b","sampling":{}}"#),
            ],
        );
    }

    #[test]
    fn bad_rows_say_what_is_wrong() {
        check("request_id,prompt\na\n", &[Err("1 fields; the header has 2")]);
        check("request_id,prompt,n\na,b,c\n", &[Err("column `n` holds no number")]);
        check("request_id,prompt\na,\"b\"c\n", &[Err("behind a closing quote")]);
        check("request_id,prompt\na,\"b\n", &[Err("not closed")]);
        check("request_id,prmpt\na,b\n", &[Err("unknown column `prmpt`")]);
        check("prompt\na\n", &[Err("no column `request_id`")]);
    }
}
