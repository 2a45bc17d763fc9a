//! The layers as data: who may name whom, and which outside crates belong in which room.
//!
//! This file is the place to change when the design changes. Rows stand in build order: a row may only name rows above
//! it. A new edge or a new outside crate needs a reason that a reader of the row's `why` can follow.

/// One member of the workspace and everything it may name.
#[derive(Debug)]
pub(crate) struct Row {
    /// The package's name, which is also its folder under `crates/`.
    pub(crate) name: &'static str,
    /// The number in the design's table; `None` for members beside the stack.
    pub(crate) order: Option<u8>,
    /// Workspace crates it may name, in normal, build and test code.
    pub(crate) names: &'static [&'static str],
    /// Outside crates it may name with any features.
    pub(crate) outside: &'static [&'static str],
    /// Outside crates it may name with these features only.
    pub(crate) limited: &'static [(&'static str, &'static [&'static str])],
    /// The one binary it may build.
    pub(crate) binary: Option<&'static str>,
    /// Whether it is offered to other teams; `false` stands as `publish = false` in its manifest.
    pub(crate) published: bool,
    /// Why the row allows what it allows.
    pub(crate) why: &'static str,
}

/// A kind of outside crate that only some members may name, whatever their rows say.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) what: &'static str,
    pub(crate) crates: &'static [&'static str],
    /// Crates that belong here only with a feature; `("hyper", "client")` also means `client-...` and `full`.
    pub(crate) features: &'static [(&'static str, &'static str)],
    /// The members that may name them.
    pub(crate) only: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Features that stand nowhere, not even in tests: they hide what a crate really needs.
pub(crate) const FORBIDDEN_FEATURES: &[(&str, &str)] = &[("tokio", "full")];

/// The member that every member's tests may name.
pub(crate) const TEST_KIT: &str = "gw-testkit";

/// Outside crates that the tests of any member may name, with any features that are not forbidden.
#[rustfmt::skip] // One name a line would hide the rows.
pub(crate) const TEST_CRATES: &[&str] = &[
    "async-trait", "bytes", "divan", "futures-test", "futures-util", "governor", "http", "http-body-util",
    "hyper", "hyper-util", "insta", "loom", "mockall", "proptest", "serde_json", "shuttle", "tempfile", "tokio",
];

const NOTHING: Row = Row {
    name: "",
    order: None,
    names: &[],
    outside: &[],
    limited: &[],
    binary: None,
    published: true,
    why: "",
};

