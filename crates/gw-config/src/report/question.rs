//! A request to explain, and what is asked of the router for it.

mod words;

use bytes::Bytes;
use gw_dialects::{anthropic, completions, embeddings, metadata, openai, responses};
use gw_exec::{input_at_least, input_estimate};
use gw_routing::{ModelPattern, RouteQuery, Router, analysis::TenantFacts};
use gw_types::{
    AccountingRecord, Capability, CapabilitySet, Classification, ErrorKind, GatewayError, InvalidName,
    KeyName, Metadata, Operation, RequestFacts, Residency, RouteName, TaskClass, TokenCount,
};

use super::unknown;
use crate::{Checked, file::KeyUse, nearest, reader::quotable};

/// A request to explain, as it is typed. Names are checked by [`Checked::explain`].
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The model asked for.
    pub model: String,
    /// The tenant; `None`: the only one.
    pub tenant: Option<String>,
    /// The key, for what its own budget keeps from its requests; `None`: one without a budget of its own.
    pub key: Option<String>,
    /// The classification; `None`: the tenant's default.
    pub classification: Option<String>,
    /// The groups of regions demanded beside the tenant's own.
    pub residency: Vec<String>,
    /// The task class.
    pub task_class: Option<String>,
    /// What the deployment must be able to do, beside chat and, for a stream, streaming.
    pub needs: Vec<String>,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The size of the input, in tokens; a body's own is not below it.
    pub input_tokens: u64,
    /// The output bound that the request names.
    pub output_tokens: Option<u64>,
    /// The request's metadata.
    pub metadata: Vec<(String, String)>,
    /// The key that shares go by.
    pub share_key: Option<String>,
    /// What a body says; see [`Question::with_body`].
    pub body: Option<BodyFacts>,
}

/// What a body says of a request. Holds no text of it.
#[derive(Clone, Debug)]
pub struct BodyFacts {
    at_least: TokenCount,
    estimate: TokenCount,
    needs: CapabilitySet,
    images: bool,
    audio: bool,
}

impl Question {
    /// Returns the question with what a request's body says: model, stream, needs, sizes, metadata and end user.
    ///
    /// # Errors
    /// What is wrong with the body.
    pub fn with_body(mut self, operation: Operation, body: &[u8]) -> Result<Self, String> {
        let bytes = Bytes::copy_from_slice(body);
        let facts = read(operation, &bytes).map_err(|error| wrong(&error))?;
        self.model = facts.model.to_string();
        self.stream |= facts.stream;
        self.output_tokens = self.output_tokens.or(facts.output.map(|output| output.tokens.get()));
        let read = metadata::read(body);
        self.metadata.extend(read.pairs().into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())));
        self.share_key = self.share_key.or(facts.user.as_ref().map(ToString::to_string));
        self.body = Some(BodyFacts {
            at_least: input_at_least(&facts),
            estimate: input_estimate(&facts),
            needs: facts.needs,
            images: facts.images > 0,
            audio: facts.audio,
        });
        Ok(self)
    }

    /// Returns the operation of a name, as [`Question::with_body`] takes it.
    ///
    /// # Errors
    /// There is none; which name is near.
    pub fn operation(name: &str) -> Result<Operation, String> {
        const OPERATIONS: [Operation; 6] = [
            Operation::Chat,
            Operation::Completions,
            Operation::Responses,
            Operation::Messages,
            Operation::CountTokens,
            Operation::Embeddings,
        ];
        let known = OPERATIONS.iter().map(|one| one.as_str());
        let found = OPERATIONS.into_iter().find(|one| one.as_str() == name);
        found.ok_or_else(|| unknown("operation", name, known))
    }
}

fn read(operation: Operation, body: &Bytes) -> Result<RequestFacts, GatewayError> {
    match operation {
        Operation::Chat => openai::read_chat(body),
        Operation::Completions => completions::read_request(body),
        Operation::Responses => responses::read_request(body).map(|read| read.facts),
        Operation::Messages => anthropic::read_messages(body),
        Operation::CountTokens => anthropic::read_count_tokens(body),
        Operation::Embeddings => embeddings::read_request(body),
    }
}

fn wrong(error: &GatewayError) -> String {
    match error.param() {
        Some(param) => format!("{} (`{}`)", error.message(), quotable(param)),
        None => error.message().to_owned(),
    }
}

