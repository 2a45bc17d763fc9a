//! What is decided in each partition: thresholds and verifiers, their labels, and the report of all of them.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use gw_types::{DeploymentName, RequestId, RouteName, TenantId};
use parking_lot::Mutex;

use crate::{
    InvalidationScope, Partition, SemanticMatch,
    key::DigestState,
    verify::{
        EntryVerifier, EntryVerifierConfig, Sample, Verdict, Verifier, VerifierConfig, VerifierReport,
        VerifierState,
    },
};

/// Says how a would-be hit is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SemanticDecision {
    /// What reaches the threshold is served.
    #[default]
    Fixed,
    /// What a [`Verifier`] of the partition serves: a bound on wrong answers per hit.
    PerHit(VerifierConfig),
    /// What an [`EntryVerifier`] of the partition serves: a bound on wrong answers among all requests.
    PerEntry(EntryVerifierConfig),
}

/// A would-be hit that waits for its label.
#[derive(Clone, Debug)]
pub struct Unlabelled {
    partition: Partition,
    told: Told,
}

#[derive(Clone, Debug)]
enum Told {
    Sample(Sample),
    Entry { entry: u64, score_milli: u32 },
}

/// What a partition has decided and learnt, at a moment.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PartitionReport {
    /// Whose.
    pub tenant: TenantId,
    /// The route.
    pub route: RouteName,
    /// The primary deployment.
    pub primary: DeploymentName,
    /// The epoch of the route's knowledge.
    pub epoch: u64,
    /// Entries that are held, expired ones that nobody met since included.
    pub entries: usize,
    /// What it does: `fixed`, `per_entry`, `shadow`, `serving`, `off`.
    pub state: &'static str,
    /// Why.
    pub why: &'static str,
    /// Requests that were looked up.
    pub lookups: u64,
    /// Would-be hits among them.
    pub candidates: u64,
    /// Hits that were served.
    pub served: u64,
    /// Hits among lookups, in thousandths.
    pub hit_milli: u64,
    /// Labels that came, in all.
    pub labelled: u64,
    /// Wrong ones among them.
    pub labelled_wrong: u64,
    /// What a verifier of hits knows beyond that.
    pub verifier: Option<VerifierReport>,
}

/// Labels that a judge gave and somebody checked afterwards: the judge's own error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct JudgeReport {
    /// Labels of the judge that feedback speaks of.
    pub checked: u64,
    /// Those that feedback contradicts.
    pub wrong: u64,
}

/// The decisions of every partition. Bounded: the partition begun longest ago goes first.
///
/// One lock for each partition, held for a decision, a label (which may be a fit: milliseconds) or a report.
#[derive(Debug)]
pub struct Decisions {
    partitions_max: usize,
    partitions: Mutex<Partitions>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Partitions {
    held: HashMap<Partition, Arc<Mutex<Decider>>, DigestState>,
    order: VecDeque<Partition>,
}

/// Would-be hits by the request that met them.
#[derive(Debug, Default)]
struct Waiting {
    held: HashMap<RequestId, Label>,
    order: VecDeque<RequestId>,
    judge: JudgeReport,
}

#[derive(Debug)]
enum Label {
    Awaited(Unlabelled),
    /// A judge has said so.
    Judged(bool),
}

#[derive(Debug)]
struct Decider {
    kind: Kind,
    lookups: u64,
    candidates: u64,
    served: u64,
    labelled: u64,
    labelled_wrong: u64,
}

#[derive(Debug)]
enum Kind {
    Fixed,
    PerHit(Box<Verifier>),
    PerEntry(Box<EntryVerifier>),
}

impl Decisions {
    /// Would-be hits that wait for a label, at most; the oldest is forgotten first.
    pub const WAITING_MAX: usize = 10_000;

    /// Returns no decisions, for so many partitions at most.
    pub fn new(partitions_max: usize) -> Self {
        Self { partitions_max, partitions: Mutex::default(), waiting: Mutex::default() }
    }

