//! The input: JSON Lines or CSV, read ahead by a bounded number of items.

mod ahead;
mod csv;
mod lines;

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt};
use gw_config::{GenerationForm, InvalidGeneration, read_generation};
use gw_exec::{GenerationRequest, SeenIds};
use parking_lot::Mutex;

use self::{
    ahead::{Receiver, Sender},
    csv::Csv,
    lines::Lines,
};
use crate::arguments::GenerateOptions;

/// Messages about bad lines that wait to be printed; more are counted only.
const NOTES_MAX: usize = 100;

/// Where items come from.
pub(super) struct Source {
    reader: Box<dyn BufRead + Send>,
    name: String,
    /// Bytes of the file; `None`: nobody knows.
    bytes: Option<u64>,
    csv: bool,
}

/// Opens the input.
pub(super) fn open(options: &GenerateOptions) -> Result<Source, String> {
    let path = &options.input;
    let csv = options.csv || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if path == Path::new("-") {
        let reader = Box::new(BufReader::new(io::stdin()));
        return Ok(Source { reader, name: "standard input".to_owned(), bytes: None, csv });
    }
    let name = path.display().to_string();
    let unreadable = |error: io::Error| format!("error: `{name}` cannot be read: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(format!("error: `{name}` is a folder; a file of JSON Lines or CSV is expected"));
    }
    if about.is_file() && about.len() == 0 {
        return Err(format!("error: `{name}` is empty; one item a line is expected"));
    }
    let bytes = about.is_file().then_some(about.len());
    Ok(Source { reader: Box::new(BufReader::new(file)), name, bytes, csv })
}

/// What is known of the input so far.
#[derive(Debug)]
pub(super) struct Intake {
    name: String,
    bytes: Option<u64>,
    read_bytes: AtomicU64,
    items: AtomicU64,
    skipped: AtomicU64,
    bad: AtomicU64,
    ended: AtomicBool,
    /// The form of the first item, which all others must have.
    form: OnceLock<GenerationForm>,
    notes: Mutex<VecDeque<String>>,
    failure: Mutex<Option<String>>,
}

impl Intake {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn form(&self) -> GenerationForm {
        self.form.get().copied().unwrap_or(GenerationForm::Gw)
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(super) fn bad(&self) -> u64 {
        self.bad.load(Ordering::Relaxed)
    }

    /// Returns the number of items that are going to be asked: exact once all is read, before that by the file's size.
    pub(super) fn expected_items(&self) -> Option<u64> {
        let items = self.items.load(Ordering::Relaxed);
        if self.ended.load(Ordering::Relaxed) {
            return Some(items);
        }
        let (bytes, read) = (self.bytes?, self.read_bytes.load(Ordering::Relaxed));
        let estimate = u128::from(items) * u128::from(bytes) / u128::from(read.max(1));
        (read > 0).then(|| u64::try_from(estimate).unwrap_or(u64::MAX).max(items))
    }

    /// Returns why the input ended before its end.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Returns what is to be said about lines, once.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().drain(..).collect()
    }

    /// Notes a line that is no item; returns whether reading ends there.
    fn refuse(&self, line: u64, what: &str, strict: bool) -> bool {
        self.bad.fetch_add(1, Ordering::Relaxed);
        let text = format!("{}:{line}: {what}", self.name);
        if strict {
            self.fail(text);
            return true;
        }
        let mut notes = self.notes.lock();
        if notes.len() < NOTES_MAX {
            notes.push_back(format!("warning: {text}; the line is left out"));
        }
        false
    }

    fn fail(&self, why: String) {
        self.failure.lock().get_or_insert(why);
    }
}

/// The items, as a batch takes them.
pub(super) struct Requests(Receiver<GenerationRequest>);

impl Stream for Requests {
    type Item = GenerationRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl Requests {
    /// Starts to read, in a thread of its own. `finished` are the ids that are not asked again.
    pub(super) fn start(source: Source, options: &GenerateOptions, finished: SeenIds) -> (Self, Arc<Intake>) {
        let (sender, receiver) = ahead::queue();
        let intake = Arc::new(Intake {
            name: source.name.clone(),
            bytes: source.bytes,
            read_bytes: AtomicU64::new(0),
            items: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            form: OnceLock::new(),
            notes: Mutex::default(),
            failure: Mutex::default(),
        });
        let reading = Reading {
            intake: Arc::clone(&intake),
            strict: options.strict,
            model: options.model.clone(),
            finished,
            seen: SeenIds::default(),
            sender,
        };
        // The handle is not awaited: the queue's end says that it is done.
        drop(tokio::task::spawn_blocking(move || reading.run(source)));
        (Self(receiver), intake)
    }
}

/// One line or one row.
pub(super) struct Entry {
    /// The number of its (first) line, from 1.
    line: u64,
    /// Bytes of the input so far.
    bytes: u64,
    /// The item in gw's or OpenAI's form, or what is wrong with the line.
    text: Result<Vec<u8>, String>,
}

struct Reading {
    intake: Arc<Intake>,
    strict: bool,
    model: Option<String>,
    finished: SeenIds,
    seen: SeenIds,
    sender: Sender<GenerationRequest>,
}

impl Reading {
    fn run(mut self, source: Source) {
        let Source { reader, csv, .. } = source;
        let entries: Box<dyn Iterator<Item = io::Result<Entry>>> =
            if csv { Box::new(Csv::new(reader)) } else { Box::new(Lines::new(reader)) };
        for entry in entries {
            match entry {
                Ok(entry) => {
                    if !self.take(entry) {
                        break;
                    }
                }
                Err(error) => {
                    self.intake.fail(format!("`{}` cannot be read to its end: {error}", self.intake.name));
                    break;
                }
            }
        }
        self.intake.ended.store(true, Ordering::Relaxed);
    }

    /// Hands an item on; returns whether more are wanted.
    fn take(&mut self, Entry { line, bytes, text }: Entry) -> bool {
        self.intake.read_bytes.store(bytes, Ordering::Relaxed);
        let read = text.and_then(|text| {
            let said = |error: InvalidGeneration| error.to_string();
            read_generation(&text, self.model.as_deref()).map_err(said)
        });
        let (request, form) = match read {
            Ok(read) => read,
            Err(what) => return !self.intake.refuse(line, &what, self.strict),
        };
        if *self.intake.form.get_or_init(|| form) != form {
            return !self.intake.refuse(line, "the line has another form than the first one", self.strict);
        }
        if !self.seen.insert(&request.request_id) {
            return !self.intake.refuse(line, "an earlier line has the same id", self.strict);
        }
        if self.finished.contains(&request.request_id) {
            self.intake.skipped.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.intake.items.fetch_add(1, Ordering::Relaxed);
        let bytes = request.request.body.len();
        self.sender.send(request, bytes)
    }
}

/// Bytes of one line or field, at most.
const LINE_BYTES_MAX: usize = 33_554_432;

/// Reads up to and with the next line end into `line`, but no more than is allowed; the rest of a longer one is passed over.
/// Returns how many bytes of the input it was, and whether all of them are in `line`.
fn read_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut read =
        u64::try_from(Read::take(&mut *reader, limit).read_until(b'\n', line)?).unwrap_or(u64::MAX);
    if read < limit || line.last() == Some(&b'\n') {
        return Ok((read, true));
    }
    loop {
        let mut rest = Vec::new();
        let more = Read::take(&mut *reader, limit).read_until(b'\n', &mut rest)?;
        read += u64::try_from(more).unwrap_or(u64::MAX);
        if more == 0 || rest.last() == Some(&b'\n') {
            return Ok((read, false));
        }
    }
}
