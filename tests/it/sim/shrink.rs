//! From a failing script to a short one that fails alike.

use super::{
    run::play,
    script::{Act, Ask, Event, Play, Script},
};

/// Runs that a shrink may take.
const RUNS_MAX: usize = 3_000;

/// Returns a shorter script that breaks the same invariant.
pub(crate) fn shrink(script: &Script, fault: &str) -> Script {
    let mut search = Search { wanted: name(fault).to_owned(), runs: 0 };
    let mut best = script.clone();
    loop {
        let before = best.clone();
        search.fewer_events(&mut best);
        search.plainer_asks(&mut best);
        search.plainer_worlds(&mut best);
        if best == before || search.runs > RUNS_MAX {
            return best;
        }
    }
}

/// Returns the part of a fault that says which rule was broken, without numbers.
fn name(fault: &str) -> &str {
    let end = fault.find(['(', '{']).unwrap_or(fault.len());
    let end = fault[..end].find(" t").unwrap_or(end);
    fault[..end].trim()
}

struct Search {
    wanted: String,
    runs: usize,
}

impl Search {
    /// Keeps a change if the script still fails alike.
    fn keep(&mut self, best: &mut Script, change: impl FnOnce(&mut Script)) -> bool {
        let mut next = best.clone();
        change(&mut next);
        if next == *best || self.runs > RUNS_MAX {
            return false;
        }
        self.runs += 1;
        let fails = play(&next).fault.is_some_and(|fault| name(&fault) == self.wanted);
        if fails {
            *best = next;
        }
        fails
    }

    /// Takes out ever smaller stretches.
    fn fewer_events(&mut self, best: &mut Script) {
        let mut size = best.events.len();
        while size > 0 {
            let mut at = 0;
            while at < best.events.len() {
                let end = (at + size).min(best.events.len());
                if !self.keep(best, |script| drop(script.events.drain(at..end))) {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    fn plainer_asks(&mut self, best: &mut Script) {
        const CHANGES: [fn(&mut Ask); 11] = [
            |ask| ask.key = None,
            |ask| ask.plays.truncate(1),
            |ask| ask.leaves_after = None,
            |ask| ask.leaves_after_polls = None,
            |ask| ask.max_tokens = None,
            |ask| ask.deadline = None,
            |ask| ask.reads_every = 0,
            |ask| ask.cache = super::script::Control::Default,
            |ask| ask.stream = false,
            |ask| ask.side_effecting = false,
            |ask| ask.text = 0,
        ];
        const PLAYS: [fn(&mut Play); 6] = [
            |play| play.after = 0,
            |play| play.pause = 0,
            |play| play.words = 0,
            |play| play.usage = super::script::Told::Truth,
            |play| (play.twice, play.pieces) = (false, 0),
            |play| *play = Play::default(),
        ];
        for at in 0..best.events.len() {
            for change in CHANGES {
                self.keep(best, |script| change_ask(&mut script.events[at], change));
            }
            for (play, change) in (0..4).flat_map(|play| PLAYS.map(|change| (play, change))) {
                let change = |ask: &mut Ask| ask.plays.get_mut(play).map(change).unwrap_or_default();
                self.keep(best, |script| change_ask(&mut script.events[at], change));
            }
            self.keep(best, |script| script.events[at].at = 0);
        }
    }

    fn plainer_worlds(&mut self, best: &mut Script) {
        for world in 0..best.worlds.len() {
            for tenant in 0..best.worlds[world].tenants.len() {
                self.keep(best, |script| script.worlds[world].tenants[tenant] = Default::default());
                self.keep(best, |script| script.worlds[world].tenants[tenant].requests = None);
                self.keep(best, |script| script.worlds[world].tenants[tenant].tokens = None);
                self.keep(best, |script| script.worlds[world].tenants[tenant].slots = None);
            }
            for deployment in 0..best.worlds[world].deployments.len() {
                self.keep(best, |script| script.worlds[world].deployments[deployment].slots = None);
                self.keep(best, |script| script.worlds[world].deployments[deployment].pace = None);
                self.keep(best, |script| {
                    script.worlds[world].deployments[deployment].tokens_in_flight = None;
                });
            }
            self.keep(best, |script| script.worlds[world].cache = false);
        }
        self.keep(best, |script| script.tasks = false);
        self.keep(best, |script| script.shares = false);
        let reloads = |event: &Event| matches!(event.act, Act::Reload(_));
        if !best.events.iter().any(reloads) {
            self.keep(best, |script| script.worlds.truncate(1));
        }
    }
}

fn change_ask(event: &mut Event, change: impl FnOnce(&mut Ask)) {
    if let Act::Ask(ask) = &mut event.act {
        change(ask);
    }
}
