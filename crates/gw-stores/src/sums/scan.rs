//! Reads the few parts of canonical bytes that are summed, in a fraction of the time that a parser of any JSON takes.
//!
//! Canonical bytes have no blanks, and names in them have no escapes; what is otherwise is not canonical, and not read.

use std::borrow::Cow;

use gw_types::{CacheState, Money, TokenCount, Usage, UtcTime};
use memchr::memchr2;

use super::{Summed, SummedSide};

impl<'a> Summed<'a> {
    /// Reads canonical bytes; `None` if they are no record's.
    pub(crate) fn read(canonical: &'a [u8]) -> Option<Self> {
        let mut read = Self {
            tenant: "",
            key: "",
            model: Cow::Borrowed(""),
            route: None,
            primary: None,
            serving: None,
            cache: CacheState::Bypass,
            outcome: "",
            usage: Usage::default(),
            cost: Money::ZERO,
            side_costs: Vec::new(),
            started: UtcTime::default(),
            id: "",
        };
        let mut found = 0;
        let mut members = Members::of_object(canonical)?;
        while let Some((key, value)) = members.next()? {
            // The members that every record has.
            found += 1;
            match key {
                b"cache" => read.cache = cache(name(value)?)?,
                b"cost" => read.cost = money(value)?,
                b"id" => read.id = name(value)?,
                b"key" => read.key = name(value)?,
                b"outcome" => read.outcome = name(value)?,
                b"started" => read.started = UtcTime::from_micros(text(value)?.parse().ok()?),
                b"tenant" => read.tenant = name(value)?,
                b"usage" => read.usage = usage(value)?,
                other => {
                    found -= 1;
                    match other {
                        b"facts" => read.model = model(value)?,
                        b"primary" => read.primary = Some(name(value)?),
                        b"route" => read.route = Some(name(value)?),
                        b"serving" => read.serving = Some(name(value)?),
                        b"side_costs" => read.side_costs = side_costs(value)?,
                        _ => {}
                    }
                }
            }
        }
        (found == 8).then_some(read)
    }
}

/// The members of an object, or the elements of a list, that are still to be read.
struct Members<'a> {
    rest: &'a [u8],
    end: u8,
    first: bool,
}

impl<'a> Members<'a> {
    fn of_object(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { rest: bytes.strip_prefix(b"{")?, end: b'}', first: true })
    }

    fn of_list(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { rest: bytes.strip_prefix(b"[")?, end: b']', first: true })
    }

    /// Steps over the comma; `Some(false)` at the end, `None` if the bytes are not canonical.
    fn step(&mut self) -> Option<bool> {
        let (first, rest) = self.rest.split_first()?;
        if *first == self.end {
            return rest.is_empty().then_some(false);
        }
        if std::mem::take(&mut self.first) {
            return Some(true);
        }
        self.rest = rest;
        (*first == b',').then_some(true)
    }

    /// Returns the next key and value; the outer `None` is a fault, the inner one the end.
    fn next(&mut self) -> Option<Option<(&'a [u8], &'a [u8])>> {
        if !self.step()? {
            return Some(None);
        }
        let key = self.value()?;
        self.rest = self.rest.strip_prefix(b":")?;
        let value = self.value()?;
        Some(Some((key.get(1..key.len().checked_sub(1)?)?, value)))
    }

    /// Returns the next element.
    fn next_element(&mut self) -> Option<Option<&'a [u8]>> {
        if self.step()? { self.value().map(Some) } else { Some(None) }
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        let (value, rest) = self.rest.split_at_checked(value_len(self.rest)?)?;
        self.rest = rest;
        Some(value)
    }
}

/// Returns the length of the value that the bytes begin with.
fn value_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' => string_len(bytes),
        b'{' | b'[' => {
            let (mut at, mut depth) = (0, 0_usize);
            loop {
                match bytes.get(at)? {
                    b'"' => {
                        at += string_len(bytes.get(at..)?)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']')),
    }
}

fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

/// Reads a text without escapes.
fn name(value: &[u8]) -> Option<&str> {
    let name = text(value)?.strip_prefix('"')?.strip_suffix('"')?;
    (!name.contains('\\')).then_some(name)
}

fn money(value: &[u8]) -> Option<Money> {
    text(value)?.parse().ok().map(Money::from_pico)
}

