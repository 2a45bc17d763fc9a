//! Random policies and requests over few names, so that they meet often.

#![expect(clippy::unwrap_used, reason = "a test's own names are valid")]

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use gw_routing::{
    OnUnavailable, RouteConfig, RouteMatch, RouteQuery, Router, RoutingConfig, Selection, Strategy as Order,
};
use gw_types::{
    Capability, CapabilitySet, Classification, Deployment, DeploymentTiming, Price, Pricing, Residency,
    TaskClass, TenantId, TokenCount,
};
use proptest::{collection::vec, option, prelude::*, sample::select, sample::subsequence};

use crate::oracle::Verdict;

const PATTERNS: [&str; 7] = ["gpt-4", "gpt-4.1", "claude", "gpt-*", "gpt-4*", "c*", "*"];
pub(crate) const MODELS: [&str; 6] = ["gpt-4", "gpt-4.1", "gpt-5", "claude", "codex", "llama"];
const TENANTS: [&str; 3] = ["a", "b", "c"];
const TASKS: [&str; 2] = ["chat", "reasoning"];
const REGIONS: [&str; 4] = ["uk-south", "uk-west", "west-europe", "us-east"];
/// Every group has a region of the first deployment, so that the policy is valid.
const GROUPS: [(&str, &[&str]); 3] =
    [("onshore", &["uk-south", "uk-west"]), ("eu", &["uk-south", "west-europe"]), ("south", &["uk-south"])];
/// `c` is in no group.
const TENANT_GROUPS: [(&str, &[&str]); 2] = [("gold", &["a", "b"]), ("empty", &[])];
const KEYS: [(&str, &str); 4] = [("team", "ads"), ("team", "search"), ("env", "prod"), ("env", "test")];
const CAPABILITIES: [Capability; 3] = [Capability::Streaming, Capability::Tools, Capability::Vision];

/// A request that owns what a query borrows.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) model: &'static str,
    pub(crate) tenant: TenantId,
    pub(crate) task_class: Option<TaskClass>,
    pub(crate) classification: Classification,
    pub(crate) residency: Vec<Residency>,
    pub(crate) needs: CapabilitySet,
    pub(crate) input: u64,
    pub(crate) output: Option<u64>,
    pub(crate) budgeted: bool,
    pub(crate) audio: bool,
    pub(crate) images: bool,
    pub(crate) estimate: u64,
    pub(crate) stream: bool,
    pub(crate) metadata: Vec<(&'static str, &'static str)>,
    pub(crate) share_key: Option<&'static str>,
    pub(crate) affinity: Option<u64>,
}

impl Request {
    pub(crate) fn query(&self) -> RouteQuery<'_> {
        RouteQuery {
            routes: &[],
            model: self.model,
            tenant: &self.tenant,
            task_class: self.task_class.as_ref(),
            classification: self.classification,
            residency: &self.residency,
            needs: self.needs,
            input_tokens_at_least: TokenCount::new(self.input),
            output_tokens: self.output.map(TokenCount::new),
            budgeted: self.budgeted,
            audio: self.audio,
            images: self.images,
            input_tokens_estimate: TokenCount::new(self.estimate),
            stream: self.stream,
            metadata: &self.metadata,
            share_key: self.share_key,
            affinity: self.affinity,
        }
    }
}

/// A valid policy and its deployments.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) config: RoutingConfig,
    pub(crate) deployments: Vec<Deployment>,
}

impl World {
    pub(crate) fn arcs(&self) -> Vec<Arc<Deployment>> {
        self.deployments.iter().cloned().map(Arc::new).collect()
    }

    pub(crate) fn router(&self) -> Router {
        Router::new(self.config.clone(), &self.arcs()).unwrap()
    }

    /// Returns the decision in names.
    pub(crate) fn named(&self, router: &Router, selection: &Selection) -> Verdict {
        let route = |place: usize| router.routes().nth(place).unwrap().name.clone();
        let deployment = |place: usize| self.deployments[place].name.clone();
        Verdict {
            route: selection.route.map(route),
            chain: selection.chain.iter().map(|place| deployment(*place)).collect(),
            exclusions: selection
                .exclusions
                .iter()
                .map(|one| (route(one.route), deployment(one.deployment), one.reason))
                .collect(),
            model_known: selection.model_known,
        }
    }
}

fn names<T: std::str::FromStr<Err: std::fmt::Debug>>(texts: Vec<&str>) -> Vec<T> {
    texts.into_iter().map(|text| text.parse().unwrap()).collect()
}

fn capabilities() -> impl Strategy<Value = CapabilitySet> {
    subsequence(CAPABILITIES.to_vec(), 0..=CAPABILITIES.len()).prop_map(CapabilitySet::from_iter)
}

fn pricing() -> impl Strategy<Value = Pricing> {
    let media = || option::of(Just(1));
    let price = (media(), media(), media()).prop_map(|(audio_input, audio_output, image_input)| {
        Pricing::PerToken(Box::new(Price { audio_input, audio_output, image_input, ..Price::new(1, 1) }))
    });
    prop_oneof![3 => price, 1 => Just(Pricing::Free), 1 => Just(Pricing::Unpriced)]
}

/// Small figures meet at the boundary; the largest would overflow a careless sum.
fn tokens() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0_u64..6, 1 => Just(u64::MAX)]
}

