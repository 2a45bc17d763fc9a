//! The tables, as numbered migrations: each is run once, and its text is checked ever after.

use gw_types::{AccountingRecord, SealHash};

use crate::{
    StoreError,
    encode::Batch,
    ledger::Chain,
    sql::{Db, SqlError, Value},
};

/// The version of the tables: the number of the last migration, kept in the file's `user_version`.
pub(crate) const VERSION: i64 = 4;

/// The migrations, in order; number 1 stands first.
const MIGRATIONS: [&str; 4] = [FIRST, SEALED, KEYS, IDEMPOTENCY_KEYS];

/// Records as JSON, with copies of parts of them for queries.
const FIRST: &str = "
    CREATE TABLE records (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        started INTEGER NOT NULL,
        route TEXT,
        serving TEXT,
        outcome TEXT NOT NULL,
        spent_pico ANY NOT NULL,
        record TEXT NOT NULL
    ) STRICT;
    CREATE INDEX records_tenant ON records (tenant);
    CREATE INDEX records_spend ON records (started, tenant, key, spent_pico) WHERE spent_pico <> 0;
";

/// Sealed records, and sums in place of indices.
///
/// `blocks` is the chain: each holds up to 64 records as they were sealed, a line of JSON each. `hash` is the link of the
/// last one; of the others the first 8 bytes stand in `tags`. `id_keys` are 8 bytes each, little-endian (see
/// `encode::id_key`), and `min_key` and `max_key` bound them: a record is found by its id through them. Entries of the
/// ledger's own, such as summaries of what was deleted, are blocks of `kind` 1.
///
/// `sums` adds the records up to `chain.folded` by bucket (a quarter of an hour, UTC, in microseconds) and names; what is
/// absent is empty. `first_seq` and `last_seq` bound the records that were added. `spent_pico` is an INTEGER up to 9.2
/// million USD, decimal TEXT above, so every amount is exact; gw adds them up outside SQL, where no sum can overflow.
///
/// `chain` holds both ends: the link before the first record that is kept, and the last record.
const SEALED: &str = "
    ALTER TABLE records RENAME TO records_1;
    DROP INDEX records_tenant;
    DROP INDEX records_spend;
    CREATE TABLE blocks (
        last_seq INTEGER PRIMARY KEY,
        first_seq INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        hash BLOB NOT NULL,
        min_key INTEGER NOT NULL,
        max_key INTEGER NOT NULL,
        tags BLOB NOT NULL,
        id_keys BLOB NOT NULL,
        records TEXT NOT NULL
    ) STRICT;
    CREATE INDEX blocks_keys ON blocks (max_key, min_key) WHERE kind = 0;
    CREATE INDEX blocks_notes ON blocks (last_seq) WHERE kind = 1;
    CREATE TABLE sums (
        bucket INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        deployment TEXT NOT NULL,
        route TEXT NOT NULL,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        fallbacks INTEGER NOT NULL,
        cache_hits INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        spent_pico ANY NOT NULL,
        PRIMARY KEY (bucket, tenant, key, model, deployment, route)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sums_tenant ON sums (tenant, last_seq, first_seq);
    CREATE TABLE chain (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        ledger BLOB NOT NULL,
        base_seq INTEGER NOT NULL,
        base_hash BLOB NOT NULL,
        tip_seq INTEGER NOT NULL,
        tip_hash BLOB NOT NULL,
        folded INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE checkpoints (
        seq INTEGER PRIMARY KEY,
        hash BLOB NOT NULL,
        newest INTEGER NOT NULL,
        signer BLOB NOT NULL,
        signature BLOB NOT NULL
    ) STRICT;
    CREATE TABLE migrations (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL
    ) STRICT;
";

/// Keys of callers. `entry` is what would stand in the list `keys` of a tenant in `gw.toml`: it holds a hash and no key.
/// `key_changes` counts, so that a running gateway sees that something has changed without reading it all.
const KEYS: &str = "
    CREATE TABLE keys (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        entry TEXT NOT NULL,
        created INTEGER NOT NULL,
        revoked INTEGER,
        PRIMARY KEY (tenant, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE key_changes (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        changes INTEGER NOT NULL
    ) STRICT;
    INSERT INTO key_changes VALUES (1, 0);
";

/// Idempotency keys, beside the chain: `state` is 0 for a call that was about to be made, 1 for one that was answered.
const IDEMPOTENCY_KEYS: &str = "
    CREATE TABLE idempotency_keys (
        tenant TEXT NOT NULL,
        key BLOB NOT NULL,
        fingerprint BLOB NOT NULL,
        request TEXT NOT NULL,
        state INTEGER NOT NULL,
        since INTEGER NOT NULL,
        PRIMARY KEY (tenant, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX idempotency_keys_since ON idempotency_keys (since);
";

/// Records that one step of the conversion takes.
const STEP_RECORDS: usize = 512;

/// Runs what the file lacks, all or nothing, and checks that what it has was run from the same text.
pub(super) fn run(ledger: &str, db: &Db, version: i64) -> Result<(), StoreError> {
    if version < VERSION {
        // What is not committed is undone.
        let transaction = db.transaction().map_err(|error| StoreError::opening(ledger, error))?;
        make(ledger, &transaction, version)?;
        transaction.commit().map_err(|error| StoreError::opening(ledger, error))?;
    }
    check(ledger, db)
}

fn make(ledger: &str, db: &Db, version: i64) -> Result<(), StoreError> {
    let failed = |error: SqlError| StoreError::opening(ledger, error);
    for (number, sql) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
        db.batch(sql).map_err(failed)?;
        if number == 2 {
            seal(ledger, db)?;
            db.batch("DROP TABLE records_1").map_err(failed)?;
        }
    }
    // The list of what was run is younger than the first version.
    let listed = if version < 2 { 0 } else { version };
    for (number, sql) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > listed) {
        let digest = SealHash::of_record(sql.as_bytes());
        let insert = "INSERT INTO migrations (number, digest) VALUES (?1, ?2)";
        db.execute(insert, &[Value::Int(number), Value::Bytes(digest.as_bytes())]).map_err(failed)?;
    }
    db.batch(&format!("PRAGMA user_version = {VERSION}")).map_err(failed)
}

/// Compares what was run with what this program would run.
pub(crate) fn check(ledger: &str, db: &Db) -> Result<(), StoreError> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    db.each("SELECT digest FROM migrations ORDER BY number", &[], |row| {
        found.push(row.bytes(0)?.to_owned());
        Ok::<_, SqlError>(true)
    })
    .map_err(|error| StoreError::opening(ledger, error))?;
    let known = MIGRATIONS.map(|sql| SealHash::of_record(sql.as_bytes()));
    for (number, known) in (1_i64..).zip(known) {
        let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
        if found.get(at).map(Vec::as_slice) != Some(known.as_bytes().as_slice()) {
            return Err(StoreError::Migration { ledger: ledger.to_owned(), number });
        }
    }
    Ok(())
}

/// Seals the records of a file of the first version, in their order.
fn seal(ledger: &str, db: &Db) -> Result<(), StoreError> {
    const READ: &str = "SELECT seq, record FROM records_1 WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let failed = |error: SqlError| StoreError::opening(ledger, error);
    let mut chain = Chain::begin(db).map_err(failed)?;
    let mut batch = Batch::default();
    let (mut last, mut unreadable) = (0_i64, false);
    loop {
        batch.clear();
        db.each(READ, &[Value::Int(last), Value::count(STEP_RECORDS)], |row| {
            last = row.int(0)?;
            // The parser's message may quote the record; it goes no further.
            match serde_json::from_slice::<AccountingRecord>(row.bytes(1)?) {
                Ok(record) => batch.push(&record),
                Err(_) => unreadable = true,
            }
            Ok::<_, SqlError>(!unreadable)
        })
        .map_err(failed)?;
        if unreadable {
            return Err(StoreError::Unreadable { ledger: ledger.to_owned(), seq: u64::try_from(last).ok() });
        }
        if batch.is_empty() {
            break;
        }
        let tip = chain.insert(db, &batch, 0..batch.len()).map_err(failed)?;
        chain.advance(tip, &batch, 0..batch.len());
        if chain.is_fold_due() {
            chain.fold(db).map_err(failed)?;
        }
    }
    chain.fold(db).map_err(failed)
}

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;
    use gw_types::{Ledger, RecordQuery, UtcTime};
    use rusqlite::{Connection, params};

    use super::FIRST;
    use crate::{SqlConfig, SqlLedger, StoreError};

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
    }

    #[test]
    fn a_ledger_of_the_first_version_is_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gw.db");
        let first = Connection::open(&path).unwrap();
        first.execute_batch(FIRST).unwrap();
        first.pragma_update(None, "user_version", 1).unwrap();
        for number in 1..=600 {
            let record = sample_record(number);
            first
                .execute(
                    "INSERT INTO records (id, tenant, key, started, outcome, spent_pico, record)
                     VALUES (?1, 'wholesale', 'batch', 0, 'ok', 0, ?2)",
                    params![record.id.as_str(), serde_json::to_string(&record).unwrap()],
                )
                .unwrap();
        }
        drop(first);
        let ledger = SqlLedger::open(&path, SqlConfig::default()).unwrap();
        let newest = RecordQuery { tenant: None, node: None, before: None, limit: 1 };
        let page = run(ledger.records(newest)).unwrap();
        assert_eq!((page[0].seq, &page[0].record), (600, &sample_record(600)));
        let spent = run(ledger.spend_since(UtcTime::from_micros(0))).unwrap();
        let micros: u128 = (1..=600).sum();
        assert_eq!(spent[0].spent.pico(), micros * 1_000_000 + 3 * 600);
        drop(ledger);
        assert!(
            crate::LedgerFile::open(&path).unwrap().verify(&crate::Expected::default()).unwrap().is_whole()
        );
    }

    #[test]
    fn tables_of_another_making_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gw.db");
        drop(SqlLedger::open(&path, SqlConfig::default()).unwrap());
        Connection::open(&path)
            .unwrap()
            .execute_batch("UPDATE migrations SET digest = x'00' WHERE number = 2")
            .unwrap();
        let error = SqlLedger::open(&path, SqlConfig::default()).unwrap_err();
        assert!(matches!(error, StoreError::Migration { number: 2, .. }), "{error}");
    }
}
