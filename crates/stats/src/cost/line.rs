//! A line through the means of block sizes: least squares in logarithms with Huber's weights, no parameter below zero.

use super::swept::SizeMean;
use crate::spread::mad_sigma;

/// Standard deviations beyond which the influence of a size does not grow (Huber, 95 % efficient for normal values).
const HUBER: f64 = 1.345;
/// Most steps of a fit.
const STEPS_MAX: usize = 60;
/// The fit ends with a step that changes no time by more than this share.
const SETTLED: f64 = 1e-7;
/// Smallest spread around the line, in logarithms.
const SPREAD_MIN: f64 = 1e-6;
/// Largest distance of a size from the line in one step, in logarithms: a far line moves in several steps.
const STRIDE: f64 = 0.7;
/// Parameters of a line.
const PARAMETERS: usize = 3;

/// The terms of a line in addition to overhead and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineShape {
    /// The buffer size, if fillings cost time.
    pub(super) buffer_bytes: Option<u64>,
}

/// A line; none of its parameters is below zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CostLine {
    pub(super) shape: LineShape,
    pub(super) overhead_ns: f64,
    pub(super) byte_ns: f64,
    pub(super) filling_ns: f64,
}

impl LineShape {
    /// The factors of the parameters for a block: 1, its bytes, how often it fills the buffer.
    fn regressors(self, block_bytes: u64) -> [f64; PARAMETERS] {
        let fillings = match self.buffer_bytes {
            Some(buffer) if block_bytes >= buffer && buffer > 0 => block_bytes as f64 / buffer as f64,
            _ => 0.0,
        };
        [1.0, block_bytes as f64, fillings]
    }
}

impl CostLine {
    fn new(shape: LineShape, [overhead_ns, byte_ns, filling_ns]: [f64; PARAMETERS]) -> Self {
        Self { shape, overhead_ns, byte_ns, filling_ns }
    }

    /// The time of a block, in nanoseconds.
    pub(super) fn ns(&self, block_bytes: u64) -> f64 {
        let [_, bytes, fillings] = self.shape.regressors(block_bytes);
        self.overhead_ns + self.byte_ns * bytes + self.filling_ns * fillings
    }

    /// The mean distance of the sizes from the line, in logarithms.
    pub(super) fn distance(&self, means: &[SizeMean]) -> f64 {
        let off = |mean: &SizeMean| (mean.ln_ns - self.ns(mean.block_bytes).ln()).abs();
        means.iter().map(off).sum::<f64>() / means.len().max(1) as f64
    }
}

/// The line of this shape through some means; `None` without means, or if a time is not finite.
pub(super) fn fit(means: &[SizeMean], shape: LineShape) -> Option<CostLine> {
    let (first, last) = (means.first()?, means.last()?);
    let rows: Vec<[f64; PARAMETERS]> = means.iter().map(|mean| shape.regressors(mean.block_bytes)).collect();
    let start = [first.ln_ns.exp(), last.ln_ns.exp() / last.block_bytes.max(1) as f64, 0.0];
    let mut line = CostLine::new(shape, start);
    for _ in 0..STEPS_MAX {
        let times: Vec<f64> = means.iter().map(|mean| line.ns(mean.block_bytes)).collect();
        let off: Vec<f64> = means.iter().zip(&times).map(|(mean, time)| mean.ln_ns - time.ln()).collect();
        let spread = mad_sigma(&off.iter().map(|off| off.abs()).collect::<Vec<f64>>())?;
        let limit = HUBER * spread.max(SPREAD_MIN);
        // Near the line a difference of logarithms is a share of the time: the problem is linear in shares.
        let weighted = rows.iter().zip(&times).zip(&off).map(|((row, time), off)| {
            let weight = (limit / off.abs().max(limit)).sqrt();
            (row.map(|factor| factor / time * weight), (1.0 + off.clamp(-STRIDE, STRIDE)) * weight)
        });
        let next = CostLine::new(shape, not_negative(&weighted.collect::<Vec<_>>())?);
        let moved =
            means.iter().zip(&times).map(|(mean, time)| (next.ns(mean.block_bytes) / time - 1.0).abs());
        let settled = moved.fold(0.0, f64::max) < SETTLED;
        line = next;
        if settled {
            break;
        }
    }
    Some(line)
}

/// An equation: factors of the parameters, and their sum.
type Equation = ([f64; PARAMETERS], f64);

