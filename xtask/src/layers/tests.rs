//! Plants one violation of each rule in a small workspace and reads the message.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::{
    check,
    table::{ROOMS, Row, TABLE, row},
};
use crate::workspace;

/// A workspace with every member of the table, none of which names anything.
struct Planted {
    folder: TempDir,
}

const OUTSIDE: [&str; 12] = [
    "axum",
    "clap",
    "getrandom",
    "hyper",
    "hyper-util",
    "left-pad",
    "loom",
    "proptest",
    "reqwest",
    "rusqlite",
    "serde",
    "tokio",
];

impl Planted {
    fn new() -> Self {
        let planted = Self { folder: tempfile::tempdir().unwrap() };
        let mut root = String::from(
            "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\", \"xtask\", \"tests\"]\n\n\
             [workspace.package]\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.85\"\nlicense = \"MIT\"\n\n\
             [workspace.lints.rust]\nunsafe_code = \"deny\"\n\n[workspace.dependencies]\n",
        );
        for row in TABLE.iter().filter(|row| row.name.starts_with("gw-")) {
            root += &format!("{} = {{ path = \"{}\", version = \"0.1.0\" }}\n", row.name, folder(row.name));
        }
        for name in OUTSIDE {
            root += &format!("{name} = {{ version = \"1\", default-features = false }}\n");
        }
        planted.write("Cargo.toml", &root);
        TABLE.iter().for_each(|row| planted.add_member(row));
        planted
    }

