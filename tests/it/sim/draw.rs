//! A script from a seed.

use gw_types::{Random, SeededRandom};

use super::script::{Act, Ask, Control, Deployment, Does, Event, Play, Script, Tenant, Told, World};

/// Requests of one run.
const ASKS: (u64, u64) = (4, 28);
/// The time in which clients arrive, in milliseconds.
const SPANS: [u64; 4] = [50, 1_000, 5_000, 40_000];
/// Streams after which it is known how soon a deployment begins, and the time between them in milliseconds.
const WARM_ASKS: u32 = 60;
const WARM_MS: u32 = 20;

/// Draws numbers.
struct Dice(SeededRandom);

impl Dice {
    fn below(&self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// From `low` to `high`, both included.
    fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn is(&self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }

    fn one<T: Copy>(&self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    fn some<T>(&self, of_hundred: u64, draw: impl FnOnce(&Self) -> T) -> Option<T> {
        self.is(of_hundred).then(|| draw(self))
    }

    fn u32(&self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(low.into(), high.into())).unwrap()
    }
}

/// Returns the script of a seed: the same for the same one.
pub(crate) fn script(seed: u64) -> Script {
    let dice = Dice(SeededRandom::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5157));
    let first = world(&dice);
    let mut worlds = vec![first];
    if dice.is(30) {
        worlds.push(changed(&dice, &worlds[0]));
    }
    let calm = dice.is(15);
    let span = dice.one(&SPANS);
    let mut events: Vec<Event> = (0..dice.between(ASKS.0, ASKS.1))
        .map(|_| event(&dice, span, |dice| Act::Ask(ask(dice, &worlds[0], calm))))
        .collect();
    let disturbances = if calm { 0 } else { dice.below(4) };
    for _ in 0..disturbances {
        let event = event(&dice, span, |dice| disturbance(dice, worlds.len()));
        events.push(event);
    }
    events.sort_by_key(|event| event.at);
    let mut script = Script { seed, worlds, events, shares: false, tasks: false };
    // By dice of their own, so that what a seed meant before they came it means still.
    let dice = Dice(SeededRandom::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xc4ed));
    if dice.is(20) {
        several_credentials(&dice, &mut script);
    }
    if dice.is(15) {
        hedged(&dice, &mut script);
    }
    let dice = Dice(SeededRandom::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7417));
    if dice.is(25) {
        shared(&dice, &mut script);
    }
    if dice.is(25) {
        keyed(&dice, &mut script);
    }
    script
}

/// Repeats requests while they are in flight, so that equal ones share a call.
fn shared(dice: &Dice, script: &mut Script) {
    (script.shares, script.tasks) = (true, dice.is(70));
    script.worlds.iter_mut().for_each(|world| world.cache = true);
    repeated(dice, script, &[0, 0, 1, 30, 300], |dice, ask| {
        ask.cache = Control::Default;
        let mut twin = ask.clone();
        twin.leaves_after = dice.some(15, |dice| dice.one(&[0, 1, 40, 500]));
        twin.leaves_after_polls = dice.some(10, |dice| dice.u32(1, 6));
        twin.deadline = dice.some(30, |dice| dice.one(&[150, 1_000, 20_000]));
        twin.reads_every = if dice.is(15) { dice.one(&[5, 300]) } else { 0 };
        twin
    });
}

/// Names idempotency keys, and uses them again: in flight, later, with another body, after a restart.
fn keyed(dice: &Dice, script: &mut Script) {
    let mut last = 0;
    repeated(dice, script, &[0, 1, 30, 500, 3_000, 20_000], |dice, ask| {
        if dice.is(70) || ask.key.is_none() {
            (ask.key, last) = (Some(last), (last + 1) % 3);
        }
        let mut twin = ask.clone();
        if dice.is(25) {
            twin.text = (twin.text + 1) % 3;
        }
        twin.leaves_after = dice.some(10, |dice| dice.one(&[0, 20, 500]));
        twin.plays = (0..dice.between(1, 2)).map(|_| play(dice, false)).collect();
        twin
    });
    if dice.is(50) {
        let until = script.events.last().map_or(0, |event| event.at);
        let act = if dice.is(50) { Act::Restart } else { Act::Crash };
        script.events.push(Event { at: dice.u32(0, until), act });
        script.events.sort_by_key(|event| event.at);
    }
}