fn cache(name: &str) -> Option<CacheState> {
    use CacheState::{Bypass, Coalesced, Exact, Miss, Semantic};
    [Bypass, Miss, Exact, Semantic, Coalesced].into_iter().find(|state| state.as_str() == name)
}

/// Reads the model out of the facts: the one text here that may have escapes.
fn model(facts: &[u8]) -> Option<Cow<'_, str>> {
    let mut members = Members::of_object(facts)?;
    while let Some((key, value)) = members.next()? {
        if key == b"model" {
            return match name(value) {
                Some(name) => Some(Cow::Borrowed(name)),
                None => serde_json::from_slice(value).ok().map(Cow::Owned),
            };
        }
    }
    None
}

fn usage(value: &[u8]) -> Option<Usage> {
    let mut usage = Usage::default();
    let mut members = Members::of_object(value)?;
    while let Some((key, value)) = members.next()? {
        let class = match key {
            b"input" => &mut usage.input,
            b"cached_input" => &mut usage.cached_input,
            b"cache_write" => &mut usage.cache_write,
            b"cache_write_long" => &mut usage.cache_write_long,
            b"output" => &mut usage.output,
            b"reasoning" => &mut usage.reasoning,
            b"audio_input" => &mut usage.audio_input,
            b"audio_output" => &mut usage.audio_output,
            b"image_input" => &mut usage.image_input,
            _ => continue,
        };
        *class = TokenCount::new(text(value)?.parse().ok()?);
    }
    Some(usage)
}

fn side_costs(value: &[u8]) -> Option<Vec<SummedSide<'_>>> {
    let mut sides = Vec::new();
    let mut elements = Members::of_list(value)?;
    while let Some(side) = elements.next_element()? {
        let (mut deployment, mut cost) = ("", Money::ZERO);
        let mut members = Members::of_object(side)?;
        while let Some((key, value)) = members.next()? {
            match key {
                b"deployment" => deployment = name(value)?,
                b"cost" => cost = money(value)?,
                _ => {}
            }
        }
        sides.push(SummedSide { deployment, cost });
    }
    Some(sides)
}

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;
    use gw_types::{AccountingRecord, BoundedText, Money, TokenCount, Usage};

    use super::super::{Summed, each_line};

    fn canonical(record: &AccountingRecord) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.write_canonical(&mut bytes);
        bytes
    }

    fn check(record: &AccountingRecord) {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let shown = |names: super::super::SumNames<'_>, sums| (format!("{names:?}"), sums);
        each_line(record, |names, sums| expected.push(shown(names, sums)));
        let bytes = canonical(record);
        let read = Summed::read(&bytes).unwrap();
        read.each_line(|names, sums| found.push(shown(names, sums)));
        assert_eq!(found, expected);
        assert_eq!((read.id, read.started), (record.id.as_str(), record.started));
    }

    #[test]
    fn reads_what_the_record_says() {
        let mut record = sample_record(1);
        check(&record);
        if let Some(facts) = &mut record.facts {
            facts.model = BoundedText::new(r#"a "quoted" \ model]},{"#);
        }
        record.config = BoundedText::new(r#"\"tenant\":{["#);
        record.cost = Money::from_pico(u128::MAX);
        let tokens = TokenCount::new;
        record.usage = Usage {
            input: tokens(1),
            cached_input: tokens(2),
            cache_write: tokens(4),
            cache_write_long: tokens(8),
            output: tokens(16),
            reasoning: tokens(32),
            audio_input: tokens(64),
            audio_output: tokens(128),
            image_input: tokens(256),
            ..Usage::default()
        };
        check(&record);
        (record.facts, record.route, record.primary, record.serving) = (None, None, None, None);
        record.side_costs = Vec::new();
        check(&record);
    }

    #[test]
    fn does_not_read_what_is_cut_or_altered() {
        let whole = canonical(&sample_record(1));
        for len in 0..whole.len() {
            assert!(Summed::read(&whole[..len]).is_none(), "{len}");
        }
        let mut more = whole.clone();
        more.push(b'}');
        assert!(Summed::read(&more).is_none());
        let text = String::from_utf8(whole).unwrap();
        for (from, to) in
            [("\"cache\":", "\"cash\":"), ("\"miss\"", "\"mist\""), ("\"started\":", "\"started\": ")]
        {
            assert!(Summed::read(text.replace(from, to).as_bytes()).is_none(), "{from}");
        }
    }
}
