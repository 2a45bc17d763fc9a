//! TLS: extra roots, verification, and HTTP/2 by ALPN.
//!
//! The certificates in `certificates/` are for `localhost` only, signed by a root whose key was thrown away.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use futures_util::future::join_all;
use gw_adapters::{Provider, ProviderConfig, TransportConfig};
use gw_types::{ErrorKind, ManualClock};
use http::{Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::setup::{ANSWER, Setup, config, limits};

const ROOT: &[u8] = include_bytes!("certificates/root.pem");
const CERTIFICATE: &[u8] = include_bytes!("certificates/localhost.pem");
const KEY: &[u8] = include_bytes!("certificates/localhost.key");

/// The HTTP version of each request, and connections that stood.
#[derive(Default)]
struct Seen {
    connections: usize,
    versions: Vec<Version>,
}

async fn start(alpn: &[&str]) -> (SocketAddr, Arc<Mutex<Seen>>) {
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    tls.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&shared));
            tokio::spawn(async move {
                // A client that does not trust the certificate ends here.
                let Ok(stream) = acceptor.accept(socket).await else { return };
                seen.lock().connections += 1;
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
                let stream = TokioIo::new(stream);
                if http2 {
                    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
                } else {
                    let _ = http1::Builder::new().serve_connection(stream, service).await;
                }
            });
        }
    });
    (addr, seen)
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Seen>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    seen.lock().versions.push(request.version());
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes()))))
}

fn trusting(http2: bool) -> TransportConfig {
    TransportConfig { ca_file: Some(ROOT.to_vec()), http2, ..limits() }
}

#[tokio::test]
async fn an_extra_root_is_trusted_and_nothing_else() {
    let (addr, seen) = start(&[]).await;
    let url = format!("https://localhost:{}/v1", addr.port());
    let setup = Setup::limited(&url, trusting(false));
    for _ in 0..3 {
        assert_eq!(setup.plain().await.unwrap().raw, ANSWER.as_bytes());
    }
    assert_eq!(seen.lock().connections, 1);
    assert_eq!(seen.lock().versions.len(), 3);
    let error = Setup::at(&url).plain().await.unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, false));
    assert_eq!(seen.lock().versions.len(), 3);
}

#[tokio::test]
async fn a_burst_shares_the_http2_connection_that_alpn_chose() {
    let (addr, seen) = start(&["h2", "http/1.1"]).await;
    let setup = Setup::limited(&format!("https://localhost:{}/v1", addr.port()), trusting(true));
    for answer in join_all((0..4).map(|_| setup.plain())).await {
        assert_eq!(answer.unwrap().raw, ANSWER.as_bytes());
    }
    assert_eq!((seen.lock().connections, setup.in_use()), (1, 0));
    assert_eq!(seen.lock().versions, [Version::HTTP_2; 4]);
}

#[tokio::test]
async fn http1_stays_where_one_side_wants_it() {
    for (alpn, http2) in [(&["http/1.1"][..], true), (&["h2", "http/1.1"], false)] {
        let (addr, seen) = start(alpn).await;
        let setup = Setup::limited(&format!("https://localhost:{}/v1", addr.port()), trusting(http2));
        for answer in join_all((0..4).map(|_| setup.plain())).await {
            assert!(answer.is_ok());
        }
        assert_eq!(seen.lock().versions, [Version::HTTP_11; 4]);
        assert!(seen.lock().connections <= 4);
    }
}

#[test]
fn a_root_that_cannot_be_read_is_refused() {
    let transport = TransportConfig { ca_file: Some(b"none".to_vec()), ..limits() };
    let config = ProviderConfig { transport, ..config("https://localhost/v1") };
    let refused = Provider::new(config, Arc::new(ManualClock::default())).unwrap_err();
    assert_eq!(refused, gw_adapters::InvalidProvider::CaFile);
}
