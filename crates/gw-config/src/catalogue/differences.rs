//! Where a configuration says something else than the catalogue.

use gw_types::{Capability, CapabilitySet, Price, Pricing, TokenCount};

use super::{KnownModel, NOT_COVERED};
use crate::source::Span;

/// What a deployment says itself, and where.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) window: Option<(TokenCount, Span)>,
    pub(crate) output: Option<(TokenCount, Span)>,
    pub(crate) capabilities: Option<(CapabilitySet, Span)>,
    pub(crate) price: Option<(Pricing, Span)>,
}

/// One setting that says something else than the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) span: Span,
    /// The setting's name in its deployment.
    pub(crate) setting: &'static str,
    /// What the deployment says, and what the catalogue does.
    pub(crate) said: String,
}

/// Returns every setting that differs, in a fixed order.
pub(crate) fn differences(written: &Written, known: &KnownModel) -> Vec<Difference> {
    let number = |setting, written: Option<(TokenCount, Span)>, known: Option<TokenCount>| {
        let ((written, span), known) = (written?, known?);
        let said = format!("says {written}, the catalogue {known}");
        (written != known).then_some(Difference { span, setting, said })
    };
    let numbers = [
        number("context_window", written.window, Some(known.window)),
        number("max_output_tokens", written.output, known.output),
    ];
    let capabilities = written.capabilities.and_then(|(can, span)| {
        let said = capabilities(can, known.can)?;
        Some(Difference { span, setting: "capabilities", said })
    });
    let price = written.price.as_ref().zip(known.price.as_ref()).and_then(|((pricing, span), known)| {
        let Pricing::PerToken(price) = pricing else { return None };
        Some(Difference { span: *span, setting: "price", said: prices(price, known)? })
    });
    numbers.into_iter().flatten().chain(capabilities).chain(price).collect()
}

fn capabilities(written: CapabilitySet, known: CapabilitySet) -> Option<String> {
    let only = |in_one: CapabilitySet, in_other: CapabilitySet| {
        let names = Capability::ALL
            .into_iter()
            .filter(|one| in_one.contains(*one) && !in_other.contains(*one) && !NOT_COVERED.contains(one));
        names.map(|one| format!("`{}`", one.as_str())).collect::<Vec<_>>().join(", ")
    };
    let (more, less) = (only(written, known), only(known, written));
    match (more.as_str(), less.as_str()) {
        ("", "") => None,
        ("", less) => Some(format!("leaves out {less}, which the catalogue lists")),
        (more, "") => Some(format!("lists {more}, which the catalogue does not")),
        (more, less) => Some(format!("lists {more} and leaves out {less}, unlike the catalogue")),
    }
}

/// Compares the prices that both say. A class that a deployment leaves out takes a price that is no lower; a tier that
/// it leaves out does not.
fn prices(written: &Price, known: &Price) -> Option<String> {
    let classes = [
        ("input", Some(written.input), Some(known.input)),
        ("output", Some(written.output), Some(known.output)),
        ("cached_input", written.cached_input, known.cached_input),
        ("cache_write", written.cache_write, known.cache_write),
        ("cache_write_long", written.cache_write_long, known.cache_write_long),
        ("reasoning", written.reasoning, known.reasoning),
    ];
    let differs = |(class, written, known): (&str, Option<u64>, Option<u64>)| {
        let (written, known) = (written?, known?);
        (written != known).then(|| format!("`{class}` {written}, the catalogue {known}"))
    };
    let differing: Vec<String> = classes.into_iter().filter_map(differs).collect();
    let tier = match (&written.tier, &known.tier) {
        (Some(written), Some(known)) if written != known => {
            Some("another `tier` than the catalogue".to_owned())
        }
        (None, Some(known)) => {
            Some(format!("no `tier`, the catalogue one above {} input tokens", known.threshold))
        }
        (Some(_) | None, _) => None,
    };
    let all: Vec<String> = differing.into_iter().chain(tier).collect();
    (!all.is_empty()).then(|| format!("says {}", all.join("; ")))
}