/// Non-negative least squares (Lawson and Hanson 1974, ch. 23): of all seven choices of parameters that are not zero, the best
/// with positive values.
fn not_negative(equations: &[Equation]) -> Option<[f64; PARAMETERS]> {
    let choices = 1..1usize << PARAMETERS;
    let solutions = choices.filter_map(|choice| solve(equations, choice));
    // With fillings alone the smallest blocks would take no time.
    let possible = solutions.filter(|found| found.iter().all(|one| *one >= 0.0) && found[0] + found[1] > 0.0);
    let error = |found: &[f64; PARAMETERS]| {
        let off =
            equations.iter().map(|(row, sum)| row.iter().zip(found).map(|(a, b)| a * b).sum::<f64>() - sum);
        off.map(|off| off * off).sum::<f64>()
    };
    possible.min_by(|one, other| error(one).total_cmp(&error(other)))
}

/// Least squares in the chosen parameters (bits), the others zero; `None` if the solution is not unique.
fn solve(equations: &[Equation], choice: usize) -> Option<[f64; PARAMETERS]> {
    let chosen: Vec<usize> = (0..PARAMETERS).filter(|at| choice >> at & 1 == 1).collect();
    // Scaled to length one: the parameters differ by many orders of magnitude.
    let length = |at: usize| equations.iter().map(|(row, _)| row[at] * row[at]).sum::<f64>().sqrt();
    let lengths: Vec<f64> = chosen.iter().map(|at| length(*at)).collect();
    if lengths.iter().any(|length| !length.is_normal()) {
        return None;
    }
    let count = chosen.len();
    let mut normal = vec![vec![0.0; count + 1]; count];
    for (row, sum) in equations {
        for one in 0..count {
            let factor = row[chosen[one]] / lengths[one];
            for other in 0..count {
                normal[one][other] += factor * row[chosen[other]] / lengths[other];
            }
            normal[one][count] += factor * sum;
        }
    }
    let values = eliminate(normal)?;
    let mut found = [0.0; PARAMETERS];
    for ((at, length), value) in chosen.iter().zip(&lengths).zip(values) {
        found[*at] = value / length;
    }
    found.iter().all(|one| one.is_finite()).then_some(found)
}

