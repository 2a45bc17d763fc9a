//! What a scripted deployment does, call by call.

use std::time::Duration;

/// Says what a scripted deployment does: one step a call, in order; the last step is repeated for ever.
///
/// A step is a line of words:
///
/// | step | what happens |
/// |---|---|
/// | `ok` | `echo: ` and the text of the last user message |
/// | `ok text=Hello there` | that text; it runs to the end of the line |
/// | `429 retry-after=1 code=slow_down` | an error answer with that status; both options may be left out |
/// | `hang` | no answer at all |
/// | `reset` | the connection breaks after the request was sent |
/// | `truncate` | the answer begins and breaks off in the middle |
/// | `delay=250 ...` | any of these, 250 ms later |
///
/// ```
/// use gw_adapters::Script;
///
/// let lines = ["429 retry-after=1".to_owned(), "delay=10 ok text=Hi".to_owned()];
/// assert!(Script::parse(&lines).is_ok());
/// assert!(Script::parse(&["503 soon".to_owned()]).is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Script {
    /// Never empty.
    steps: Vec<Step>,
    /// The pause before each word of a stream but the first.
    pub(super) pause: Duration,
}

/// What a step answers is an answer: it is not printed.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").field("steps", &self.steps.len()).field("pause", &self.pause).finish()
    }
}

/// One call's part of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) delay: Duration,
    pub(super) action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// An answer with this text, or with the echo.
    Answer { text: Option<String> },
    /// An error answer.
    Refuse { status: u16, retry_after: Option<String>, code: Option<String> },
    /// Nothing, for ever.
    Hang,
    /// A broken connection.
    Reset,
    /// An answer that breaks off.
    Truncate,
}

/// Says why a script cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScript {
    /// There is no step.
    #[error("a script needs at least one step")]
    Empty,
    /// There are too many steps.
    #[error("a script has at most 1000 steps, not {0}")]
    TooLong(usize),
    /// A step cannot be read.
    #[error(
        "step {number} of the script, `{step}`, {fault}; expected: `ok`, `ok text=...`, a status from 400 to 599 with \
         `retry-after=S` and `code=...`, `hang`, `reset` or `truncate`, after an optional `delay=MS`"
    )]
    Step {
        /// Which, from 1.
        number: usize,
        /// The step as it was written.
        step: String,
        /// What is wrong with it.
        fault: &'static str,
    },
}

/// The longest script, in steps.
const STEPS_MAX: usize = 1_000;

/// The longest delay, in milliseconds: an hour.
const DELAY_MS_MAX: u64 = 3_600_000;

/// A slow stream pauses this part of its delay between words.
const PAUSE_PART: u32 = 20;

impl Script {
    /// Returns the script that always answers with the echo.
    pub fn echo() -> Self {
        Self::slow(Duration::ZERO)
    }

    /// Returns the script that waits, then answers with the echo; a stream pauses a twentieth of that between words.
    pub fn slow(delay: Duration) -> Self {
        let step = Step { delay, action: Action::Answer { text: None } };
        Self { steps: vec![step], pause: delay / PAUSE_PART }
    }

    /// Reads a script.
    ///
    /// # Errors
    /// [`InvalidScript`] names the first step that cannot be read.
    pub fn parse(lines: &[String]) -> Result<Self, InvalidScript> {
        match lines.len() {
            0 => return Err(InvalidScript::Empty),
            length if length > STEPS_MAX => return Err(InvalidScript::TooLong(length)),
            _ => {}
        }
        let steps = lines.iter().enumerate().map(|(index, line)| {
            Step::parse(line).map_err(|fault| InvalidScript::Step {
                number: index + 1,
                step: line.clone(),
                fault,
            })
        });
        Ok(Self { steps: steps.collect::<Result<_, _>>()?, pause: Duration::ZERO })
    }

    /// Returns the step of a call, counted from 0.
    pub(super) fn step(&self, call: u64) -> &Step {
        let last = self.steps.len() - 1;
        &self.steps[usize::try_from(call).unwrap_or(last).min(last)]
    }
}