    /// Decides about what a look-up has found, and returns what its label is given with. The draw is 64 random bits.
    ///
    /// A served hit has something to label too: whoever knows better may say so.
    pub fn decide(
        &self,
        partition: &Partition,
        policy: SemanticDecision,
        found: Option<&SemanticMatch>,
        draw: u64,
    ) -> (Verdict, Option<Unlabelled>) {
        let decider = self.decider(partition, policy);
        let (verdict, told) = decider.lock().decide(found, draw);
        (verdict, told.map(|told| Unlabelled { partition: partition.clone(), told }))
    }

    /// Gives a label.
    pub fn label(&self, would_be: &Unlabelled, right: bool) {
        let decider = self.partitions.lock().held.get(&would_be.partition).cloned();
        if let Some(decider) = decider {
            decider.lock().label(&would_be.told, right);
        }
    }

    /// Keeps a would-be hit until somebody says whether it was right, by the request that met it.
    pub fn expect(&self, request: RequestId, would_be: Unlabelled) {
        let mut waiting = self.waiting.lock();
        if waiting.order.len() >= Self::WAITING_MAX
            && let Some(oldest) = waiting.order.pop_front()
        {
            waiting.held.remove(&oldest);
        }
        waiting.order.push_back(request.clone());
        waiting.held.insert(request, Label::Awaited(would_be));
    }

    /// Gives the label of a judge, which feedback may still check. Returns whether one was wanted.
    pub fn judged(&self, request: &RequestId, right: bool) -> bool {
        self.give(request, right, Some(Label::Judged(right)))
    }

    /// Gives the label that feedback says; where a judge has been first, it only counts whether the judge was right.
    /// Returns whether the request is known.
    pub fn feedback(&self, request: &RequestId, right: bool) -> bool {
        self.give(request, right, None)
    }

    fn give(&self, request: &RequestId, right: bool, leaves: Option<Label>) -> bool {
        let mut waiting = self.waiting.lock();
        let Some(label) = waiting.held.remove(request) else { return false };
        if let Some(leaves) = leaves {
            waiting.held.insert(request.clone(), leaves);
        } else {
            waiting.order.retain(|known| known != request);
        }
        match label {
            Label::Awaited(would_be) => {
                drop(waiting);
                self.label(&would_be, right);
            }
            Label::Judged(said) => {
                waiting.judge.checked += 1;
                waiting.judge.wrong += u64::from(said != right);
            }
        }
        true
    }

    /// Returns what every partition has decided, by tenant, route and primary; `entries` says how many it holds.
    pub fn report(&self, entries: impl Fn(&Partition) -> usize) -> Vec<PartitionReport> {
        let all: Vec<_> = {
            let partitions = self.partitions.lock();
            partitions.held.iter().map(|(name, decider)| (name.clone(), Arc::clone(decider))).collect()
        };
        let report = |(partition, decider): (Partition, Arc<Mutex<Decider>>)| {
            let entries = entries(&partition);
            decider.lock().report(&partition, entries)
        };
        let mut reports: Vec<PartitionReport> = all.into_iter().map(report).collect();
        let by = |report: &PartitionReport| {
            (report.tenant.clone(), report.route.clone(), report.primary.clone(), report.epoch)
        };
        reports.sort_by_cached_key(by);
        reports
    }

    /// Returns how often the judge's labels were contradicted.
    pub fn judge(&self) -> JudgeReport {
        self.waiting.lock().judge
    }

    /// Forgets what the partitions of the scope have learnt.
    pub fn invalidate(&self, scope: &InvalidationScope) {
        let mut partitions = self.partitions.lock();
        partitions.held.retain(|partition, _| !scope.fits(partition.origin()));
        partitions.order.retain(|partition| !scope.fits(partition.origin()));
    }

