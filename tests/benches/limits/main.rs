//! Whether limits hold: a load on the real binary that does everything which loses money or slots elsewhere.
//!
//! `cargo xtask bench --limits [--seconds N] [--clients N]`. Clients send plain and streamed requests, and one in ten
//! leaves before its answer is whole; a provider in a process of its own fails one call in five and ignores
//! `max_tokens` in one answer of three; the tenant has a hard budget, and gets a little more whenever it is spent, so that
//! the whole run is one at the limit. Then everything must agree to the pico-USD; exits with 1 where it does not.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench measures, prints and fails loudly"
)]

mod books;
mod clients;
mod gateway;
mod traffic;

use std::{
    env,
    io::{self, BufRead, BufReader, Read},
    process::{Child, ChildStdout, Command, ExitCode, Stdio},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use gw_testkit::FakeProvider;

use self::{books::Books, clients::Seen, gateway::Gateway};

/// What the tenant may spend at first, and what it gets each time that it is spent, in micro-USD: some 500 answers.
const STEP_MICROS: u64 = 100_000;
/// How often it is looked whether the budget is spent.
const LOOK_EVERY: Duration = Duration::from_millis(500);

struct Plan {
    clients: u64,
    seconds: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["role-provider"] => {
            runtime.block_on(serve_provider());
            ExitCode::SUCCESS
        }
        options => runtime.block_on(prove(&plan(options))),
    }
}

fn plan(options: &[&str]) -> Plan {
    let value = |name: &str, default| {
        let at = options.iter().position(|option| *option == name);
        at.map_or(default, |at| options.get(at + 1).and_then(|text| text.parse().ok()).unwrap())
    };
    Plan { clients: value("--clients", 200), seconds: value("--seconds", 60) }
}

/// Prints its address, plays until nobody holds its input any more, and prints how many calls there were.
async fn serve_provider() {
    let provider = FakeProvider::start_with(traffic::answer).await.unwrap();
    println!("{}", provider.base_url());
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    println!("{}", provider.calls().last().map_or(0, |call| call.number));
}

/// The provider in a process of its own.
struct Provider {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Provider {
    fn start() -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.arg("role-provider").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        Self { child, says }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Ends it and returns how many calls it has seen.
    fn end(mut self) -> u64 {
        drop(self.child.stdin.take());
        let calls = self.line().parse().unwrap();
        self.child.wait().unwrap();
        calls
    }
}

async fn prove(plan: &Plan) -> ExitCode {
    let mut provider = Provider::start();
    let gateway = Gateway::start(&provider.line(), STEP_MICROS).await;
    let seen = Arc::new(Seen::default());
    let clients: Vec<_> = (0..plan.clients)
        .map(|_| tokio::spawn(clients::run(gateway.address.clone(), Arc::clone(&seen))))
        .collect();
    let raises = spend_again_and_again(&gateway, &seen, plan).await;
    seen.end();
    for client in clients {
        client.await.unwrap();
    }
    let mut books = gateway.settled().await;
    gateway.stop(&mut books);
    let calls = provider.end();
    println!("{} clients, {} s; limit raised {raises} times", plan.clients, plan.seconds);
    println!("clients saw: {}\n{books}\ncalls at the provider  {calls:>22}", seen.in_words());
    verdict(&books, calls)
}

/// Raises the limit each time that every client was refused once on average; returns how often.
async fn spend_again_and_again(gateway: &Gateway, seen: &Seen, plan: &Plan) -> u64 {
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let (mut raises, mut refused_before) = (0, 0);
    while Instant::now() < end {
        tokio::time::sleep(LOOK_EVERY).await;
        let refused = seen.refused.load(Ordering::Relaxed);
        if refused - refused_before >= plan.clients {
            raises += 1;
            gateway.set_limit(STEP_MICROS * (raises + 1)).await;
            refused_before = seen.refused.load(Ordering::Relaxed);
        }
    }
    raises
}

fn verdict(books: &Books, calls: u64) -> ExitCode {
    let mut broken = books.broken(calls);
    for outcome in ["ok", "refused", "capped", "cancelled", "failed"] {
        if books.count(outcome) == 0 {
            broken.push(format!("no request ended as {outcome}: the run proves less than it should"));
        }
    }
    if books.overrun() == 0 {
        broken.push("no answer was longer than was reserved: the run proves less than it should".to_owned());
    }
    if broken.is_empty() {
        println!("holds: every budget, every slot, every record");
        return ExitCode::SUCCESS;
    }
    broken.iter().for_each(|broken| println!("broken: {broken}"));
    ExitCode::FAILURE
}
