//! How a quantity is distributed, as percentiles: the tail has as much room as the middle, because the axis along
//! the bottom is divided by how rare a value is (50 %, 90 %, 99 %, 99.9 %: one in 2, in 10, in 100, in 1000).

use super::canvas::{Canvas, Drawing};
use super::lines::axis;
use super::plot::{self, Plot, PlotAxis, PlotPoint, PlotSeries};
use super::scale::Range;
use super::{Distribution, DistributionSeries, Scale, SeriesStyle, Share, Unit, tip};

/// Percentiles that may have a tick, as shares.
const TICKS: [f64; 9] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999];

pub(super) fn draw(distribution: &Distribution, canvas: &Canvas, id: &str) -> Drawing {
    let values = distribution.series.iter().flat_map(|series| series.points.iter().map(|point| point.value));
    let y = axis(&distribution.axis, values, 6);
    let rarest = distribution.series.iter().flat_map(places).map(|(rarity, _)| rarity).fold(10.0, f64::max);
    let range = Range { scale: Scale::Log, unit: Unit::Count, low: 1.0, high: rarest * 1.1 };
    let ticks = TICKS.iter().map(|share| (1.0 / (1.0 - share), percentile(*share)));
    let ticks = ticks.filter(|(rarity, _)| *rarity <= range.high).collect();
    let x = PlotAxis { label: "percentile".to_owned(), range, ticks, writing: "percentile" };
    let series = distribution.series.iter().map(|series| plot_series(distribution, series));
    plot::draw(&Plot { x, y, series: series.collect(), marks: false }, canvas, id)
}

fn plot_series(distribution: &Distribution, series: &DistributionSeries) -> PlotSeries {
    let point = |(rarity, share): (f64, Share)| {
        let at = Some(format!("percentile {}", percentile(share.share)));
        let n = u32::try_from(series.count).ok();
        let tip = tip::of(&series.name, at, distribution.axis.unit, share.value, (None, None), n, "");
        PlotPoint { x: rarity, y: share.value, interval: None, tip }
    };
    let points = places(series).map(point).collect();
    PlotSeries { name: series.name.clone(), style: SeriesStyle::Measured, points }
}

/// Each point with its rarity: one value in so many is larger. Of all values none is, which has no place; the
/// largest one stands where one value more would.
fn places(series: &DistributionSeries) -> impl Iterator<Item = (f64, Share)> + '_ {
    let most = series.count.max(2) as f64;
    series
        .points
        .iter()
        .map(move |point| ((1.0 / (1.0 - point.share).max(f64::MIN_POSITIVE)).min(most), *point))
}

/// "99.9 %", with as many nines as it takes.
pub(super) fn percentile(share: f64) -> String {
    let rarity = (1.0 / (1.0 - share).max(1e-12)).log10();
    let decimals = (rarity - 1.0).ceil().clamp(0.0, 8.0) as usize;
    let text = format!("{:.decimals$}", share * 100.0);
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_the_nines_they_need() {
        for (share, text) in
            [(0.0, "0 %"), (0.5, "50 %"), (0.999, "99.9 %"), (0.99999, "99.999 %"), (1.0, "100 %")]
        {
            assert_eq!(percentile(share), text);
        }
    }
}
