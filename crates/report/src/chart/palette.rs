//! The colours of names: what has one name has one colour, and one mark, in all charts of a page.

use super::theme::SERIES_COLORS;
use super::{Bar, Bars, Chart, ChartData, SeriesStyle};
use crate::lists::distinct;

/// The names of a page's lines and bars; the place of a name decides its colour and its mark.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    names: Vec<String>,
    /// Whether there are lines: without them, bars have different colours only where names are in several groups.
    has_lines: bool,
}

impl Palette {
    /// The palette of these charts. Lines come first, as only they are distinguished by nothing else.
    pub(crate) fn of<'a>(charts: impl Iterator<Item = &'a Chart>) -> Self {
        let (mut lines, mut in_groups, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for chart in charts {
            match &chart.data {
                ChartData::Lines(chart) => {
                    let own = chart.series.iter().filter(|one| one.style != SeriesStyle::Reference);
                    lines.extend(own.map(|one| one.name.as_str()));
                }
                ChartData::Bars(bars) if has_names_again(bars) => in_groups.extend(names(bars)),
                ChartData::Bars(bars) => others.extend(names(bars)),
                ChartData::Heat(_) | ChartData::Flow(_) => {}
            }
        }
        let has_lines = !lines.is_empty();
        others.retain(|_| has_lines);
        let all = distinct(lines.into_iter().chain(in_groups).chain(others));
        Self { names: all.into_iter().map(str::to_owned).collect(), has_lines }
    }

    /// The place of a name: colours repeat after [`SERIES_COLORS`], marks after fewer.
    pub(super) fn place(&self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or(0)
    }

    /// The colour of a bar. All bars of a page without lines have the first one, unless names are in several groups.
    pub(super) fn color_of(&self, bar: &Bar, bars: &Bars) -> usize {
        let is_coloured = self.has_lines || has_names_again(bars);
        if is_coloured { self.place(&bar.name) % SERIES_COLORS } else { 0 }
    }
}

fn names(bars: &Bars) -> impl Iterator<Item = &str> {
    bars.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.name.as_str())
}

/// Whether groups have names in common, and not more of them than there are colours.
fn has_names_again(bars: &Bars) -> bool {
    let distinct_names = distinct(names(bars)).len();
    bars.groups.len() > 1 && distinct_names < names(bars).count() && distinct_names <= SERIES_COLORS
}