/// The rows, lowest first.
#[rustfmt::skip] // One name a line would hide the rows.
pub(crate) const TABLE: &[Row] = &[
    Row {
        name: "gw-errors",
        order: Some(0),
        outside: &["serde", "thiserror"],
        why: "every crate speaks of failures, so the taxonomy rests on nothing",
        ..NOTHING
    },
    Row {
        name: "gw-types",
        order: Some(1),
        names: &["gw-errors"],
        outside: &[
            "async-trait", "blake2b_simd", "bytes", "futures-core", "jiff", "parking_lot", "serde",
            "serde_json", "smallvec", "subtle", "thiserror",
        ],
        why: "the vocabulary and the seams; a seam returns errors, so it names the taxonomy",
        ..NOTHING
    },
    Row {
        name: "gw-routing",
        order: Some(2),
        names: &["gw-errors", "gw-types"],
        outside: &[
            "bytes", "foldhash", "hashbrown", "jiff", "memchr", "serde", "serde_json", "smallvec",
            "thiserror",
        ],
        why: "chooses among deployments without doing anything, so it needs words and containers only",
        ..NOTHING
    },
    Row {
        name: "gw-limits",
        order: Some(3),
        names: &["gw-errors", "gw-types"],
        outside: &[
            "async-trait", "foldhash", "futures-core", "hashbrown", "jiff", "parking_lot", "serde",
            "smallvec", "thiserror",
        ],
        limited: &[("tokio", &["sync"])],
        why: "holds permits and waits for them; of the runtime only the parts that need no runtime",
        ..NOTHING
    },
    Row {
        name: "gw-cache",
        order: Some(4),
        names: &["gw-errors", "gw-types"],
        outside: &[
            "async-trait", "blake2", "blake2b_simd", "bytes", "foldhash", "futures-core", "hashbrown", "jiff",
            "memchr", "parking_lot", "quick_cache", "serde", "serde_json", "smallvec", "thiserror",
        ],
        limited: &[("tokio", &["sync"])],
        why: "remembers answers and lets equal requests wait for one; of the runtime only what needs no runtime",
        ..NOTHING
    },
    Row {
        name: "gw-dialects",
        order: Some(5),
        names: &["gw-errors", "gw-types"],
        outside: &[
            "base64", "blake2", "bytes", "crc32fast", "foldhash", "hashbrown", "httpdate", "itoa", "jiff",
            "memchr", "percent-encoding", "ryu", "serde", "serde_json", "smallvec", "thiserror",
        ],
        why: "wire formats as pure functions on bytes; a socket here would be a second transport",
        ..NOTHING
    },
    Row {
        name: TEST_KIT,
        names: &["gw-errors", "gw-types", "gw-dialects"],
        outside: &[
            "async-trait", "aws-lc-rs", "base64", "bytes", "futures-core", "futures-util", "http", "http-body",
            "http-body-util", "jsonwebtoken", "parking_lot", "serde", "serde_json", "thiserror",
        ],
        limited: &[
            ("hyper", &["server", "http1", "http2"]),
            ("hyper-util", &["server", "server-auto", "service", "http1", "http2", "tokio"]),
            ("tokio", &["rt", "net", "sync", "time", "io-util", "macros"]),
        ],
        published: false,
        why: "plays a provider for tests and demonstrations: it serves HTTP and speaks the wire formats; and an issuer, which \
              signs tokens (`aws-lc-rs`, `jsonwebtoken`)",
        ..NOTHING
    },
    Row {
        name: "gw-exec",
        order: Some(6),
        names: &["gw-errors", "gw-types", "gw-routing", "gw-limits", "gw-cache"],
        outside: &[
            "arc-swap", "async-trait", "bytes", "foldhash", "futures-core", "futures-util", "getrandom",
            "hashbrown", "jiff", "jsonschema", "parking_lot", "serde", "serde_json", "smallvec", "thiserror",
            "tracing",
        ],
        limited: &[("tokio", &["rt", "sync", "time", "macros"])],
        why: "puts the stages in order and spends the deadline; it meets providers only through the adapter seam; its feature \
              `schema` checks answers (`jsonschema`)",
        ..NOTHING
    },
    Row {
        name: "gw-adapters",
        order: Some(7),
        names: &["gw-errors", "gw-types", "gw-dialects"],
        outside: &[
            "arc-swap", "async-trait", "aws-credential-types", "aws-sigv4", "base64", "blake2", "bytes",
            "foldhash", "futures-core", "futures-util", "h2", "http", "http-body", "http-body-util", "httpdate",
            "hyper-rustls", "jiff", "jsonwebtoken", "memchr", "parking_lot", "percent-encoding", "rustls",
            "rustls-native-certs", "serde", "serde_json", "smallvec", "thiserror", "tokio-rustls", "tower-service",
            "tracing", "webpki-roots",
        ],
        limited: &[
            ("hyper", &["client", "http1", "http2"]),
            (
                "hyper-util",
                &[
                    "client", "client-legacy", "client-pool", "client-proxy", "service", "http1", "http2",
                    "tokio",
                ],
            ),
            ("tokio", &["rt", "net", "sync", "time", "io-util", "macros"]),
        ],
        why: "the only room with connections to providers and their credentials; `h2` says which calls a closing connection \
              has not processed",
        ..NOTHING
    },
    Row {
        name: "gw-stores",
        order: Some(8),
        names: &["gw-errors", "gw-types", "gw-limits", "gw-cache"],
        outside: &[
            "async-trait", "aws-lc-rs", "backon", "blake2b_simd", "bytes", "crc32fast", "deadpool-postgres",
            "foldhash", "futures-core", "futures-util", "jiff", "memchr", "memmap2", "parking_lot", "redis", "rusqlite",
            "rustix", "serde", "serde_json", "smallvec", "thiserror", "tokio-postgres", "tracing",
        ],
        limited: &[("tokio", &["rt", "net", "sync", "time", "macros"])],
        why: "the only room with SQL and Redis; fills the ledger, shared-limits and shared-cache seams; signs checkpoints \
              with the Ed25519 that the TLS library brings (`aws-lc-rs`), keeps its journal without a call a record \
              (`memmap2`, `rustix`, `crc32fast`) and hashes records four at a time (`blake2b_simd`)",
        ..NOTHING
    },
    Row {
        name: "gw-config",
        order: Some(9),
        names: &[
            "gw-errors", "gw-types", "gw-routing", "gw-limits", "gw-cache", "gw-dialects", "gw-exec",
            "gw-adapters", "gw-stores",
        ],
        outside: &[
            "annotate-snippets", "arc-swap", "async-trait", "blake2", "blake2b_simd", "bytes", "foldhash",
            "futures-core", "getrandom", "hashbrown", "http", "jiff", "memchr", "notify", "parking_lot", "percent-encoding",
            "schemars", "serde", "serde_json", "smallvec", "strsim", "subtle", "thiserror", "toml",
            "tracing",
        ],
        limited: &[("tokio", &["rt", "sync", "time", "macros"])],
        why: "the composition root: the only crate that sees every part, so that no part has to see another",
        ..NOTHING
    },
    Row {
        name: "gw-server",
        order: Some(10),
        names: &["gw-errors", "gw-types", "gw-dialects", "gw-exec", "gw-config"],
        outside: &[
            "arc-swap", "async-trait", "axum", "base64", "blake2", "bytes", "foldhash", "futures-core",
            "futures-util", "getrandom", "hashbrown", "http", "http-body", "http-body-util", "httpdate",
            "itoa", "jiff", "jsonwebtoken", "maud", "memchr", "parking_lot", "percent-encoding",
            "prometheus-client", "serde", "serde_json", "smallvec", "subtle", "thiserror", "tower-service",
            "tracing",
        ],
        limited: &[
            ("hyper", &["server", "http1", "http2"]),
            (
                "hyper-util",
                &["server", "server-auto", "server-graceful", "service", "http1", "http2", "tokio"],
            ),
            ("tokio", &["rt", "net", "sync", "time", "io-util", "macros"]),
        ],
        why: "speaks HTTP to clients; what it needs from below it gets as façades of the composition root",
        ..NOTHING
    },
    Row {
        name: "gw-cli",
        order: Some(11),
        names: &["gw-errors", "gw-types", TEST_KIT, "gw-exec", "gw-config", "gw-server"],
        outside: &[
            "anstream", "anstyle", "async-trait", "bytes", "clap", "clap_complete", "comfy-table",
            "futures-core", "futures-util", "getrandom", "indicatif", "jiff", "mimalloc", "parking_lot",
            "serde", "serde_json", "thiserror", "toml", "tracing", "tracing-subscriber",
        ],
        limited: &[(
            "tokio",
            &[
                "rt", "rt-multi-thread", "net", "signal", "sync", "time", "macros", "fs", "io-std",
                "io-util", "process",
            ],
        )],
        binary: Some("gw"),
        why: "arguments, environment, files, terminal; names the test kit for `gw smoke` and `gw demo`",
        ..NOTHING
    },
    Row {
        name: "xtask",
        outside: &["serde", "serde_json", "toml"],
        binary: Some("xtask"),
        published: false,
        why: "judges the workspace from outside, so it names none of it and every build waits for its short list",
        ..NOTHING
    },
    Row {
        name: "gw-tests",
        names: &[
            "gw-errors", "gw-types", "gw-routing", "gw-limits", "gw-cache", "gw-dialects", TEST_KIT,
            "gw-exec", "gw-adapters", "gw-stores", "gw-config", "gw-server", "gw-cli",
        ],
        outside: &[
            "arc-swap", "base64", "blake2", "foldhash", "futures-core", "http-body", "jiff", "jsonschema",
            "memchr", "parking_lot", "percent-encoding", "redis", "rusqlite", "serde", "smallvec", "thiserror",
            "tokio-postgres", "toml", "tower-service", "tracing",
        ],
        published: false,
        why: "whole-gateway tests and benches look at every layer, at what it left in its stores, and whether what callers \
              are sent keeps to their published schemas (`jsonschema`)",
        ..NOTHING
    },
];

