//! What a semantic cache compares: the last user turn, and everything else in canonical form.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap};

use gw_types::Question;

use crate::json::{Fault, Kind, Reader, quoted};

/// Fields that change how an answer travels and not what it says.
const TRANSPORT_FIELDS: [&str; 3] = ["stream", "stream_options", "user"];

/// Reads the question of a request whose last message is a user turn of plain text.
pub(crate) fn read(body: &[u8]) -> Option<Question> {
    let text = std::str::from_utf8(body).ok()?;
    let mut fields = fields(text)?;
    for field in TRANSPORT_FIELDS {
        fields.remove(field);
    }
    let mut messages = items(fields.remove("messages")?)?;
    let mut last = self::fields(messages.pop()?)?;
    let is_user = canonical(last.get("role")?)? == "\"user\"";
    let said = last.remove("content").and_then(plain_text)?;
    if !is_user || said.trim().is_empty() {
        return None;
    }
    let mut context = String::from("{\"messages\":[");
    for message in messages {
        context.push_str(&canonical(message)?);
        context.push(',');
    }
    context.push_str(&canonical_object(&last)?);
    context.push_str("],\"rest\":");
    context.push_str(&canonical_object(&fields)?);
    context.push('}');
    Some(Question { text: said, context: context.into_bytes() })
}

/// The members of an object by decoded name; of equal names the last, as providers read it.
type Fields<'a> = BTreeMap<Cow<'a, str>, &'a str>;

fn fields(text: &str) -> Option<Fields<'_>> {
    let mut fields = BTreeMap::new();
    let mut reader = Reader::new(text);
    let read = reader.object::<Fault>(|reader, key| {
        let value = reader.skip()?;
        fields.insert(key.decoded(), text.get(value).unwrap_or_default());
        Ok(())
    });
    read.and_then(|()| reader.end()).ok().map(|()| fields)
}

fn items(text: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let mut reader = Reader::new(text);
    let read = reader.array::<Fault>(|reader, _| {
        let value = reader.skip()?;
        items.push(text.get(value).unwrap_or_default());
        Ok(())
    });
    read.and_then(|()| reader.end()).ok().map(|()| items)
}

/// Returns text that stands as a string, or in parts that are all text and nothing else.
fn plain_text(value: &str) -> Option<String> {
    match Reader::new(value).kind().ok()? {
        Kind::String => Some(Reader::new(value).string().ok()?.decoded().into_owned()),
        Kind::Array => {
            let mut said = Vec::new();
            for part in items(value)? {
                let part = fields(part)?;
                if part.len() != 2 || canonical(part.get("type")?)? != "\"text\"" {
                    return None;
                }
                said.push(Reader::new(part.get("text")?).string().ok()?.decoded().into_owned());
            }
            Some(said.join("\n"))
        }
        Kind::Object | Kind::Number | Kind::Bool | Kind::Null => None,
    }
}

fn canonical_object(fields: &Fields<'_>) -> Option<String> {
    let members: Option<BTreeMap<Cow<'_, str>, String>> =
        fields.iter().map(|(name, value)| Some((name.clone(), canonical(value)?))).collect();
    Some(object(members?.iter()))
}

/// Returns a value with sorted members and without blanks. Numbers stay as written: they are compared, not computed.
fn canonical(value: &str) -> Option<String> {
    let mut reader = Reader::new(value);
    let written = write(&mut reader).ok()?;
    reader.end().ok().map(|()| written)
}

/// One pass; the recursion is bounded by the reader's bound on depth.
fn write(reader: &mut Reader<'_>) -> Result<String, Fault> {
    match reader.kind()? {
        Kind::Object => {
            let mut members = BTreeMap::new();
            reader.object::<Fault>(|reader, key| {
                members.insert(key.decoded(), write(reader)?);
                Ok(())
            })?;
            Ok(object(members.iter()))
        }
        Kind::Array => {
            let mut written = String::from("[");
            reader.array::<Fault>(|reader, index| {
                if index > 0 {
                    written.push(',');
                }
                written.push_str(&write(reader)?);
                Ok(())
            })?;
            written.push(']');
            Ok(written)
        }
        Kind::String => Ok(quoted(&reader.string()?.decoded())),
        Kind::Number => Ok(reader.number()?.to_owned()),
        Kind::Bool => Ok(reader.boolean()?.to_string()),
        Kind::Null => reader.null().map(|_| "null".to_owned()),
    }
}

fn object<'a>(members: impl Iterator<Item = (&'a Cow<'a, str>, &'a String)>) -> String {
    let mut written = String::from("{");
    for (name, value) in members {
        if written.len() > 1 {
            written.push(',');
        }
        written.push_str(&quoted(name));
        written.push(':');
        written.push_str(value);
    }
    written.push('}');
    written
}
