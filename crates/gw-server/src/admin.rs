//! The admin plane: what operators call.

mod cache;
mod deployments;
mod query;
mod records;
mod reload;
mod tenants;
mod whole;

use gw_config::AdminRole;
use gw_types::{Dialect, ErrorKind, GatewayError};
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{ALLOW, CONTENT_TYPE, HeaderMap},
};
use hyper::body::Incoming;
use serde::Serialize;

use crate::{
    answer::{self, Answer, AnswerBody},
    app::App,
    credentials,
    data::refuse,
    lifecycle::Phase,
    line::Line,
    refusal::Refusal,
};

static OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// A path of the admin plane, matched byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdminPath<'a> {
    Health,
    Ready,
    Metrics,
    Records,
    Record(&'a str),
    Receipt(&'a str),
    Tenants,
    Deployments,
    Reload,
    Cache,
    Invalidate,
    Feedback,
    Unknown,
}

impl<'a> AdminPath<'a> {
    fn of(path: &'a str) -> Self {
        match path {
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            "/metrics" => Self::Metrics,
            "/admin/v1/records" => Self::Records,
            "/admin/v1/tenants" => Self::Tenants,
            "/admin/v1/deployments" => Self::Deployments,
            "/admin/v1/reload" => Self::Reload,
            "/admin/v1/cache" => Self::Cache,
            "/admin/v1/cache/invalidate" => Self::Invalidate,
            "/admin/v1/feedback" => Self::Feedback,
            _ => match path
                .strip_prefix("/admin/v1/records/")
                .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
            {
                Some((id, "")) if !id.is_empty() && !path.ends_with('/') => Self::Record(id),
                Some((id, "receipt")) if !id.is_empty() => Self::Receipt(id),
                Some(_) | None => Self::Unknown,
            },
        }
    }

    /// Returns whether the path answers without a key: a balancer has none.
    const fn is_open(self) -> bool {
        match self {
            Self::Health | Self::Ready => true,
            Self::Metrics
            | Self::Records
            | Self::Record(_)
            | Self::Receipt(_)
            | Self::Tenants
            | Self::Deployments
            | Self::Reload
            | Self::Cache
            | Self::Invalidate
            | Self::Feedback
            | Self::Unknown => false,
        }
    }

    /// Returns what a key must be allowed to do here.
    const fn needs(self) -> AdminRole {
        match self {
            Self::Reload | Self::Invalidate | Self::Feedback => AdminRole::Operate,
            Self::Health
            | Self::Ready
            | Self::Metrics
            | Self::Records
            | Self::Record(_)
            | Self::Receipt(_)
            | Self::Tenants
            | Self::Deployments
            | Self::Cache
            | Self::Unknown => AdminRole::Read,
        }
    }

    /// Returns whether the path takes the method, and which ones it takes.
    fn takes(self, method: &Method) -> (bool, &'static str) {
        if matches!(self, Self::Reload | Self::Invalidate | Self::Feedback) {
            return (*method == Method::POST, "POST");
        }
        (matches!(*method, Method::GET | Method::HEAD), "GET, HEAD")
    }
}

/// Answers a request of the admin plane. Nothing of a body is read.
pub(crate) async fn answer(line: &Line, request: &Request<Incoming>) -> Answer {
    let app = &*line.app;
    let path = AdminPath::of(request.uri().path());
    if let Some(refusal) =
        if path.is_open() { None } else { unauthorised(line, request.headers(), path.needs()) }
    {
        return refuse(app, &refusal, Dialect::OpenAi);
    }
    if path == AdminPath::Unknown {
        return refuse(app, &Refusal::unknown_path(), Dialect::OpenAi);
    }
    let (is_taken, allowed) = path.takes(request.method());
    if !is_taken {
        let mut answer = refuse(app, &Refusal::method(), Dialect::OpenAi);
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return answer;
    }
    let query = request.uri().query();
    let found = match path {
        AdminPath::Health => Ok(status(StatusCode::OK, "ok")),
        AdminPath::Ready => Ok(ready(app)),
        AdminPath::Metrics => Ok(metrics(app)),
        AdminPath::Records => records::list(app, query).await,
        AdminPath::Record(id) => records::one(app, id).await,
        AdminPath::Receipt(id) => records::receipt(app, id).await,
        AdminPath::Tenants => tenants::list(app),
        AdminPath::Deployments => deployments::list(app),
        AdminPath::Reload => reload::reload(app).await,
        AdminPath::Cache => cache::report(app),
        AdminPath::Invalidate => cache::invalidate(app, query),
        AdminPath::Feedback => cache::feedback(app, query),
        AdminPath::Unknown => Err(Refusal::unknown_path().error),
    };
    found.unwrap_or_else(|error| answer::error(Dialect::OpenAi, &error, 0, None))
}

/// Returns why the caller may not come in.
///
/// Without admin keys only this machine may, and no key is asked. With keys, another key is refused in another way than
/// none: whoever sends a tenant's key should learn that it is the wrong kind.
fn unauthorised(line: &Line, headers: &HeaderMap, needed: AdminRole) -> Option<Refusal> {
    let keys = &line.app.settings.admin_keys;
    if keys.is_empty() {
        let message = "without admin keys the admin plane answers this machine only";
        return (!line.peer.is_loopback()).then(|| Refusal::forbidden(message));
    }
    match credentials::presented(headers) {
        Ok(Some(key)) => match keys.role_of(&key) {
            Some(role) if role >= needed => None,
            Some(_) => Some(Refusal::forbidden("the admin key may look and change nothing")),
            None => Some(Refusal::forbidden("the key is no admin key")),
        },
        Ok(None) => Some(Refusal::unauthenticated()),
        Err(refusal) => Some(refusal),
    }
}

/// Says whether a balancer should send requests here.
fn ready(app: &App) -> Answer {
    if app.lifecycle.phase() != Phase::Serving {
        return status(StatusCode::SERVICE_UNAVAILABLE, "draining");
    }
    if app.ledger.is_failing() {
        return status(StatusCode::SERVICE_UNAVAILABLE, "ledger_failing");
    }
    if !app.ledger_has_place() {
        return status(StatusCode::SERVICE_UNAVAILABLE, "ledger_full");
    }
    // Without the store the policy of each limit decides; there is no reason to send callers elsewhere.
    let is_lost = app.gateway.snapshot().shared_limits.is_some_and(|shared| shared.lost);
    status(StatusCode::OK, if is_lost { "degraded" } else { "ready" })
}

fn metrics(app: &App) -> Answer {
    let mut answer = answer::empty(StatusCode::OK);
    answer.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS.clone());
    *answer.body_mut() = AnswerBody::whole(app.metrics.page(Some(app)).into());
    answer
}