impl Step {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let line = line.trim();
        let (delay, rest) = match line.strip_prefix("delay=") {
            None => (Duration::ZERO, line),
            Some(rest) => {
                let (number, rest) = split(rest);
                let milliseconds = number
                    .parse()
                    .ok()
                    .filter(|number| *number <= DELAY_MS_MAX)
                    .ok_or("has a delay that is no number of milliseconds up to 3600000")?;
                (Duration::from_millis(milliseconds), rest)
            }
        };
        Ok(Self { delay, action: Action::parse(rest)? })
    }
}

impl Action {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let (word, rest) = split(line);
        match (word, rest) {
            ("", _) => Err("is empty"),
            ("ok", "") => Ok(Self::Answer { text: None }),
            ("ok", rest) => match rest.strip_prefix("text=") {
                Some(text) => Ok(Self::Answer { text: Some(text.to_owned()) }),
                None => Err("has something other than `text=` after `ok`"),
            },
            ("hang", "") => Ok(Self::Hang),
            ("reset", "") => Ok(Self::Reset),
            ("truncate", "") => Ok(Self::Truncate),
            ("hang" | "reset" | "truncate", _) => Err("has something after its last word"),
            (status, options) => Self::refuse(status, options),
        }
    }

    fn refuse(status: &str, options: &str) -> Result<Self, &'static str> {
        let status = status
            .parse()
            .ok()
            .filter(|status| (400..=599).contains(status))
            .ok_or("begins with a word that is no step")?;
        let (mut retry_after, mut code) = (None, None);
        for option in options.split_whitespace() {
            match option.split_once('=') {
                Some(("retry-after", value)) if is_seconds(value) => retry_after = Some(value.to_owned()),
                Some(("code", value)) if !value.is_empty() => code = Some(value.to_owned()),
                Some(_) | None => return Err("has an option that cannot be read"),
            }
        }
        Ok(Self::Refuse { status, retry_after, code })
    }
}

/// Digits, with at most one dot: what `retry-after` may hold.
fn is_seconds(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(text),
    }
}

fn split(line: &str) -> (&str, &str) {
    line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Action, InvalidScript, Script, Step};

    fn check(line: &str, milliseconds: u64, action: Action) {
        assert_eq!(
            Step::parse(line),
            Ok(Step { delay: Duration::from_millis(milliseconds), action }),
            "{line}"
        );
    }

    fn refuse(status: u16, retry_after: Option<&str>, code: Option<&str>) -> Action {
        Action::Refuse { status, retry_after: retry_after.map(Into::into), code: code.map(Into::into) }
    }

    #[test]
    fn steps_are_read() {
        check("ok", 0, Action::Answer { text: None });
        check(" ok text=Hello  there ", 0, Action::Answer { text: Some("Hello  there".to_owned()) });
        check("ok text=", 0, Action::Answer { text: Some(String::new()) });
        check("429 retry-after=1", 0, refuse(429, Some("1"), None));
        check("503 code=overloaded retry-after=0.5", 0, refuse(503, Some("0.5"), Some("overloaded")));
        check("500", 0, refuse(500, None, None));
        check("delay=20 hang", 20, Action::Hang);
        check("delay=0   reset", 0, Action::Reset);
        check("truncate", 0, Action::Truncate);
    }

    #[test]
    fn other_steps_are_refused() {
        for line in [
            "",
            "OK",
            "ok now",
            "200",
            "399",
            "600",
            "429 retry-after=x",
            "429 retry-after=1.",
            "429 code=",
            "429 soon",
            "hang 1",
            "delay=",
            "delay=x ok",
            "delay=3600001 ok",
            "delay=5",
            "delay=-1 ok",
        ] {
            let lines = [String::from("ok"), line.to_owned()];
            let found = Script::parse(&lines);
            assert!(matches!(found, Err(InvalidScript::Step { number: 2, .. })), "{line}: {found:?}");
        }
        assert_eq!(Script::parse(&[]), Err(InvalidScript::Empty));
        assert_eq!(Script::parse(&vec!["ok".to_owned(); 1_001]), Err(InvalidScript::TooLong(1_001)));
    }

    #[test]
    fn the_last_step_is_repeated() {
        let script = Script::parse(&["500".to_owned(), "hang".to_owned()]).unwrap();
        let actions = [0, 1, 2, u64::MAX].map(|call| script.step(call).action.clone());
        assert_eq!(actions, [refuse(500, None, None), Action::Hang, Action::Hang, Action::Hang]);
    }
}
