//! `[server]`: addresses, bounds and times of the ingress.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde::Serialize;

use super::{
    server_tls::{self, TlsEntry},
    written,
};
use crate::{
    AdminRole,
    reader::{DAY_MS, Faults, Node, Section},
    secret::{ListenerSecret, Outside},
    source::{Located, Span},
};

const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);

/// `[server]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerEntry {
    pub(crate) listen: Located<SocketAddr>,
    pub(crate) admin_listen: Located<SocketAddr>,
    pub(crate) max_body_bytes: usize,
    #[serde(rename = "default_deadline_ms", serialize_with = "written::millis")]
    pub(crate) default_deadline: Duration,
    #[serde(rename = "max_deadline_ms", serialize_with = "written::millis")]
    pub(crate) max_deadline: Duration,
    #[serde(rename = "header_timeout_ms", serialize_with = "written::millis")]
    pub(crate) header_timeout: Duration,
    #[serde(rename = "body_timeout_ms", serialize_with = "written::millis")]
    pub(crate) body_timeout: Duration,
    pub(crate) max_connections: u32,
    pub(crate) max_concurrency: u32,
    #[serde(rename = "drain_grace_ms", serialize_with = "written::millis")]
    pub(crate) drain_grace: Duration,
    #[serde(rename = "drain_timeout_ms", serialize_with = "written::millis")]
    pub(crate) drain_timeout: Duration,
    pub(crate) max_connections_per_address: Option<u32>,
    pub(crate) cors_origins: Vec<String>,
    pub(crate) tls: Option<TlsEntry>,
    pub(crate) admin_tls: Option<TlsEntry>,
    pub(crate) admin_keys: Vec<AdminKeyEntry>,
}

/// One key of the admin plane.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AdminKeyEntry {
    pub(crate) secret: Located<ListenerSecret>,
    pub(crate) role: AdminRole,
}

/// Reads the table; an absent one is all defaults.
pub(super) fn read(section: Option<Section<'_>>, faults: &Faults, outside: Outside<'_>) -> ServerEntry {
    let mut section = section.unwrap_or_else(|| Section::absent("server", faults));
    let max_deadline = section.millis("max_deadline_ms");
    let default_deadline = section.optional("default_deadline_ms");
    let entry = ServerEntry {
        listen: address(&mut section, "listen", LISTEN),
        admin_listen: address(&mut section, "admin_listen", ADMIN_LISTEN),
        max_body_bytes: section
            .count("max_body_bytes", 1_024..=1_073_741_824)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(10_485_760),
        default_deadline: deadline(default_deadline.as_ref(), max_deadline),
        max_deadline: max_deadline.unwrap_or(MAX_DEADLINE),
        header_timeout: section.millis("header_timeout_ms").unwrap_or(Duration::from_secs(10)),
        body_timeout: section.millis("body_timeout_ms").unwrap_or(Duration::from_secs(30)),
        max_connections: section.small_count("max_connections", 1..=1_000_000).unwrap_or(4_096),
        max_concurrency: section.small_count("max_concurrency", 1..=1_000_000).unwrap_or(1_024),
        drain_grace: section.millis_within("drain_grace_ms", 0..=DAY_MS).unwrap_or(Duration::from_secs(5)),
        drain_timeout: section
            .millis_within("drain_timeout_ms", 0..=DAY_MS)
            .unwrap_or(Duration::from_secs(30)),
        max_connections_per_address: section.small_count("max_connections_per_address", 1..=1_000_000),
        cors_origins: cors_origins(&mut section),
        tls: server_tls::read(&mut section, "tls", outside),
        admin_tls: server_tls::read(&mut section, "admin_tls", outside),
        admin_keys: admin_keys(&mut section, outside),
    };
    let admin_keys_written = section.optional("admin_keys").is_some();
    section.finish();
    check_addresses(&entry, admin_keys_written, faults);
    entry
}

/// The longest deadline that a request may ask for, where the file names none.
const MAX_DEADLINE: Duration = Duration::from_secs(3_600);

fn deadline(node: Option<&Node<'_>>, most: Option<Duration>) -> Duration {
    let most = most.unwrap_or(MAX_DEADLINE);
    let default = Duration::from_secs(600).min(most);
    let Some(node) = node else { return default };
    let written =
        node.whole(1..=DAY_MS).and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis);
    if let Some(written) = written.filter(|written| *written > most) {
        let remedy = format!("write at most {}, or raise `max_deadline_ms`", most.as_millis());
        node.fault(
            format!("`{}` is above `max_deadline_ms`: `{}`", node.path(), written.as_millis()),
            remedy,
        );
    }
    written.unwrap_or(default)
}

fn address(section: &mut Section<'_>, key: &'static str, default: SocketAddr) -> Located<SocketAddr> {
    let Some(node) = section.optional(key) else {
        return Located::new(default, Span::default());
    };
    // Port 0 clashes with nothing, so that a fault here makes no other one.
    let fallback = Located::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), node.span());
    let Some(text) = node.text() else { return fallback };
    let Ok(address) = text.parse() else {
        let message = format!("`{}` is no address: `{}`", node.path(), crate::reader::quotable(text));
        node.fault(message, format!("write an IP address and a port, such as `\"{default}\"`"));
        return fallback;
    };
    Located::new(address, node.span())
}

fn admin_keys(section: &mut Section<'_>, outside: Outside<'_>) -> Vec<AdminKeyEntry> {
    const ROLES: [(&str, AdminRole); 2] = [("read", AdminRole::Read), ("operate", AdminRole::Operate)];
    let items = section.optional("admin_keys").and_then(|node| node.filled_list()).unwrap_or_default();
    let role = |section: &mut Section<'_>| {
        section.optional("role").and_then(|node| node.choice("role", &ROLES)).unwrap_or(AdminRole::Operate)
    };
    let read = |item| {
        let (secret, role) = outside.listener_secret(item, role)?;
        Some(AdminKeyEntry { secret, role })
    };
    items.iter().filter_map(read).collect()
}

/// Reads origins as browsers write them (RFC 6454, section 6.2), or `*` for all.
fn cors_origins(section: &mut Section<'_>) -> Vec<String> {
    let items = section.optional("cors_origins").and_then(|node| node.filled_list()).unwrap_or_default();
    let origin = |node: &Node<'_>| {
        let text = node.text()?;
        if text != "*" && !is_origin(text) {
            let message = format!("`{}` is no origin: `{}`", node.path(), crate::reader::quotable(text));
            node.fault(
                message,
                "write scheme, host and port as browsers do: `\"https://app.example\"`, or `\"*\"`",
            );
            return None;
        }
        Some(text.to_owned())
    };
    items.iter().filter_map(origin).collect()
}

fn is_origin(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte))
    })
}

fn check_addresses(entry: &ServerEntry, admin_keys_written: bool, faults: &Faults) {
    let admin = entry.admin_listen;
    if !admin.value.ip().is_loopback() && !admin_keys_written {
        faults.add(
            admin.span,
            "server.admin_listen",
            format!("the admin address `{}` is not loopback, and there are no `admin_keys`", admin.value),
            "write `admin_keys = [{ env = \"NAME\" }]`, or a loopback address",
        );
    }
    if admin.value == entry.listen.value && admin.value.port() != 0 {
        let span = if admin.span == Span::default() { entry.listen.span } else { admin.span };
        let message = format!("`listen` and `admin_listen` are both `{}`", admin.value);
        faults.add(span, "server.admin_listen", message, "write another port");
    }
}
