//! A bare pass-through proxy on the same HTTP library: it parses nothing, limits nothing and records nothing.

use std::sync::Arc;

use http::{Request, Response, Uri, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpListener;

type Pool = Client<HttpConnector, Incoming>;

/// Listens on a free port, prints it, and passes everything on to the upstream until the process is killed.
pub(crate) async fn serve(upstream: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Arc<Pool> = Arc::new(Client::builder(TokioExecutor::new()).build(connector));
    let upstream: Arc<str> = upstream.into();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (pool, upstream) = (Arc::clone(&pool), Arc::clone(&upstream));
        tokio::spawn(async move {
            let service = service_fn(|request| pass(&pool, &upstream, request));
            let served =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            drop(served.await);
        });
    }
}

async fn pass(
    pool: &Pool,
    upstream: &str,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() =
        Uri::builder().scheme("http").authority(upstream).path_and_query(path).build().unwrap();
    request.headers_mut().remove(header::HOST);
    pool.request(request).await
}
