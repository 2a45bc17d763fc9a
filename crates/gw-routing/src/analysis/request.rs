//! Requests that stand for their class, and the class in words.

use std::fmt;

use gw_types::{
    Capability, CapabilitySet, Classification, KeyName, ModelName, Residency, RouteName, TaskClass, TenantId,
    TokenCount,
};

use crate::RouteQuery;

/// A request that stands for a class: what is true of it is true of every request of the class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The model asked for.
    pub model: ModelName,
    /// The tenant.
    pub tenant: TenantId,
    /// The key, where keys of the tenant have budgets of their own and this is one of them.
    pub key: Option<KeyName>,
    /// The task class.
    pub task_class: Option<TaskClass>,
    /// The classification.
    pub classification: Classification,
    /// The groups of regions demanded, the tenant's floor first.
    pub residency: Vec<Residency>,
    /// What the request needs; streaming, vision and audio say that it streams, has images, has audio.
    pub needs: CapabilitySet,
    /// The estimate of the input.
    pub input_tokens_estimate: TokenCount,
    /// The input that it has at least.
    pub input_tokens_at_least: TokenCount,
    /// The output bound.
    pub output_tokens: Option<TokenCount>,
    /// The metadata.
    pub metadata: Vec<(String, String)>,
    /// A key that is in the shares it should be in and in no other. `None` where no share matters, or where a search of
    /// bounded length found none.
    pub share_key: Option<String>,
    /// Whether a budget holds for the request and keeps some deployment from requests.
    pub budgeted: bool,
}

impl Witness {
    /// Asks something about the request as the router sees it.
    pub fn ask<R>(&self, ask: impl FnOnce(&RouteQuery<'_>) -> R) -> R {
        let metadata: Vec<(&str, &str)> =
            self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        ask(&RouteQuery {
            task_class: self.task_class.as_ref(),
            residency: &self.residency,
            needs: self.needs,
            input_tokens_at_least: self.input_tokens_at_least,
            input_tokens_estimate: self.input_tokens_estimate,
            output_tokens: self.output_tokens,
            budgeted: self.budgeted,
            audio: self.needs.contains(Capability::Audio),
            images: self.needs.contains(Capability::Vision),
            stream: self.needs.contains(Capability::Streaming),
            metadata: &metadata,
            share_key: self.share_key.as_deref(),
            ..RouteQuery::new(self.model.as_str(), &self.tenant, self.classification)
        })
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model `{}`, tenant `{}`, {}", self.model, self.tenant, self.classification)?;
        if let Some(key) = &self.key {
            write!(f, ", key `{key}`")?;
        }
        if let Some(class) = &self.task_class {
            write!(f, ", task class `{class}`")?;
        }
        for group in &self.residency {
            write!(f, ", residency `{group}`")?;
        }
        write_needs(f, self.needs)?;
        let input = self.input_tokens_estimate.max(self.input_tokens_at_least);
        if !input.is_zero() {
            write!(f, ", {} input tokens", input.get())?;
        }
        if let Some(output) = self.output_tokens {
            write!(f, ", {} output tokens", output.get())?;
        }
        for (key, value) in &self.metadata {
            write!(f, ", metadata `{key}` = `{value}`")?;
        }
        self.share_key.as_ref().map_or(Ok(()), |key| write!(f, ", share key `{key}`"))
    }
}

fn write_needs(f: &mut fmt::Formatter<'_>, needs: CapabilitySet) -> fmt::Result {
    // Every conversation needs `chat`: saying so each time tells nothing.
    for (place, need) in needs.iter().filter(|need| *need != Capability::Chat).enumerate() {
        write!(f, "{}`{need}`", if place == 0 { ", needs " } else { " and " })?;
    }
    Ok(())
}

/// A class of requests: what its members have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestClass {
    /// The models: names, and beginnings that end in `*` for all names that nothing else lists.
    pub models: Vec<String>,
    /// The tenants.
    pub tenants: Vec<TenantId>,
    /// The keys of tenants of which only requests with some keys are in the class; of other tenants it is every key, or
    /// every key without a budget of its own.
    pub keys: Vec<(TenantId, KeyName)>,
    /// The classifications, lowest first.
    pub classifications: Vec<Classification>,
    /// The groups demanded beyond the tenant's floor; `None`: no further one.
    pub residency: Vec<Option<Residency>>,
    /// The task classes; `None`: none, or one that no route names.
    pub task_classes: Vec<Option<TaskClass>>,
    /// The shares that the request is in or not.
    pub shares: Vec<(RouteName, bool)>,
    /// A request of the class. What it needs, its sizes and its metadata are the least of the class.
    pub example: Witness,
}

impl fmt::Display for RequestClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenants: Vec<&str> = self.tenants.iter().map(TenantId::as_str).collect();
        let classes: Vec<&str> = self.classifications.iter().map(|one| one.as_str()).collect();
        write!(f, "{} | {} | {}", self.models.join(" "), tenants.join(" "), classes.join(" "))?;
        for (tenant, key) in &self.keys {
            write!(f, ", key {tenant}/{key}")?;
        }
        if self.residency != [None] {
            let group =
                |group: &Option<Residency>| group.as_ref().map_or("-".to_owned(), ToString::to_string);
            let groups: Vec<String> = self.residency.iter().map(group).collect();
            write!(f, ", residency {}", groups.join(" "))?;
        }
        if self.task_classes != [None] {
            let task = |task: &Option<TaskClass>| task.as_ref().map_or("-".to_owned(), ToString::to_string);
            let tasks: Vec<String> = self.task_classes.iter().map(task).collect();
            write!(f, ", task class {}", tasks.join(" "))?;
        }
        write_needs(f, self.example.needs)?;
        let input = self.example.input_tokens_estimate.max(self.example.input_tokens_at_least);
        if !input.is_zero() {
            write!(f, ", input from {}", input.get())?;
        }
        if let Some(output) = self.example.output_tokens {
            write!(f, ", output from {}", output.get())?;
        }
        for (key, value) in &self.example.metadata {
            write!(f, ", metadata {key}={value}")?;
        }
        for (route, is_in) in &self.shares {
            write!(f, ", {} the share of {route}", if *is_in { "in" } else { "outside" })?;
        }
        Ok(())
    }
}
