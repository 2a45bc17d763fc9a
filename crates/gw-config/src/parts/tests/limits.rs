//! What the limits of scopes say about each other.

use super::{accepts_with, refuses_in};
use crate::config::tests::{SOUND, environment};

/// Returns the sound file with its tenant in organisation `o1`, and organisations below each other as named.
fn organised(parents: &[(&str, &str)]) -> String {
    let mut text = SOUND.replace("residency = \"onshore\"", "residency = \"onshore\"\norganisation = \"o1\"");
    for (name, parent) in parents {
        text.push_str(&format!("[organisations.{name}]\n"));
        if !parent.is_empty() {
            text.push_str(&format!("parent = \"{parent}\"\n"));
        }
    }
    text
}

#[test]
fn organisations_end_somewhere() {
    refuses_in(
        &organised(&[("o1", "o2"), ("o2", "o1")]),
        &environment(),
        "35:10: organisation `o1` is its own parent, directly or through others; name another parent, or remove \
         `parent` from one of them
         37:10: organisation `o2` is its own parent, directly or through others; name another parent, or remove \
         `parent` from one of them",
    );
}

#[test]
fn at_most_four_organisations_stand_above_a_tenant() {
    let four = [("o1", "o2"), ("o2", "o3"), ("o3", "o4"), ("o4", "")];
    accepts_with(&organised(&four), &environment());
    let five = [("o1", "o2"), ("o2", "o3"), ("o3", "o4"), ("o4", "o5"), ("o5", "")];
    refuses_in(
        &organised(&five),
        &environment(),
        "28:16: tenant `t` has more than 4 organisations above it; name an organisation with at most 3 above it",
    );
}

#[test]
fn limits_of_a_model_that_no_route_is_for_are_refused() {
    accepts_with(&format!("{SOUND}[models.m]\nrequests_per_minute = 5\n"), &environment());
    refuses_in(
        &format!("{SOUND}[models.mm]\nrequests_per_minute = 5\n"),
        &environment(),
        "33:9: no route is for model `mm`, so its limits hold nothing back; known: `m`",
    );
}

#[test]
fn the_pool_is_the_one_that_was_named() {
    let text = format!("{SOUND}[limits]\npool_capacity = 4\n")
        .replace("requests_per_minute = 600", "reserved_concurrency = 5");
    refuses_in(
        &text,
        &environment(),
        "25:10: `reserved_concurrency` of all tenants adds up to 5, above `limits.pool_capacity` of 4; raise \
         `limits.pool_capacity`, or lower a share; the largest is 5, of tenant `t`",
    );
}
