//! Opens byte streams: TCP, proxy, TLS.

use std::{fmt, time::Duration};

use http::{HeaderValue, Uri, uri::Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::{
    legacy::connect::{Connection, HttpConnector, proxy::Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use tower_service::Service;

use super::{io::Wire, tls};
use crate::{InvalidProvider, ProxyConfig, TransportConfig};

type Plain = HttpsConnector<HttpConnector>;

/// Opens byte streams to one origin, the same way each time.
pub(super) struct Dialer {
    way: Way,
    origin: Uri,
}

/// The way to the origin. A proxy belongs to the configuration, so it is chosen once.
enum Way {
    /// Straight there.
    Direct(Plain),
    /// An `http` origin behind a proxy, which is sent absolute-form requests.
    Forward { connector: Plain, proxy: Uri, authorization: Option<HeaderValue> },
    /// An `https` origin behind a proxy, through a tunnel; the proxy sees neither key nor content.
    Tunnel(HttpsConnector<Tunnel<Plain>>),
}

/// An open byte stream.
pub(super) struct Dialed {
    pub(super) wire: Box<dyn Wire>,
    /// Whether the other side chose HTTP/2 by ALPN.
    pub(super) negotiated_http2: bool,
}

/// Says that no byte stream could be opened. The cause is not kept: it may name proxies and addresses.
pub(super) enum DialFault {
    Refused,
    Failed,
}

impl Dialer {
    /// Returns a dialer for the origin (scheme and authority).
    ///
    /// # Errors
    /// What is wrong with proxies or certificates.
    pub(super) fn new(origin: Uri, config: &TransportConfig) -> Result<Self, InvalidProvider> {
        let secure = origin.scheme() == Some(&Scheme::HTTPS);
        let intercept = matcher(&config.proxy)?.intercept(&origin);
        let way = match intercept {
            None => Way::Direct(secured(config, secure, config.http2, tcp())?),
            Some(proxy) if secure => {
                let to_proxy = secured(config, is_https(&proxy), false, tcp())?;
                let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
                if let Some(authorization) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                Way::Tunnel(secured(config, true, config.http2, tunnel)?)
            }
            Some(proxy) => Way::Forward {
                connector: secured(config, is_https(&proxy), false, tcp())?,
                proxy: proxy.uri().clone(),
                authorization: proxy.basic_auth().cloned(),
            },
        };
        Ok(Self { way, origin })
    }

    /// Returns whether requests go to a forward proxy, and what authorizes them there.
    pub(super) fn forward(&self) -> Option<Option<&HeaderValue>> {
        match &self.way {
            Way::Forward { authorization, .. } => Some(authorization.as_ref()),
            Way::Direct(_) | Way::Tunnel(_) => None,
        }
    }

    /// Opens a byte stream. Dropping the future gives the attempt up.
    pub(super) async fn dial(&self) -> Result<Dialed, DialFault> {
        match &self.way {
            Way::Direct(connector) => open(connector.clone(), self.origin.clone()).await,
            Way::Forward { connector, proxy, .. } => open(connector.clone(), proxy.clone()).await,
            Way::Tunnel(connector) => open(connector.clone(), self.origin.clone()).await,
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Direct(_) => "direct",
            Way::Forward { .. } => "forward",
            Way::Tunnel(_) => "tunnel",
        };
        f.debug_struct("Dialer").field("way", &way).field("origin", &self.origin).finish()
    }
}

async fn open<C>(mut connector: C, to: Uri) -> Result<Dialed, DialFault>
where
    C: Service<Uri>,
    C::Response: Wire + Connection + 'static,
    C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let opened = async {
        std::future::poll_fn(|cx| connector.poll_ready(cx)).await?;
        connector.call(to).await
    };
    let wire = opened.await.map_err(|error| fault(&*error.into()))?;
    let negotiated_http2 = wire.connected().is_negotiated_h2();
    Ok(Dialed { wire: Box::new(wire), negotiated_http2 })
}

/// The deepest chain of causes that is looked through.
const CAUSES_MAX: usize = 8;

fn fault(error: &(dyn std::error::Error + 'static)) -> DialFault {
    let mut cause = Some(error);
    for _ in 0..CAUSES_MAX {
        let Some(error) = cause else { break };
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return DialFault::Refused;
        }
        cause = error.source();
    }
    DialFault::Failed
}

/// After so long without a byte TCP probes whether the peer is still there, under quiet streams and idle connections.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Between two probes that nobody answers, and how many: then the peer is gone.
const TCP_PROBE_INTERVAL: Duration = Duration::from_secs(10);
const TCP_PROBES_MAX: u32 = 3;

/// How long what was sent may stay unacknowledged before the peer is gone. The system's own limit is some 15 minutes.
#[cfg(target_os = "linux")]
const TCP_UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(TCP_KEEPALIVE));
    connector.set_keepalive_interval(Some(TCP_PROBE_INTERVAL));
    connector.set_keepalive_retries(Some(TCP_PROBES_MAX));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(TCP_UNACKNOWLEDGED_MAX));
    connector
}

