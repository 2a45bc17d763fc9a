//! `[server.tls]` and `[server.admin_tls]`: what the listeners show their clients.

use gw_adapters::{InvalidServerTls, ServerTls};
use serde::Serialize;

use crate::{
    reader::{Node, Section},
    secret::Outside,
};

/// The files of a listener's TLS, read when the configuration was. Another content of a file is another configuration.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TlsEntry {
    certificate_file: String,
    key_file: String,
    client_ca_file: Option<String>,
    #[serde(skip)]
    /// Absent: there are no listeners, and the files were not read.
    pub(crate) tls: Option<ServerTls>,
}

/// Reads the table; `None` where it is absent or at fault.
pub(super) fn read(section: &mut Section<'_>, key: &'static str, outside: Outside<'_>) -> Option<TlsEntry> {
    let mut section = section.optional(key)?.section()?;
    let certificate = section.required("certificate_file", "\"gw.pem\"");
    let private = section.required("key_file", "\"gw.key\"");
    let roots = section.optional("client_ca_file");
    section.finish();
    let (certificate, private) = (certificate?, private?);
    let named = |node: &Node<'_>| node.text().map(str::to_owned);
    let names = (named(&certificate), named(&private), roots.as_ref().map(named));
    let mut entry = TlsEntry {
        certificate_file: names.0?,
        key_file: names.1?,
        client_ca_file: match names.2 {
            None => None,
            Some(name) => Some(name?),
        },
        tls: None,
    };
    if !outside.callers.come_in() {
        return Some(entry);
    }
    let chain = file(&certificate, &entry.certificate_file, outside);
    let key = file(&private, &entry.key_file, outside);
    let client = roots.as_ref().zip(entry.client_ca_file.as_ref());
    let client = client.map(|(node, name)| file(node, name, outside));
    let (chain, key) = (chain?, key?);
    let client = match client {
        None => None,
        Some(pem) => Some(pem?),
    };
    match ServerTls::new(&chain, &key, client.as_deref()) {
        Ok(tls) => {
            entry.tls = Some(tls);
            Some(entry)
        }
        Err(invalid) => {
            let (node, expected) = match invalid {
                InvalidServerTls::Certificate => {
                    (&certificate, "PEM is expected, the server's own certificate first")
                }
                InvalidServerTls::Key => (&private, "PEM is expected"),
                InvalidServerTls::Mismatch => (&private, "name the key of `certificate_file`"),
                InvalidServerTls::ClientRoots => (roots.as_ref().unwrap_or(&certificate), "PEM is expected"),
            };
            node.fault(format!("`{}` {invalid}", node.path()), expected);
            None
        }
    }
}

fn file(node: &Node<'_>, name: &str, outside: Outside<'_>) -> Option<Vec<u8>> {
    outside.file(name).map_err(|(message, remedy)| node.fault(message, remedy)).ok()
}
