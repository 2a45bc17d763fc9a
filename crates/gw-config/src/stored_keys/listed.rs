//! Keys as they are listed: everything but the keys.

use std::fmt;

use gw_stores::KeyRow;
use gw_types::UtcTime;
use serde_json::{Value, json};

use crate::{
    Config, StoredKeys,
    file::{KeyEntry, KeySource, KeyUse},
    keys::hex,
};

/// One key. `Display` is one line for people.
#[derive(Clone, Debug)]
pub struct ListedKey {
    /// The tenant.
    pub tenant: String,
    /// The key's name.
    pub name: String,
    value: Value,
}

impl ListedKey {
    /// Returns every key of a configuration, those of the file first, then those of its ledger where it keeps some there.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn all(config: Config) -> Result<Vec<Self>, String> {
        if config.file.ledger.keys { StoredKeys::open(config)?.list() } else { Ok(Self::of_file(&config)) }
    }

    /// Returns the keys of the file.
    pub(super) fn of_file(config: &Config) -> Vec<Self> {
        let tenants = config.file.tenants.iter();
        tenants
            .flat_map(|(tenant, entry)| entry.value.keys.iter().map(move |key| (tenant, key)))
            .map(|(tenant, key)| {
                let value = json!({"in": "file", "tenant": tenant.as_str(), "key": shown(key)});
                Self::of(tenant.as_str(), key.name.as_str(), value)
            })
            .collect()
    }

    /// Returns a key of the database; `entry` is `None` where it cannot be read.
    pub(super) fn of_row(row: &KeyRow, entry: Option<&KeyEntry>) -> Self {
        let value = json!({
            "in": "ledger",
            "tenant": row.tenant.as_str(),
            "created": row.created.to_rfc3339(),
            "revoked": row.revoked.map(UtcTime::to_rfc3339),
            "key": entry.map(shown),
        });
        Self::of(row.tenant.as_str(), row.name.as_str(), value)
    }

    fn of(tenant: &str, name: &str, value: Value) -> Self {
        Self { tenant: tenant.to_owned(), name: name.to_owned(), value }
    }

    /// Returns the key for programs: `{"in", "tenant", "name", "public_id", "created", "revoked", "expires", "previous",
    /// "models", "routes", "networks", "classification_ceiling"}`.
    pub fn to_json(&self) -> Value {
        let mut object = json!({"tenant": self.tenant, "name": self.name});
        if let (Some(object), Some(own)) = (object.as_object_mut(), self.value.as_object()) {
            for (key, value) in own.iter().filter(|(key, _)| *key != "key") {
                object.insert(key.clone(), value.clone());
            }
            let of_key = self.value["key"].as_object().into_iter().flatten();
            of_key.for_each(|(key, value)| drop(object.insert(key.clone(), value.clone())));
        }
        object
    }
}

impl fmt::Display for ListedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let (own, key) = (&self.value, &self.value["key"]);
        let place = text(&own["in"]);
        write!(f, "{:<20} {:<20} {place:<7} {:<17}", self.tenant, self.name, text(&key["public_id"]))?;
        if let Some(revoked) = own["revoked"].as_str() {
            return write!(f, " revoked {revoked}");
        }
        if let Some(expires) = key["expires"].as_str() {
            write!(f, " until {expires}")?;
        }
        if let Some(previous) = key["previous"]["expires"].as_str() {
            write!(f, " the one before until {previous}")?;
        }
        for name in ["models", "routes", "networks"] {
            let list: Vec<&str> =
                key[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if !list.is_empty() {
                write!(f, " {name} {}", list.join(","))?;
            }
        }
        if let Some(ceiling) = key["classification_ceiling"].as_str() {
            write!(f, " up to {ceiling}")?;
        }
        Ok(())
    }
}

fn shown(key: &KeyEntry) -> Value {
    let KeyUse { models, routes, classification_ceiling, networks, expires } = &key.use_of;
    let public_id = match &key.source.value {
        KeySource::Stored(stored) => Some(hex(&stored.id)),
        KeySource::Found(_) | KeySource::Issued(_) => None,
    };
    let previous = key.previous.as_ref().map(
        |previous| json!({"public_id": hex(&previous.hash.id), "expires": previous.expires.to_rfc3339()}),
    );
    json!({
        "public_id": public_id,
        "expires": expires.map(UtcTime::to_rfc3339),
        "previous": previous,
        "models": models,
        "routes": routes.iter().map(|route| route.value.as_str()).collect::<Vec<_>>(),
        "networks": networks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "classification_ceiling": classification_ceiling.map(|ceiling| ceiling.as_str()),
    })
}
