//! The command line of `gw generate`.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use gw_types::{Money, TenantId};

use super::Format;

/// Micro-USD of one USD.
const MICROS: u64 = 1_000_000;

/// The digits of a micro-USD behind the point.
const MICRO_DIGITS: usize = 6;

#[derive(Debug, Args)]
pub(crate) struct GenerateOptions {
    /// The items: JSON Lines in gw's form or OpenAI's batch form, or CSV; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Where the results go, one line each; `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Reads the input as CSV whatever its name; the header names the columns.
    #[arg(long)]
    pub(crate) csv: bool,
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = "gw.toml", conflicts_with = "base_url")]
    pub(crate) config: PathBuf,
    /// As which tenant of the configuration; may be left out where there is one.
    #[arg(long, value_name = "TENANT", conflicts_with = "base_url")]
    pub(crate) tenant: Option<TenantId>,
    /// An OpenAI-compatible endpoint, up to `/v1`, instead of a configuration.
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
    /// The model, for items that name none; with `--base-url`: the one that is asked.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The environment variable that holds the endpoint's key; without it `OPENAI_API_KEY`, if that is set.
    #[arg(long, value_name = "NAME", requires = "base_url")]
    pub(crate) api_key_env: Option<String>,
    /// What the endpoint's model costs, input and output, in USD per million tokens, such as `2,8` or `0.15,0.60`.
    #[arg(long, value_name = "INPUT,OUTPUT", requires = "base_url", value_parser = price)]
    pub(crate) price: Option<(u64, u64)>,
    /// Tokens that the endpoint's model takes; an item that is surely larger fails without a call.
    #[arg(long, value_name = "TOKENS", requires = "base_url", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) context_window: Option<u64>,
    /// Calls of the endpoint for one item, retries included.
    #[arg(long, value_name = "COUNT", requires = "base_url", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) max_attempts: u32,
    /// The time of one call of the endpoint.
    #[arg(long, value_name = "TIME", requires = "base_url", default_value = "2m", value_parser = time)]
    pub(crate) timeout: Duration,
    /// Items in work at once.
    #[arg(long, value_name = "COUNT", default_value = "32")]
    pub(crate) max_concurrency: NonZeroUsize,
    /// Calls a second at each deployment, at most, evenly apart; up to three decimals.
    #[arg(long, value_name = "RATE", value_parser = thousandths)]
    pub(crate) qps: Option<NonZeroU32>,
    /// Tokens in flight at each deployment, at most: input and output bound of all its calls together.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) in_flight_tokens: Option<u64>,
    /// The time of one item, its waiting and its retries included, such as `90s`, `5m` or `1500ms`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) deadline: Option<Duration>,
    /// The most that this run may cost, in USD; it stops before that would be passed.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<Money>,
    /// Goes on with an output: answered items are not asked again, failed ones are.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Writes results in the order of the input.
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Stops at the first item that fails.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Stops at the first line that is no item, instead of leaving it out.
    #[arg(long)]
    pub(crate) strict: bool,
    /// How the summary is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Draws no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Reads a decimal number with at most so many digits behind the point, in units of the last of them.
fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > digits || !all_digits(whole) || !all_digits(part) {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

fn dollars(text: &str) -> Result<Money, String> {
    let micros = decimal(text, MICRO_DIGITS).filter(|micros| *micros > 0);
    micros
        .map(Money::from_micros)
        .ok_or_else(|| "an amount in USD above 0 is expected, such as `2.50`".to_owned())
}

fn price(text: &str) -> Result<(u64, u64), String> {
    let read = |text: &str| decimal(text, MICRO_DIGITS).filter(|price| *price <= MICROS * MICROS);
    let pair = text.split_once(',').and_then(|(input, output)| Some((read(input)?, read(output)?)));
    pair.ok_or_else(|| "two prices in USD per million tokens are expected, such as `0.15,0.60`".to_owned())
}

fn thousandths(text: &str) -> Result<NonZeroU32, String> {
    let milli = decimal(text, 3).and_then(|milli| u32::try_from(milli).ok()).and_then(NonZeroU32::new);
    milli.ok_or_else(|| "a rate above 0 with at most three decimals is expected, such as `2.5`".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let expected = || "a time from 1 ms to 24 h is expected, such as `90s`, `5m` or `1500ms`".to_owned();
    let split = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(expected)?;
    let (count, unit) = text.split_at(split);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let millis =
        count.parse::<u64>().ok().and_then(|count| count.checked_mul(millis)).ok_or_else(expected)?;
    if (1..=86_400_000).contains(&millis) { Ok(Duration::from_millis(millis)) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::{decimal, dollars, price, thousandths, time};

    #[test]
    fn decimals_are_exact() {
        for (text, digits, expected) in [
            ("2", 6, Some(2_000_000)),
            ("0.15", 6, Some(150_000)),
            ("2.5", 3, Some(2_500)),
            ("2.0001", 3, None),
            ("", 3, None),
            (".5", 3, None),
            ("-1", 3, None),
            ("1e3", 3, None),
        ] {
            assert_eq!(decimal(text, digits), expected, "{text}");
        }
    }

    #[test]
    fn values_without_sense_are_refused() {
        assert_eq!(price("0.15,0.60"), Ok((150_000, 600_000)));
        assert!(price("1").is_err() && dollars("0").is_err() && thousandths("0").is_err());
        assert_eq!(time("90s").map(|time| time.as_millis()), Ok(90_000));
        assert!(["90", "0s", "s", "1d", "25h"].iter().all(|text| time(text).is_err()));
    }
}
