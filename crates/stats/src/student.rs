//! Student's t, for intervals of a few independent figures. The number of degrees of freedom need not be whole (Welch).

use std::f64::consts::FRAC_PI_2;

use crate::normal::exceeded_by;

/// The chance that Student's t exceeds a value of 0 or more. With t = √freedom tan(angle) its density is a power of a cosine.
pub(crate) fn upper_tail(t: f64, freedom: f64) -> f64 {
    let angle = (t / freedom.sqrt()).atan();
    let whole = integral_of_cosine(0.0, freedom - 1.0);
    integral_of_cosine(angle, freedom - 1.0) / whole / 2.0
}

/// The integral of cos^power from an angle to a right angle, by Simpson's rule.
fn integral_of_cosine(from: f64, power: f64) -> f64 {
    const STEPS: usize = 60;
    let width = (FRAC_PI_2 - from) / STEPS as f64;
    let weighted = (0..=STEPS).map(|step| {
        let weight = match step {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        // From the right angle on, where the cosine is the sine of a small angle.
        weight * (step as f64 * width).sin().powf(power)
    });
    weighted.sum::<f64>() * width / 3.0
}

/// The value that Student's t exceeds with this chance.
pub(crate) fn exceeded_with(chance: f64, freedom: f64) -> f64 {
    exceeded_by(chance, |t| upper_tail(t, freedom))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_any_table_of_student() {
        for (t, freedom, chance) in [
            (0.0, 3.0, 0.5),
            (12.7062, 1.0, 0.025),
            (4.3027, 2.0, 0.025),
            (2.7764, 4.0, 0.025),
            (6.8688, 5.0, 5e-4),
        ] {
            let found = upper_tail(t, freedom);
            assert!((found / chance - 1.0).abs() < 1e-3, "t {t} of {freedom}: {found}");
        }
        assert!((exceeded_with(0.025, 2.5) - 3.5747).abs() < 1e-3, "{}", exceeded_with(0.025, 2.5));
    }
}
