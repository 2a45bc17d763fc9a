//! Sizes of requests, cut where a route, a context window or a longest answer cuts them.

use gw_types::TokenCount;

/// One size: the least of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) estimate: u64,
    pub(super) at_least: u64,
    pub(super) output: u64,
}

/// Where sizes are cut. A cut at `n` parts what is below `n` from the rest.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// Of the estimated input.
    pub(super) input: Vec<u128>,
    /// Of the output bound.
    pub(super) output: Vec<u128>,
    /// Of the least input and the output bound together.
    pub(super) total: Vec<u128>,
}

const EACH_MAX: u128 = u64::MAX as u128;

impl Size {
    pub(super) fn output(self) -> Option<TokenCount> {
        (self.output > 0).then(|| TokenCount::new(self.output))
    }
}

impl Cuts {
    /// Returns a size for each combination of intervals in which there is one; the least of all first.
    ///
    /// The least input never passes the estimate, so of the three numbers two are free.
    pub(super) fn sizes(mut self) -> Vec<Size> {
        let inputs = intervals(&mut self.input, EACH_MAX);
        let outputs = intervals(&mut self.output, EACH_MAX);
        let totals = intervals(&mut self.total, 2 * EACH_MAX);
        let mut sizes = Vec::new();
        for input in &inputs {
            for output in &outputs {
                sizes.extend(totals.iter().filter_map(|total| least(*input, *output, *total)));
            }
        }
        sizes
    }
}

/// An interval, both ends included.
type Interval = (u128, u128);

fn intervals(cuts: &mut Vec<u128>, max: u128) -> Vec<Interval> {
    cuts.push(0);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|cut| *cut <= max);
    let ends = cuts.iter().skip(1).map(|next| next - 1).chain([max]);
    cuts.iter().copied().zip(ends).collect()
}

fn least(input: Interval, output: Interval, total: Interval) -> Option<Size> {
    // As little output as there can be, and more only where the input alone cannot make up the total.
    let missing = total.0.saturating_sub(output.0);
    let at_least = missing.min(input.1);
    let out = output.0.max(total.0 - at_least.min(total.0));
    if out > output.1 || at_least + out > total.1 {
        return None;
    }
    let word = |tokens: u128| u64::try_from(tokens).ok();
    Some(Size { estimate: word(input.0.max(at_least))?, at_least: word(at_least)?, output: word(out)? })
}

#[cfg(test)]
mod tests {
    use super::Cuts;

    #[test]
    fn every_class_of_sizes_that_small_numbers_reach_has_its_size() {
        let cut = |cuts: &[u128], value: u64| cuts.iter().filter(|cut| **cut <= u128::from(value)).count();
        let lists: [&[u128]; 4] = [&[], &[2], &[3, 5], &[1, 4]];
        for input in lists {
            for output in lists {
                for total in lists {
                    let class = |estimate, at_least: u64, out| {
                        (cut(input, estimate), cut(output, out), cut(total, at_least + out))
                    };
                    let mut reached = std::collections::BTreeSet::new();
                    for estimate in 0..9 {
                        for at_least in 0..=estimate {
                            reached.extend((0..9).map(|out| class(estimate, at_least, out)));
                        }
                    }
                    let cuts = Cuts { input: input.into(), output: output.into(), total: total.into() };
                    let sizes = cuts.sizes();
                    let found: Vec<_> =
                        sizes.iter().map(|size| class(size.estimate, size.at_least, size.output)).collect();
                    assert_eq!(found.len(), reached.len(), "{input:?} {output:?} {total:?}");
                    assert_eq!(std::collections::BTreeSet::from_iter(found), reached);
                }
            }
        }
    }
}
