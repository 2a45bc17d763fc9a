//! One broken rule, with everything that is needed to mend it.

use std::fmt;

/// A broken rule. The checks collect all of them before anything is printed.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The file at fault, relative to the workspace root, with a line where one is known.
    pub(crate) place: String,
    /// What stands there, named so that it can be searched for.
    pub(crate) offender: String,
    /// The rule in one sentence.
    pub(crate) rule: String,
    /// What would be accepted instead.
    pub(crate) allowed: String,
    /// What to edit if the rule itself should change, or why nothing can: a row of the table of layers.
    pub(crate) edit: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, offender, rule, allowed, edit } = self;
        write!(f, "{place}: {offender}\n  rule:    {rule}\n  allowed: {allowed}")?;
        match edit {
            Some(edit) => write!(f, "\n  edit:    {edit}"),
            None => Ok(()),
        }
    }
}

/// What a whole check has to say.
#[derive(Debug)]
pub(crate) struct Report {
    /// Every broken rule; empty means success.
    pub(crate) findings: Vec<Finding>,
    /// What was looked at, for the one line that a success prints.
    pub(crate) summary: String,
}
