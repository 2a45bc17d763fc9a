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
    pub(crate) tls: ServerTls,
}

/// Reads the table; `None` where it is absent or at fault.
pub(super) fn read(section: &mut Section<'_>, key: &'static str, outside: Outside<'_>) -> Option<TlsEntry> {
    let mut section = section.optional(key)?.section()?;
    let certificate = section.required("certificate_file", "\"gw.pem\"");
    let private = section.required("key_file", "\"gw.key\"");
    let roots = section.optional("client_ca_file");
    section.finish();
    let (certificate, private) = (certificate?, private?);
    let chain = file(&certificate, outside);
    let key = file(&private, outside);
    let client = roots.as_ref().map(|node| file(node, outside));
    let (certificate_file, chain) = chain?;
    let (key_file, key) = key?;
    let (client_ca_file, pem) = match client {
        None => (None, None),
        Some(read) => read.map(|(name, pem)| (Some(name), Some(pem)))?,
    };
    match ServerTls::new(&chain, &key, pem.as_deref()) {
        Ok(tls) => Some(TlsEntry { certificate_file, key_file, client_ca_file, tls }),
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

fn file(node: &Node<'_>, outside: Outside<'_>) -> Option<(String, Vec<u8>)> {
    let name = node.text()?;
    match outside.file(name) {
        Ok(bytes) => Some((name.to_owned(), bytes)),
        Err((message, remedy)) => {
            node.fault(message, remedy);
            None
        }
    }
}
