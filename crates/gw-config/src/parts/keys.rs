//! The keys of every tenant.

use gw_types::{IssuerName, KeyIdentity, KeyName, KeyStore, RouteName, TenantId, UtcTime};

use crate::{
    config::Config,
    file::{Callers, IssuerEntry, JwksEntry, KeyEntry, KeySource},
    keys::{Access, Issuer, IssuerTable, Jwks, KeyTable, Presented},
    nearest,
    reader::Faults,
    secret::FoundSecret,
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
                KeySource::Found(FoundSecret { value: Some(secret), .. }) => Presented::Found(secret),
                KeySource::Found(FoundSecret { value: None, .. }) | KeySource::Issued(_) => continue,
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

/// Returns the issuers, with the keys that name them.
pub(super) fn issuers(config: &Config, faults: &Faults) -> IssuerTable {
    let mut table = IssuerTable::default();
    for (name, entry) in &config.file.issuers {
        let IssuerEntry { issuer, audience, keys, algorithms, leeway } = &entry.value;
        let keys = match &keys.value {
            JwksEntry::Url(url) => Jwks::Url(url.as_str().into()),
            JwksEntry::File(file) => Jwks::Text(file.text.as_str().into()),
        };
        let mut named = Issuer::new(name.clone(), issuer.value.clone(), keys);
        (named.audience, named.algorithms, named.leeway) = (audience.clone(), algorithms.clone(), *leeway);
        table.push(named);
    }
    let known = || config.file.issuers.keys().map(IssuerName::as_str);
    for (at, tenant, key) in entries(config) {
        let KeySource::Issued(issued) = &key.source.value else { continue };
        let path = format!("tenants.{tenant}.keys[{at}]");
        if !config.file.issuers.contains_key(&issued.issuer) {
            let message = format!("unknown issuer `{}` in `{path}`", issued.issuer);
            faults.add(key.source.span, &path, message, nearest::remedy(issued.issuer.as_str(), known()));
            continue;
        }
        let access = access(key, key.use_of.expires);
        if let Err(owner) = table.add(&issued.issuer, &issued.claims, identity(tenant, key), access) {
            let message =
                format!("`{path}` asks for the same claims as `{}` of tenant `{}`", owner.key, owner.tenant);
            faults.add(key.source.span, &path, message, "ask for a claim that only one of them has");
        }
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
        if let Some(secret) = &key.secret.value.value
            && let Some(owner) = table.identify(secret)
        {
            refuse(faults, key.secret.span, &format!("server.admin_keys[{at}]"), &owner);
        }
    }
}

fn refuse(faults: &Faults, span: Span, path: &str, owner: &KeyIdentity) {
    let message = format!("`{path}` is the same key as `{}` of tenant `{}`", owner.key, owner.tenant);
    faults.add(span, path, message, "take another key");
}