fn deployment(place: usize) -> impl Strategy<Value = Deployment> {
    let facts = (select(&REGIONS[..]), select(&Classification::ALL[..]), capabilities());
    let sizes = (option::of(tokens()), option::of(tokens()), pricing());
    (facts, sizes).prop_map(move |((region, ceiling, capabilities), (window, longest, pricing))| Deployment {
        name: format!("d{place}").parse().unwrap(),
        provider: "p".parse().unwrap(),
        model: ["gpt", "claude", "gpt"][place % 3].parse().unwrap(),
        model_version: None,
        region: if place == 0 { REGIONS[0] } else { region }.parse().unwrap(),
        classification_ceiling: ceiling,
        capabilities,
        context_window: window.map(TokenCount::new),
        max_output_tokens: longest.map(TokenCount::new),
        pricing,
        timing: DeploymentTiming::default(),
        max_attempts: NonZeroU32::MIN,
        max_concurrency: None,
    })
}

pub(crate) fn matching() -> impl Strategy<Value = RouteMatch> {
    let who = (
        vec(select(&PATTERNS[..]), 0..4),
        vec(select(&TENANTS[..]), 0..3),
        rarely(select(&["gold", "empty"][..])),
    );
    let what = (
        vec(select(&TASKS[..]), 0..2),
        vec(select(&Classification::ALL[..]), 0..3),
        rarely(select(&Classification::ALL[..])),
        rarely(select(&["onshore", "eu", "south"][..])),
        rarely(select(&CAPABILITIES[..])),
    );
    let more = (
        rarely(0_u64..4),
        rarely(3_u64..7),
        rarely(any::<bool>()),
        rarely(select(&KEYS[..])),
        rarely(share()),
    );
    (who, what, more).prop_map(
        |((models, tenants, group), what, (least, most, streaming, key, share_percent))| {
            let (tasks, classifications, classification_at_most, residency, need) = what;
            RouteMatch {
                models: names(models),
                task_classes: names(tasks),
                classifications,
                classification_at_most,
                tenants: names(tenants),
                tenant_groups: names(group.into_iter().collect()),
                residency: names(residency.into_iter().collect()),
                needs: need.into_iter().collect(),
                input_tokens_at_least: least.map(TokenCount::new),
                input_tokens_at_most: most.map(TokenCount::new),
                streaming,
                metadata: key
                    .map(|(key, value)| (key.to_owned(), vec![value.to_owned()]))
                    .into_iter()
                    .collect(),
                share_percent,
            }
        },
    )
}

fn rarely<T: std::fmt::Debug>(what: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    option::weighted(0.2, what)
}

fn share() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0), Just(100), 20_u8..80]
}

/// Routes over deployments `d0` to `d{count - 1}`; the names do not follow the order of generation.
fn routes(count: usize) -> impl Strategy<Value = Vec<RouteConfig>> {
    let all: Vec<usize> = (0..count).collect();
    let chain = subsequence(all, 1..=count).prop_shuffle();
    let limits = (select(&Order::ALL[..]), rarely(Just(OnUnavailable::Fail)), any::<bool>(), any::<bool>());
    let route = (any::<u8>(), -1_i32..2, matching(), chain, limits);
    vec(route, 0..8).prop_map(|routes| {
        let mut used = BTreeSet::new();
        routes
            .into_iter()
            .filter(|(salt, ..)| used.insert(*salt))
            .map(|(salt, priority, matches, chain, (strategy, fail, allow_fallback, allow_other_models))| {
                RouteConfig {
                    priority,
                    matches,
                    strategy,
                    on_unavailable: fail.unwrap_or_default(),
                    allow_fallback,
                    allow_other_models,
                    ..RouteConfig::new(
                        format!("r{salt}").parse().unwrap(),
                        chain.iter().map(|place| format!("d{place}").parse().unwrap()).collect(),
                    )
                }
            })
            .collect()
    })
}

/// Returns valid policies of up to 8 routes over up to 6 deployments.
pub(crate) fn worlds() -> impl Strategy<Value = World> {
    (1_usize..=6)
        .prop_flat_map(|count| ((0..count).map(deployment).collect::<Vec<_>>(), routes(count)))
        .prop_map(|(deployments, routes)| {
            let group = |(name, regions): (&str, &[&str])| {
                (name.parse().unwrap(), names(regions.to_vec()).into_iter().collect())
            };
            let tenants = |(name, tenants): (&str, &[&str])| {
                (name.parse().unwrap(), names(tenants.to_vec()).into_iter().collect())
            };
            let config = RoutingConfig {
                routes,
                residency: GROUPS.map(group).into(),
                tenant_groups: TENANT_GROUPS.map(tenants).into(),
                ..RoutingConfig::default()
            };
            World { config, deployments }
        })
}

/// Returns requests, some of which demand a group that does not exist.
pub(crate) fn requests() -> impl Strategy<Value = Request> {
    let who = (select(&MODELS[..]), select(&TENANTS[..]), option::of(select(&TASKS[..])));
    let group = prop_oneof![8 => select(&["onshore", "eu", "south"][..]), 1 => Just("nowhere")];
    let demands = (select(&Classification::ALL[..]), vec(group, 0..3), capabilities());
    let sizes = (tokens(), option::of(tokens()), any::<[bool; 4]>());
    let more = (
        0_u64..7,
        vec(select(&KEYS[..]), 0..3),
        option::of(select(&["u1", "u2", "u3", "u4"][..])),
        option::of(any::<u64>()),
    );
    (who, demands, sizes, more).prop_map(
        |((model, tenant, task), (classification, residency, needs), (input, output, flags), more)| Request {
            model,
            tenant: tenant.parse().unwrap(),
            task_class: task.map(|task| task.parse().unwrap()),
            classification,
            residency: names(residency),
            needs,
            input,
            output,
            budgeted: flags[0],
            audio: flags[1],
            images: flags[2],
            stream: flags[3],
            estimate: more.0,
            metadata: more.1,
            share_key: more.2,
            affinity: more.3,
        },
    )
}