fn status(code: StatusCode, status: &'static str) -> Answer {
    answer::json(code, format!(r#"{{"status":"{status}"}}"#).into())
}

/// Returns a value as a JSON answer.
fn json(value: &impl Serialize) -> Result<Answer, GatewayError> {
    let body = serde_json::to_vec(value)
        .map_err(|_| GatewayError::new(ErrorKind::Internal, "the answer cannot be written as JSON"))?;
    Ok(answer::json(StatusCode::OK, body.into()))
}

/// Returns the answer to a name that stands for nothing.
fn not_found(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::Intake, message).with_status(404)
}

#[cfg(test)]
mod tests {
    use super::AdminPath;

    fn check(path: &str, expected: AdminPath<'_>, is_open: bool) {
        assert_eq!((AdminPath::of(path), expected.is_open()), (expected, is_open), "{path}");
    }

    #[test]
    fn every_spelling_of_a_route_needs_credentials_only_liveness_and_readiness_are_open() {
        check("/healthz", AdminPath::Health, true);
        check("/readyz", AdminPath::Ready, true);
        check("/metrics", AdminPath::Metrics, false);
        check("/admin/v1/records", AdminPath::Records, false);
        check("/admin/v1/records/req_1", AdminPath::Record("req_1"), false);
        check("/admin/v1/records/req_1/receipt", AdminPath::Receipt("req_1"), false);
        check("/admin/v1/tenants", AdminPath::Tenants, false);
        check("/admin/v1/deployments", AdminPath::Deployments, false);
        check("/admin/v1/cache", AdminPath::Cache, false);
        check("/admin/v1/cache/invalidate", AdminPath::Invalidate, false);
        check("/admin/v1/feedback", AdminPath::Feedback, false);
        for path in
            ["/", "", "//healthz", "/healthz/", "/HEALTHZ", "/admin/v1/records/", "/metrics;", "/admin"]
                .into_iter()
                .chain([
                    "/admin/v1/records/req_1/",
                    "/admin/v1/records//receipt",
                    "/admin/v1/records/a/receipt/",
                ])
        {
            check(path, AdminPath::Unknown, false);
        }
    }
}