/// Wraps a connector in TLS for `https` targets. Where no target is `https` the roots are not read at all.
fn secured<C>(
    config: &TransportConfig,
    secure: bool,
    http2: bool,
    inner: C,
) -> Result<HttpsConnector<C>, InvalidProvider> {
    let tls = if secure { tls::client_config(config.ca_file.as_deref())? } else { tls::rootless_config()? };
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    Ok(if http2 {
        builder.enable_all_versions().wrap_connector(inner)
    } else {
        builder.enable_http1().wrap_connector(inner)
    })
}

fn matcher(proxy: &ProxyConfig) -> Result<Matcher, InvalidProvider> {
    for (name, url) in [("http", &proxy.http), ("https", &proxy.https)] {
        check_proxy(name, url)?;
    }
    Ok(Matcher::builder().http(&proxy.http).https(&proxy.https).no(&proxy.no_proxy).build())
}

/// The matcher drops what it cannot read without a word, and a call would then go straight out; so ask it first.
fn check_proxy(name: &'static str, url: &str) -> Result<(), InvalidProvider> {
    if url.is_empty() {
        return Ok(());
    }
    let probe = Matcher::builder().http(url).build().intercept(&Uri::from_static("http://probe.invalid/"));
    let http = |proxy: &Intercept| is_https(proxy) || proxy.uri().scheme() == Some(&Scheme::HTTP);
    if probe.as_ref().is_some_and(http) { Ok(()) } else { Err(InvalidProvider::Proxy(name)) }
}

fn is_https(proxy: &Intercept) -> bool {
    proxy.uri().scheme() == Some(&Scheme::HTTPS)
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::{Dialer, Way};
    use crate::{InvalidProvider, ProxyConfig, TransportConfig};

    fn way(origin: &'static str, proxy: ProxyConfig) -> Result<&'static str, InvalidProvider> {
        let config = TransportConfig { proxy, ..TransportConfig::default() };
        Dialer::new(Uri::from_static(origin), &config).map(|dialer| match dialer.way {
            Way::Direct(_) => "direct",
            Way::Forward { .. } => "forward",
            Way::Tunnel(_) => "tunnel",
        })
    }

    fn proxies(http: &str, https: &str, no_proxy: &str) -> ProxyConfig {
        ProxyConfig { http: http.into(), https: https.into(), no_proxy: no_proxy.into() }
    }

    #[test]
    fn the_way_follows_scheme_and_exceptions() {
        let both = || proxies("http://p:1", "http://p:2", "");
        assert_eq!(way("http://a.example/", both()), Ok("forward"));
        assert_eq!(way("https://a.example/", both()), Ok("tunnel"));
        assert_eq!(way("http://a.example/", proxies("", "http://p:2", "")), Ok("direct"));
        assert_eq!(way("https://a.example/", proxies("http://p:1", "", "")), Ok("direct"));
        assert_eq!(way("http://a.example/", proxies("http://p:1", "", ".example")), Ok("direct"));
        assert_eq!(way("http://10.1.2.3/", proxies("http://p:1", "", "10.0.0.0/8")), Ok("direct"));
        assert_eq!(way("http://a.example/", proxies("p:1", "", "")), Ok("forward"));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_and_not_skipped() {
        for url in ["socks5://p:1", "http://", "::", "ftp://p"] {
            assert_eq!(way("http://a.example/", proxies(url, "", "")), Err(InvalidProvider::Proxy("http")));
            assert_eq!(way("http://a.example/", proxies("", url, "")), Err(InvalidProvider::Proxy("https")));
        }
    }
}
