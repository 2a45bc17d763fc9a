//! The facts about a deployment's model: what the file says, and the catalogue for what it leaves out.

use gw_types::{Capability, CapabilitySet, ModelName, Pricing, TokenCount};

use super::{deployment::TOKENS_MAX, price};
use crate::{
    catalogue::{Catalogue, Difference, KnownModel, Written, differences},
    nearest,
    reader::{Section, quotable},
    source::Span,
};

/// How a deployment says that its model is not the one of the catalogue that has its name.
const NONE: &str = "none";

/// What a deployment can do where neither it nor the catalogue says.
const CAPABILITIES: CapabilitySet = CapabilitySet::EMPTY.with(Capability::Chat).with(Capability::Streaming);

/// A model of the catalogue, and its name there.
pub(super) type Known = (String, &'static KnownModel);

/// The facts that the catalogue may fill in.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) capabilities: CapabilitySet,
    pub(super) window: Option<TokenCount>,
    pub(super) output: Option<TokenCount>,
    /// `None`: missing, or faulty.
    pub(super) price: Option<Pricing>,
    pub(super) differences: Vec<Difference>,
}

/// Finds the model that a deployment runs: by `catalogue = "PROVIDER/MODEL"`, else by the kind of its provider and its
/// `model`.
pub(super) fn model(section: &mut Section<'_>, kind: &str, model: Option<&ModelName>) -> Option<Known> {
    let Some(node) = section.optional("catalogue") else {
        return Catalogue::built_in().find_of_kind(kind, model?.as_str());
    };
    let text = node.text()?;
    if text == NONE {
        return None;
    }
    let catalogue = Catalogue::built_in();
    let known = catalogue.find_named(text);
    if known.is_none() {
        let names = catalogue.names();
        let near = nearest::nearest(text, names.iter().map(String::as_str));
        let expected = near.map_or_else(
            || "write a name of `gw models`, or `none`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        node.fault(format!("unknown model `{}` in `{}`", quotable(text), node.path()), expected);
    }
    Some((text.to_owned(), known?))
}

/// Reads the facts. What the file says wins; what it leaves out is the catalogue's.
pub(super) fn facts(
    section: &mut Section<'_>,
    kind: &str,
    model: Option<&ModelName>,
    known: Option<&Known>,
) -> Facts {
    let written = Written {
        capabilities: capabilities(section),
        price: written_price(section, kind, model, known),
        ..sizes(section)
    };
    let known = known.map(|(_, known)| *known);
    let of_catalogue = known.and_then(|known| known.price.clone());
    let is_written = section.optional("price").is_some();
    Facts {
        capabilities: value(written.capabilities.as_ref())
            .or(known.map(|known| known.can))
            .unwrap_or(CAPABILITIES),
        window: value(written.window.as_ref()).or(known.map(|known| known.window)),
        output: value(written.output.as_ref()).or_else(|| {
            // An answer that is longer than the window that the file says would be none.
            let output = known?.output?;
            Some(value(written.window.as_ref()).map_or(output, |window| output.min(window)))
        }),
        price: match &written.price {
            Some((price, _)) => Some(price.clone()),
            // A price that could not be read is not replaced by another one.
            None if is_written => None,
            None => of_catalogue.map(|price| Pricing::PerToken(Box::new(price))),
        },
        differences: known.map_or_else(Vec::new, |known| differences(&written, known)),
    }
}

fn value<T: Clone>(written: Option<&(T, Span)>) -> Option<T> {
    written.map(|(value, _)| value.clone())
}

fn capabilities(section: &mut Section<'_>) -> Option<(CapabilitySet, Span)> {
    let words = Capability::ALL.map(|capability| (capability.as_str(), capability));
    let span = section.optional("capabilities")?.span();
    let capabilities = section.choices("capabilities", "capability", &words)?;
    Some((capabilities.into_iter().collect(), span))
}

fn sizes(section: &mut Section<'_>) -> Written {
    let [window, output] = ["context_window", "max_output_tokens"].map(|key| {
        let node = section.optional(key)?;
        let tokens = u64::try_from(node.whole(1..=TOKENS_MAX)?).ok()?;
        Some((TokenCount::new(tokens), node))
    });
    if let (Some((window, _)), Some((output, node))) = (&window, &output)
        && output > window
    {
        node.fault(
            format!("`{}` is above `context_window`: `{output}`", node.path()),
            format!("write at most {window}"),
        );
    }
    let placed =
        |size: Option<(TokenCount, crate::reader::Node<'_>)>| size.map(|(size, node)| (size, node.span()));
    Written { window: placed(window), output: placed(output), ..Written::default() }
}

/// Reads the price; where the catalogue has none either, its absence is a fault.
fn written_price(
    section: &mut Section<'_>,
    kind: &str,
    model: Option<&ModelName>,
    known: Option<&Known>,
) -> Option<(Pricing, Span)> {
    const EXAMPLE: &str =
        "{ input = 2_000_000, output = 8_000_000 }`, `price = \"free\"` or `price = \"unpriced\"";
    if let Some(node) = section.optional("price") {
        return Some((price::read(&node)?, node.span()));
    }
    // Where the provider or the model of the catalogue is a fault, what they would have said is not known.
    let is_judged =
        !kind.is_empty() && (known.is_some() || section.text_of("catalogue").is_none_or(|text| text == NONE));
    if is_judged && known.is_none_or(|(_, known)| known.price.is_none()) {
        let near = model.filter(|_| known.is_none()).and_then(|model| similar(kind, model.as_str()));
        let hint = near.map(|near| format!("`, or a model of the catalogue, such as `{near}"));
        section.required("price", &format!("{EXAMPLE}{}", hint.unwrap_or_default()));
    }
    None
}

/// Returns the model of the catalogue whose name is nearest, among those that the provider's kind has.
fn similar(kind: &str, model: &str) -> Option<String> {
    let names = Catalogue::built_in().names_of_kind(kind);
    nearest::nearest(model, names.iter().copied()).map(str::to_owned)
}
