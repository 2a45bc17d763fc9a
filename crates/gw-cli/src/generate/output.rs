//! The output: one line a result, appended at once, so that a kill loses at most what is in work.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use gw_exec::SeenIds;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use crate::arguments::GenerateOptions;

/// Where results go.
#[derive(Debug)]
pub(super) struct Output {
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    File(Results),
}

/// A file of results.
#[derive(Debug)]
struct Results {
    file: Arc<File>,
    path: PathBuf,
    /// Bytes up to the end of the last whole line.
    good: u64,
    /// Whether it is on a disk, to which it can be brought.
    on_disk: bool,
    /// Whether something was written since that was last begun.
    dirty: bool,
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl To {
    fn file(file: File, path: &Path, good: u64, on_disk: bool) -> Self {
        let (file, path) = (Arc::new(file), path.to_owned());
        Self::File(Results { file, path, good, on_disk, dirty: false, syncing: None })
    }
}

impl Output {
    /// Opens the output; returns with it the ids that have a result already and are not asked again.
    pub(super) fn open(options: &GenerateOptions) -> Result<(Self, SeenIds), String> {
        let path = &options.output;
        if path == Path::new("-") {
            if options.resume {
                return Err("error: `--resume` needs a file to go on with; `--output -` is none".to_owned());
            }
            return Ok((Self { to: To::Stdout }, SeenIds::default()));
        }
        let name = path.display();
        let unwritable = |error: io::Error| format!("error: `{name}` cannot be written: {error}");
        // A device or a named pipe has nothing to go on with, and nothing in it is overwritten.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(unwritable)?;
            return Ok((Self { to: To::file(file, path, 0, false) }, SeenIds::default()));
        }
        let mut open = OpenOptions::new();
        open.read(true).append(true).create(options.resume).create_new(!options.resume);
        let mut file = match open.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(format!(
                    "error: `{name}` exists; go on with it with `--resume`, or name another file"
                ));
            }
            Err(error) => return Err(unwritable(error)),
        };
        lock(&file, path)?;
        let mut finished = SeenIds::default();
        if options.resume && scan(&file, path, &mut finished)? == Found::Rest {
            file = rewrite(&file, path).map_err(unwritable)?;
            lock(&file, path)?;
        }
        let good = file.seek(SeekFrom::End(0)).map_err(unwritable)?;
        Ok((Self { to: To::file(file, path, good, true) }, finished))
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self.to, To::Stdout)
    }

    /// Writes one line, whole or not at all as far as the system allows.
    pub(super) fn append(&mut self, line: &[u8]) -> Result<(), String> {
        match &mut self.to {
            To::Stdout => {
                let mut out = io::stdout().lock();
                let written = out.write_all(line).and_then(|()| out.flush());
                written.map_err(|error| format!("standard output cannot be written: {error}"))
            }
            To::File(Results { file, path, good, dirty, .. }) => {
                if let Err(error) = (&**file).write_all(line) {
                    // What was written of the line is taken back, as far as that works; else `--resume` does.
                    drop(file.set_len(*good));
                    return Err(format!("`{}` cannot be written: {error}", path.display()));
                }
                *good += u64::try_from(line.len()).unwrap_or(u64::MAX);
                *dirty = true;
                Ok(())
            }
        }
    }

    /// Has what was written brought to the disk beside the work, if something was and that is not being done already.
    pub(super) fn sync_soon(&mut self) {
        let To::File(Results { file, dirty, syncing, on_disk, .. }) = &mut self.to else { return };
        if *dirty && *on_disk && syncing.as_ref().is_none_or(JoinHandle::is_finished) {
            *dirty = false;
            let file = Arc::clone(file);
            *syncing = Some(tokio::task::spawn_blocking(move || file.sync_data()));
        }
    }

    /// Brings everything to the disk.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let To::File(Results { file, path, on_disk: true, .. }) = &self.to else { return Ok(()) };
        file.sync_all()
            .map_err(|error| format!("`{}` cannot be brought to the disk: {error}", path.display()))
    }
}

fn lock(file: &File, path: &Path) -> Result<(), String> {
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(format!("error: another run writes `{}`", path.display()))
        }
        // A file system without locks is no reason not to work.
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => Ok(()),
    }
}

/// What of a result says whether its item is finished, in either form.
#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    custom_id: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

impl Probe<'_> {
    /// Returns the id, and whether its item was answered; `None` if the line is no result.
    fn verdict(line: &[u8]) -> Option<(String, bool)> {
        let probe: Probe<'_> = serde_json::from_slice(line).ok()?;
        match (probe.request_id, probe.custom_id) {
            (Some(id), None) => Some((id, probe.status? == "ok")),
            (None, Some(id)) => Some((id, probe.response.is_some_and(|response| response.get() != "null"))),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

/// What a file of results holds.
#[derive(PartialEq, Eq)]
enum Found {
    /// One result for each id, all of them answers.
    Answers,
    /// Something to be left out as well: failures, a second result, a torn last line.
    Rest,
}

fn scan(file: &File, path: &Path, finished: &mut SeenIds) -> Result<Found, String> {
    let name = path.display();
    let mut found = Found::Answers;
    let mut number = 0_u64;
    let complaint = each_line(file, |line, whole| {
        number += 1;
        match Probe::verdict(line) {
            Some((id, true)) if whole => {
                if !finished.insert(&id) {
                    found = Found::Rest;
                }
            }
            Some((_, false)) => found = Found::Rest,
            Some((_, true)) | None if !whole => found = Found::Rest,
            Some((_, true)) | None => return Some(number),
        }
        None
    });
    match complaint.map_err(|error| format!("error: `{name}` cannot be read: {error}"))? {
        None => Ok(found),
        Some(line) => Err(format!(
            "error: `{name}:{line}` is no result; `--resume` goes on with a file that `gw generate` has written"
        )),
    }
}

/// Writes a file anew with one answer for each id and nothing else, and puts it in the place of the old one in one step.
fn rewrite(file: &File, path: &Path) -> io::Result<File> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".rewritten");
    let beside = PathBuf::from(beside);
    let new = File::create(&beside)?;
    let mut out = BufWriter::new(&new);
    let mut kept = SeenIds::default();
    let mut failed = None;
    each_line(file, |line, whole| {
        let keep = whole && Probe::verdict(line).is_some_and(|(id, answered)| answered && kept.insert(&id));
        failed = if keep { out.write_all(line).err() } else { None };
        failed.is_some().then_some(0)
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    out.flush()?;
    drop(out);
    new.sync_all()?;
    std::fs::rename(&beside, path)?;
    OpenOptions::new().read(true).append(true).open(path)
}

/// Calls with every line that is not blank, and whether it has an end; stops where something is returned.
fn each_line<T>(file: &File, mut each: impl FnMut(&[u8], bool) -> Option<T>) -> io::Result<Option<T>> {
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Some(found) = each(&line, line.ends_with(b"\n")) {
            return Ok(Some(found));
        }
    }
}