/// A question whose names are known: what the router is asked, with the tenant's own demands.
#[derive(Debug)]
pub(super) struct Asked {
    model: String,
    tenant: TenantFacts,
    budgeted: bool,
    /// What the caller's key is for, as far as it is known.
    key: KeyUse,
    /// The routes that the key is for; empty: all.
    routes: Vec<RouteName>,
    task_class: Option<TaskClass>,
    classification: Classification,
    residency: Vec<Residency>,
    needs: CapabilitySet,
    at_least: TokenCount,
    estimate: TokenCount,
    output: Option<TokenCount>,
    images: bool,
    audio: bool,
    stream: bool,
    metadata: Metadata,
    share_key: Option<String>,
}

impl Asked {
    /// Checks a question against a configuration.
    pub(super) fn of(checked: &Checked, question: &Question) -> Result<Self, String> {
        let tenant = tenant_of(checked, question.tenant.as_deref())?;
        let named = needs(question)?;
        let body = question.body.as_ref();
        let tokens = TokenCount::new(question.input_tokens);
        let needs = body.map_or(named, |body| named.iter().fold(body.needs, CapabilitySet::with));
        Ok(Self {
            budgeted: is_budgeted(checked, tenant, key(checked, tenant, question)?, &question.model),
            model: question.model.clone(),
            key: KeyUse::default(),
            routes: Vec::new(),
            task_class: question.task_class.as_deref().map(name::<TaskClass>).transpose()?,
            classification: classification(question, tenant.default_classification)?,
            residency: residency(checked, tenant, question)?,
            needs,
            at_least: body.map_or(tokens, |body| body.at_least.max(tokens)),
            estimate: body.map_or(tokens, |body| body.estimate.max(tokens)),
            output: question.output_tokens.map(TokenCount::new),
            images: body.map_or(needs.contains(Capability::Vision), |body| body.images),
            audio: body.map_or(needs.contains(Capability::Audio), |body| body.audio),
            stream: question.stream || needs.contains(Capability::Streaming),
            metadata: Metadata::new(question.metadata.iter().cloned()),
            share_key: question.share_key.clone(),
            tenant: tenant.clone(),
        })
    }

    /// Takes a recorded request as it was, defaults and floors of then included.
    pub(super) fn of_record(checked: &Checked, record: &AccountingRecord) -> Result<Self, String> {
        let Some(facts) = &record.facts else {
            return Err("the request was refused before it was read".to_owned());
        };
        let tenant = tenant_of(checked, Some(record.tenant.as_str()))?;
        let key = key_use(checked, record);
        Ok(Self {
            model: facts.model.to_string(),
            budgeted: is_budgeted(checked, tenant, Some(&record.key), facts.model.as_str()),
            routes: key.routes.iter().map(|route| route.value.clone()).collect(),
            key,
            tenant: tenant.clone(),
            task_class: facts.task_class.clone(),
            classification: facts.classification,
            residency: facts.residency.clone(),
            needs: facts.needs,
            at_least: TokenCount::new(facts.text_bytes / BYTES_PER_TOKEN_AT_MOST),
            estimate: facts.estimated_input,
            output: facts.requested_output,
            images: facts.images > 0,
            audio: facts.audio,
            stream: facts.stream,
            metadata: Metadata::default(),
            share_key: Some(facts.user.as_ref().map_or_else(|| record.id.to_string(), ToString::to_string)),
        })
    }

    /// Returns whether nobody is named by whom shares go.
    pub(super) fn is_without_share_key(&self) -> bool {
        self.share_key.is_none()
    }

    /// Returns what refuses the request for its key, before any route is asked, as in the running gateway.
    pub(super) fn refused_by_key(&self, router: &Router) -> Option<ErrorKind> {
        let KeyUse { models, classification_ceiling, .. } = &self.key;
        if classification_ceiling.is_some_and(|ceiling| self.classification > ceiling) {
            return Some(ErrorKind::PolicyViolation);
        }
        let is_for =
            |model: &String| ModelPattern::new(model).is_ok_and(|pattern| pattern.matches(&self.model));
        let permitted = models.is_empty() || models.iter().any(is_for);
        let known = self.routes.is_empty() || router.knows_model_by(&self.routes, &self.model);
        (!permitted || !known).then_some(ErrorKind::UnknownModel)
    }

    /// Returns whether the classification is below what the tenant's requests begin with.
    pub(super) fn is_below_default(&self) -> bool {
        self.classification < self.tenant.default_classification
    }

    /// Applies the tenant's defaults and floors of now to a request of then.
    pub(super) fn raise_to_floors(&mut self) {
        self.classification = self.classification.max(self.tenant.default_classification);
        let floor = self.tenant.residency.iter().filter(|floor| !self.residency.contains(floor));
        let floor: Vec<Residency> = floor.cloned().collect();
        self.residency.extend(floor);
    }

