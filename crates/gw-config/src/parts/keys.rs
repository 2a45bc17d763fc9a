//! The keys of every tenant.

use gw_types::{KeyIdentity, KeyName, KeyStore, TenantId};

use crate::{
    config::Config,
    file::{Callers, KeySource},
    keys::{KeyTable, Presented},
    reader::Faults,
    source::Span,
};

/// The tenant and key of callers without a key, where the configuration has no file.
pub(crate) const ANONYMOUS: (&str, &str) = ("local", "anonymous");

/// Returns the keys. One key has one owner: two would make it a matter of luck who pays.
pub(super) fn table(config: &Config, faults: &Faults) -> KeyTable {
    let mut table = KeyTable::default();
    for stored_ones in [true, false] {
        for (at, tenant, identity, key) in entries(config) {
            let presented = match &key.value {
                KeySource::Stored(stored) => Presented::Stored(stored),
                KeySource::Found(found) => Presented::Found(&found.value),
            };
            if matches!(presented, Presented::Stored(_)) != stored_ones {
                continue;
            }
            if let Err(owner) = table.add(presented, identity) {
                refuse(faults, key.span, &format!("tenants.{tenant}.keys[{at}]"), &owner);
            }
        }
    }
    admin_keys(config, &table, faults);
    if config.callers == Callers::Anyone
        && let (Ok(tenant), Ok(key)) = (TenantId::new(ANONYMOUS.0), KeyName::new(ANONYMOUS.1))
    {
        table.allow_anonymous(KeyIdentity { tenant, key });
    }
    table
}

/// Returns every key with its index, its tenant and its identity.
fn entries(
    config: &Config,
) -> impl Iterator<Item = (usize, &TenantId, KeyIdentity, &crate::source::Located<KeySource>)> {
    config.file.tenants.iter().flat_map(|(tenant, entry)| {
        entry.value.keys.iter().enumerate().map(move |(at, key)| {
            let identity = KeyIdentity { tenant: tenant.clone(), key: key.name.clone() };
            (at, tenant, identity, &key.source)
        })
    })
}

/// Refuses an admin key that is a tenant's key too: whoever may ask a model would see every tenant's records.
fn admin_keys(config: &Config, table: &KeyTable, faults: &Faults) {
    for (at, key) in config.file.server.admin_keys.iter().enumerate() {
        if let Some(owner) = table.identify(&key.value.value) {
            refuse(faults, key.span, &format!("server.admin_keys[{at}]"), &owner);
        }
    }
}

fn refuse(faults: &Faults, span: Span, path: &str, owner: &KeyIdentity) {
    let message = format!("`{path}` is the same key as `{}` of tenant `{}`", owner.key, owner.tenant);
    faults.add(span, path, message, "take another key");
}
