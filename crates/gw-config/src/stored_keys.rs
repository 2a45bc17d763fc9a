//! Keys that are kept in the ledger's database: they change while a gateway runs.
//!
//! A key there is what would stand in the tenant's list `keys` in the file, and is read by the same code. A running
//! gateway puts a change in force as it does a changed file.

mod entry;
mod listed;

use std::collections::BTreeSet;

use gw_stores::{KeyBook, KeyRow, LedgerStore, StoreError};
use gw_types::{KeyName, TenantId, UtcTime};
use toml::de::DeTable;

pub use self::{entry::KeyDraft, listed::ListedKey};
use crate::{
    Checked, Config, Diagnostics, FixedEnvironment, NewKey,
    diagnostics::Diagnostic,
    file::{Callers, KeyEntry, TenantEntry, read_key},
    parts,
    reader::{Faults, Section},
    secret::Outside,
    source::Span,
};

/// What a configuration has from the database.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredMark {
    /// How often the keys there had changed; `None`: they are not read.
    pub(crate) changes: Option<i64>,
    /// Keys that are there and cannot be used, with the reason.
    pub(crate) notes: Vec<Diagnostic>,
}

impl Config {
    /// Returns the configuration with the keys of its database, where it says that there may be some.
    ///
    /// A key whose tenant is gone, whose name stands in the file too or that cannot be read is left out with a note.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn with_stored_keys(self) -> Result<Self, Diagnostics> {
        let Some(store) = self.key_store() else { return Ok(self) };
        let (changes, rows) = KeyBook::read(&store).map_err(|error| {
            let span = self.file.ledger.store.span;
            self.diagnose(vec![parts::fault(span, "ledger.keys", said(&error), "it must be readable")])
        })?;
        let mut config = self;
        config.stored.changes = Some(changes);
        for row in &rows {
            if let Err(why) = config.take_in(row) {
                let name = config.source.name().to_owned();
                let message = format!(
                    "key `{}` of tenant `{}` in the ledger is not in force: {why}",
                    row.name, row.tenant
                );
                let expected = "revoke it with `gw keys revoke`, or correct what it goes by".to_owned();
                config.stored.notes.push(Diagnostic::of_file(&name, message, expected));
            }
        }
        Ok(config)
    }

    /// Returns how often the keys in the database have changed by now; `None`: they are not read, or cannot be.
    pub(crate) fn key_changes(&self) -> Option<i64> {
        KeyBook::changes(self.key_store()?).ok()
    }

    /// Returns where keys may be kept; `None`: nowhere. Roots that cannot be read are the ledger's own to name.
    fn key_store(&self) -> Option<LedgerStore> {
        if self.file.ledger.keys { self.ledger_store().ok().flatten() } else { None }
    }

    fn take_in(&mut self, row: &KeyRow) -> Result<(), String> {
        let tenant = self.file.tenants.get_mut(&row.tenant);
        let tenant = &mut tenant.ok_or("there is no such tenant")?.value;
        if tenant.keys.iter().any(|key| key.name == row.name) {
            return Err("the file has a key of this name".to_owned());
        }
        let entry = read(tenant, &row.entry)?;
        tenant.keys.push(entry);
        Ok(())
    }
}

/// Reads an entry as the file's are read. It may name no secret: what is in a database is not this machine's to know.
fn read(tenant: &TenantEntry, entry: &str) -> Result<KeyEntry, String> {
    let text = format!("key = {entry}");
    let table = DeTable::parse(&text).map_err(|error| error.message().to_owned())?;
    let faults = Faults::default();
    let nowhere = FixedEnvironment::new();
    let outside =
        Outside { environment: &nowhere, folder: std::path::Path::new(""), callers: Callers::WithKey };
    let mut root = Section::root(table.get_ref(), &faults);
    let mut seen = BTreeSet::new();
    let node = root.required("key", "{ ... }");
    let read = node.and_then(|node| read_key(&node, outside, (&tenant.zone, tenant.queue), &mut seen));
    root.finish();
    if let Some(fault) = faults.into_list().first() {
        return Err(format!("{}; {}", fault.message, fault.expected));
    }
    let mut entry = read.ok_or("it cannot be read")?;
    entry.is_stored = true;
    // Its places are in no file.
    entry.source.span = Span::default();
    entry.use_of.routes.iter_mut().for_each(|route| route.span = Span::default());
    Ok(entry)
}