    /// Asks.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&RouteQuery<'_>) -> T) -> T {
        let metadata = self.metadata.pairs();
        let query = RouteQuery {
            routes: &self.routes,
            task_class: self.task_class.as_ref(),
            residency: &self.residency,
            needs: self.needs,
            input_tokens_at_least: self.at_least,
            input_tokens_estimate: self.estimate,
            output_tokens: self.output,
            budgeted: self.budgeted,
            audio: self.audio,
            images: self.images,
            stream: self.stream,
            metadata: &metadata,
            share_key: self.share_key.as_deref(),
            ..RouteQuery::new(&self.model, &self.tenant.id, self.classification)
        };
        ask(&query)
    }
}

/// As `gw_exec::input_at_least` counts; a record has the bytes and not the text.
const BYTES_PER_TOKEN_AT_MOST: u64 = 8;

/// Returns what the record's key is for; a key that is not in the configuration is for everything.
fn key_use(checked: &Checked, record: &AccountingRecord) -> KeyUse {
    let tenant = checked.config.file.tenants.get(&record.tenant);
    let key = tenant.and_then(|tenant| tenant.value.keys.iter().find(|key| key.name == record.key));
    key.map_or_else(KeyUse::default, |key| key.use_of.clone())
}

fn tenant_of<'a>(checked: &'a Checked, name: Option<&str>) -> Result<&'a TenantFacts, String> {
    let tenants = &checked.facts.tenants;
    let names = tenants.iter().map(|tenant| tenant.id.as_str());
    match (name, tenants.as_slice()) {
        (Some(name), _) => {
            let found = tenants.iter().find(|tenant| tenant.id.as_str() == name);
            found.ok_or_else(|| unknown("tenant", name, names))
        }
        (None, [only]) => Ok(only),
        (None, _) => Err(format!("which tenant asks is not said; {}", nearest::remedy("", names))),
    }
}

/// Returns the key that is asked with, if one is named.
fn key<'a>(
    checked: &'a Checked,
    tenant: &TenantFacts,
    question: &Question,
) -> Result<Option<&'a KeyName>, String> {
    let Some(asked) = &question.key else { return Ok(None) };
    let keys = checked.config.file.tenants.get(&tenant.id).map_or(&[][..], |entry| &entry.value.keys);
    let found = keys.iter().find(|key| key.name.as_str() == asked);
    let known = keys.iter().map(|key| key.name.as_str());
    found.map(|key| Some(&key.name)).ok_or_else(|| unknown("key", asked, known))
}

/// Returns whether what the request costs is held against a budget, as the limits of the running gateway find it.
fn is_budgeted(checked: &Checked, tenant: &TenantFacts, key: Option<&KeyName>, model: &str) -> bool {
    tenant.budgeted
        || key.is_some_and(|key| tenant.budgeted_keys.contains(key))
        || checked.facts.budgeted_models.iter().any(|budgeted| budgeted.as_str() == model)
}

/// A request may raise its tenant's default and not lower it, as in the running gateway.
fn classification(question: &Question, default: Classification) -> Result<Classification, String> {
    let Some(text) = &question.classification else { return Ok(default) };
    let known = Classification::ALL.iter().map(|one| one.as_str());
    let named = text.parse().map_err(|_| unknown("classification", text, known))?;
    if named < default {
        return Err(format!("`{named}` is below the tenant's default; write `{default}` or above"));
    }
    Ok(named)
}

fn residency(checked: &Checked, tenant: &TenantFacts, question: &Question) -> Result<Vec<Residency>, String> {
    let known = checked.facts.routing.residency.keys();
    let mut residency: Vec<Residency> = tenant.residency.iter().cloned().collect();
    for group in &question.residency {
        let found = known.clone().find(|one| one.as_str() == group);
        let group =
            found.ok_or_else(|| unknown("residency", group, known.clone().map(|one| one.as_str())))?;
        residency.extend((!residency.contains(group)).then(|| group.clone()));
    }
    Ok(residency)
}

fn needs(question: &Question) -> Result<CapabilitySet, String> {
    let mut needs = CapabilitySet::EMPTY;
    if question.body.is_none() {
        needs = needs.with(Capability::Chat);
    }
    if question.stream {
        needs = needs.with(Capability::Streaming);
    }
    for text in &question.needs {
        let known = Capability::ALL.iter().map(|one| one.as_str());
        needs = needs.with(text.parse().map_err(|_| unknown("capability", text, known))?);
    }
    Ok(needs)
}

fn name<T: std::str::FromStr<Err = InvalidName>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|invalid| format!("`{}` is no name; {invalid}", quotable(text)))
}
