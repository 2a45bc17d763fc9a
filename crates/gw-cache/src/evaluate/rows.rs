//! Reads labelled rows.

use gw_types::Question;
use serde::Deserialize;

/// Labelled questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataset {
    /// Pairs, in order.
    pub pairs: Vec<Pair>,
    /// The steps of a stream, in order.
    pub steps: Vec<Step>,
}

/// Two questions, of which the first is cached and the second asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What sort of pair it is.
    pub kind: String,
    /// The first.
    pub cached: Question,
    /// The second.
    pub asked: Question,
    /// Whether one answer serves both.
    pub same_answer: bool,
    /// Whether that depends on the application.
    pub ambiguous: bool,
}

/// A question, and what its right answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The question.
    pub question: Question,
    /// Equal for questions that one answer serves.
    pub class: String,
}

/// A line that is no labelled row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is no labelled row; expected `a`, `b` and `same_answer`, or `text` and `class`")]
pub struct BadRow {
    /// Which, from 1.
    pub line: usize,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    Pair {
        a: Asked,
        b: Asked,
        same_answer: bool,
        #[serde(alias = "subtype", default)]
        category: String,
        ambiguous: Option<serde_json::Value>,
    },
    Step {
        text: Asked,
        class: String,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Asked {
    Text(String),
    Turns(Vec<Turn>),
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
}

impl Dataset {
    /// Reads rows, one JSON object a line; empty lines are skipped. Of a conversation the last turn is the question.
    ///
    /// # Errors
    /// [`BadRow`] names the first line that is none, a conversation without turns included.
    pub fn read(lines: &str) -> Result<Self, BadRow> {
        let mut data = Self::default();
        for (line, text) in (1..).zip(lines.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let bad = BadRow { line };
            match serde_json::from_str(text).map_err(|_| bad)? {
                Row::Pair { a, b, same_answer, category, ambiguous } => data.pairs.push(Pair {
                    kind: category,
                    cached: question(a).ok_or(bad)?,
                    asked: question(b).ok_or(bad)?,
                    same_answer,
                    ambiguous: ambiguous.is_some_and(|value| value != serde_json::Value::Bool(false)),
                }),
                Row::Step { text, class } => {
                    data.steps.push(Step { question: question(text).ok_or(bad)?, class });
                }
            }
        }
        Ok(data)
    }
}

fn question(asked: Asked) -> Option<Question> {
    let mut turns = match asked {
        Asked::Text(text) => return Some(Question { text, context: Vec::new() }),
        Asked::Turns(turns) => turns,
    };
    let last = turns.pop()?;
    let mut context = Vec::new();
    for part in turns.iter().flat_map(|turn| [&turn.role, &turn.content]) {
        context.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        context.extend_from_slice(part.as_bytes());
    }
    Some(Question { text: last.content, context })
}

#[cfg(test)]
mod tests {
    use super::{BadRow, Dataset};

    #[test]
    fn rows_of_both_kinds_are_read() {
        let data = Dataset::read(
            r#"{"id":"x","a":"one","b":"two","same_answer":true,"category":"paraphrase"}

{"seq":0,"text":"what","class":"c"}
{"a":[{"role":"user","content":"hi"},{"role":"user","content":"q"}],"b":[{"role":"user","content":"q"}],"same_answer":false,"subtype":"s","ambiguous":"why"}"#,
        )
        .unwrap();
        assert_eq!((data.pairs.len(), data.steps.len()), (2, 1));
        let pair = &data.pairs[1];
        assert_eq!((pair.kind.as_str(), pair.same_answer, pair.ambiguous), ("s", false, true));
        assert_eq!((pair.cached.text.as_str(), pair.asked.text.as_str()), ("q", "q"));
        assert!(pair.cached.context != pair.asked.context && pair.asked.context.is_empty());
    }

    #[test]
    fn the_first_bad_line_is_named() {
        for bad in ["{", "{}", r#"{"a":[],"b":"x","same_answer":true}"#, r#"{"text":"x"}"#] {
            let lines = format!("{}\n{bad}", r#"{"text":"x","class":"c"}"#);
            assert_eq!(Dataset::read(&lines), Err(BadRow { line: 2 }), "{bad}");
        }
    }
}
