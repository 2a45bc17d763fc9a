//! A logistic score with a ridge, fitted by Newton's method.

/// How many features a sample has.
pub(super) const FEATURES: usize = crate::Features::COUNT;
/// Weights: one a feature and one for the constant.
const WEIGHTS: usize = FEATURES + 1;

/// The probability that an answer is right, as a logistic function of the features.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Logistic {
    means: [f64; FEATURES],
    scales: [f64; FEATURES],
    weights: [f64; WEIGHTS],
}

impl Logistic {
    /// The penalty on the squares of the weights of standardised features; keeps separable samples finite.
    const RIDGE: f64 = 0.3;
    /// Steps of Newton's method, at most.
    const STEPS: usize = 12;

    /// Returns the score before anything is known: the similarity itself.
    pub(super) fn unfitted() -> Self {
        let mut weights = [0.0; WEIGHTS];
        weights[0] = 1.0;
        Self { means: [0.5; FEATURES], scales: [0.1; FEATURES], weights }
    }

    /// Fits the score to samples; O(samples) with a few thousand multiplications each.
    pub(super) fn fit<'a>(samples: &(impl Iterator<Item = (&'a [f32; FEATURES], bool)> + Clone)) -> Self {
        let count = samples.clone().fold(0.0, |count, _| count + 1.0);
        if count == 0.0 {
            return Self::unfitted();
        }
        let (mut means, mut scales) = ([0.0; FEATURES], [0.0; FEATURES]);
        for (values, _) in samples.clone() {
            means.iter_mut().zip(values).for_each(|(mean, &x)| *mean += f64::from(x) / count);
        }
        for (values, _) in samples.clone() {
            for at in 0..FEATURES {
                scales[at] += (f64::from(values[at]) - means[at]).powi(2) / count;
            }
        }
        // A feature that never varies says nothing, and must not divide by nothing.
        scales.iter_mut().for_each(|scale| *scale = scale.sqrt().max(1e-3));
        let mut fitted = Self { means, scales, weights: [0.0; WEIGHTS] };
        for _ in 0..Self::STEPS {
            let (gradient, hessian) = fitted.slopes(samples.clone());
            let Some(step) = solve(hessian, gradient) else { break };
            fitted.weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
            if step.iter().all(|step| step.abs() < 1e-6) {
                break;
            }
        }
        fitted
    }

    /// Returns the probability that the answer is right: 0 to 1.
    pub(super) fn score(&self, values: &[f32; FEATURES]) -> f64 {
        self.probability(&self.inputs(values))
    }

    fn probability(&self, inputs: &[f64; WEIGHTS]) -> f64 {
        let sum: f64 = self.weights.iter().zip(inputs).map(|(weight, x)| weight * x).sum();
        1.0 / (1.0 + (-sum).exp())
    }

    fn inputs(&self, values: &[f32; FEATURES]) -> [f64; WEIGHTS] {
        let mut inputs = [1.0; WEIGHTS];
        for at in 0..FEATURES {
            inputs[at] = (f64::from(values[at]) - self.means[at]) / self.scales[at];
        }
        inputs
    }

    /// Returns the gradient of the penalised log-likelihood and the negative of its second derivatives.
    fn slopes<'a>(
        &self,
        samples: impl Iterator<Item = (&'a [f32; FEATURES], bool)>,
    ) -> ([f64; WEIGHTS], [[f64; WEIGHTS]; WEIGHTS]) {
        let mut gradient = [0.0; WEIGHTS];
        let mut hessian = [[0.0; WEIGHTS]; WEIGHTS];
        for at in 0..FEATURES {
            gradient[at] = -Self::RIDGE * self.weights[at];
            hessian[at][at] = Self::RIDGE;
        }
        hessian[FEATURES][FEATURES] = 1e-9;
        for (values, right) in samples {
            let inputs = self.inputs(values);
            let probability = self.probability(&inputs);
            let residual = if right { 1.0 - probability } else { -probability };
            let weight = probability * (1.0 - probability);
            for row in 0..WEIGHTS {
                gradient[row] += residual * inputs[row];
                let scaled = weight * inputs[row];
                for (cell, x) in hessian[row][..=row].iter_mut().zip(&inputs) {
                    *cell += scaled * x;
                }
            }
        }
        (gradient, hessian)
    }
}

/// Solves A x = b for a symmetric positive A given by its lower triangle (Cholesky); `None` if A is not positive.
fn solve(mut a: [[f64; WEIGHTS]; WEIGHTS], mut b: [f64; WEIGHTS]) -> Option<[f64; WEIGHTS]> {
    for row in 0..WEIGHTS {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| a[row][k] * a[column][k]).sum();
            let rest = a[row][column] - sum;
            if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                a[row][row] = rest.sqrt();
            } else {
                a[row][column] = rest / a[column][column];
            }
        }
    }
    for row in 0..WEIGHTS {
        let sum: f64 = (0..row).map(|k| a[row][k] * b[k]).sum();
        b[row] = (b[row] - sum) / a[row][row];
    }
    for row in (0..WEIGHTS).rev() {
        let sum: f64 = (row + 1..WEIGHTS).map(|k| a[k][row] * b[k]).sum();
        b[row] = (b[row] - sum) / a[row][row];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, Logistic};

    fn sample(first: f32, second: f32) -> [f32; FEATURES] {
        let mut values = [0.0; FEATURES];
        (values[0], values[1]) = (first, second);
        values
    }

    #[test]
    fn the_score_follows_what_separates_right_from_wrong() {
        let samples: Vec<_> = (0..200_u16)
            .map(|n| (sample(f32::from(n % 10) / 10.0, f32::from(n % 7) / 7.0), n % 10 > 4))
            .collect();
        let fitted = Logistic::fit(&samples.iter().map(|(values, right)| (values, *right)));
        assert!(fitted.score(&sample(0.9, 0.5)) > 0.95 && fitted.score(&sample(0.1, 0.5)) < 0.05);
        let swing = fitted.score(&sample(0.5, 0.9)) - fitted.score(&sample(0.5, 0.1));
        assert!(swing.abs() < 0.3, "{swing}");
    }

    #[test]
    fn samples_of_one_kind_keep_the_score_finite() {
        for right in [true, false] {
            let samples = [(sample(0.9, 0.1), right), (sample(0.8, 0.1), right)];
            let fitted = Logistic::fit(&samples.iter().map(|(values, right)| (values, *right)));
            let score = fitted.score(&sample(0.9, 0.1));
            assert!(score.is_finite() && (score > 0.5) == right, "{score}");
        }
        assert_eq!(Logistic::fit(&std::iter::empty()), Logistic::unfitted());
        assert!(
            Logistic::unfitted().score(&sample(0.9, 0.0)) > Logistic::unfitted().score(&sample(0.8, 0.0))
        );
    }
}
