//! Which fault is next.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

use super::SeenCall;
use crate::{FakeChat, Fault, FaultScript, script::Wanted};

type Handler = Box<dyn Fn(&SeenCall) -> Fault + Send + Sync>;

/// The source of a provider's faults.
pub(super) enum Faults {
    Script(Mutex<Lists>),
    Handler(Handler),
}

#[derive(Debug)]
pub(super) struct Lists {
    common: VecDeque<Fault>,
    by_model: BTreeMap<String, VecDeque<Fault>>,
}

impl Faults {
    pub(super) fn script(script: FaultScript) -> Self {
        let by_model = script.by_model.into_iter().map(|(model, faults)| (model, faults.into())).collect();
        Self::Script(Mutex::new(Lists { common: script.faults.into(), by_model }))
    }

    pub(super) fn handler(handler: impl Fn(&SeenCall) -> Fault + Send + Sync + 'static) -> Self {
        Self::Handler(Box::new(handler))
    }

    /// Takes the fault for a call.
    pub(super) fn next(&self, call: &SeenCall, wanted: Option<&Wanted>) -> Fault {
        let lists = match self {
            Self::Handler(handler) => return handler(call),
            Self::Script(lists) => lists,
        };
        let mut lists = lists.lock();
        let Lists { common, by_model } = &mut *lists;
        let own = wanted.and_then(|wanted| by_model.get_mut(&wanted.model));
        let list = own.unwrap_or(common);
        let fault = if list.len() > 1 { list.pop_front() } else { list.front().cloned() };
        fault.unwrap_or_else(|| FakeChat::default().into())
    }

    /// Takes a `RefuseConnection` if it is next for all models; returns whether it was.
    pub(super) fn take_refusal(&self) -> bool {
        let Self::Script(lists) = self else { return false };
        let mut lists = lists.lock();
        let refuses = lists.common.front() == Some(&Fault::RefuseConnection);
        // A last refusal is taken too: it repeats by itself, since nobody listens.
        refuses && lists.common.pop_front().is_some()
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Script(lists) => f.debug_tuple("Script").field(lists).finish(),
            Self::Handler(_) => f.write_str("Handler"),
        }
    }
}
