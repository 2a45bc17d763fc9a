//! Statistics in constant space. Floating point stays in here: what comes out is rounded to integers.

/// Samples after which a sketch gives way to a younger one, so that it follows a change.
const WINDOW: u32 = 2_000;

/// A mean that forgets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ewma {
    mean: f64,
    samples: u32,
}

impl Ewma {
    const ALPHA: f64 = 0.05;

    pub(super) fn observe(&mut self, value: f64) {
        self.samples = self.samples.saturating_add(1);
        // The plain mean at first, so that the first sample does not weigh for ever.
        let alpha = Self::ALPHA.max(1.0 / f64::from(self.samples));
        self.mean += alpha * (value - self.mean);
    }

    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }
}

/// A quantile of recent samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantile {
    settled: P2,
    young: P2,
}

impl Quantile {
    pub(super) const fn new(q: f64) -> Self {
        Self { settled: P2::new(q), young: P2::new(q) }
    }

    pub(super) fn observe(&mut self, value: f64) {
        self.settled.observe(value);
        self.young.observe(value);
        if self.young.samples >= WINDOW {
            self.settled = std::mem::replace(&mut self.young, P2::new(self.settled.q));
        }
    }

    pub(super) const fn samples(&self) -> u32 {
        self.settled.samples
    }

    pub(super) fn value(&self) -> f64 {
        self.settled.value()
    }
}

/// One quantile by five markers that move along a parabola.
///
/// Source: Jain and Chlamtac, "The P² algorithm", CACM 28(10), 1985.
#[derive(Clone, Copy, Debug)]
struct P2 {
    q: f64,
    samples: u32,
    heights: [f64; 5],
    positions: [f64; 5],
}

impl P2 {
    const fn new(q: f64) -> Self {
        Self { q, samples: 0, heights: [0.0; 5], positions: [1.0, 2.0, 3.0, 4.0, 5.0] }
    }

    fn observe(&mut self, value: f64) {
        let known = self.samples as usize;
        self.samples = self.samples.saturating_add(1);
        if known < 5 {
            self.heights[known] = value;
            self.heights[..=known].sort_unstable_by(f64::total_cmp);
            return;
        }
        self.heights[0] = self.heights[0].min(value);
        self.heights[4] = self.heights[4].max(value);
        for at in 1..5 {
            if at == 4 || value < self.heights[at] {
                self.positions[at] += 1.0;
            }
        }
        let last = f64::from(self.samples - 1);
        let fractions = [self.q / 2.0, self.q, f64::midpoint(1.0, self.q)];
        for (at, fraction) in (1..4).zip(fractions) {
            let off = 1.0 + last * fraction - self.positions[at];
            let (below, above) = (self.gap(at - 1), self.gap(at));
            if (off >= 1.0 && above > 1.0) || (off <= -1.0 && below > 1.0) {
                self.shift(at, off.signum());
            }
        }
    }

    fn gap(&self, at: usize) -> f64 {
        self.positions[at + 1] - self.positions[at]
    }

    fn shift(&mut self, at: usize, by: f64) {
        let (heights, below, above) = (self.heights, self.gap(at - 1), self.gap(at));
        let rise = (heights[at + 1] - heights[at]) / above;
        let fall = (heights[at] - heights[at - 1]) / below;
        let curved = heights[at] + by / (below + above) * ((below + by) * rise + (above - by) * fall);
        let between = heights[at - 1] < curved && curved < heights[at + 1];
        let straight = heights[at] + by * if by > 0.0 { rise } else { fall };
        self.heights[at] = if between { curved } else { straight };
        self.positions[at] += by;
    }

    /// The quantile; of few samples the largest that it can be.
    fn value(&self) -> f64 {
        match self.samples {
            0 => 0.0,
            few @ 1..5 => self.heights[few as usize - 1],
            _ => self.heights[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{Random, SeededRandom};

    use super::{Ewma, Quantile, WINDOW};

    /// A value in (0, 1).
    fn uniform(random: &SeededRandom) -> f64 {
        (f64::from(u32::try_from(random.next_u64() >> 32).unwrap_or(0)) + 0.5) / f64::from(u32::MAX)
    }

    #[track_caller]
    fn check(q: f64, draw: impl Fn(f64) -> f64, expected: f64, tolerance: f64) {
        let (mut quantile, random) = (Quantile::new(q), SeededRandom::new(7));
        (0..3 * WINDOW).for_each(|_| quantile.observe(draw(uniform(&random))));
        let found = quantile.value();
        assert!((found / expected - 1.0).abs() < tolerance, "{found} is not about {expected}");
    }

    #[test]
    fn quantiles_are_found() {
        check(0.9, |u| u, 0.9, 0.03);
        check(0.99, |u| u, 0.99, 0.02);
        // Exponential and Pareto, whose tails are long.
        check(0.9, |u| -u.ln(), std::f64::consts::LN_10, 0.06);
        check(0.9, |u| u.powf(-0.5), 10_f64.sqrt(), 0.06);
    }

    #[test]
    fn a_constant_is_its_own_quantile_to_the_last_bit() {
        let mut quantile = Quantile::new(0.99);
        for _ in 0..5_000 {
            quantile.observe(0.98745);
            assert!(quantile.value().to_bits() == 0.98745_f64.to_bits());
        }
    }

    #[test]
    fn a_change_is_followed() {
        let (mut quantile, mut mean) = (Quantile::new(0.9), Ewma::default());
        for value in [1.0, 3.0] {
            (0..2 * WINDOW).for_each(|_| quantile.observe(value));
            (0..200).for_each(|_| mean.observe(value));
        }
        assert!((quantile.value() - 3.0).abs() < 1e-9 && (mean.mean() - 3.0).abs() < 0.001);
    }
}
