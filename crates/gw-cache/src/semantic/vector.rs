//! Vectors of length 1, so that cosine similarity is a dot product.

/// A finite vector of length 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnitVector(Box<[f32]>);

impl UnitVector {
    /// Sums that run side by side: the order of additions is fixed, so that every machine gets the same sum, and wide
    /// enough for the compiler to use vector registers.
    const LANES: usize = 16;
    /// Keeps the rounding errors of equal questions from counting as a difference, in thousandths.
    const SLACK_MILLI: f32 = 0.01;

    /// Brings a vector to length 1; `None` if it has no length, or one that is not finite.
    pub(super) fn new(mut vector: Vec<f32>) -> Option<Self> {
        let square: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        if !square.is_finite() || square <= 0.0 {
            return None;
        }
        let length = square.sqrt();
        #[expect(clippy::cast_possible_truncation, reason = "the parts of a unit vector are at most 1")]
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        Some(Self(vector.into()))
    }

    pub(super) fn parts(&self) -> &[f32] {
        &self.0
    }

    /// Returns the cosine with another unit vector; 0 for vectors of different dimensions, which come from different
    /// embedders.
    pub(super) fn cosine(&self, other: &[f32]) -> f32 {
        if self.0.len() != other.len() {
            return 0.0;
        }
        let (ones, one_rest) = self.0.as_chunks::<{ Self::LANES }>();
        let (others, other_rest) = other.as_chunks::<{ Self::LANES }>();
        let mut sums = [0.0_f32; Self::LANES];
        for (one, other) in ones.iter().zip(others) {
            for lane in 0..Self::LANES {
                sums[lane] += one[lane] * other[lane];
            }
        }
        let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
        sums.iter().sum::<f32>() + rest
    }

    /// Returns a cosine in thousandths, rounded down: 0..=1000.
    pub(super) fn milli(cosine: f32) -> u32 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1000")]
        let milli = (cosine * 1_000.0 + Self::SLACK_MILLI).clamp(0.0, 1_000.0) as u32;
        milli
    }

    /// Returns the least cosine that gives so many thousandths, and a little less.
    pub(super) fn floor(milli: u32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "at most 1,000 thousandths matter")]
        let milli = milli.min(1_001) as f32;
        // A score of 0 stands for every opposite direction too.
        if milli > 0.0 { (milli - 2.0 * Self::SLACK_MILLI) / 1_000.0 } else { f32::NEG_INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::UnitVector;

    fn check(one: &[f32], other: &[f32], expected: u32) {
        let [one, other] = [one, other].map(|vector| UnitVector::new(vector.to_vec()).unwrap());
        let milli = UnitVector::milli(one.cosine(other.parts()));
        assert_eq!((milli, UnitVector::milli(other.cosine(one.parts()))), (expected, expected));
        assert!(one.cosine(other.parts()) >= UnitVector::floor(milli));
    }

    #[test]
    fn similarity_is_the_cosine() {
        check(&[2.0, 0.0], &[7.0, 0.0], 1_000);
        check(&[1.0, 0.0], &[0.0, 1.0], 0);
        check(&[3.0, 4.0], &[1.0, 0.0], 600);
        check(&[0.3; 384], &[0.7; 384], 1_000);
        check(&[1.0; 3], &[1.0; 4], 0);
        check(&[1e-30; 20], &[1e30; 20], 1_000);
    }

    #[test]
    fn opposite_directions_are_no_likeness() {
        let [one, other] = [1.0, -1.0].map(|x| UnitVector::new(vec![x, 0.0]).unwrap());
        assert_eq!(UnitVector::milli(one.cosine(other.parts())), 0);
    }

    #[test]
    fn what_has_no_direction_is_no_vector() {
        for vector in [vec![], vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY]] {
            assert_eq!(UnitVector::new(vector), None);
        }
    }
}
