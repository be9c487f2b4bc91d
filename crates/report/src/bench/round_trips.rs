//! How round trips are distributed: the histograms of all trials of a case, merged.

use model::{CaseRecord, decode_histogram};
use stats::tail::share_max;

use crate::bounds::{LINES_MAX, cut};
use crate::chart::{Chart, ChartAxis, ChartData, Lines, Point, Scale, Series, SeriesStyle, Unit};
use crate::groups::ChartedCases;
use crate::numbers;

/// Steps from one nine to the next: 90 %, 91 %… 99 %, 99.1 %…
const STEPS: u32 = 9;
/// Largest number of nines.
const NINES: i32 = 7;

/// The chart of some round trips; of a sweep for the smallest block only.
pub(super) fn chart(cases: &ChartedCases, number: usize) -> Option<Chart> {
    let bytes = cases.cases().map(|case| case.block_bytes).min()?;
    let mut rows: Vec<_> = cases.rows.iter().filter(|(_, case)| case.block_bytes == bytes).collect();
    model::sort_by_key(&mut rows, |(_, case)| case.latency_ns.as_ref().map_or(u64::MAX, |found| found.p50));
    let left_out = cut("lines", LINES_MAX, rows.len()).map(|sentence| format!(" {sentence}"));
    rows.truncate(LINES_MAX);
    let series = rows.into_iter().filter_map(|(row, case)| {
        Some(Series::new(row.full_name(), SeriesStyle::Measured, percentiles(case)?))
    });
    let series: Vec<Series> = series.collect();
    (!series.is_empty()).then(|| Chart {
        id: format!("distribution-{number}"),
        title: format!("Round trips of {}", numbers::size(bytes)),
        caption: "Read a line at 99 %: one round trip in a hundred took longer. Both axes are logarithmic, the lower \
                  one in how rare a value is, so that the tail has as much room as the middle."
            .to_owned()
            + &left_out.unwrap_or_default(),
        data: ChartData::Lines(Lines {
            x_axis: ChartAxis::new("percentile", Unit::Rarity, Scale::Log),
            y_axis: ChartAxis::new("round trip", Unit::Ns, Scale::Log),
            series,
        }),
    })
}

/// The percentiles of all round trips that have enough of them beyond; `None` if there are none.
fn percentiles(case: &CaseRecord) -> Option<Vec<Point>> {
    let kept = case.samples.iter().filter_map(|sample| sample.latency_histogram.as_deref());
    let histograms: Vec<_> = kept.filter_map(|text| decode_histogram(text).ok()).collect();
    let merged = stats::summary::merged(&histograms).ok()??;
    let count = merged.len();
    let n = Some(u32::try_from(count).unwrap_or(u32::MAX));
    let shares = shares().take_while(|share| *share <= share_max(count));
    let point = |share: f64| {
        let y = merged.value_at_quantile(share) as f64;
        Point::new(1.0 / (1.0 - share), y, n)
    };
    let points: Vec<Point> = shares.map(point).collect();
    (!points.is_empty()).then_some(points)
}

/// Shares in equally many steps for each nine: 10 %… 80 %, 90 %, 91 %… 99 %, 99.1 %…
fn shares() -> impl Iterator<Item = f64> {
    let first = [0.01, 0.05].into_iter();
    first.chain((0..NINES).flat_map(|nines| {
        let rest = 10f64.powi(-nines);
        (1..=STEPS).map(move |step| 1.0 - rest * (1.0 - f64::from(step) / 10.0))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_rise_and_have_the_nines() {
        let all: Vec<f64> = shares().collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        for nines in [0.5, 0.9, 0.99, 0.999] {
            assert!(all.iter().any(|share| (share - nines).abs() < 1e-12), "{nines}");
        }
    }
}
