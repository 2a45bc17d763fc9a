//! All records in a form that other programs read.

use std::io::Write;

use gw_types::{AccountingRecord, SealHash, StoredRecord, TagRecord, TenantId, TokenCount};
use jiff::Timestamp;
use memchr::memmem;

use super::{LedgerFile, Period};
use crate::{
    StoreError,
    encode::spent,
    ledger::{BLOCK_COLUMNS, Block, BlockLine, each_block, hash_before},
    sql::{Db, SqlError},
};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object a line: `hash` (the link), `node` (where there are several), `record` (as it was sealed, byte for
    /// byte) and `seq`.
    JsonLines,
    /// Comma-separated values with a line of names: what fits in a table. Money is in pico-USD, durations are in
    /// microseconds. A text that a spreadsheet would take for a formula gets an apostrophe before it.
    Csv,
}

/// Says why an export has ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was exported cannot be written.
    #[error("the export cannot be written")]
    Write(#[from] std::io::Error),
}

/// The names of the columns.
const COLUMNS: &str = "seq,id,started,tenant,key,operation,model,stream,task_class,classification,route,primary,serving,\
    model_version,served_model,outcome,error,cache,attempts,input_tokens,cached_input_tokens,output_tokens,\
    reasoning_tokens,estimated,spent_pico,cost_pico,saved_pico,reserved_pico,overrun_pico,total_us,queue_us,backoff_us,\
    upstream_first_byte_us,upstream_rest_us,own_us,client_request_id,user,tags,hash,node\n";

impl LedgerFile {
    /// Writes the records of a period, oldest first, of one tenant or of all; returns how many. Streams.
    ///
    /// # Errors
    /// [`ExportError`]: the ledger cannot be read, holds a row that is no record, or `to` cannot be written.
    pub fn export(
        &self,
        format: ExportFormat,
        period: Period,
        tenant: Option<&TenantId>,
        to: &mut dyn Write,
    ) -> Result<u64, ExportError> {
        // A name in canonical bytes is never escaped, and no other object has this key.
        let wanted = tenant.map(|tenant| format!("\"tenant\":\"{tenant}\"").into_bytes());
        let wanted =
            |bytes: &[u8]| wanted.as_ref().is_none_or(|wanted| memmem::find(bytes, wanted).is_some());
        if format == ExportFormat::Csv {
            to.write_all(COLUMNS.as_bytes())?;
        }
        let mut written = 0;
        for node in self.nodes()? {
            let export = Export { file: self, format, period, node };
            let chain = |db: &Db| export.chain(db, wanted, to).map_err(Ended::Early);
            written += self.db.at_node(node, chain).map_err(|ended| match ended {
                Ended::Early(error) => error,
                Ended::Sql(error) => ExportError::Store(self.failed(error)),
            })?;
        }
        to.flush()?;
        Ok(written)
    }