/// Puts behind some of the requests one to three more that are made from them.
fn repeated(dice: &Dice, script: &mut Script, after: &[u32], mut twin: impl FnMut(&Dice, &mut Ask) -> Ask) {
    let mut more = Vec::new();
    for event in &mut script.events {
        let Act::Ask(ask) = &mut event.act else { continue };
        if dice.is(35) {
            more.extend((0..dice.between(1, 3)).map(|_| {
                let at = event.at + dice.one(after);
                Event { at, act: Act::Ask(twin(dice, ask)) }
            }));
        }
    }
    script.events.append(&mut more);
    script.events.sort_by_key(|event| event.at);
}

/// Gives deployments several credentials, in every configuration alike.
fn several_credentials(dice: &Dice, script: &mut Script) {
    for deployment in 0..script.worlds[0].deployments.len() {
        let credentials = dice.one(&[0, 2, 2, 3]);
        for world in &mut script.worlds {
            world.deployments[deployment].credentials = credentials;
        }
    }
    for event in &mut script.events {
        let Act::Ask(ask) = &mut event.act else { continue };
        for play in &mut ask.plays {
            if dice.is(20) {
                play.does = dice.one(&[Does::BadKey, Does::Limits(0), Does::Limits(60), Does::NoQuota]);
            }
        }
    }
}

/// Streams of a first tenant without limits, until it is known how soon the deployments begin; then all the rest.
fn hedged(dice: &Dice, script: &mut Script) {
    if script.worlds[0].deployments.len() < 2 {
        return;
    }
    for world in &mut script.worlds {
        (world.hedge, world.attempts) = (true, world.attempts.max(2));
        world.tenants[0] = Tenant::default();
    }
    script.events.iter_mut().for_each(|event| event.at += WARM_MS * WARM_ASKS);
    let warm = (0..WARM_ASKS).map(|at| {
        let plays = vec![Play { after: dice.one(&[0, 1, 1, 5]), ..Play::default() }];
        let ask = Ask { stream: true, cache: Control::NoStore, plays, ..Ask::default() };
        Event { at: at * WARM_MS, act: Act::Ask(ask) }
    });
    let mut events: Vec<Event> = warm.collect();
    events.append(&mut script.events);
    script.events = events;
    for event in &mut script.events[WARM_ASKS as usize..] {
        let Act::Ask(ask) = &mut event.act else { continue };
        (ask.tenant, ask.stream) = if dice.is(60) { (0, true) } else { (ask.tenant, ask.stream) };
        if let Some(play) = ask.plays.first_mut().filter(|_| dice.is(50)) {
            play.after = dice.one(&[30, 300, 1_500]);
        }
    }
}

fn event(dice: &Dice, span: u64, act: impl FnOnce(&Dice) -> Act) -> Event {
    Event { at: u32::try_from(dice.below(span)).unwrap(), act: act(dice) }
}

fn disturbance(dice: &Dice, worlds: usize) -> Act {
    match dice.below(10) {
        0..3 => Act::Reload(usize::try_from(dice.below(worlds as u64)).unwrap()),
        3..5 => Act::Step(dice.one(&[-7_200_000, -1_500, -1, 1_500, 90_000, 86_400_000])),
        5..7 => Act::Stall(dice.u32(10, 3_000)),
        7 => Act::Places(dice.u32(1, 6)),
        8 => Act::Restart,
        _ => Act::Crash,
    }
}

fn world(dice: &Dice) -> World {
    let deployments: Vec<Deployment> = (0..dice.between(1, 3)).map(|_| deployment(dice)).collect();
    let mut tenants: Vec<Tenant> = (0..dice.between(1, 3)).map(|_| tenant(dice)).collect();
    let pool = dice.one(&[6, 12, 100]);
    let mut left = pool - 1;
    for tenant in &mut tenants {
        let most = tenant.slots.unwrap_or(u32::MAX).min(3).min(left);
        tenant.reserved_slots = if dice.is(40) { dice.u32(0, most) } else { 0 };
        left -= tenant.reserved_slots;
    }
    World {
        chain: (0..deployments.len()).collect(),
        tenants,
        deployments,
        attempts: dice.one(&[1, 2, 3, 3, 3, 5]),
        cache: dice.is(50),
        pool,
        default_deadline_ms: dice.one(&[1_000, 3_000, 10_000, 120_000]),
        hedge: false,
    }
}