/// The keys of a configuration, to be listed and changed.
#[derive(Debug)]
pub struct StoredKeys {
    config: Config,
    book: KeyBook,
}

impl StoredKeys {
    /// Opens the keys of a configuration that keeps some in its ledger.
    ///
    /// # Errors
    /// Why they cannot be opened, as `what is wrong; what to do`.
    pub fn open(config: Config) -> Result<Self, String> {
        let store = config.key_store().ok_or(
            "the configuration keeps no keys in its ledger; write `keys = true` and a store in `[ledger]`",
        )?;
        let book = KeyBook::open(store).map_err(|error| said(&error))?;
        Ok(Self { config, book })
    }

    /// Makes a key and puts it in force; a running gateway sees it within some seconds.
    ///
    /// # Errors
    /// What is wrong with the draft, or why it cannot be stored.
    pub fn create(
        &mut self,
        tenant: &TenantId,
        name: &KeyName,
        draft: &KeyDraft,
        now: UtcTime,
    ) -> Result<NewKey, String> {
        let key = NewKey::generate().map_err(|error| error.to_string())?;
        let entry = draft.entry(name, key.line(), None);
        let row = KeyRow { tenant: tenant.clone(), name: name.clone(), entry, created: now, revoked: None };
        self.check(&row)?;
        if !self.book.add(&row).map_err(|error| said(&error))? {
            return Err(format!("tenant `{tenant}` has or had a key `{name}`; take another name"));
        }
        Ok(key)
    }

    /// Makes a new key in the place of one, which holds beside it until `until`.
    ///
    /// # Errors
    /// There is no such key, or it cannot be stored.
    pub fn rotate(&mut self, tenant: &TenantId, name: &KeyName, until: UtcTime) -> Result<NewKey, String> {
        let row = self.row(tenant, name)?;
        let key = NewKey::generate().map_err(|error| error.to_string())?;
        let entry = entry::rotated(&row.entry, key.line(), until)
            .ok_or_else(|| format!("the entry of key `{name}` is none that gw wrote"))?;
        if !self.book.replace(&row, &entry).map_err(|error| said(&error))? {
            return Err("the key was changed meanwhile; look at it and try again".to_owned());
        }
        Ok(key)
    }

    /// Revokes a key; a running gateway refuses it within some seconds.
    ///
    /// # Errors
    /// There is no such key, or it cannot be stored.
    pub fn revoke(&mut self, tenant: &TenantId, name: &KeyName, now: UtcTime) -> Result<(), String> {
        self.row(tenant, name)?;
        self.book.revoke(tenant, name, now).map_err(|error| said(&error)).map(drop)
    }

    /// Returns every key, those of the file first; the revoked ones too.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn list(&self) -> Result<Vec<ListedKey>, String> {
        let mut listed = ListedKey::of_file(&self.config);
        for row in self.book.rows().map_err(|error| said(&error))? {
            let tenant = self.config.file.tenants.get(&row.tenant);
            let entry = tenant.and_then(|tenant| read(&tenant.value, &row.entry).ok());
            listed.push(ListedKey::of_row(&row, entry.as_ref()));
        }
        Ok(listed)
    }

    /// Returns the row of a key that holds.
    fn row(&self, tenant: &TenantId, name: &KeyName) -> Result<KeyRow, String> {
        let rows = self.book.rows().map_err(|error| said(&error))?;
        let found = rows.into_iter().find(|row| row.tenant == *tenant && row.name == *name);
        let in_file = self.config.file.tenants.get(tenant);
        let in_file = in_file.is_some_and(|tenant| tenant.value.keys.iter().any(|key| key.name == *name));
        match found {
            Some(row) if row.revoked.is_none() => Ok(row),
            Some(_) => Err(format!("key `{name}` of tenant `{tenant}` is revoked")),
            None if in_file => {
                Err(format!("key `{name}` of tenant `{tenant}` stands in the file; change it there"))
            }
            None => Err(format!("tenant `{tenant}` has no key `{name}` in the ledger")),
        }
    }

    /// Checks that the configuration is sound with the key.
    fn check(&self, row: &KeyRow) -> Result<(), String> {
        let mut config = self.config.clone();
        config.take_in(row)?;
        // What is wrong with the rest of the file is not this key's fault, and is said as it is.
        Checked::of(config).map(drop).map_err(|faults| faults.to_string())
    }
}

fn said(error: &StoreError) -> String {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    format!("{error}{cause}")
}