    /// Shows the records of a period, oldest first, until `show` returns `false`. Streams.
    ///
    /// # Errors
    /// [`StoreError`]: the ledger cannot be read, or holds a row that is no record.
    pub fn each_record(
        &self,
        period: Period,
        mut show: impl FnMut(&StoredRecord) -> bool,
    ) -> Result<(), StoreError> {
        let mut unreadable = None;
        let mut goes_on = true;
        for node in self.nodes()? {
            let read = self.db.at_node(node, |db| {
                each_block(db, &(1..=u64::MAX), |block| {
                    for line in block.each().filter(|line| line.id_key.is_some()) {
                        // The parser's message may quote the record; it goes no further.
                        let Ok(record) = serde_json::from_slice::<AccountingRecord>(line.canonical) else {
                            unreadable = Some(line.seq);
                            return false;
                        };
                        let seq = line.seq;
                        goes_on = !period.holds(record.started) || show(&StoredRecord { seq, record });
                        if !goes_on {
                            return false;
                        }
                    }
                    true
                })
            });
            read.map_err(|error| self.failed(error))?;
            if let Some(seq) = unreadable {
                return Err(StoreError::Unreadable { ledger: self.name.clone(), seq: Some(seq) });
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}

/// Why the export of one chain has ended.
enum Ended {
    Early(ExportError),
    Sql(SqlError),
}

impl From<SqlError> for Ended {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// The export of one chain.
struct Export<'a> {
    file: &'a LedgerFile,
    format: ExportFormat,
    period: Period,
    node: i64,
}

impl Export<'_> {
    fn chain(&self, db: &Db, wanted: impl Fn(&[u8]) -> bool, to: &mut dyn Write) -> Result<u64, ExportError> {
        let sql =
            format!("SELECT {BLOCK_COLUMNS} FROM blocks, chain WHERE last_seq > base_seq ORDER BY last_seq");
        let (mut block, mut written) = (Block::default(), 0);
        let exported = db.each(&sql, &[], |row| {
            block.read(row)?;
            let mut at = hash_before(db, block.first)?;
            for line in block.each() {
                at = at.next(line.seq, SealHash::of_record(line.canonical));
                if line.id_key.is_some() && wanted(line.canonical) {
                    written += self.line(&line, at, to).map_err(Ended::Early)?;
                }
            }
            Ok::<_, Ended>(true)
        });
        match exported {
            Ok(()) => Ok(written),
            Err(Ended::Early(error)) => Err(error),
            Err(Ended::Sql(error)) => Err(self.file.failed(error).into()),
        }
    }

    /// Writes one record, if it belongs to the period; returns how many were written.
    fn line(
        &self,
        BlockLine { seq, canonical, .. }: &BlockLine<'_>,
        link: SealHash,
        to: &mut dyn Write,
    ) -> Result<u64, ExportError> {
        // The parser's message may quote the record; it goes no further.
        let record: AccountingRecord = serde_json::from_slice(canonical)
            .map_err(|_| StoreError::Unreadable { ledger: self.file.name.clone(), seq: Some(*seq) })?;
        if !self.period.holds(record.started) {
            return Ok(0);
        }
        let node = self.node;
        match self.format {
            ExportFormat::JsonLines => {
                write!(to, "{{\"hash\":\"{link}\",")?;
                if node > 0 {
                    write!(to, "\"node\":{node},")?;
                }
                to.write_all(b"\"record\":")?;
                to.write_all(canonical)?;
                writeln!(to, ",\"seq\":{seq}}}")?;
            }
            ExportFormat::Csv => writeln!(to, "{},{link},{node}", line(*seq, &record))?,
        }
        Ok(1)
    }
}

/// Returns the columns of a record but for its link and its node.
fn line(seq: u64, record: &AccountingRecord) -> String {
    let mut line = Line::default();
    let facts = record.facts.as_ref();
    let tokens = |count: TokenCount| count.get();
    line.shown(seq);
    line.text(record.id.as_str());
    line.text(&started(record.started.micros()));
    line.text(record.tenant.as_str());
    line.text(record.key.as_str());
    line.text(facts.map_or("", |facts| facts.operation.as_str()));
    line.text(facts.map_or("", |facts| facts.model.as_str()));
    line.shown(facts.is_some_and(|facts| facts.stream));
    line.text(facts.and_then(|facts| facts.task_class.as_ref()).map_or("", |class| class.as_str()));
    line.text(facts.map_or("", |facts| facts.classification.as_str()));
    line.text(record.route.as_ref().map_or("", |route| route.as_str()));
    line.text(record.primary.as_ref().map_or("", |primary| primary.as_str()));
    line.text(record.serving.as_ref().map_or("", |serving| serving.as_str()));
    line.text(record.model_version.as_ref().map_or("", |version| version.as_str()));
    line.text(record.served_model.as_ref().map_or("", |model| model.as_str()));
    line.text(record.outcome.as_str());
    line.text(record.error.map_or("", |error| error.as_str()));
    line.text(record.cache.as_str());
    line.shown(record.attempts.len());
    line.shown(tokens(record.usage.input_total()));
    line.shown(tokens(record.usage.cached_input));
    line.shown(tokens(record.usage.output_total()));
    line.shown(tokens(record.usage.reasoning));
    line.shown(record.usage.estimated);
    for money in [spent(record), record.cost, record.saved, record.reserved, record.overrun] {
        line.shown(money.pico());
    }
    let latency = &record.latency;
    for micros in [
        latency.total_us,
        latency.queue_us,
        latency.backoff_us,
        latency.upstream_first_byte_us,
        latency.upstream_rest_us,
        latency.own_us,
    ] {
        line.shown(micros);
    }
    line.text(record.client_request_id.as_ref().map_or("", |id| id.as_str()));
    line.text(facts.and_then(|facts| facts.user.as_ref()).map_or("", |user| user.as_str()));
    line.text(&facts.map_or_else(String::new, |facts| tags(&facts.tags)));
    line.0
}

/// Returns the tags in one text, `name=value` each, parted by `;`, in the order of the configuration. What would part them
/// is written as in a URL, so that they can be taken apart again.
fn tags(of: &[TagRecord]) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace(';', "%3B").replace('=', "%3D");
    let pairs =
        of.iter().map(|tag| format!("{}={}", escaped(tag.name.as_str()), escaped(tag.value.as_str())));
    pairs.collect::<Vec<_>>().join(";")
}

/// Returns an instant as RFC 3339 in UTC; as microseconds outside of the years that have a calendar.
fn started(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |at| at.to_string())
}

/// A line of comma-separated values (RFC 4180).
#[derive(Debug, Default)]
struct Line(String);

impl Line {
    fn shown(&mut self, value: impl std::fmt::Display) {
        self.text(&value.to_string());
    }

    fn text(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<i64>().is_err();
        let guarded = if formula { format!("'{text}") } else { text.to_owned() };
        if guarded.contains([',', '"']) {
            self.0.push('"');
            self.0.push_str(&guarded.replace('"', "\"\""));
            self.0.push('"');
        } else {
            self.0.push_str(&guarded);
        }
    }
}

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;
    use gw_types::{BoundedText, TagRecord};

    use super::{COLUMNS, Line, line, tags};

    #[test]
    fn every_column_has_a_name() {
        let line = line(7, &sample_record(1));
        // The link and the node are added by the caller.
        assert_eq!(line.split(',').count() + 2, COLUMNS.split(',').count());
        assert!(
            line.starts_with(
                "7,req_00000000000000000000000000000001,2030-01-01T00:00:00.001Z,wholesale,batch,"
            ),
            "{line}"
        );
    }

    #[test]
    fn tags_can_be_taken_apart_again() {
        let tag = |name, value| TagRecord { name: BoundedText::new(name), value: BoundedText::new(value) };
        assert_eq!(tags(&[]), "");
        assert_eq!(tags(&[tag("team", "red"), tag("job", "a;b=5%")]), "team=red;job=a%3Bb%3D5%25");
    }

    #[test]
    fn texts_are_quoted_and_formulas_disarmed() {
        let mut line = Line::default();
        ["a", "b,c", "say \"d\"", "=1+1", "-5", "", "@x"].into_iter().for_each(|text| line.text(text));
        assert_eq!(line.0, "a,\"b,c\",\"say \"\"d\"\"\",'=1+1,-5,,'@x");
    }
}
