//! Charts: data in, SVG and a table out, for pages, papers and docs/. Titles and captions come with the data.

mod axis;
mod bars;
mod canvas;
mod flow;
mod heat;
mod palette;
mod plot;
mod table;
mod theme;

pub use axis::Scale;

pub use crate::unit::Unit;
pub(crate) use palette::Palette;
pub use theme::Theme;
pub(crate) use theme::page_style;

use maud::Markup;
use model::{Certainty, visible};

use crate::lists::grouped;
use crate::table::Table;
use crate::{interval, numbers};
use canvas::Canvas;

/// A chart with its title and caption.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its name in links and file names: lower-case letters, digits and dashes, unique on a page.
    pub id: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What a reader must know, in one or two sentences.
    pub caption: String,
    /// The data.
    pub data: ChartData,
}

/// The data of a chart, by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum ChartData {
    /// Lines between two axes.
    Lines(Lines),
    /// Horizontal bars with intervals.
    Bars(Bars),
    /// A matrix whose cells are coloured by their values.
    Heat(Heat),
    /// The stages of pipelines and what flows between them.
    Flow(Flow),
}

/// An axis: what it shows, in which unit, and how it is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartAxis {
    /// What it shows, as in "block size".
    pub label: String,
    /// The unit of its values.
    pub unit: Unit,
    /// How it is divided.
    pub scale: Scale,
}

impl ChartAxis {
    /// An axis with a label.
    pub fn new(label: impl Into<String>, unit: Unit, scale: Scale) -> Self {
        Self { label: label.into(), unit, scale }
    }
}

/// Lines between two axes. A value that a logarithmic axis cannot show (0 or less) is in the table only. Over [`Unit::Rarity`] each line is a
/// distribution, percentile by percentile.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// The axis along the bottom.
    pub x_axis: ChartAxis,
    /// The axis along the left.
    pub y_axis: ChartAxis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The origin of its numbers.
    pub style: SeriesStyle,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// The origin or purpose of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesStyle {
    /// Measured: drawn solid.
    Measured,
    /// Taken from a publication: drawn dashed, with hollow marks.
    Published,
    /// A limit, to compare the others with: drawn thin and grey.
    Reference,
}

/// One point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its value on the axis along the bottom.
    pub x: f64,
    /// The number.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Number of its samples.
    pub n: Option<u32>,
}

/// Horizontal bars. A logarithmic axis has no zero at which bars could begin: there, marks are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The axis of the values.
    pub axis: ChartAxis,
    /// Bars in groups, from top to bottom.
    pub groups: Vec<BarGroup>,
    /// Values to compare the bars with, drawn as vertical lines.
    pub references: Vec<Reference>,
}

/// Bars that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    /// Their heading; empty for none.
    pub name: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// The origin of its number.
    pub style: SeriesStyle,
    /// The number, or why there is none.
    pub cell: ChartCell,
    /// Each sample, drawn as a dot; empty if only the summary is known.
    pub samples: Vec<f64>,
}

/// A value to compare bars with.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// What it is, as in "ceiling memcpy".
    pub name: String,
    /// The value, on the bars' axis.
    pub value: f64,
}

/// A matrix of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// What the rows are, as in "sender".
    pub rows_label: String,
    /// What the columns are, as in "receiver".
    pub columns_label: String,
    /// The unit of the cells.
    pub unit: Unit,
    /// The rows' names.
    pub rows: Vec<String>,
    /// The columns' names.
    pub columns: Vec<String>,
    /// Row by row, as many cells as there are columns.
    pub cells: Vec<Vec<ChartCell>>,
}

/// The value of a bar or of a cell of a matrix.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartCell {
    /// The value; if there is none, `note` says why.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Number of its samples.
    pub n: Option<u32>,
    /// A remark of a few words; may be empty.
    pub note: String,
}

impl Series {
    /// A line through these points.
    pub fn new(name: impl Into<String>, style: SeriesStyle, points: Vec<Point>) -> Self {
        Self { name: name.into(), style, points }
    }

    /// A line for each name, with its points from left to right.
    pub(crate) fn by_name(
        points: impl IntoIterator<Item = (String, Point)>,
        style: SeriesStyle,
    ) -> Vec<Self> {
        let line = |(name, mut points): (String, Vec<Point>)| {
            model::sort_by(&mut points, |one, other| one.x.total_cmp(&other.x));
            Self::new(name, style, points)
        };
        grouped(points).into_iter().map(line).collect()
    }
}

impl Point {
    /// A number without an interval.
    pub fn new(x: f64, y: f64, n: Option<u32>) -> Self {
        Self { x, y, low: None, high: None, n }
    }

