//! What a request will use, learnt from what requests have used.

mod cells;
mod classes;
mod sketch;
#[cfg(test)]
mod tests;

use gw_types::{DeploymentName, RouteName, TaskClass, TenantId, TokenCount};

pub use self::classes::{MilliTokens, Vocabulary};
use self::{
    cells::Cells,
    sketch::{Ewma, Quantile},
};
use crate::sync::Mutex;

/// Cells of one kind, at most; a cell is some 300 bytes.
const CELLS_MAX: usize = 10_000;
/// Answers after which a calibration is believed.
const CALIBRATED_AFTER: u32 = 50;
/// Answers after which the lengths of a cell are believed; before, those of the wider cell.
const LENGTHS_AFTER: u32 = 30;
const INPUT_QUANTILE: f64 = 0.99;
const OUTPUT_QUANTILE: f64 = 0.9;
/// An answer that used so many times the estimate, or more, is no evidence about the estimate.
const RATIO_MAX: f64 = 1_000.0;
/// Bytes of a token in the absence of evidence.
const MILLI_PER_BYTE: u64 = 250;
const NANO_PER_BYTE: u64 = 1_000_000 * MILLI_PER_BYTE;

/// Estimates tokens and learns from answers.
///
/// Three things are learnt, each in bounded space and from usage that a provider reported:
///
/// - how many tokens a deployment makes of a tenant's input, as a ratio to an uncalibrated estimate: the mean, and the
///   99th percentile. Before 50 answers of the pair, what all tenants of the deployment have shown; before that 1;
/// - how long answers are: the 90th percentile by tenant, route and task class, before 30 answers by route, before that
///   of everything;
/// - how many tokens a deployment's output bytes are.
///
/// Money is never decided by it, except where a budget asks for the percentile. Sources: P² for quantiles.
#[derive(Debug)]
pub struct Estimator {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` as deployment or tenant: all of them.
    inputs: Cells<(Option<DeploymentName>, Option<TenantId>), Ratio>,
    outputs: Cells<DeploymentName, Ratio>,
    lengths: Cells<LengthCell, Quantile>,
    accuracy: Accuracy,
    error: Ewma,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LengthCell {
    Exact(TenantId, RouteName, Option<TaskClass>),
    Route(RouteName),
    All,
}

#[derive(Clone, Copy, Debug)]
struct Ratio {
    mean: Ewma,
    high: Quantile,
}

/// How many tokens an input will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputEstimate {
    /// What it will be on average: for routing and for usage that nobody reported.
    pub likely: TokenCount,
    /// What it will hardly ever pass: the 99th percentile. For reservations; never above the bound.
    pub high: TokenCount,
    /// Whether at least 50 answers stand behind it; if not, a hard budget must reserve the bound.
    pub calibrated: bool,
}

/// Turns bytes of output into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputScale {
    /// Billionths of a token.
    nano_per_byte: u64,
    is_calibrated: bool,
}

impl Default for OutputScale {
    /// Returns what holds without evidence: four bytes a token.
    fn default() -> Self {
        Self { nano_per_byte: NANO_PER_BYTE, is_calibrated: false }
    }
}

impl OutputScale {
    /// Returns the likely tokens: to the nearest thousandth, so that what was learnt from gives the same again, and then
    /// rounded up.
    pub fn tokens(self, bytes: u64) -> TokenCount {
        let milli = (self.nano(bytes) + 500_000) / 1_000_000;
        TokenCount::new(u64::try_from(milli.div_ceil(1_000)).unwrap_or(u64::MAX))
    }

    /// Returns tokens that so many bytes certainly are: half of the likely ones, because hardly any answer has twice as
    /// many bytes a token as others of its deployment.
    pub fn tokens_at_least(self, bytes: u64) -> TokenCount {
        TokenCount::new(u64::try_from(self.nano(bytes) / 2_000_000_000).unwrap_or(u64::MAX))
    }

    fn nano(self, bytes: u64) -> u128 {
        u128::from(bytes) * u128::from(self.nano_per_byte)
    }

    /// Returns by how many quarters of another count the likely tokens may differ from it and say the same: five with
    /// evidence, eight without.
    pub const fn noise_quarters(self) -> u64 {
        if self.is_calibrated { 5 } else { 8 }
    }
}

/// How good the estimates were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// Inputs whose tokens a provider reported.
    pub inputs: u64,
    /// Inputs that needed no more than `high`.
    pub inputs_covered: u64,
    /// The recent mean of |likely / actual - 1|, in millionths.
    pub input_error_ppm: u64,
    /// Answers whose length had been predicted.
    pub outputs: u64,
    /// Answers that were no longer than predicted; 0.88 to 0.92 of them are to be expected.
    pub outputs_covered: u64,
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new()
    }
}

impl Estimator {
    /// Returns one that has learnt nothing.
    pub fn new() -> Self {
        let state = State {
            inputs: Cells::new(CELLS_MAX),
            outputs: Cells::new(CELLS_MAX),
            lengths: Cells::new(CELLS_MAX),
            accuracy: Accuracy::default(),
            error: Ewma::default(),
        };
        Self { state: Mutex::new(state) }
    }

    /// Returns the tokens of an input whose uncalibrated estimate is `raw`, and which certainly has no more than
    /// `bound`. Without a deployment: as long as it is not known which one will answer.
    pub fn input_estimate(
        &self,
        deployment: Option<&DeploymentName>,
        tenant: &TenantId,
        raw: MilliTokens,
        bound: TokenCount,
    ) -> InputEstimate {
        self.state.lock().input_estimate(deployment, tenant, raw, bound)
    }

    /// Learns that an input estimated at `raw` was `actual` tokens, as its provider reports; without a deployment, for
    /// estimates that name none. Figures that can be no evidence (nothing, or a thousand times the estimate) are passed
    /// over.
    pub fn observe_input(
        &self,
        deployment: Option<&DeploymentName>,
        tenant: &TenantId,
        raw: MilliTokens,
        actual: TokenCount,
    ) {
        let Some(ratio) = ratio(raw, actual) else { return };
        let mut state = self.state.lock();
        let before = state.input_estimate(deployment, tenant, raw, TokenCount::new(u64::MAX));
        if deployment.is_some() {
            state.note_input(before, actual);
        }
        for tenant in [Some(tenant.clone()), None] {
            state.inputs.touch(&(deployment.cloned(), tenant), Ratio::new).observe(ratio);
        }
    }

    /// Returns the length that nine of ten answers of this kind do not pass; `None` before there is evidence.
    ///
    /// For token windows: reserve the smaller of it and of the output bound. A hard budget reserves the bound. Without
    /// a route: as long as it is not known.
    pub fn reserve_quantile(
        &self,
        tenant: &TenantId,
        route: Option<&RouteName>,
        task_class: Option<&TaskClass>,
    ) -> Option<TokenCount> {
        let state = self.state.lock();
        let Some(route) = route else { return state.length(&LengthCell::All) };
        let cells = length_cells(tenant, route, task_class);
        cells.iter().find_map(|cell| state.length(cell))
    }

    /// Learns the length of a complete answer, as its provider reports it; not of one that was cut.
    pub fn observe_output(
        &self,
        tenant: &TenantId,
        route: &RouteName,
        task_class: Option<&TaskClass>,
        actual: TokenCount,
    ) {
        let cells = length_cells(tenant, route, task_class);
        let mut state = self.state.lock();
        if let Some(predicted) = cells.iter().find_map(|cell| state.length(cell)) {
            state.accuracy.outputs += 1;
            state.accuracy.outputs_covered += u64::from(actual <= predicted);
        }
        for cell in &cells {
            state.lengths.touch(cell, || Quantile::new(OUTPUT_QUANTILE)).observe(as_float(actual.get()));
        }
    }

    /// Returns the likely tokens of so many bytes of a deployment's output, for a stream whose usage is not known yet.
    pub fn output_estimate(&self, deployment: &DeploymentName, bytes: u64) -> TokenCount {
        self.output_scale(deployment).tokens(bytes)
    }

    /// Returns what turns bytes of a deployment's output into tokens, as known now: for a stream that counts every piece
    /// and must not take a lock for each.
    pub fn output_scale(&self, deployment: &DeploymentName) -> OutputScale {
        let state = self.state.lock();
        let known = state.outputs.get(deployment).filter(|ratio| ratio.is_known());
        known.map_or_else(OutputScale::default, |ratio| OutputScale {
            nano_per_byte: scaled(MilliTokens::new(NANO_PER_BYTE), ratio.mean()).get(),
            is_calibrated: true,
        })
    }

    /// Learns how many tokens so many bytes of output were.
    pub fn observe_output_bytes(&self, deployment: &DeploymentName, bytes: u64, actual: TokenCount) {
        if let Some(ratio) = ratio(bytes_to_milli(bytes), actual) {
            self.state.lock().outputs.touch(deployment, Ratio::new).observe(ratio);
        }
    }

    /// Returns how good the estimates were.
    pub fn accuracy(&self) -> Accuracy {
        let state = self.state.lock();
        Accuracy { input_error_ppm: to_integer(state.error.mean() * 1e6), ..state.accuracy }
    }
}

impl State {
    fn input_estimate(
        &self,
        deployment: Option<&DeploymentName>,
        tenant: &TenantId,
        raw: MilliTokens,
        bound: TokenCount,
    ) -> InputEstimate {
        let cell = |tenant| self.inputs.get(&(deployment.cloned(), tenant)).filter(|ratio| ratio.is_known());
        let known = cell(Some(tenant.clone())).or_else(|| cell(None));
        let (mean, high) = known.map_or((1.0, 1.0), |ratio| (ratio.mean(), ratio.high()));
        let within = |milli: MilliTokens| milli.rounded_up().max(TokenCount::new(1)).min(bound);
        InputEstimate {
            likely: within(scaled(raw, mean)),
            high: within(scaled(raw, high)),
            calibrated: known.is_some(),
        }
    }

    fn note_input(&mut self, before: InputEstimate, actual: TokenCount) {
        self.accuracy.inputs += 1;
        self.accuracy.inputs_covered += u64::from(actual <= before.high);
        self.error.observe((as_float(before.likely.get()) / as_float(actual.get()) - 1.0).abs());
    }

    fn length(&self, cell: &LengthCell) -> Option<TokenCount> {
        let known = self.lengths.get(cell).filter(|quantile| quantile.samples() >= LENGTHS_AFTER)?;
        Some(TokenCount::new(to_integer(known.value().ceil())))
    }
}

impl Ratio {
    fn new() -> Self {
        Self { mean: Ewma::default(), high: Quantile::new(INPUT_QUANTILE) }
    }

    fn observe(&mut self, ratio: f64) {
        self.mean.observe(ratio);
        self.high.observe(ratio);
    }

    fn is_known(&self) -> bool {
        self.high.samples() >= CALIBRATED_AFTER
    }

    fn mean(&self) -> f64 {
        self.mean.mean()
    }

    fn high(&self) -> f64 {
        self.high.value().max(self.mean.mean())
    }
}

/// From the narrowest cell to the widest.
fn length_cells(tenant: &TenantId, route: &RouteName, task_class: Option<&TaskClass>) -> [LengthCell; 3] {
    let exact = LengthCell::Exact(tenant.clone(), route.clone(), task_class.cloned());
    [exact, LengthCell::Route(route.clone()), LengthCell::All]
}

fn bytes_to_milli(bytes: u64) -> MilliTokens {
    MilliTokens::new(bytes.saturating_mul(MILLI_PER_BYTE))
}

/// Actual over estimate, if that can be evidence.
fn ratio(raw: MilliTokens, actual: TokenCount) -> Option<f64> {
    let ratio = as_float(actual.get()) * 1_000.0 / as_float(raw.get());
    (!raw.eq(&MilliTokens::default()) && ratio > 0.0 && ratio < RATIO_MAX).then_some(ratio)
}

/// Rounds to the nearest thousandth, so that a ratio multiplied back gives the integer that it came from.
fn scaled(raw: MilliTokens, ratio: f64) -> MilliTokens {
    MilliTokens::new(to_integer((as_float(raw.get()) * ratio).round()))
}

#[expect(clippy::cast_precision_loss, reason = "a statistic; 53 bits are exact for any real count of tokens")]
fn as_float(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a statistic is never negative"
)]
fn to_integer(value: f64) -> u64 {
    value as u64
}
