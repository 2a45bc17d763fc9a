//! What was asked, and what stands against a deployment, in words.

use std::fmt;

use gw_routing::{ExclusionReason, RoutingConfig};
use gw_types::{Capability, Deployment, Residency};
use serde_json::{Value, json};

use super::Asked;
use crate::reader::quotable;

impl Asked {
    /// Returns the request as the router sees it, for programs.
    pub(in crate::report) fn to_json(&self) -> Value {
        let needs: Vec<&str> = self.needs.iter().map(Capability::as_str).collect();
        json!({
            "model": self.model,
            "tenant": self.tenant.id.as_str(),
            "task_class": self.task_class.as_ref().map(ToString::to_string),
            "classification": self.classification.as_str(),
            "residency": super::super::texts(&self.residency),
            "needs": needs,
            "stream": self.stream,
            "input_tokens": self.input(),
            "output_tokens": self.output.map(gw_types::TokenCount::get),
            "budgeted": self.budgeted,
            "share_key": self.share_key,
        })
    }

    fn input(&self) -> u64 {
        self.estimate.max(self.at_least).get()
    }

    /// Returns what it is about a deployment that the reason names; `None`: the reason says it all.
    pub(in crate::report) fn against(
        &self,
        reason: ExclusionReason,
        deployment: &Deployment,
        routing: &RoutingConfig,
    ) -> Option<String> {
        match reason {
            ExclusionReason::Residency => {
                let is_outside = |group: &&Residency| {
                    routing.residency.get(*group).is_none_or(|regions| !regions.contains(&deployment.region))
                };
                let outside = self.residency.iter().filter(is_outside).map(|group| format!("`{group}`"));
                Some(format!(
                    "`{}` is not in {}",
                    deployment.region,
                    outside.collect::<Vec<_>>().join(" and ")
                ))
            }
            ExclusionReason::ClassificationCeiling => {
                Some(format!("it may see `{}` at most", deployment.classification_ceiling))
            }
            ExclusionReason::Capability => {
                let lacking = self.needs.without(deployment.capabilities);
                let lacking: Vec<String> = lacking.iter().map(|one| format!("`{one}`")).collect();
                Some(format!("it lacks {}", lacking.join(" and ")))
            }
            ExclusionReason::ContextWindow => Some(format!(
                "at least {} input tokens and {} output tokens, and a window of {}",
                self.at_least.get(),
                self.output.map_or(0, gw_types::TokenCount::get),
                deployment.context_window?.get()
            )),
            ExclusionReason::MaxOutput => Some(format!(
                "{} output tokens, and it answers with {} at most",
                self.output?.get(),
                deployment.max_output_tokens?.get()
            )),
            ExclusionReason::Unpriced => Some("it has no price, and a budget applies".to_owned()),
            ExclusionReason::MissingPrice => {
                Some("it has no price for audio or images, and a budget applies".to_owned())
            }
            ExclusionReason::OtherModel | ExclusionReason::Unavailable => None,
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model `{}`, tenant `{}`, {}", quotable(&self.model), self.tenant.id, self.classification)?;
        if let Some(class) = &self.task_class {
            write!(f, ", task class `{class}`")?;
        }
        self.residency.iter().try_for_each(|group| write!(f, ", residency `{group}`"))?;
        for (place, need) in self.needs.iter().enumerate() {
            write!(f, "{}`{need}`", if place == 0 { ", needs " } else { " and " })?;
        }
        if self.input() > 0 {
            write!(f, ", {} input tokens", self.input())?;
        }
        if let Some(output) = self.output {
            write!(f, ", {} output tokens", output.get())?;
        }
        f.write_str(if self.budgeted { ", under a budget" } else { "" })
    }
}
