//! The tables, as numbered migrations: each is run once, and its text is checked ever after.

use gw_types::SealHash;

use super::Client;
use crate::{
    StoreError,
    sql::{SqlError, Value},
};

/// The version of the tables: the number of the last migration.
pub(crate) const VERSION: i64 = 1;

/// The migrations, in order; number 1 stands first.
const MIGRATIONS: [&str; 1] = [FIRST];

/// The tables of a SQLite ledger (see `sqlite/migrations.rs`), with the node that each row of a chain belongs to, and
/// views that show one node's rows without it.
const FIRST: &str = "
    CREATE TABLE gw.blocks (
        node BIGINT NOT NULL DEFAULT current_setting('gw.node')::BIGINT,
        last_seq BIGINT NOT NULL,
        first_seq BIGINT NOT NULL,
        kind BIGINT NOT NULL,
        hash BYTEA NOT NULL,
        min_key BIGINT NOT NULL,
        max_key BIGINT NOT NULL,
        tags BYTEA NOT NULL,
        id_keys BYTEA NOT NULL,
        records TEXT NOT NULL,
        PRIMARY KEY (node, last_seq)
    );
    CREATE INDEX blocks_keys ON gw.blocks (node, max_key, min_key) WHERE kind = 0;
    CREATE INDEX blocks_notes ON gw.blocks (node, last_seq) WHERE kind = 1;
    CREATE TABLE gw.sums (
        node BIGINT NOT NULL DEFAULT current_setting('gw.node')::BIGINT,
        bucket BIGINT NOT NULL,
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        deployment TEXT NOT NULL,
        route TEXT NOT NULL,
        first_seq BIGINT NOT NULL,
        last_seq BIGINT NOT NULL,
        requests BIGINT NOT NULL,
        failed BIGINT NOT NULL,
        fallbacks BIGINT NOT NULL,
        cache_hits BIGINT NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        spent_pico NUMERIC(39, 0) NOT NULL,
        PRIMARY KEY (node, bucket, tenant, key, model, deployment, route)
    );
    CREATE INDEX sums_tenant ON gw.sums (node, tenant, last_seq, first_seq);
    CREATE TABLE gw.chain (
        node BIGINT PRIMARY KEY DEFAULT current_setting('gw.node')::BIGINT CHECK (node > 0),
        ledger BYTEA NOT NULL,
        base_seq BIGINT NOT NULL,
        base_hash BYTEA NOT NULL,
        tip_seq BIGINT NOT NULL,
        tip_hash BYTEA NOT NULL,
        folded BIGINT NOT NULL
    );
    CREATE TABLE gw.checkpoints (
        node BIGINT NOT NULL DEFAULT current_setting('gw.node')::BIGINT,
        seq BIGINT NOT NULL,
        hash BYTEA NOT NULL,
        newest BIGINT NOT NULL,
        signer BYTEA NOT NULL,
        signature BYTEA NOT NULL,
        PRIMARY KEY (node, seq)
    );
    CREATE TABLE gw.keys (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        entry TEXT NOT NULL,
        created BIGINT NOT NULL,
        revoked BIGINT,
        PRIMARY KEY (tenant, name)
    );
    CREATE TABLE gw.key_changes (
        one BIGINT PRIMARY KEY CHECK (one = 1),
        changes BIGINT NOT NULL
    );
    INSERT INTO gw.key_changes VALUES (1, 0);
    CREATE TABLE gw.idempotency_keys (
        tenant TEXT NOT NULL,
        key BYTEA NOT NULL,
        fingerprint BYTEA NOT NULL,
        request TEXT NOT NULL,
        state BIGINT NOT NULL,
        since BIGINT NOT NULL,
        PRIMARY KEY (tenant, key)
    );
    CREATE INDEX idempotency_keys_since ON gw.idempotency_keys (since);
    CREATE VIEW gw_node.blocks AS
        SELECT last_seq, first_seq, kind, hash, min_key, max_key, tags, id_keys, records
        FROM gw.blocks WHERE node = current_setting('gw.node')::BIGINT;
    CREATE VIEW gw_node.sums AS
        SELECT bucket, tenant, key, model, deployment, route, first_seq, last_seq, requests, failed, fallbacks,
            cache_hits, input_tokens, output_tokens, spent_pico
        FROM gw.sums WHERE node = current_setting('gw.node')::BIGINT;
    CREATE VIEW gw_node.chain AS
        SELECT ledger, base_seq, base_hash, tip_seq, tip_hash, folded
        FROM gw.chain WHERE node = current_setting('gw.node')::BIGINT;
    CREATE VIEW gw_node.checkpoints AS
        SELECT seq, hash, newest, signer, signature
        FROM gw.checkpoints WHERE node = current_setting('gw.node')::BIGINT;
