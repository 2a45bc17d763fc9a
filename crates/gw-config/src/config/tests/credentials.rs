//! Several credentials of one provider.

use super::{accepts, check};

const KEY: &str = "api_key = { env = \"UP_KEY\" }";

fn list(entries: &[&str]) -> String {
    format!("credentials = [{}]", entries.join(", "))
}

const A: &str = "{ name = \"a\", api_key = { env = \"UP_KEY\" } }";
const B: &str = "{ name = \"b\", api_key = { env = \"T_KEY\" } }";

#[track_caller]
fn refuses(entries: &[&str], expected: &str) {
    check(KEY, &list(entries), expected);
}

#[test]
fn a_list_of_named_keys_stands_for_the_key() {
    accepts(KEY, &list(&[A]), "\"name\": \"a\"");
    accepts(KEY, &list(&[A, B]), "\"env\": \"T_KEY\"");
}

#[test]
fn what_contradicts_itself_is_refused() {
    check(
        KEY,
        &format!("{KEY}\n{}", list(&[A, B])),
        "10:1: `api_key` stands beside `credentials`, each of which has its own; remove `api_key`",
    );
    refuses(&[], "10:15: `providers.up.credentials` is empty; write at least one item");
    let named = "10:62: `providers.up.credentials` names `a` twice; give each credential a name of its own";
    refuses(&[A, "{ name = \"a\", api_key = { env = \"T_KEY\" } }"], named);
    refuses(
        &[A, "{ name = \"c\", api_key = { env = \"UP_KEY\" } }"],
        "10:62: credentials `c` and `a` of `providers.up.credentials` are the same; remove one of them, or name \
         another variable or file",
    );
    refuses(
        &["{ name = \"a\" }"],
        "10:16: missing `api_key` in `providers.up.credentials[0]`; write `api_key = { env = \"NAME\" }`",
    );
    refuses(
        &["{ api_key = { env = \"UP_KEY\" } }"],
        "10:16: missing `name` in `providers.up.credentials[0]`; write `name = \"main\"`",
    );
    refuses(
        &["{ name = \"a\", api_key = \"canary\" }"],
        "10:40: `providers.up.credentials[0].api_key` must not hold the secret itself; write `{ env = \"NAME\" }` or \
         `{ file = \"PATH\" }`",
    );
    check(
        KEY,
        "credentials = { file = \"sa.json\" }",
        "10:15: `providers.up.credentials` is a table, not a list; write `[...]` around the items",
    );
}
