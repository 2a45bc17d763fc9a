//! The report for people, drawn as the Rust compiler draws its own.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet, normalize_untrusted_str};

use super::{Diagnostic, Severity};

/// Faults drawn in full; the rest is counted.
const DRAWN_MAX: usize = 50;

pub(super) fn report(faults: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut text: String =
        faults.iter().take(DRAWN_MAX).map(|fault| draw(fault, &renderer) + "\n\n").collect();
    if let Some(hidden) = faults.len().checked_sub(DRAWN_MAX).filter(|hidden| *hidden > 0) {
        text.push_str(&format!("... and {hidden} more\n"));
    }
    let file = faults.first().map_or("", Diagnostic::file);
    text.push_str(&format!("{} in {}\n", counted(faults), normalize_untrusted_str(file)));
    text
}

/// Returns how many there are of each kind that there is.
fn counted(faults: &[Diagnostic]) -> String {
    let count = |severity: Severity| {
        let count = faults.iter().filter(|fault| fault.severity == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {}{plural}", severity.as_str()))
    };
    let counts: Vec<String> = [Severity::Error, Severity::Warning].into_iter().filter_map(count).collect();
    counts.join(" and ")
}

fn draw(fault: &Diagnostic, renderer: &Renderer) -> String {
    let level = match fault.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(normalize_untrusted_str(&fault.message));
    let file = normalize_untrusted_str(&fault.file);
    let expected = normalize_untrusted_str(&fault.expected);
    let group = match &fault.place {
        Some(place) if place.text.len() <= Diagnostic::LINE_BYTES_MAX => {
            let mark = AnnotationKind::Primary.span(place.marked.clone()).label(expected);
            title.element(
                Snippet::source(place.text.as_str()).line_start(place.line).path(file).annotation(mark),
            )
        }
        Some(place) => title
            .element(Origin::path(file).line(place.line).char_column(place.column))
            .element(Level::HELP.message(expected)),
        None => title.element(Origin::path(file)).element(Level::HELP.message(expected)),
    };
    renderer.render(&[group])
}
