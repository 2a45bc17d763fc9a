//! Plays a script: clients, gateway and providers on one thread, in an order that the seed decides, in virtual time.

use std::{
    collections::BTreeMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use gw_exec::Gateway;
use gw_types::{Clock, ManualClock, MonoTime, Random, SeededRandom, Sleep, UtcTime};
use parking_lot::Mutex;
use tokio::runtime::{self, Runtime};

use super::{
    checks::Checks,
    client::{self, Seen},
    house,
    ledger::Records,
    script::{Act, Script},
    stage::{AskLog, Stage},
};

/// Noon of 15 January 2030, UTC: no run leaves the month.
const NOON: i64 = 1_894_708_800_000_000;
/// Polls of one run, at most: more are a loop without end.
const STEPS_MAX: usize = 200_000;

/// What a run has shown.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The first invariant that was broken.
    pub(crate) fault: Option<String>,
    /// Everything that was seen, equal for equal runs; empty where nobody asked for it.
    pub(crate) digest: String,
    pub(crate) asks: usize,
    pub(crate) calls: usize,
    pub(crate) steps: usize,
    /// What of all that can happen has happened, and how often.
    pub(crate) seen: BTreeMap<&'static str, u32>,
}

/// A client on its way.
struct Task {
    number: usize,
    future: Pin<Box<dyn Future<Output = Seen>>>,
    waker: Waker,
}

/// Tasks that may go on, by number.
type Ready = Arc<Mutex<Vec<usize>>>;

struct Alarm {
    number: usize,
    ready: Ready,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock();
        if !ready.contains(&self.number) {
            ready.push(self.number);
        }
    }
}

/// The number of the one who makes events happen.
const DIRECTOR: usize = usize::MAX;

/// A run in progress.
pub(crate) struct Run {
    pub(crate) stage: Arc<Stage>,
    pub(crate) ledger: Arc<Records>,
    pub(crate) gateway: Rc<Gateway>,
    pub(crate) world: usize,
    tasks: Vec<Task>,
    /// Where work goes on whose client is gone.
    runtime: Option<Runtime>,
    ready: Ready,
    order: SeededRandom,
    next_event: usize,
    alarm: Option<Sleep>,
    lives: u64,
    steps: usize,
    /// Everything that clients have seen, if somebody wants it.
    log: Option<Vec<String>>,
}

/// Plays a script; a panic is a broken invariant too.
pub(crate) fn play(script: &Script) -> Outcome {
    play_and(script, false)
}

/// Plays a script and returns everything that was seen beside the rest.
pub(crate) fn play_and_tell(script: &Script) -> Outcome {
    play_and(script, true)
}

fn play_and(script: &Script, tells: bool) -> Outcome {
    let script = Arc::new(script.clone());
    let clock = ManualClock::new(UtcTime::from_micros(NOON));
    let stage = Stage::new(&script, &clock);
    let ledger = Records::new(&clock);
    let played = catch_unwind(AssertUnwindSafe(|| {
        let gateway = Rc::new(house::open(&stage, 0, &ledger, 0));
        let mut run = Run {
            ready: Ready::default(),
            order: SeededRandom::new(script.seed),
            tasks: Vec::new(),
            runtime: runtime(&script),
            next_event: 0,
            alarm: None,
            lives: 0,
            steps: 0,
            log: tells.then(Vec::new),
            world: 0,
            gateway,
            stage: Arc::clone(&stage),
            ledger: Arc::clone(&ledger),
        };
        let fault = run.play_to_the_end().err();
        (fault, run.steps, run.log.take())
    }));
    let (fault, steps, mut log) = match played {
        Ok(played) => played,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?");
            (Some(format!("panic: {text}")), 0, None)
        }
    };
    let (asks, calls, seen) = stage.with(|log| {
        let calls = log.asks.iter().map(|ask| ask.calls.len()).sum();
        (log.asks.len(), calls, std::mem::take(&mut log.seen))
    });
    if let Some(log) = &mut log {
        log.extend(ledger.look(|records| serde_json::to_string(records).ok()));
    }
    let digest = log.map(|log| log.join("\n")).unwrap_or_default();
    Outcome { fault, digest, asks, calls, steps, seen }
}

/// Turns of the runtime after which nothing in it goes on by itself.
const TURNS: usize = 3;

impl Run {
    fn play_to_the_end(&mut self) -> Result<(), String> {
        let mut checks = Checks::default();
        self.arm();
        loop {
            while let Some(number) = self.next_turn(&mut checks)? {
                self.steps += 1;
                if self.steps > STEPS_MAX {
                    return Err("the run does not end".to_owned());
                }
                if number == DIRECTOR {
                    self.direct(&mut checks)?;
                } else {
                    self.poll(number, &mut checks)?;
                }
                checks.step(self)?;
            }
            checks.quiet(self)?;
            if self.tasks.is_empty() && self.alarm.is_none() {
                break;
            }
            if self.stage.clock.advance_to_next_sleeper().is_none() {
                return Err("somebody waits for nothing".to_owned());
            }
        }
        checks.end(self)
    }

