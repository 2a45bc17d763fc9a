//! Vectors in a byte a dimension, with a bound on what the rounding costs.

/// A unit vector rounded to whole steps between -127 and 127.
///
/// The step is the largest part over 127, and `error` the length of what rounding took away; with both, the exact
/// cosine of two vectors lies within [`Codes::slack`] of the one that the codes give.
#[derive(Clone, Debug)]
pub(super) struct Codes {
    pub(super) codes: Box<[i8]>,
    pub(super) scale: Scale,
    /// The length of what stands behind the head; 0 where all of it is the head.
    pub(super) rest: f32,
}

/// What turns sums of codes back into cosines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The width of a step.
    pub(super) step: f32,
    /// The length of the difference between the vector and its codes, rounded up.
    pub(super) error: f32,
}

/// Codes of a long vector that are compared before the rest is read at all.
const HEAD: usize = 128;

/// Returns how many codes of so many are the head: all of a short vector.
pub(super) const fn head_of(dimensions: usize) -> usize {
    if dimensions >= 2 * HEAD { HEAD } else { dimensions }
}

impl Codes {
    /// Rounds a unit vector.
    pub(super) fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let step = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 steps either way")]
        let codes: Box<[i8]> = vector.iter().map(|x| (x / step).round() as i8).collect();
        let lost = |(x, &code): (&f32, &i8)| {
            let difference = f64::from(*x) - f64::from(step) * f64::from(code);
            difference * difference
        };
        let square: f64 = vector.iter().zip(&codes).map(lost).sum();
        #[expect(clippy::cast_possible_truncation, reason = "the slack covers the last bits")]
        let error = square.sqrt() as f32;
        Self::new(codes, Scale { step, error })
    }

    pub(super) fn new(codes: Box<[i8]>, scale: Scale) -> Self {
        let rest = &codes[head_of(codes.len())..];
        let square: f64 = rest.iter().map(|&code| f64::from(code) * f64::from(code)).sum();
        #[expect(clippy::cast_possible_truncation, reason = "the slack covers the last bits")]
        let rest = scale.step * square.sqrt() as f32;
        Self { codes, scale, rest }
    }

    /// Returns the codes in the width that products are summed in.
    pub(super) fn wide(&self) -> Vec<i16> {
        self.codes.iter().map(|&code| i16::from(code)).collect()
    }
}

impl Scale {
    /// What single precision may add to a cosine, generously.
    const ROUNDING: f32 = 1e-5;

    /// Returns the largest cosine that two vectors can have whose codes give this sum of products.
    ///
    /// For x = a + d and y = b + e with |x| = 1: |x·y - a·b| = |x·e + d·b| <= |e| + |d| (1 + |e|).
    #[inline]
    pub(super) fn cosine_max(self, other: Self, sum: i32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "the slack covers the last bits")]
        let cosine = self.step * other.step * sum as f32;
        cosine + other.error + self.error * (1.0 + other.error) + Self::ROUNDING
    }

    /// As [`Scale::cosine_max`] by the products of the heads alone: what stands behind them adds at most the product of
    /// its lengths (Cauchy and Schwarz).
    #[inline]
    pub(super) fn cosine_max_by_head(self, other: Self, head: i32, rests: f32) -> f32 {
        self.cosine_max(other, head) + rests + Self::ROUNDING
    }
}

#[cfg(test)]
mod tests {
    use super::Codes;

    #[test]
    fn the_bound_holds_and_is_near() {
        let mut state = 1_u64;
        let mut vector = |dimensions: usize| {
            let mut vector: Vec<f32> = (0..dimensions)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 40) as f32 / 16_777_216.0 - 0.5
                })
                .collect();
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= length);
            vector
        };
        for dimensions in [1, 2, 7, 64, 384] {
            for _ in 0..50 {
                let (one, other) = (vector(dimensions), vector(dimensions));
                let cosine: f32 = one.iter().zip(&other).map(|(one, other)| one * other).sum();
                let (one, other) = (Codes::of(&one), Codes::of(&other));
                let sum =
                    one.wide().iter().zip(&other.codes).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
                let most = one.scale.cosine_max(other.scale, sum);
                assert!((cosine..cosine + 0.03).contains(&most), "{dimensions}: {cosine} {most}");
            }
        }
    }
}
