//! Names of groups of tenants.

use gw_types::{InvalidName, TaskClass};
use serde::{Deserialize, Serialize};

/// Names a group of tenants, as routes match it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantGroup(
    // Every name of the vocabulary is checked alike; only the type differs.
    TaskClass,
);

impl TenantGroup {
    /// Returns the name if it is one.
    ///
    /// # Errors
    /// [`InvalidName`] says what is wrong with the text.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        TaskClass::new(text).map(Self)
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::str::FromStr for TenantGroup {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl std::fmt::Display for TenantGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Debug for TenantGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TenantGroup({self})")
    }
}