    /// Returns whose turn it is; what goes on without a client has turns in between, and all it wants where nobody else
    /// can go on.
    fn next_turn(&self, checks: &mut Checks) -> Result<Option<usize>, String> {
        let Some(runtime) = &self.runtime else { return Ok(self.next_ready()) };
        let turns = if self.ready.lock().is_empty() { TURNS } else { usize::from(self.order.below(2) == 0) };
        for _ in 0..turns {
            runtime.block_on(tokio::task::yield_now());
            checks.step(self)?;
        }
        Ok(self.next_ready())
    }

    /// Takes one of the tasks that may go on, by chance.
    fn next_ready(&self) -> Option<usize> {
        let mut ready = self.ready.lock();
        let at = self.order.below(ready.len() as u64);
        (!ready.is_empty()).then(|| ready.swap_remove(usize::try_from(at).unwrap()))
    }

    fn poll(&mut self, number: usize, checks: &mut Checks) -> Result<(), String> {
        let Some(at) = self.tasks.iter().position(|task| task.number == number) else { return Ok(()) };
        let is_first = self.stage.with(|log| !log.asks[number].admitted);
        let before = is_first.then(|| checks.before(self, number));
        let task = &mut self.tasks[at];
        let mut cx = Context::from_waker(&task.waker);
        let _within = self.runtime.as_ref().map(Runtime::enter);
        let Poll::Ready(seen) = task.future.as_mut().poll(&mut cx) else { return Ok(()) };
        drop(self.tasks.swap_remove(at));
        self.stage.with(|log| log.asks[number].ended = true);
        if let Some(log) = &mut self.log {
            log.push(format!("{number} {:?} {seen:?}", self.stage.clock.now()));
        }
        checks.ended(self, number, &seen, before)
    }

    /// Makes everything happen whose time has come.
    fn direct(&mut self, checks: &mut Checks) -> Result<(), String> {
        if self.alarm.take().is_none() {
            return Ok(());
        }
        let script = Arc::clone(&self.stage.script);
        let now = self.stage.clock.now();
        while let Some(event) = script.events.get(self.next_event)
            && at(event.at) <= now
        {
            self.next_event += 1;
            self.act(&event.act);
            // A crash may be next, which loses what is not seen yet.
            checks.step(self)?;
        }
        self.arm();
        Ok(())
    }

    fn arm(&mut self) {
        let Some(event) = self.stage.script.events.get(self.next_event) else { return };
        let waker = self.waker(DIRECTOR);
        let mut alarm = self.stage.clock.sleep_until(at(event.at));
        if alarm.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
        self.alarm = Some(alarm);
    }

    fn waker(&self, number: usize) -> Waker {
        Waker::from(Arc::new(Alarm { number, ready: Arc::clone(&self.ready) }))
    }

    fn act(&mut self, act: &Act) {
        let clock = &self.stage.clock;
        if let Some(name) = act.name() {
            self.stage.with(|log| log.count(name));
        }
        let after = |millis: u32| clock.now().saturating_add(Duration::from_millis(millis.into()));
        match act {
            Act::Ask(ask) => {
                let number = self.stage.enters(ask, self.world);
                let future = client::run(Rc::clone(&self.gateway), Arc::clone(&self.stage), number);
                let waker = self.waker(number);
                waker.wake_by_ref();
                self.tasks.push(Task { number, future: Box::pin(future), waker });
            }
            Act::Reload(world) => {
                // Who has not yet asked will ask under the new one.
                self.stage.with(|log| {
                    log.asks.iter_mut().filter(|ask| !ask.admitted).for_each(|ask| ask.world = *world);
                });
                self.world = *world;
                house::reload(&self.gateway, &self.stage, *world);
            }
            Act::Step(millis) => {
                clock.step_utc(Duration::from_millis(millis.unsigned_abs()), *millis < 0);
            }
            Act::Stall(millis) => self.ledger.stall_until(after(*millis)),
            Act::Places(places) => self.ledger.set_capacity(*places),
            Act::Restart => self.restart(false),
            Act::Crash => self.restart(true),
        }
    }

    fn restart(&mut self, crash: bool) {
        self.stage.with(|log| {
            // Also of those who have left a call to others.
            let may_end = |ask: &&mut AskLog| !ask.lost && (!ask.ended || ask.admitted && ask.records == 0);
            for ask in log.asks.iter_mut().filter(may_end) {
                (ask.gone, ask.lost) = (true, crash && ask.records == 0);
            }
        });
        self.ledger.cut(crash);
        for task in self.tasks.drain(..) {
            self.stage.with(|log| log.asks[task.number].ended = true);
            drop(task);
        }
        // What goes on without a client ends with its runtime.
        drop(self.runtime.take());
        self.runtime = runtime(&self.stage.script);
        self.ledger.cut(false);
        self.lives += 1;
        self.stage.with(|log| log.restarted());
        self.gateway = Rc::new(house::open(&self.stage, self.world, &self.ledger, self.lives));
    }
}

fn runtime(script: &Script) -> Option<Runtime> {
    script.tasks.then(|| runtime::Builder::new_current_thread().build().unwrap())
}

fn at(millis: u32) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(millis.into()))
}
