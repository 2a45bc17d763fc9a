//! The table: medians over the rounds, ratios to the bare proxy and to nginx, and the spread.

use std::time::Duration;

/// One burst.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) cpu_us: f64,
    pub(crate) per_second: f64,
}

/// One target.
pub(crate) struct Row {
    name: &'static str,
    pub(crate) plain: Vec<Figures>,
    pub(crate) stream: Vec<Figures>,
    pub(crate) paced: f64,
    pub(crate) idle_kib: u64,
    pub(crate) load_kib: u64,
    pub(crate) first_answer: Duration,
}

impl Row {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            plain: Vec::new(),
            stream: Vec::new(),
            paced: 0.0,
            idle_kib: 0,
            load_kib: 0,
            first_answer: Duration::ZERO,
        }
    }
}

pub(crate) fn print(rows: &[Row]) {
    println!(
        "| target | CPU us/request (spread) | x bare | x nginx | requests/s | CPU us/stream of 64 (spread) | x bare | x nginx | p50 us at 1,000/s | resident MiB idle / load | first answer ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let (bare, nginx) = (find(rows, "bare proxy"), find(rows, "nginx"));
    for row in rows {
        println!(
            "| {} | {} | {} | {} | {:.0} | {} | {} | {} | {:.0} | {:.1} / {:.1} | {:.0} |",
            row.name,
            spread(&row.plain),
            ratio(&row.plain, bare.map(|bare| &bare.plain)),
            ratio(&row.plain, nginx.map(|nginx| &nginx.plain)),
            median(&row.plain.iter().map(|figures| figures.per_second).collect::<Vec<_>>()),
            spread(&row.stream),
            ratio(&row.stream, bare.map(|bare| &bare.stream)),
            ratio(&row.stream, nginx.map(|nginx| &nginx.stream)),
            row.paced,
            row.idle_kib as f64 / 1_024.0,
            row.load_kib as f64 / 1_024.0,
            row.first_answer.as_secs_f64() * 1e3,
        );
    }
}

fn find<'a>(rows: &'a [Row], name: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.name == name)
}

/// The median of the ratios round by round: a machine that drifts slows both sides of a round.
fn ratio(own: &[Figures], other: Option<&Vec<Figures>>) -> String {
    match other {
        Some(other) => {
            let ratios: Vec<f64> =
                own.iter().zip(other).map(|(own, other)| own.cpu_us / other.cpu_us).collect();
            format!("{:.2}", median(&ratios))
        }
        None => "-".to_owned(),
    }
}

fn spread(figures: &[Figures]) -> String {
    let values: Vec<f64> = figures.iter().map(|figures| figures.cpu_us).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{:.1} ({least:.1}-{most:.1})", median(&values))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
