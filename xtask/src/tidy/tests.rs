//! Plants one violation of each rule in a small repository and reads the message.

use std::fs;

use super::{check, source::blank};
use crate::workspace;

/// Writes these files beside a tidy minimum and returns the messages.
fn messages(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let minimum =
        [("Cargo.toml", ""), ("README.md", ""), ("docs/architecture.md", ""), (".gitignore", "/target\n")];
    for (path, text) in minimum.iter().chain(files) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    check(folder.path()).unwrap().findings.iter().map(ToString::to_string).collect()
}

/// Expects exactly one message about a file, and that it begins and continues so.
#[track_caller]
fn refuses(path: &str, text: &str, place: &str, offender: &str) {
    let messages = messages(&[(path, text)]);
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].starts_with(place), "{}", messages[0]);
    assert!(messages[0].contains(offender), "{}", messages[0]);
}

#[track_caller]
fn accepts(path: &str, text: &str) {
    assert_eq!(messages(&[(path, text)]), Vec::<String>::new());
}

const LIB: &str = "crates/gw-x/src/lib.rs";
const FILE: &str = "crates/gw-x/src/x.rs";

#[test]
fn the_real_repository_is_tidy() {
    let root = workspace::find_root(&std::env::current_dir().unwrap()).unwrap();
    let findings = check(&root).unwrap().findings;
    let messages: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(messages.is_empty(), "{}", messages.join("\n\n"));
}

#[test]
fn refuses_what_does_not_belong_where_it_lies() {
    refuses("notes.txt", "", "notes.txt", "`notes.txt` at the top level");
    refuses("scripts/x.py", "", "scripts", "`scripts` at the top level");
    refuses("crates/gw-x/build.sh", "", "crates/gw-x/build.sh", "`build.sh`");
    refuses("crates/gw-x/src/y/mod.rs", "//! Y.\n", "crates/gw-x/src/y/mod.rs", "`mod.rs`");
    refuses(
        "crates/gw-x/Cargo.toml",
        "[package]\nname = \"gw-y\"\n",
        "crates/gw-x/Cargo.toml",
        "`gw-y` in folder `gw-x`",
    );
    accepts("crates/gw-x/Cargo.toml", "[package]\nname = \"gw-x\"\n");
    accepts("target/notes.txt", "");
    accepts(".hidden/notes.txt", "");
}

#[test]
fn refuses_a_file_that_does_not_say_what_it_is() {
    for path in [FILE, "xtask/src/x.rs", "tests/it/x.rs", "crates/gw-x/benches/x.rs"] {
        refuses(path, "mod x;\n", &format!("{path}:1"), "no `//!`");
    }
}

#[test]
fn refuses_a_long_file_but_counts_its_tests_apart() {
    let lines = |count: usize| "//! X.\n".to_owned() + &"const X: u8 = 0;\n".repeat(count - 1);
    let tests = |count: usize| {
        format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    const X: u8 = 0;\n".repeat(count - 3))
    };
    accepts(FILE, &lines(600));
    refuses(FILE, &lines(601), FILE, "601 lines outside tests");
    accepts(FILE, &(lines(600) + &tests(300)));
    refuses(FILE, &(lines(600) + &tests(301)), FILE, "901 lines");
    accepts("crates/gw-x/src/x/tests.rs", &lines(900));
    refuses("crates/gw-x/tests/it/main.rs", &lines(901), "crates/gw-x/tests/it/main.rs", "901 lines");
}

#[test]
fn refuses_a_title_page_that_holds_more_than_contents() {
    accepts(
        LIB,
        "//! X.\n\nmod x;\n\npub use self::x::{X, Y};\n\npub trait Seam {\n    fn call(&self) -> X;\n}\n",
    );
    accepts(LIB, "//! X.\n\n/// A namespace.\npub mod x;\n");
    refuses(LIB, "//! X.\n\npub mod x;\n", "crates/gw-x/src/lib.rs:3", "`pub mod x;`");
    refuses(LIB, "//! X.\n\npub use self::x::*;\n", "crates/gw-x/src/lib.rs:3", "`pub use self::x::*;`");
    refuses(LIB, "//! X.\n\npub use self::{\n    x::*,\n};\n", "crates/gw-x/src/lib.rs:4", "`x::*,`");
    refuses(
        LIB,
        "//! X.\n\npub fn x(\n    y: u8,\n) -> u8 {\n    y\n}\n",
        "crates/gw-x/src/lib.rs:3",
        "body",
    );
    refuses(LIB, "//! X.\n\nimpl X {}\n", "crates/gw-x/src/lib.rs:3", "`impl X {}`");
    refuses(LIB, &"//! X.\n".repeat(101), LIB, "101 lines");
}

#[test]
fn refuses_phrases_in_code_but_not_in_words() {
    let code = |line: &str| format!("//! X.\n\n{line}\n");
    refuses(FILE, &code("#[should_panic(expected = \"x\")]"), "crates/gw-x/src/x.rs:3", "`#[should_panic`");
    refuses("crates/gw-x/src/tests.rs", &code("#[ignore]"), "crates/gw-x/src/tests.rs:3", "`#[ignore`");
    refuses(FILE, &code("fn x() { todo!() }"), "crates/gw-x/src/x.rs:3", "`todo!(`");
    refuses(FILE, &code("fn x() { unimplemented!() }"), "crates/gw-x/src/x.rs:3", "`unimplemented!(`");
    accepts(
        FILE,
        &code("// Not `todo!()`.\nconst X: &str = \"#[ignore]\";\nconst Y: &str = r#\"\"todo!()\"\"#;"),
    );
}

#[test]
fn refuses_paths_of_the_machine_outside_tests() {
    let line = format!("//! X.\n\nconst X: &str = \"/{}/x\";\n", "root");
    refuses(FILE, &line, "crates/gw-x/src/x.rs:3", "a path below `/root`");
    refuses(FILE, &format!("//! See /{}/x.\n", "tmp"), "crates/gw-x/src/x.rs:1", "a path below `/tmp`");
    accepts("crates/gw-x/src/tests.rs", &line);
    accepts(FILE, &format!("//! X.\n\nconst X: &str = \"https://example.com/{}/x\";\n", "home"));
}

#[test]
fn blanks_comments_and_literals_and_nothing_else() {
    for (text, code) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("x\"y", 'z', '\'')"#, "f(      ,    ,     )"),
        ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
        ("r#\"a\"b\"# c", "         c"),
        ("br\"\\\" c", "      c"),
        ("r#type + for_r\"x\"", "r#type + for_r   "),
        ("\"a\nb\" c", "  \n   c"),
    ] {
        assert_eq!(blank(text), code, "{text}");
    }
}
