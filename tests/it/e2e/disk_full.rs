//! A disk that is full under the ledger: the real program, a file system of its own.

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use gw_stores::{Expected, LedgerFile};
use gw_testkit::{FakeProvider, FaultScript, ok};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::{Gw, Toml, chat, eventually, metric, run_gw};

/// How long a client waits for an answer whose record cannot be stored before it leaves.
const PATIENCE: Duration = Duration::from_secs(5);

/// A small file system in memory. Taken away on drop.
struct Disk(TempDir);

impl Disk {
    /// Mounts one; `None` where this process may not.
    fn of(size: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mounted = run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "gw-disk"], folder.path());
        mounted.then_some(Self(folder))
    }

    /// Makes it larger.
    fn grow(&self, size: &str) {
        assert!(run(&["mount", "-o", &format!("remount,size={size}")], self.0.path()));
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("gw.db")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(&["umount", "-l"], self.0.path());
    }
}

fn run(command: &[&str], at: &Path) -> bool {
    let output = Command::new(command[0]).args(&command[1..]).arg(at).output();
    output.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_full_disk_turns_requests_away_and_loses_no_record_of_an_answer() {
    let Some(disk) = Disk::of("3m") else {
        let _told = writeln!(std::io::stderr(), "skipped: this process may not mount a file system");
        return;
    };
    let provider = FakeProvider::start(FaultScript::of(ok("fine"))).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 1_000_000_000, window = \"day\" }")
        .store(&format!("\"sqlite:{}\"", disk.path().display()));
    let gw = Gw::start(&toml).await;
    // What else fills the disk.
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![0_u8; 64 << 10]).unwrap();
    fill(&ballast);
    let mut answered = BTreeSet::new();
    let ask = || gw.chat("a", &chat("m", "hello")).header("x-gw-deadline-ms", "2000").send();
    // Who is asking when the disk gets full has no answer before its record is safe, which the disk does not let happen:
    // it is told so when its time is up.
    loop {
        let answer = timeout(PATIENCE, ask()).await.expect("an answer within the deadline");
        if answer.status != 200 {
            assert_eq!((answer.status, &answer.error()["code"]), (503, &"overloaded".into()));
            break;
        }
        answered.insert(answer.header("x-request-id").to_owned());
        assert!(answered.len() < 20_000, "the disk is never full");
    }
    let refused = ask().await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.error()["code"], "overloaded");
    assert!(refused.headers.contains_key("retry-after") || refused.headers.contains_key("retry-after-ms"));
    let calls = provider.calls().len();
    for _ in 0..5 {
        assert_eq!(ask().await.status, 503);
    }
    assert_eq!(provider.calls().len(), calls, "who is turned away calls no provider");
    eventually("the loss", || async {
        (metric(&gw.metrics().await, "gw_ledger_failing") == 1).then_some(())
    })
    .await;
    assert_eq!(gw.admin("/readyz").send().await.status, 503);

    disk.grow("64m");
    eventually("the return", || async { (gw.admin("/readyz").send().await.status == 200).then_some(()) })
        .await;
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answered.insert(answer.header("x-request-id").to_owned());
    let folder = gw.stop().await;
    let output = run_gw(
        folder.path(),
        &["ledger", "export", "--store", &format!("sqlite:{}", disk.path().display())],
        &[],
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let stored: BTreeSet<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["record"]["id"].as_str().unwrap().to_owned())
        .collect();
    let lost: Vec<_> = answered.difference(&stored).collect();
    assert!(lost.is_empty(), "{} of {} answers have no record", lost.len(), answered.len());
    let verified = LedgerFile::open(&disk.path()).unwrap().verify(&Expected::default());
    assert!(verified.unwrap().is_whole());
}

/// Writes until nothing more goes in, and gives a little back.
fn fill(path: &Path) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    while file.write_all(&[0; 4 << 10]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(96 << 10)).unwrap();
}
