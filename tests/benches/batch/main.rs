//! What a batch costs: `gw generate` beside a bare client loop and beside the ideal, in one interleaved run.
//!
//! `cargo xtask bench --batch [--items N] [--rounds N]`. The endpoint is a process of its own; it answers after 10 ms, or at
//! once. The ideal is the number of items times the time that the endpoint has held an answer back, over 64 workers.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench measures and prints"
)]

mod bare;
mod measured;
#[path = "../shared/upstream.rs"]
mod upstream;

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use self::measured::Took;

/// Workers of every loop.
const WORKERS: usize = 64;
/// How long the slow endpoint holds an answer back.
const DELAY: Duration = Duration::from_millis(10);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["role-endpoint", millis] => {
            runtime.block_on(upstream::serve(Duration::from_millis(millis.parse().unwrap())));
        }
        ["role-bare", endpoint, input, output] => {
            runtime.block_on(bare::run(endpoint, input, output, WORKERS));
        }
        options => measure(option(options, "--items", 10_000), option(options, "--rounds", 5)),
    }
}

fn option(options: &[&str], name: &str, default: usize) -> usize {
    let at = options.iter().position(|option| *option == name);
    at.map_or(default, |at| options.get(at + 1).and_then(|text| text.parse().ok()).unwrap())
}

fn measure(items: usize, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("tasks.jsonl");
    fs::write(&input, lines(items)).unwrap();
    println!("| endpoint | loop | items/s | x ideal time | CPU us/item | x bare | resident MiB at most |");
    println!("|---|---|---|---|---|---|---|");
    for delay in [DELAY, Duration::ZERO] {
        let endpoint = Endpoint::start(delay);
        let (mut bare, mut gw) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let output =
                |name: &str| folder.path().join(format!("{name}-{}-{round}.jsonl", delay.as_millis()));
            bare.push(run(&endpoint, items, bare_loop(&endpoint.address, &input, &output("bare"))));
            let kept = output("gw");
            gw.push(run(&endpoint, items, generate(&endpoint.address, &input, &kept)));
            assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), items, "one result an item");
        }
        print("bare client loop", delay, items, &bare, &bare);
        print("gw generate", delay, items, &gw, &bare);
    }
}

fn lines(items: usize) -> String {
    let text = "The batch is measured with a prompt of about half a kilobyte. ".repeat(8);
    let line = |item| format!("{{\"request_id\":\"item-{item:07}\",\"prompt\":\"{text}Number {item}.\"}}\n");
    (0..items).map(line).collect()
}

/// One run, and how long it would have taken at best.
struct Run {
    took: Took,
    ideal: Option<Duration>,
}

fn run(endpoint: &Endpoint, items: usize, command: Command) -> Run {
    endpoint.held();
    let took = measured::run(command);
    let ideal = Duration::from_micros(endpoint.held() * items as u64 / WORKERS as u64);
    Run { took, ideal: Some(ideal).filter(|ideal| !ideal.is_zero()) }
}

fn bare_loop(address: &str, input: &Path, output: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["role-bare", address]).arg(input).arg(output);
    command
}

fn generate(address: &str, input: &Path, output: &Path) -> Command {
    let mut command = Command::new(binary());
    command.arg("generate").arg("--input").arg(input).arg("--output").arg(output);
    command.args(["--base-url", &format!("http://{address}/v1"), "--model", "bench-model"]);
    command.args(["--max-concurrency", &WORKERS.to_string(), "--quiet"]);
    command
}

/// The binary beside the profile that this bench was built into.
fn binary() -> PathBuf {
    let own = env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("gw")
}

fn print(name: &str, delay: Duration, items: usize, runs: &[Run], bare: &[Run]) {
    let items = items as f64;
    let cpu = |run: &Run| run.took.cpu.as_secs_f64() * 1e6 / items;
    let ideal: Vec<f64> =
        runs.iter().filter_map(|run| Some(run.took.wall.as_secs_f64() / run.ideal?.as_secs_f64())).collect();
    println!(
        "| {} ms | {name} | {} | {} | {} | {:.2} | {:.0} |",
        delay.as_millis(),
        spread(&runs.iter().map(|run| items / run.took.wall.as_secs_f64()).collect::<Vec<_>>(), 0),
        if ideal.is_empty() { "-".to_owned() } else { spread(&ideal, 2) },
        spread(&runs.iter().map(cpu).collect::<Vec<_>>(), 0),
        median(&runs.iter().zip(bare).map(|(own, bare)| cpu(own) / cpu(bare)).collect::<Vec<_>>()),
        runs.iter().map(|run| run.took.peak_kib).max().unwrap_or_default() as f64 / 1_024.0,
    );
}

fn spread(values: &[f64], digits: usize) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{:.digits$} ({least:.digits$}-{most:.digits$})", median(values))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The endpoint's process; killed on drop.
struct Endpoint {
    child: Child,
    address: String,
}

impl Endpoint {
    fn start(delay: Duration) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["role-endpoint", &delay.as_millis().to_string()]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// Returns the mean time that answers were held back since the last look, in microseconds.
    fn held(&self) -> u64 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = vec![0; 256];
        let read = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        answer.rsplit_once("\r\n\r\n").unwrap().1.parse().unwrap()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
