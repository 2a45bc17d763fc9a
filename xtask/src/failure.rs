//! Why a command ends without success, and the exit code that says so.

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments make no sense.
    Usage(String),
    /// The work was tried and failed.
    Work(String),
    /// A program that was started already explained itself; its exit code is passed on.
    Code(u8),
}

impl Failure {
    /// Returns the exit code of the process: 1 for failed work, 2 for wrong usage.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Work(_) => 1,
            Self::Code(code) => *code,
        }
    }

    /// Returns what is still to be said to the user.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Usage(message) | Self::Work(message) => Some(message),
            Self::Code(_) => None,
        }
    }
}