const FROM_THE_PIPELINE_UP: &[&str] =
    &[TEST_KIT, "gw-exec", "gw-adapters", "gw-stores", "gw-config", "gw-server", "gw-cli"];

/// The rooms. They hold for normal and build dependencies; what tests may name stands above.
#[rustfmt::skip] // One name a line would hide the rows.
pub(crate) const ROOMS: &[Room] = &[
    Room {
        what: "HTTP client or TLS",
        crates: &[
            "curl", "h2", "hyper-rustls", "hyper-tls", "isahc", "native-tls", "openssl", "reqwest", "rustls",
            "rustls-native-certs", "rustls-platform-verifier", "tokio-native-tls", "tokio-postgres-rustls",
            "tokio-rustls", "ureq", "webpki-roots",
        ],
        features: &[("hyper", "client"), ("hyper-util", "client")],
        only: &["gw-adapters"],
        why: "one transport, one TLS provider; others get it as `HttpFetch`",
    },
    Room {
        what: "HTTP server",
        crates: &["actix-web", "axum", "axum-server", "poem", "rocket", "tiny_http", "tower-http", "warp"],
        features: &[("hyper", "server"), ("hyper-util", "server")],
        only: &["gw-server", TEST_KIT],
        why: "clients meet one ingress; the test kit plays the far side",
    },
    Room {
        what: "SQL or Redis",
        crates: &[
            "deadpool-postgres", "diesel", "fjall", "fred", "libsqlite3-sys", "postgres", "redb", "redis",
            "rusqlite", "sea-orm", "sled", "sqlx", "tokio-postgres",
        ],
        features: &[],
        only: &["gw-stores"],
        why: "queries and their schema stand together",
    },
    Room {
        what: "argument parser or log subscriber",
        crates: &[
            "argh", "bpaf", "clap", "clap_complete", "env_logger", "lexopt", "pico-args", "structopt",
            "tracing-appender", "tracing-subscriber",
        ],
        features: &[],
        only: &["gw-cli"],
        why: "a library neither reads arguments nor decides where logs go",
    },
    Room {
        what: "asynchronous runtime",
        crates: &["async-std", "smol", "tokio"],
        features: &[],
        only: &[
            "gw-limits", "gw-cache", TEST_KIT, "gw-exec", "gw-adapters", "gw-stores", "gw-config",
            "gw-server", "gw-cli",
        ],
        why: "crates 0 to 5 are pure; limits and cache may take `sync`, which needs no runtime",
    },
    Room {
        what: "socket, system clock, file watcher or source of chance",
        crates: &[
            "chrono", "fastrand", "getrandom", "hyper", "hyper-util", "mio", "notify", "rand", "rand_core",
            "socket2", "time", "tower", "uuid",
        ],
        features: &[],
        only: FROM_THE_PIPELINE_UP,
        why: "crates 0 to 5 are pure: the same input gives the same answer, with no machine behind it",
    },
    Room {
        what: "test kit",
        crates: &[TEST_KIT],
        features: &[],
        only: &["gw-cli"],
        why: "only the demonstrations of the command line need it outside tests",
    },
];

/// Returns the row of a member and its place in the build order.
pub(crate) fn row(name: &str) -> Option<(usize, &'static Row)> {
    TABLE.iter().enumerate().find(|(_, row)| row.name == name)
}