";

/// Keeps two gateways from making the tables at once.
const ONE_AT_A_TIME: &str = "SELECT pg_advisory_xact_lock(26487, 0)";

/// Returns the version of the tables, 0 where there are none.
///
/// # Errors
/// The schema is somebody else's, the tables are of a newer version, or there was no answer.
pub(crate) fn version(name: &str, client: &Client) -> Result<i64, StoreError> {
    let failed = |error| StoreError::opening(name, error);
    let there = "SELECT to_regclass('gw.migrations') IS NOT NULL,
        EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('gw') AND relkind = 'r')";
    let row = client.first(there, &[]).map_err(failed)?;
    let flag = |at: usize| row.as_ref().is_some_and(|row| row.try_get(at).unwrap_or(false));
    if !flag(0) {
        let is_foreign = flag(1);
        return if is_foreign { Err(StoreError::NotALedger { ledger: name.to_owned() }) } else { Ok(0) };
    }
    let last = client.first("SELECT coalesce(max(number), 0) FROM gw.migrations", &[]).map_err(failed)?;
    let found: i64 = last.map_or(0, |row| row.try_get(0).unwrap_or(0));
    if found > VERSION {
        return Err(StoreError::Newer { ledger: name.to_owned(), found, known: VERSION });
    }
    Ok(found)
}

/// Runs what the database lacks, all or nothing, and checks that what it has was run from the same text.
pub(crate) fn run(name: &str, client: &Client) -> Result<(), StoreError> {
    if version(name, client)? < VERSION {
        let failed = |error| StoreError::opening(name, error);
        client.begin("BEGIN").map_err(failed)?;
        let made = make(name, client);
        if made.is_err() {
            client.roll_back();
        }
        made?;
        client.commit().map_err(failed)?;
    }
    check(name, client)
}

fn make(name: &str, client: &Client) -> Result<(), StoreError> {
    let failed = |error| StoreError::opening(name, error);
    client.batch(ONE_AT_A_TIME).map_err(failed)?;
    // Another gateway may have made them meanwhile.
    let found = version(name, client)?;
    for schema in ["gw", "gw_node"] {
        let there = format!("SELECT FROM pg_namespace WHERE nspname = '{schema}'");
        if client.first(&there, &[]).map_err(failed)?.is_none() {
            client.batch(&format!("CREATE SCHEMA {schema}")).map_err(failed)?;
        }
    }
    if found == 0 {
        let table = "CREATE TABLE gw.migrations (number BIGINT PRIMARY KEY, digest BYTEA NOT NULL)";
        client.batch(table).map_err(failed)?;
    }
    for (number, sql) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        client.batch(sql).map_err(failed)?;
        let digest = SealHash::of_record(sql.as_bytes());
        let insert = "INSERT INTO gw.migrations (number, digest) VALUES (?1, ?2)";
        let values = [Value::Int(number), Value::Bytes(digest.as_bytes())];
        client.execute(insert, &values).map_err(failed)?;
    }
    Ok(())
}

/// Compares what was run with what this program would run.
pub(crate) fn check(name: &str, client: &Client) -> Result<(), StoreError> {
    let failed = |error: SqlError| StoreError::opening(name, error);
    let read = "SELECT digest FROM gw.migrations ORDER BY number";
    let rows = client.all(read, &[]).map_err(|error| failed(error.into()))?;
    for (number, sql) in (1_i64..).zip(MIGRATIONS) {
        let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let found: Option<&[u8]> = rows.get(at).and_then(|row| row.try_get(0).ok());
        if found != Some(SealHash::of_record(sql.as_bytes()).as_bytes().as_slice()) {
            return Err(StoreError::Migration { ledger: name.to_owned(), number });
        }
    }
    Ok(())
}
