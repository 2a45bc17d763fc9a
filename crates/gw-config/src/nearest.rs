//! Which known name somebody probably meant.

/// Longer texts are no misspelt name, and the distance costs their product.
const TEXT_BYTES_MAX: usize = 64;

/// Names listed in a remedy; more would hide it.
const LISTED_MAX: usize = 16;

/// Returns the known name nearest to `text`, if one is near: at most one edit in three characters.
pub(crate) fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let lower = text.to_ascii_lowercase().replace('-', "_");
    known
        .into_iter()
        .filter_map(|name| {
            let edits = strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase().replace('-', "_"));
            let allowed = name.len().max(text.len()).div_ceil(3);
            (edits <= allowed && edits < name.len()).then_some((edits, name))
        })
        .min()
        .map(|(_, name)| name)
}

/// Returns whether one of two names is probably the other misspelt: they differ by one letter that is added, left out,
/// exchanged or in the wrong order. Names that differ in their numbers are meant to.
pub(crate) fn is_misspelt(one: &str, other: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    one.len().max(other.len()) <= TEXT_BYTES_MAX
        && letters(one) != letters(other)
        && strsim::damerau_levenshtein(one, other) == 1
}

/// Returns the remedy for an unknown name: the nearest one, else all of them.
pub(crate) fn remedy<'a>(text: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(text, known.clone()) {
        return format!("did you mean `{name}`?");
    }
    let names: Vec<String> =
        known.clone().into_iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let hidden = known.into_iter().count().saturating_sub(LISTED_MAX);
    match (names.is_empty(), hidden) {
        (true, _) => "none is known".to_owned(),
        (false, 0) => format!("known: {}", names.join(", ")),
        (false, hidden) => format!("known: {}, and {hidden} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{nearest, remedy};

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(nearest(text, ["listen", "admin_listen", "max_body_bytes", "name"]), expected);
    }

    #[test]
    fn near_names_are_found() {
        check("lisen", Some("listen"));
        check("Listen", Some("listen"));
        check("max-body-bytes", Some("max_body_bytes"));
        check("nmae", Some("name"));
        check("colour", None);
        check("", None);
        check(&"x".repeat(10_000), None);
    }

    #[test]
    fn misspelt_names_differ_by_one_letter_and_not_by_a_number() {
        for (one, other) in [("uk-south", "uk-suth"), ("uk-west", "uk-wset"), ("westeurope", "west-europe")] {
            assert!(super::is_misspelt(one, other), "{one} {other}");
        }
        for (one, other) in
            [("us-east-1", "us-east-2"), ("eastus", "eastus2"), ("us-east", "us-west"), ("a", "a")]
        {
            assert!(!super::is_misspelt(one, other), "{one} {other}");
        }
    }

    #[test]
    fn remedies_name_one_or_all() {
        assert_eq!(remedy("eu1", ["eu", "ptu"]), "did you mean `eu`?");
        assert_eq!(remedy("zzzz", ["eu", "ptu"]), "known: `eu`, `ptu`");
        assert_eq!(remedy("zzzz", std::iter::empty()), "none is known");
    }
}
