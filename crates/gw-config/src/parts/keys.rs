//! The keys of every tenant.

use gw_types::{KeyIdentity, KeyName, KeyStore, RouteName, TenantId, UtcTime};

use crate::{
    config::Config,
    file::{Callers, KeyEntry, KeySource},
    keys::{Access, KeyTable, Presented},
    nearest,
    reader::Faults,
    source::{Located, Span},
};

/// The tenant and key of callers without a key, where the configuration has no file.
pub(crate) const ANONYMOUS: (&str, &str) = ("local", "anonymous");

/// Returns the keys. One key has one owner: two would make it a matter of luck who pays.
pub(super) fn table(config: &Config, faults: &Faults) -> KeyTable {
    let mut table = KeyTable::default();
    for stored_ones in [true, false] {
        for (at, tenant, key) in entries(config) {
            let source = &key.source;
            let presented = match &source.value {
                KeySource::Stored(stored) => Presented::Stored(stored),
                KeySource::Found(found) => Presented::Found(&found.value),
            };
            if matches!(presented, Presented::Stored(_)) == stored_ones {
                let path = format!("tenants.{tenant}.keys[{at}]");
                let access = access(key, key.use_of.expires);
                // A key of the database that is another's is left out: nobody may refuse a start through it.
                if let Err(owner) = table.add(presented, identity(tenant, key), access)
                    && !key.is_stored
                {
                    refuse(faults, source.span, &path, &owner);
                }
            }
        }
    }
    for (at, tenant, key) in entries(config) {
        let Some(previous) = &key.previous else { continue };
        let expires = key.use_of.expires.map_or(previous.expires, |own| own.min(previous.expires));
        let access = access(key, Some(expires));
        if let Err(owner) = table.add(Presented::Stored(&previous.hash), identity(tenant, key), access)
            && !key.is_stored
        {
            refuse(faults, key.source.span, &format!("tenants.{tenant}.keys[{at}].previous"), &owner);
        }
    }
    routes(config, faults);
    admin_keys(config, &table, faults);
    if config.callers == Callers::Anyone
        && let (Ok(tenant), Ok(key)) = (TenantId::new(ANONYMOUS.0), KeyName::new(ANONYMOUS.1))
    {
        table.allow_anonymous(KeyIdentity { tenant, key });
    }
    table
}

/// Returns every key with its index and its tenant.
fn entries(config: &Config) -> impl Iterator<Item = (usize, &TenantId, &KeyEntry)> {
    config.file.tenants.iter().flat_map(|(tenant, entry)| {
        entry.value.keys.iter().enumerate().map(move |(at, key)| (at, tenant, key))
    })
}

fn identity(tenant: &TenantId, key: &KeyEntry) -> KeyIdentity {
    KeyIdentity { tenant: tenant.clone(), key: key.name.clone() }
}

fn access(key: &KeyEntry, expires: Option<UtcTime>) -> Access {
    Access { networks: key.use_of.networks.as_slice().into(), expires }
}

/// Refuses keys for routes that there are not. One that is kept in the database may outlive its routes: it then has none.
fn routes(config: &Config, faults: &Faults) {
    let known = || config.file.routes.iter().map(|route| route.value.name.as_str());
    for (at, tenant, key) in entries(config).filter(|(.., key)| !key.is_stored) {
        let unknown = |route: &&Located<RouteName>| known().all(|name| name != route.value.as_str());
        for route in key.use_of.routes.iter().filter(unknown) {
            let path = format!("tenants.{tenant}.keys[{at}].routes");
            let message = format!("unknown route `{}` in `{path}`", route.value);
            faults.add(route.span, &path, message, nearest::remedy(route.value.as_str(), known()));
        }
    }
}

/// Refuses an admin key that is a tenant's key too: whoever may ask a model would see every tenant's records.
fn admin_keys(config: &Config, table: &KeyTable, faults: &Faults) {
    for (at, key) in config.file.server.admin_keys.iter().enumerate() {
        if let Some(owner) = table.identify(&key.secret.value.value) {
            refuse(faults, key.secret.span, &format!("server.admin_keys[{at}]"), &owner);
        }
    }
}

fn refuse(faults: &Faults, span: Span, path: &str, owner: &KeyIdentity) {
    let message = format!("`{path}` is the same key as `{}` of tenant `{}`", owner.key, owner.tenant);
    faults.add(span, path, message, "take another key");
}
