//! The ledger in a PostgreSQL server that speaks TLS, with a real certificate: what the address and `ca_file` ask for.

use std::path::{Path, PathBuf};

use gw_testkit::{FakeProvider, FaultScript, PostgresServer};

use crate::support::{Gw, Toml, chat, run_gw};

fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates/gw-adapters/tests/it/certificates")
}

fn server() -> PostgresServer {
    let folder = certificates();
    PostgresServer::start_with_tls(&folder.join("localhost.pem"), &folder.join("localhost.key")).unwrap()
}

fn house(provider: &FakeProvider, url: &str, roots: Option<&Path>) -> Toml {
    let toml = Toml::new()
        .upstream("up", provider)
        .route("m", &["up"])
        .tenant("a", "")
        .store("{ env = \"GW_DATABASE_URL\" }")
        .var("GW_DATABASE_URL", url);
    match roots {
        Some(roots) => toml.ledger(&format!("ca_file = \"{}\"", roots.display())),
        None => toml,
    }
}

/// Returns whether gw's connections are encrypted, by the server's own word.
fn encrypted(server: &PostgresServer) -> Vec<bool> {
    let sql = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'gw'";
    server.sql("postgres", sql).unwrap().lines().map(|line| line == "t").collect()
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_is_spoken_to_in_secret() {
    let server = server();
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let url = server.database().unwrap();
    let root = certificates().join("root.pem");
    let asked = |address: &str| {
        let url = url.replace("127.0.0.1", address) + "?sslmode=require";
        house(&provider, &url, Some(root.as_path()))
    };
    for address in ["127.0.0.1", "localhost"] {
        let gw = Gw::start(&asked(address)).await;
        assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
        let all = encrypted(&server);
        assert!(!all.is_empty() && all.iter().all(|encrypted| *encrypted), "{address}: {all:?}");
        gw.stop().await;
    }
    let gw = Gw::start(&house(&provider, &format!("{url}?sslmode=disable"), None)).await;
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
    assert!(encrypted(&server).iter().all(|encrypted| !encrypted));
}

#[tokio::test]
async fn a_server_that_cannot_show_who_it_is_refuses_the_start() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let check = |toml: &Toml, expected: &str| {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("gw.toml"), toml.text()).unwrap();
        let variables: Vec<_> = toml.environment().iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let output = run_gw(folder.path(), &["serve"], &variables);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot open the ledger") && said.contains(expected), "{said}");
    };
    let server = server();
    let url = server.database().unwrap() + "?sslmode=require";
    // The roots of the system do not know it.
    check(&house(&provider, &url, None), "certificate");
    // Nor does another root: this one is nobody's issuer.
    check(&house(&provider, &url, Some(other_root().as_path())), "certificate");
    let plain = PostgresServer::start().unwrap();
    let url = plain.database().unwrap() + "?sslmode=require";
    check(&house(&provider, &url, Some(certificates().join("root.pem").as_path())), "TLS");
}

/// The certificate of a server, which has issued no other.
fn other_root() -> PathBuf {
    certificates().join("localhost.pem")
}