fn tenant(dice: &Dice) -> Tenant {
    Tenant {
        requests: dice.some(25, |dice| dice.between(1, 12)),
        tokens: dice.some(25, |dice| dice.between(60, 3_000)),
        slots: dice.some(50, |dice| dice.u32(1, 6)),
        reserved_slots: 0,
        queue: dice.one(&[0, 0, 1, 8]),
        // A request costs some 20 to 400 micro-USD.
        budget: dice.some(60, |dice| dice.one(&[150, 1_000, 5_000, 1_000_000])),
    }
}

fn deployment(dice: &Dice) -> Deployment {
    let has_lane = dice.is(15);
    Deployment {
        attempts: dice.one(&[1, 1, 2, 3]),
        slots: dice.some(30, |dice| dice.u32(1, 4)),
        expected_ms: dice.one(&[10, 200, 900]),
        min_ms: dice.one(&[10, 100, 300]),
        timeout_ms: dice.one(&[400, 2_000, 20_000]),
        idle_ms: dice.one(&[500, 5_000]),
        pace: dice.some(if has_lane { 70 } else { 0 }, |dice| dice.u32(1, 20)),
        tokens_in_flight: dice.some(if has_lane { 50 } else { 0 }, |dice| dice.between(100, 2_000)),
        credentials: 0,
    }
}

/// Changes what a reload may change; names and budgets stay.
fn changed(dice: &Dice, world: &World) -> World {
    let mut world = world.clone();
    world.chain.reverse();
    world.attempts = dice.one(&[1, 2, 3]);
    world.cache = dice.is(50);
    for tenant in &mut world.tenants {
        tenant.requests = dice.some(25, |dice| dice.between(1, 12));
        tenant.slots = dice.some(50, |dice| dice.u32(3, 6));
        tenant.queue = dice.one(&[0, 4]);
    }
    for deployment in &mut world.deployments {
        deployment.attempts = dice.one(&[1, 2]);
        deployment.slots = dice.some(30, |dice| dice.u32(1, 4));
    }
    world
}

fn ask(dice: &Dice, world: &World, calm: bool) -> Ask {
    Ask {
        tenant: usize::try_from(dice.below(world.tenants.len() as u64)).unwrap(),
        text: u8::try_from(dice.below(3)).unwrap(),
        stream: dice.is(50),
        side_effecting: dice.is(15),
        max_tokens: dice.some(50, |dice| dice.between(1, 60)),
        deadline: dice.some(40, |dice| dice.one(&[150, 1_000, 3_000, 20_000])),
        cache: dice.one(&[
            Control::Default,
            Control::Default,
            Control::Default,
            Control::Default,
            Control::NoStore,
            Control::NoCache,
            Control::OnlyIfCached,
        ]),
        key: None,
        leaves_after_polls: dice.some(if calm { 0 } else { 10 }, |dice| dice.u32(1, 12)),
        leaves_after: dice.some(if calm { 0 } else { 10 }, |dice| dice.one(&[0, 1, 20, 200, 2_000])),
        reads_every: if dice.is(10) { dice.one(&[5, 300]) } else { 0 },
        plays: (0..dice.between(1, 4)).map(|_| play(dice, calm)).collect(),
    }
}

fn play(dice: &Dice, calm: bool) -> Play {
    let fails = !calm && dice.is(55);
    Play {
        does: if fails { dice.one(&FAULTS) } else { Does::Answers },
        after: dice.one(&[0, 0, 1, 30, 300, 1_500]),
        words: dice.one(&[0, 1, 3, 12, 40]),
        pause: dice.one(&[0, 0, 1, 40, 450]),
        usage: dice.one(&[
            Told::Truth,
            Told::Truth,
            Told::Truth,
            Told::Nothing,
            Told::Zero,
            Told::Huge,
            Told::TenTimes,
        ]),
        twice: !calm && dice.is(5),
        pieces: if dice.is(10) { dice.one(&[1, 7, 100]) } else { 0 },
    }
}

const FAULTS: [Does; 26] = [
    Does::RunsOut,
    Does::IsFiltered,
    Does::Refuses,
    Does::ResetsBefore,
    Does::ResetsAfter,
    Does::BadRequest,
    Does::Filters,
    Does::Filters,
    Does::TooLong,
    Does::BadKey,
    Does::Missing,
    Does::Limits(0),
    Does::Limits(1),
    Does::Limits(1),
    Does::Limits(60),
    Does::NoQuota,
    Does::Fails,
    Does::Fails,
    Does::Overloaded(1),
    Does::Hangs,
    Does::KeepsAlive,
    Does::Page,
    Does::Cuts,
    Does::Garbles,
    Does::Errs,
    Does::Stalls,
];
