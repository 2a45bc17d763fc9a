//! `gw keys`.

use std::path::Path;

use gw_config::{Config, KeyDraft, ListedKey, NewKey, Seams, StoredKeys, SystemEnvironment};
use gw_types::UtcTime;

use crate::{
    arguments::{CreateOptions, Format, KeyOptions, KeysCommand, ListOptions, RotateOptions},
    check::rendered,
    output,
};

/// Runs a command.
pub(crate) fn run(command: &KeysCommand) -> Result<(), String> {
    match command {
        KeysCommand::Create(options) => create(options),
        KeysCommand::List(options) => list(options),
        KeysCommand::Show(options) => show(options),
        KeysCommand::Rotate(options) => rotate(options),
        KeysCommand::Revoke(options) => revoke(options),
    }
}

/// Makes a key. The key goes to standard output alone, so that a pipe takes it and nothing else.
fn create(options: &CreateOptions) -> Result<(), String> {
    let KeyOptions { config, tenant, name } = &options.key;
    let now = now()?;
    let draft = draft(options, now);
    if options.stored {
        let key = open(config)?.create(tenant, name, &draft, now).map_err(|why| failed(&why))?;
        output::aside(format_args!("The key of tenant `{tenant}`, shown once; it is in the ledger:"));
        return output::line(key.shown().expose());
    }
    let key = NewKey::generate().map_err(|error| format!("error: {error}"))?;
    output::aside(format_args!("The key of tenant `{tenant}`, shown once:"));
    output::line(key.shown().expose())?;
    output::aside(format_args!("For the configuration, under [tenants.{tenant}]:"));
    output::aside(format_args!("keys = [{}]", draft.entry(name, key.line(), None)));
    Ok(())
}

fn draft(options: &CreateOptions, now: UtcTime) -> KeyDraft {
    KeyDraft {
        models: options.models.clone(),
        routes: options.routes.clone(),
        classification_ceiling: options.classification_ceiling.clone(),
        networks: options.networks.clone(),
        expires: options.expires.map(|end| end.from(now)),
        requests_per_minute: options.requests_per_minute,
        tokens_per_minute: options.tokens_per_minute,
        max_concurrency: options.max_concurrency,
        budget: options.budget_micros.map(|micros| (micros, options.budget_window.clone())),
    }
}

fn list(options: &ListOptions) -> Result<(), String> {
    let keys = listed(&options.config)?;
    let wanted =
        |key: &&ListedKey| options.tenant.as_ref().is_none_or(|tenant| key.tenant == tenant.as_str());
    let keys = keys.iter().filter(wanted);
    match options.format {
        Format::Text => keys.into_iter().try_for_each(output::line),
        Format::Json => {
            let keys: Vec<_> = keys.map(ListedKey::to_json).collect();
            output::line(serde_json::json!({"keys": keys}))
        }
    }
}

fn show(options: &KeyOptions) -> Result<(), String> {
    let KeyOptions { config, tenant, name } = options;
    let keys = listed(config)?;
    let found = keys.iter().find(|key| key.tenant == tenant.as_str() && key.name == name.as_str());
    let found = found.ok_or_else(|| format!("error: tenant `{tenant}` has no key `{name}`"))?;
    output::line(found.to_json())
}

fn rotate(options: &RotateOptions) -> Result<(), String> {
    let KeyOptions { config, tenant, name } = &options.key;
    let until = now()?.saturating_add(options.overlap);
    let key = open(config)?.rotate(tenant, name, until).map_err(|why| failed(&why))?;
    output::aside(format_args!(
        "The new key `{name}` of tenant `{tenant}`, shown once; the old one goes on until {}:",
        until.to_rfc3339()
    ));
    output::line(key.shown().expose())
}

fn revoke(options: &KeyOptions) -> Result<(), String> {
    let KeyOptions { config, tenant, name } = options;
    open(config)?.revoke(tenant, name, now()?).map_err(|why| failed(&why))?;
    output::line(format_args!("revoked key `{name}` of tenant `{tenant}`"))
}

fn listed(config: &Path) -> Result<Vec<ListedKey>, String> {
    ListedKey::all(load(config)?).map_err(|why| failed(&why))
}

fn open(config: &Path) -> Result<StoredKeys, String> {
    StoredKeys::open(load(config)?).map_err(|why| failed(&why))
}

fn load(config: &Path) -> Result<Config, String> {
    Config::load_without_callers(config, &SystemEnvironment).map_err(|faults| rendered(&faults))
}

fn now() -> Result<UtcTime, String> {
    Ok(Seams::system().map_err(|error| format!("error: {error}"))?.clock.utc())
}

fn failed(why: &str) -> String {
    format!("error: {why}")
}
