//! Small charts: horizontal bars, as SVG.

use super::comparison::Way;

/// The file of the chart of items a second.
pub(super) const THROUGHPUT: &str = "throughput.svg";

/// The file of the chart of times.
pub(super) const LATENCY: &str = "latency.svg";

/// Where bars begin, and how long the longest is.
const LEFT: u64 = 190;
const LONGEST: u64 = 320;

/// The height of a bar and of its place.
const BAR: u64 = 16;
const STEP: u64 = 24;

/// One bar: a value in thousandths.
struct Bar {
    label: String,
    milli: u64,
}

/// Returns the chart of items a second.
pub(super) fn throughput(ways: &[Way]) -> String {
    let bar = |way: &Way| Bar { label: way.way.to_owned(), milli: number(way, "items_per_second_milli") };
    bars("items a second", &ways.iter().map(bar).collect::<Vec<_>>())
}

/// Returns the chart of the times of nineteen items in twenty.
pub(super) fn latency(ways: &[Way]) -> String {
    let pair = |way: &Way| {
        ["admitted", "queued"].map(|what| Bar {
            label: format!("{} {what}", way.way),
            milli: number(way, if what == "queued" { "queued_p95_us" } else { "admitted_p95_us" }),
        })
    };
    bars("95 % within ms", &ways.iter().flat_map(pair).collect::<Vec<_>>())
}

fn number(way: &Way, name: &str) -> u64 {
    way.measured.get(name).copied().unwrap_or_default()
}

fn bars(title: &str, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.milli).max().unwrap_or_default().max(1);
    let (width, height) = (LEFT + LONGEST + 80, 30 + STEP * u64::try_from(bars.len()).unwrap_or_default());
    let rows: String = (0_u64..)
        .zip(bars)
        .map(|(at, bar)| {
            let (top, long) = (28 + at * STEP, bar.milli.saturating_mul(LONGEST) / most);
            let (text, value) = (top + 12, decimal(bar.milli, 1_000));
            format!(
                "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{LEFT}\" y=\"{top}\" width=\"{long}\" height=\"{BAR}\" fill=\"#4a7fb5\"/>\
                 <text x=\"{}\" y=\"{text}\">{value}</text>\n",
                LEFT - 8,
                bar.label.replace('_', " "),
                LEFT + long + 6,
            )
        })
        .collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <text x=\"8\" y=\"16\" font-weight=\"bold\">{title}</text>\n{rows}</svg>\n"
    )
}

/// Returns a value in parts with one decimal.
pub(super) fn decimal(value: u64, parts: u64) -> String {
    format!("{}.{}", value / parts, value % parts * 10 / parts)
}

#[cfg(test)]
mod tests {
    use super::{Bar, bars, decimal};

    #[test]
    fn the_longest_bar_fills_its_place() {
        let bar = |label: &str, milli| Bar { label: label.to_owned(), milli };
        let drawn = bars("t", &[bar("a_b", 500), bar("c", 1_000)]);
        assert!(drawn.contains("width=\"160\"") && drawn.contains("width=\"320\""), "{drawn}");
        assert!(drawn.contains(">a b</text>") && drawn.ends_with("</svg>\n"), "{drawn}");
        assert_eq!((decimal(1_550, 1_000).as_str(), decimal(9, 1_000).as_str()), ("1.5", "0.0"));
        assert!(bars("t", &[]).contains("<svg"));
    }
}