    fn add_member(&self, row: &Row) {
        let folder = folder(row.name);
        let publish = if row.published { "" } else { "publish = false\n" };
        let binary = row.binary.map(|name| format!("[[bin]]\nname = \"{name}\"\npath = \"src/main.rs\"\n\n"));
        self.write(
            &format!("{folder}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{}\"\nversion.workspace = true\nedition.workspace = true\n\
                 rust-version.workspace = true\nlicense.workspace = true\n{publish}\n\
                 [lints]\nworkspace = true\n\n{}[dependencies]\n",
                row.name,
                binary.as_deref().unwrap_or_default(),
            ),
        );
        self.write(&format!("{folder}/src/lib.rs"), "");
        if binary.is_some() {
            self.write(&format!("{folder}/src/main.rs"), "fn main() {}\n");
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn edit(&self, path: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.folder.path().join(path)).unwrap();
        self.write(path, &change(text));
    }

    /// Adds lines to the end of a member's manifest, where its `[dependencies]` stand.
    fn add(&self, member: &str, lines: &str) {
        self.edit(&format!("{}/Cargo.toml", folder(member)), |text| text + lines + "\n");
    }

    fn replace(&self, member: &str, old: &str, new: &str) {
        self.edit(&format!("{}/Cargo.toml", folder(member)), |text| {
            assert!(text.contains(old));
            text.replace(old, new)
        });
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn messages(&self) -> Vec<String> {
        check(&self.root()).findings.iter().map(ToString::to_string).collect()
    }
}

fn folder(member: &str) -> String {
    match member {
        "gw-tests" => "tests".to_owned(),
        "xtask" => "xtask".to_owned(),
        _ => format!("crates/{member}"),
    }
}

/// Adds lines to a member's manifest and expects one message that holds all these phrases, manifest and row included.
#[track_caller]
fn refuses(member: &str, lines: &str, phrases: &[&str]) {
    let planted = Planted::new();
    planted.add(member, lines);
    let messages = planted.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    expect_phrases(&messages[0], phrases);
    expect_phrases(&messages[0], &[&format!("{}/Cargo.toml: ", folder(member)), "table.rs"]);
}

#[track_caller]
fn expect_phrases(message: &str, phrases: &[&str]) {
    for phrase in phrases {
        assert!(message.contains(phrase), "no `{phrase}` in:\n{message}");
    }
}

#[track_caller]
fn accepts(member: &str, lines: &str) {
    let planted = Planted::new();
    planted.add(member, lines);
    assert_eq!(planted.messages(), Vec::<String>::new());
}

#[test]
fn the_real_workspace_keeps_its_layers() {
    let root = workspace::find_root(&std::env::current_dir().unwrap()).unwrap();
    let findings = check(&root).findings;
    let messages: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(messages.is_empty(), "{}", messages.join("\n\n"));
}

#[test]
fn rows_name_only_rows_above_them() {
    for (place, upper) in TABLE.iter().enumerate() {
        assert!(
            upper.names.iter().all(|name| row(name).is_some_and(|(below, _)| below < place)),
            "{}",
            upper.name
        );
        assert!(!upper.why.is_empty(), "{} says why", upper.name);
    }
    let orders: Vec<u8> = TABLE.iter().filter_map(|row| row.order).collect();
    assert_eq!(orders, (0..=11).collect::<Vec<u8>>());
}

#[test]
fn rows_do_not_contradict_the_rooms() {
    for row in TABLE.iter().filter(|row| row.name != "gw-tests") {
        for room in ROOMS.iter().filter(|room| !room.only.contains(&row.name)) {
            assert!(!row.outside.iter().any(|name| room.holds(name, &[])), "{} in {}", room.what, row.name);
            assert!(!row.limited.iter().any(|(name, features)| room.holds(name, features)), "{}", row.name);
        }
    }
}

#[test]
fn accepts_a_workspace_without_violations() {
    accepts(
        "gw-exec",
        "gw-routing.workspace = true\ntokio = { workspace = true, features = [\"rt\", \"time\"] }",
    );
}

// === Edges ===

#[test]
fn refuses_an_upward_edge() {
    let phrases = [
        "`gw-types` (order 1)",
        "upwards to `gw-exec` (order 6)",
        "later crate to an earlier",
        "`gw-types` in",
    ];
    refuses("gw-types", "gw-exec.workspace = true", &phrases);
}

#[test]
fn refuses_a_sibling_edge() {
    let phrases =
        ["`gw-cache` (order 4) names `gw-limits` (order 3)", "siblings", "allowed: `gw-errors`, `gw-types`"];
    refuses("gw-cache", "gw-limits.workspace = true", &phrases);
}

#[test]
fn refuses_a_downward_edge_that_no_row_lists() {
    refuses("gw-server", "gw-stores.workspace = true", &["names `gw-stores`", "`gw-server` in"]);
}

#[test]
fn refuses_an_upward_edge_of_a_build_script() {
    let lines = "[build-dependencies]\ngw-config.workspace = true";
    refuses("gw-errors", lines, &["upwards to `gw-config`", "[build-dependencies]", "`gw-errors` in"]);
}

#[test]
fn refuses_an_upward_edge_of_tests() {
    let lines = "[dev-dependencies]\ngw-exec.workspace = true";
    refuses("gw-limits", lines, &["upwards to `gw-exec`", "[dev-dependencies]", "`gw-limits` in"]);
}

#[test]
fn tests_of_any_member_may_name_the_test_kit() {
    accepts("gw-errors", "[dev-dependencies]\ngw-testkit.workspace = true\nproptest.workspace = true");
}

#[test]
fn refuses_the_test_kit_outside_tests() {
    refuses(
        "gw-exec",
        "gw-testkit.workspace = true",
        &["`gw-testkit`", "test kit only in `gw-cli`", "row `gw-exec`"],
    );
}

#[test]
fn names_a_cycle_member_by_member() {
    let planted = Planted::new();
    planted.add("gw-types", "gw-errors.workspace = true");
    planted.add("gw-routing", "gw-types.workspace = true");
    planted.add("gw-errors", "gw-routing.workspace = true");
    let messages = planted.messages();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    expect_phrases(&messages[0], &["`gw-errors` (order 0) runs upwards to `gw-routing`", "`gw-errors` in"]);
    expect_phrases(
        &messages[1],
        &["cycle ", "gw-errors -> gw-routing -> gw-types -> gw-errors", "in xtask/src"],
    );
}

// === Members and rows ===

#[test]
fn refuses_a_member_without_a_row() {
    let planted = Planted::new();
    planted.add_member(&Row { name: "gw-extra", ..row_like("gw-errors") });
    let messages = planted.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    expect_phrases(
        &messages[0],
        &["member `gw-extra` has no row", "add row `gw-extra`", "crates/gw-extra/Cargo.toml"],
    );
}

#[test]
fn refuses_a_row_without_a_member() {
    let planted = Planted::new();
    fs::remove_dir_all(planted.folder.path().join("crates/gw-stores")).unwrap();
    let messages = planted.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    expect_phrases(
        &messages[0],
        &["row `gw-stores` has no member", "`gw-stores` in xtask/src/layers/table.rs"],
    );
}

#[test]
fn tells_what_it_can_where_cargo_refuses_the_workspace() {
    let planted = Planted::new();
    planted.add("gw-config", "gw-stores.workspace = true\nserde = \"1\"");
    fs::remove_dir_all(planted.folder.path().join("crates/gw-stores")).unwrap();
    let messages = planted.messages();
    assert_eq!(messages.len(), 3, "{messages:#?}");
    expect_phrases(&messages[0], &["failed to load manifest", "gw-stores"]);
    expect_phrases(&messages[1], &["row `gw-stores` has no member"]);
    expect_phrases(&messages[2], &["`serde = \"1\"` in [dependencies]"]);
}

#[test]
fn refuses_a_second_binary() {
    let planted = Planted::new();
    planted.write("crates/gw-server/src/bin/serve.rs", "fn main() {}\n");
    let messages = planted.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    expect_phrases(&messages[0], &["binary `serve` in `gw-server`", "`gw` in `gw-cli`", "`gw-server` in"]);
}

#[test]
fn refuses_to_hide_or_to_offer_a_member_against_its_row() {
    let planted = Planted::new();
    planted.replace("gw-exec", "[lints]", "publish = false\n[lints]");
    planted.replace("gw-testkit", "publish = false\n", "");
    let messages = planted.messages();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    expect_phrases(&messages[1], &["no `publish = false` in `gw-testkit`", "`gw-testkit` in"]);
    expect_phrases(&messages[0], &["`publish = false` in `gw-exec`", "`gw-exec` in"]);
}

// === Outside crates ===

#[test]
fn refuses_a_runtime_in_a_pure_crate() {
    let lines = "tokio = { workspace = true, features = [\"sync\"] }";
    refuses("gw-routing", lines, &["`tokio`", "asynchronous runtime only in", "row `gw-routing`"]);
}

#[test]
fn refuses_more_than_sync_in_limits() {
    accepts("gw-limits", "tokio = { workspace = true, features = [\"sync\"] }");
    let lines = "tokio = { workspace = true, features = [\"sync\", \"rt\"] }";
    refuses("gw-limits", lines, &["`tokio` with `rt`", "allowed: `sync`", "`gw-limits` in"]);
}

#[test]
fn refuses_chance_in_a_pure_crate() {
    refuses("gw-cache", "getrandom.workspace = true", &["`getrandom`", "source of chance", "row `gw-cache`"]);
}

#[test]
fn refuses_a_crate_off_the_list() {
    refuses(
        "gw-config",
        "left-pad.workspace = true",
        &["`left-pad`", "`annotate-snippets`", "`gw-config` in"],
    );
    refuses("gw-errors", "[dev-dependencies]\nleft-pad.workspace = true", &["`left-pad`", "`gw-errors` in"]);
}

#[test]
fn sees_an_optional_dependency_under_a_condition() {
    let lines = "[target.'cfg(unix)'.dependencies]\nleft-pad = { workspace = true, optional = true }";
    refuses("gw-exec", lines, &["`left-pad`", "`gw-exec` in"]);
}

#[test]
fn refuses_everything_of_tokio_everywhere() {
    let lines = "tokio = { workspace = true, features = [\"full\"] }";
    refuses(
        "gw-cli",
        lines,
        &["`tokio` with feature `full`", "stands nowhere", "FORBIDDEN_FEATURES and row `gw-cli`"],
    );
    let tests = format!("[dev-dependencies]\n{lines}");
    refuses("gw-tests", &tests, &["`tokio` with feature `full`", "[dev-dependencies]"]);
}

#[test]
fn sees_a_feature_that_a_member_forwards() {
    let lines = "tokio = { workspace = true, features = [\"rt\"] }\n[features]\nall = [\"tokio/full\"]";
    refuses("gw-exec", lines, &["`tokio` with feature `full`"]);
}

#[test]
fn refuses_an_http_client_outside_its_room() {
    let phrases = ["HTTP client or TLS only in `gw-adapters`", "row `gw-exec`"];
    refuses("gw-exec", "reqwest.workspace = true", &phrases);
    refuses("gw-exec", "hyper = { workspace = true, features = [\"client\"] }", &phrases);
    refuses("gw-exec", "hyper-util = { workspace = true, features = [\"client-legacy\"] }", &phrases);
    accepts("gw-adapters", "hyper = { workspace = true, features = [\"client\", \"http1\"] }");
}

#[test]
fn refuses_an_http_server_outside_its_room() {
    refuses(
        "gw-cli",
        "axum.workspace = true",
        &["`axum`", "HTTP server only in `gw-server`", "row `gw-cli`"],
    );
    let lines = "hyper = { workspace = true, features = [\"server\"] }";
    refuses("gw-adapters", lines, &["`hyper` with `server`", "HTTP server only in", "row `gw-adapters`"]);
}

#[test]
fn refuses_sql_outside_its_room() {
    refuses(
        "gw-config",
        "rusqlite.workspace = true",
        &["`rusqlite`", "SQL or Redis only in `gw-stores`", "row `gw-config`"],
    );
    accepts("gw-tests", "[dev-dependencies]\nrusqlite.workspace = true");
}

#[test]
fn refuses_an_argument_parser_outside_its_room() {
    refuses(
        "gw-server",
        "clap.workspace = true",
        &["`clap`", "argument parser", "`gw-cli`", "row `gw-server`"],
    );
}

#[test]
fn a_model_checker_under_its_own_cfg_counts_as_a_test() {
    accepts("gw-limits", "[target.'cfg(loom)'.dependencies]\nloom.workspace = true");
    refuses("gw-limits", "loom.workspace = true", &["`loom`", "`gw-limits` in"]);
}

// === Manifests ===

#[track_caller]
fn refuses_manifest(member: &str, old: &str, new: &str, phrases: &[&str]) {
    let planted = Planted::new();
    planted.replace(member, old, new);
    let messages = planted.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    expect_phrases(&messages[0], phrases);
    expect_phrases(&messages[0], &[&format!("row `{member}`")]);
}

#[test]
fn refuses_missing_lints() {
    let phrases = ["`gw-cache` has no `[lints] workspace = true`", "crates/gw-cache/Cargo.toml"];
    refuses_manifest("gw-cache", "[lints]\nworkspace = true\n", "", &phrases);
}

#[test]
fn refuses_an_own_edition_version_toolchain_or_licence() {
    for (key, own) in
        [("edition", "2021"), ("version", "0.2.0"), ("rust-version", "1.90"), ("license", "MIT")]
    {
        let inherited = format!("\n{key}.workspace = true");
        let written = format!("{key} = \"{own}\"");
        let phrases = [&format!("`{written}` in `gw-exec`"), &format!("`{key}.workspace = true`")];
        refuses_manifest("gw-exec", &inherited, &format!("\n{written}"), &phrases.map(String::as_str));
    }
    refuses_manifest("gw-exec", "license.workspace = true\n", "", &["no `license` in `gw-exec`"]);
}

#[test]
fn refuses_an_own_version_of_a_third_party_crate() {
    refuses("gw-exec", "serde = \"1\"", &["`serde = \"1\"` in [dependencies]", "[workspace.dependencies]"]);
    refuses("gw-exec", "serde = { version = \"1\" }", &["`serde = { version = \"1\" }`", "row `gw-exec`"]);
    let target = "[target.'cfg(unix)'.dev-dependencies]\nproptest = \"1\"";
    refuses("gw-exec", target, &["`proptest = \"1\"` in [target.cfg(unix).dev-dependencies]"]);
}

#[test]
fn refuses_an_own_path_to_a_member() {
    let lines = "gw-types = { path = \"../gw-types\" }";
    refuses("gw-exec", lines, &["`gw-types = { path = \"../gw-types\" }`", "row `gw-exec`"]);
}

#[test]
fn refuses_a_shared_path_without_a_version() {
    let planted = Planted::new();
    planted.edit("Cargo.toml", |text| {
        text.replace("\"crates/gw-types\", version = \"0.1.0\"", "\"crates/gw-types\"")
    });
    let messages = planted.messages();
    assert_eq!(messages.len(), 1, "{messages:#?}");
    expect_phrases(&messages[0], &["Cargo.toml: `gw-types", "[workspace.dependencies]"]);
}

#[test]
fn reports_every_violation_at_once() {
    let planted = Planted::new();
    planted.add("gw-types", "gw-exec.workspace = true");
    planted.add("gw-routing", "tokio.workspace = true");
    planted.replace("gw-server", "[lints]\nworkspace = true\n", "");
    assert_eq!(planted.messages().len(), 3, "{:#?}", planted.messages());
}

fn row_like(name: &str) -> Row {
    let (_, row) = row(name).unwrap();
    Row { name: "", ..*row }
}