    fn decider(&self, partition: &Partition, policy: SemanticDecision) -> Arc<Mutex<Decider>> {
        let mut partitions = self.partitions.lock();
        if let Some(decider) = partitions.held.get(partition) {
            return Arc::clone(decider);
        }
        while partitions.held.len() >= self.partitions_max.max(1) {
            let Some(oldest) = partitions.order.pop_front() else { break };
            partitions.held.remove(&oldest);
        }
        let decider = Arc::new(Mutex::new(Decider::new(policy)));
        partitions.order.push_back(partition.clone());
        partitions.held.insert(partition.clone(), Arc::clone(&decider));
        decider
    }
}

impl Decider {
    fn new(policy: SemanticDecision) -> Self {
        let kind = match policy {
            SemanticDecision::Fixed => Kind::Fixed,
            SemanticDecision::PerHit(config) => Kind::PerHit(Box::new(Verifier::new(config))),
            SemanticDecision::PerEntry(config) => Kind::PerEntry(Box::new(EntryVerifier::new(config))),
        };
        Self { kind, lookups: 0, candidates: 0, served: 0, labelled: 0, labelled_wrong: 0 }
    }

    fn decide(&mut self, found: Option<&SemanticMatch>, draw: u64) -> (Verdict, Option<Told>) {
        self.lookups += 1;
        let Some(found) = found else {
            if let Kind::PerHit(verifier) = &mut self.kind {
                verifier.miss();
            }
            return (Verdict::Off, None);
        };
        self.candidates += 1;
        let (verdict, told) = match &mut self.kind {
            Kind::Fixed => (Verdict::Serve, None),
            Kind::PerHit(verifier) => {
                let decision = verifier.decide(&found.features, draw);
                let sample = match decision.verdict {
                    Verdict::Serve => Some(verifier.served(&found.features, draw)),
                    Verdict::Explore | Verdict::Shadow | Verdict::Off => decision.sample,
                };
                (decision.verdict, sample.map(Told::Sample))
            }
            Kind::PerEntry(verifier) => {
                let verdict = verifier.decide(found.entry, found.score_milli, draw);
                (verdict, Some(Told::Entry { entry: found.entry, score_milli: found.score_milli }))
            }
        };
        self.served += u64::from(verdict == Verdict::Serve);
        (verdict, told)
    }

    fn label(&mut self, told: &Told, right: bool) {
        self.labelled += 1;
        self.labelled_wrong += u64::from(!right);
        match (&mut self.kind, told) {
            (Kind::PerHit(verifier), Told::Sample(sample)) => verifier.label(sample, right),
            (Kind::PerEntry(verifier), Told::Entry { entry, score_milli }) => {
                verifier.label(*entry, *score_milli, right);
            }
            // The policy of a partition is part of its key: neither meets the other's samples.
            (Kind::Fixed | Kind::PerHit(_) | Kind::PerEntry(_), Told::Sample(_) | Told::Entry { .. }) => {}
        }
    }

    fn report(&self, partition: &Partition, entries: usize) -> PartitionReport {
        let (state, why, verifier) = match &self.kind {
            Kind::Fixed => ("fixed", "a threshold decides", None),
            Kind::PerEntry(_) => ("per_entry", "each entry decides by its own labels", None),
            Kind::PerHit(verifier) => {
                let report = verifier.report();
                let state = match report.state {
                    VerifierState::Shadow => "shadow",
                    VerifierState::Serving => "serving",
                    VerifierState::Off => "off",
                };
                (state, report.why.as_str(), Some(report))
            }
        };
        let origin = partition.origin();
        PartitionReport {
            tenant: origin.tenant.clone(),
            route: origin.route.clone(),
            primary: partition.primary().clone(),
            epoch: origin.epoch,
            entries,
            state,
            why,
            lookups: self.lookups,
            candidates: self.candidates,
            served: self.served,
            hit_milli: self.served.saturating_mul(1_000).checked_div(self.lookups).unwrap_or(0),
            labelled: self.labelled,
            labelled_wrong: self.labelled_wrong,
            verifier,
        }
    }
}
