//! Who waits, and how: tenants and keys for a slot, deployments for their pace and their tokens in flight; and how
//! deployments count tokens.

use gw_exec::{DeploymentPolicy, KeyScope, QueuePolicy, TenantPolicy, TokenFacts};
use gw_limits::{Rate, Vocabulary};
use gw_routing::ModelPattern;
use gw_types::{DeploymentName, KeyName, TenantId};

use crate::{
    config::Config,
    file::{DeploymentEntry, KeyUse, QueueEntry, TenantEntry, VocabularyEntry},
};

/// Returns what each tenant's requests begin with.
pub(super) fn tenants(config: &Config) -> Vec<(TenantId, TenantPolicy)> {
    config.file.tenants.iter().map(|(id, tenant)| (id.clone(), tenant_policy(&tenant.value))).collect()
}

fn tenant_policy(tenant: &TenantEntry) -> TenantPolicy {
    let own: Vec<(KeyName, QueuePolicy)> = tenant
        .keys
        .iter()
        .filter(|key| key.queue != tenant.queue)
        .map(|key| (key.name.clone(), queue(key.queue)))
        .collect();
    let scoped = tenant.keys.iter().filter(|key| {
        let KeyUse { models, routes, classification_ceiling, .. } = &key.use_of;
        !models.is_empty() || !routes.is_empty() || classification_ceiling.is_some()
    });
    TenantPolicy {
        scopes: scoped.map(|key| (key.name.clone(), scope(&key.use_of))).collect(),
        default_classification: tenant.default_classification,
        residency: tenant.residency.clone(),
        queue: queue(tenant.queue),
        keys: own,
    }
}

fn scope(use_of: &KeyUse) -> KeyScope {
    KeyScope {
        // Every pattern was checked when it was read.
        models: use_of.models.iter().filter_map(|model| ModelPattern::new(model).ok()).collect(),
        routes: use_of.routes.iter().map(|route| route.value.clone()).collect(),
        classification_ceiling: use_of.classification_ceiling,
    }
}

const fn queue(entry: QueueEntry) -> QueuePolicy {
    QueuePolicy { max_queue: entry.max_queue, weight: entry.weight, priority: entry.priority }
}

/// Returns how a deployment's model counts.
fn token_facts(entry: &DeploymentEntry) -> TokenFacts {
    let default = TokenFacts::default();
    let tokens = entry.tokens;
    TokenFacts {
        vocabulary: match tokens.vocabulary {
            Some(VocabularyEntry::O200k) => Vocabulary::O200k,
            Some(VocabularyEntry::Cl100k) => Vocabulary::Cl100k,
            None => default.vocabulary,
        },
        per_message: tokens.per_message.unwrap_or(default.per_message),
        per_request: tokens.per_request.unwrap_or(default.per_request),
        per_image: tokens.per_image.unwrap_or(default.per_image),
    }
}

/// Returns what each deployment's calls wait for, and how its model counts.
pub(super) fn deployments(config: &Config) -> Vec<(DeploymentName, DeploymentPolicy)> {
    let policy = |entry: &DeploymentEntry| DeploymentPolicy {
        requests_per_second: entry
            .requests_per_second_milli
            .map(|milli| Rate::milli_per_second(milli.into())),
        in_flight_tokens: entry.in_flight_tokens,
        tokens: token_facts(entry),
    };
    config.file.deployments.iter().map(|(name, entry)| (name.clone(), policy(&entry.value))).collect()
}
