//! The finding about slow copies on this machine.

use model::{CopyCosts, CopySpeed};

use super::Severity::{Caps, Good};
use super::{Finding, text};

/// Whether this machine copies slowly to some page offsets, which ones, and how slowly.
pub fn copy_finding(costs: &CopyCosts) -> Finding {
    let found = |state, what: String| Finding::new("copy-alignment", state, what);
    let Some(slow) = costs.slow_offsets() else {
        return found(Good, "copies are equally fast at every offset within a page".to_owned());
    };
    let at = |offset: u64| costs.speeds.iter().find(|speed| speed.offset == offset);
    let rate = |speed: fn(&CopySpeed) -> f64, share: f64| match (at(0).map(speed), at(16).map(speed)) {
        (Some(full), Some(slow)) => {
            format!("at {share:.2} of its speed ({} instead of {})", gb(slow), gb(full))
        }
        _ => format!("at {share:.2} of its speed"),
    };
    let what = format!(
        "copies to {} to {} bytes past the start of a page are slow: read(2) from a pipe runs {}, from page cache {}, \
        memcpy(3) {}",
        slow.first,
        slow.last,
        rate(|speed| speed.pipe_read_bytes_per_s, slow.pipe_read),
        rate(|speed| speed.file_read_bytes_per_s, slow.file_read),
        rate(|speed| speed.memcpy_bytes_per_s, slow.memcpy)
    );
    let remedy = text("copy-alignment", "remedy").map(str::to_owned);
    Finding { remedy, ..found(Caps, what) }
}

fn gb(bytes_per_s: f64) -> String {
    format!("{:.1} GB/s", bytes_per_s / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slow_machine_gets_the_offsets_the_speeds_and_a_remedy() {
        let slow = copy_finding(&CopyCosts::simulated(0.3));
        assert_eq!((slow.state, slow.remedy.is_some()), (Caps, true));
        let said = "copies to 1 to 31 bytes past the start of a page are slow: read(2) from a pipe runs at 0.30 of its speed \
            (1.2 GB/s instead of 4.0 GB/s), from page cache at 0.30";
        assert!(slow.what.starts_with(said), "{}", slow.what);
        let other = copy_finding(&CopyCosts::simulated(1.0));
        assert_eq!((other.state, other.remedy), (Good, None));
    }
}