/// Solves a positive definite system by Gaussian elimination; its last column is the right side.
fn eliminate(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    const SINGULAR: f64 = 1e-12;
    let count = system.len();
    for at in 0..count {
        if system[at][at].abs() < SINGULAR {
            return None;
        }
        let pivot = system[at].clone();
        for row in system.iter_mut().skip(at + 1) {
            let factor = row[at] / pivot[at];
            row.iter_mut().zip(&pivot).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let mut values = vec![0.0; count];
    for at in (0..count).rev() {
        let known: f64 = (at + 1..count).map(|other| system[at][other] * values[other]).sum();
        values[at] = (system[at][count] - known) / system[at][at];
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: LineShape = LineShape { buffer_bytes: None };
    const FILLED: LineShape = LineShape { buffer_bytes: Some(64) };

    #[test]
    fn a_block_fills_the_buffer_from_its_size_on() {
        for (buffer_bytes, block_bytes, fillings) in [
            (None, 128, 0.0),
            (Some(64), 63, 0.0),
            (Some(64), 64, 1.0),
            (Some(64), 96, 1.5),
            (Some(0), 64, 0.0),
        ] {
            let row = LineShape { buffer_bytes }.regressors(block_bytes);
            assert_eq!(row, [1.0, block_bytes as f64, fillings], "{buffer_bytes:?}");
        }
        let line = CostLine::new(FILLED, [10.0, 0.5, 100.0]);
        assert_eq!((line.ns(32), line.ns(128)), (26.0, 274.0));
        let mean =
            |block_bytes: u64, off: f64| SizeMean { block_bytes, ln_ns: line.ns(block_bytes).ln() + off };
        assert!((line.distance(&[mean(32, 0.1), mean(128, -0.3)]) - 0.2).abs() < 1e-12);
        assert_eq!(line.distance(&[]), 0.0);
    }

    fn means(truth: &CostLine, spoil: impl Fn(u64) -> f64) -> Vec<SizeMean> {
        let of =
            |block_bytes| SizeMean { block_bytes, ln_ns: (truth.ns(block_bytes) * spoil(block_bytes)).ln() };
        (0..=16).map(|power| of(1 << power)).collect()
    }

    #[test]
    fn the_line_of_exact_times_is_found() {
        for (shape, truth) in [
            (PLAIN, [100.0, 0.5, 0.0]),
            (PLAIN, [100.0, 0.0, 0.0]),
            (PLAIN, [0.0, 0.5, 0.0]),
            (FILLED, [10.0, 0.5, 100.0]),
            (FILLED, [10.0, 0.5, 0.0]),
        ] {
            let truth = CostLine::new(shape, truth);
            let found = fit(&means(&truth, |_| 1.0), shape).unwrap();
            for power in 0..=16 {
                let off = found.ns(1 << power) / truth.ns(1 << power) - 1.0;
                assert!(off.abs() < 1e-6, "{found:?} for {truth:?}");
            }
        }
        assert_eq!(fit(&[], PLAIN), None);
        assert_eq!(fit(&[SizeMean { block_bytes: 1, ln_ns: f64::NAN }], PLAIN), None);
    }

    #[test]
    fn a_far_size_hardly_moves_the_line() {
        let truth = CostLine::new(PLAIN, [100.0, 0.5, 0.0]);
        for factor in [0.2, 1.5, 5.0] {
            let found = fit(&means(&truth, |block| if block == 256 { factor } else { 1.0 }), PLAIN).unwrap();
            let off = [found.overhead_ns / 100.0 - 1.0, found.byte_ns / 0.5 - 1.0];
            assert!(off.iter().all(|off| off.abs() < 1e-4), "{found:?} with a size of {factor}");
        }
    }

    #[test]
    fn no_parameter_is_negative() {
        let of = |sums: [f64; 3]| {
            not_negative(&[
                ([1.0, 0.0, 0.0], sums[0]),
                ([0.0, 1.0, 0.0], sums[1]),
                ([0.0, 0.0, 1.0], sums[2]),
            ])
        };
        for (sums, expected) in [
            ([2.0, 3.0, 4.0], Some([2.0, 3.0, 4.0])),
            ([-1.0, 3.0, 4.0], Some([0.0, 3.0, 4.0])),
            ([2.0, -3.0, 4.0], Some([2.0, 0.0, 4.0])),
            ([2.0, 3.0, -4.0], Some([2.0, 3.0, 0.0])),
            ([-2.0, -3.0, 4.0], None),
        ] {
            assert_eq!(of(sums), expected, "{sums:?}");
        }
        assert_eq!(not_negative(&[]), None);
    }

    #[test]
    fn least_squares_are_those_of_a_textbook() {
        // Through (0, 1), (1, 2) and (2, 4): 5/6 + 3/2 x.
        let points = [([1.0, 0.0, 0.0], 1.0), ([1.0, 1.0, 0.0], 2.0), ([1.0, 2.0, 0.0], 4.0)];
        let close = |found: Option<[f64; 3]>, expected: [f64; 3]| {
            found.is_some_and(|found| {
                found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12)
            })
        };
        assert!(close(solve(&points, 0b011), [5.0 / 6.0, 1.5, 0.0]));
        assert!(close(solve(&points, 0b001), [7.0 / 3.0, 0.0, 0.0]), "the mean");
        assert!(close(solve(&points, 0b010), [0.0, 2.0, 0.0]), "10/5 through the origin");
        assert_eq!(solve(&points, 0b111), None, "the third is never used");
        let alike = [([1.0, 2.0, 0.0], 3.0), ([2.0, 4.0, 0.0], 6.0)];
        assert_eq!(solve(&alike, 0b011), None, "not unique");
    }

    #[test]
    fn a_system_is_eliminated_to_its_solution() {
        // 4x + 2y + z = 11, 2x + 5y + 3z = 21, x + 3y + 6z = 25.
        let system = vec![vec![4.0, 2.0, 1.0, 11.0], vec![2.0, 5.0, 3.0, 21.0], vec![1.0, 3.0, 6.0, 25.0]];
        let found = eliminate(system).unwrap();
        assert!(
            found.iter().zip([1.0, 2.0, 3.0]).all(|(one, other)| (one - other).abs() < 1e-12),
            "{found:?}"
        );
        assert_eq!(eliminate(vec![vec![1e-12, 1e-12]]), Some(vec![1.0]));
        assert_eq!(eliminate(vec![vec![9e-13, 1.0]]), None);
        assert_eq!(eliminate(vec![vec![1.0, 1.0, 2.0], vec![1.0, 1.0, 2.0]]), None);
    }
}