    /// A median with the ends of its interval, of this many samples.
    pub fn estimated(x: f64, [y, low, high]: [f64; 3], samples: usize) -> Self {
        Self { x, y, low: Some(low), high: Some(high), n: u32::try_from(samples).ok() }
    }

    /// The number as that of a bar or of a cell of a matrix.
    fn cell(&self) -> ChartCell {
        let Self { y, low, high, n, .. } = *self;
        ChartCell { value: Some(y), low, high, n, note: String::new() }
    }
}

impl ChartCell {
    /// A value with the ends of its interval, and the number of its samples; or only a note why there is none.
    pub fn new(found: Option<[f64; 3]>, samples: usize, note: String) -> Self {
        let [value, low, high] = found.map_or([None; 3], |found| found.map(Some));
        Self { value, low, high, n: found.and(u32::try_from(samples).ok()), note }
    }

    /// Its interval, for the text after the value.
    fn spread(&self, unit: Unit) -> String {
        let Self { value: Some(value), low: Some(low), high: Some(high), n: Some(n), .. } = *self else {
            return String::new();
        };
        interval::plus_minus([value, low, high], n as usize, |value| unit.text(value))
    }

    /// Its tooltip, line by line: name, number, interval, how many samples. `absent` replaces a number without a reason.
    fn tip(&self, name: &str, unit: Unit, absent: &str) -> String {
        let ends =
            self.low.zip(self.high).map(|(low, high)| format!("{} to {}", unit.text(low), unit.text(high)));
        let lines = [
            Some(name.to_owned()),
            self.value.map(|value| unit.text(value)),
            self.value.map(|value| unit.exact(value)),
            ends.zip(interval::interval_name(self.n)).map(|(ends, name)| format!("{name} {ends}")),
            self.n.map(|n| format!("n = {}", numbers::grouped(f64::from(n), 0))),
            Some(self.note.clone()).filter(|note| !note.is_empty()),
            (self.value.is_none() && self.note.is_empty()).then(|| absent.to_owned()),
        ];
        lines.into_iter().flatten().collect::<Vec<String>>().join("\n")
    }
}

/// Pipelines: their stages and the links between.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// From the start of the first stage to the end of the last, in seconds.
    pub wall_s: f64,
    /// Every stage, pipeline by pipeline.
    pub stages: Vec<FlowStage>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStage {
    /// Its source text.
    pub command: String,
    /// From its start to its end, in seconds.
    pub wall_s: f64,
    /// CPU time, in seconds.
    pub cpu_s: f64,
    /// Time it waited for input, in seconds; `None` if that was not sampled.
    pub read_wait_s: Option<f64>,
    /// Time it waited for a reader of its output, in seconds; `None` if that was not sampled.
    pub write_wait_s: Option<f64>,
    /// Time it was ready to run and no CPU was free, in seconds; `None` if that was not sampled.
    pub queued_s: Option<f64>,
    /// Its exit status, or the name of the signal that ended it.
    pub exit: String,
    /// Whether the other stages waited for it.
    pub held_up: bool,
    /// The link to the next stage; `None` for the last one of a pipeline.
    pub link: Option<FlowLink>,
}

/// The link between a stage and the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowLink {
    /// Its spec, as in "pipe:size=1MiB".
    pub spec: String,
    /// Bytes that went through it; `None` if unknown.
    pub bytes: Option<(u64, Certainty)>,
    /// A remark of a few words; may be empty.
    pub note: String,
}

impl Chart {
    /// The chart as a stand-alone SVG, for papers and docs.
    pub fn svg(&self, theme: Theme) -> String {
        let canvas = Canvas::stand_alone(theme);
        let palette = Palette::of(std::iter::once(self));
        let text = canvas.frame(self, self.draw(&canvas, &palette)).into_string();
        format!("{}\n", visible(&text))
    }

    /// The chart for a page that has [`page_style`] and this palette: for desktops and for phones.
    pub(crate) fn inline(&self, palette: &Palette) -> [Markup; 2] {
        [false, true].map(Canvas::in_page).map(|canvas| canvas.frame(self, self.draw(&canvas, palette)))
    }

    /// The chart as a table.
    pub fn table(&self) -> Table {
        table::table(self)
    }

    fn draw(&self, canvas: &Canvas, palette: &Palette) -> canvas::Drawing {
        match &self.data {
            ChartData::Lines(lines) => plot::draw(lines, canvas, (&self.id, palette)),
            ChartData::Bars(bars) => bars::draw(bars, canvas, palette),
            ChartData::Heat(heat) => heat::draw(heat, canvas),
            ChartData::Flow(flow) => flow::draw(flow, canvas),
        }
    }
}
