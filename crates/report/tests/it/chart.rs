//! Figures: the SVG of each chart as a golden file, and for any data at all a drawing of finite numbers and a table of
//! whole rows.

use model::Certainty;
use proptest::prelude::*;
use report::chart::{
    Bar, BarGroup, Bars, Chart, ChartAxis, ChartCell, ChartData, Flow, FlowLink, FlowStage, Heat, Lines,
    Point, Reference, Scale, Series, SeriesStyle, Theme, Unit,
};

const UNITS: [Unit; 7] =
    [Unit::Bytes, Unit::BytesPerS, Unit::Seconds, Unit::Ns, Unit::Count, Unit::Ratio, Unit::Rarity];
const STYLES: [SeriesStyle; 3] = [SeriesStyle::Measured, SeriesStyle::Published, SeriesStyle::Reference];

fn figure(data: ChartData) -> Chart {
    Chart { id: "one".to_owned(), title: "A title".to_owned(), caption: "What it shows.".to_owned(), data }
}

fn axis(label: &str, unit: Unit, scale: Scale) -> ChartAxis {
    ChartAxis { label: label.to_owned(), unit, scale }
}

fn point(x: f64, y: f64) -> Point {
    Point { x, y, low: Some(y * 0.9), high: Some(y * 1.1), n: Some(9) }
}

fn bar(name: &str, value: Option<f64>, note: &str) -> Bar {
    Bar {
        name: name.to_owned(),
        style: SeriesStyle::Measured,
        cell: ChartCell::new(value.map(|value| [value, value * 0.9, value * 1.1]), 9, note.to_owned()),
        samples: value.map(|value| vec![value * 0.95, value, value * 1.05]).unwrap_or_default(),
    }
}

/// Without its style sheet, which is a file of its own.
fn drawing(figure: &Chart) -> String {
    let svg = figure.svg(Theme::Light);
    let (before, rest) = svg.split_once("<style>").expect("a style");
    let (_, after) = rest.split_once("</style>").expect("its end");
    format!("{before}{after}").replace("><", ">\n<")
}

fn series(name: &str, style: SeriesStyle, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), style, points }
}

#[test]
fn lines() {
    let pipe = vec![point(1024.0, 4e8), point(4096.0, 9e8), point(65536.0, 1.4e9)];
    let published = vec![point(1024.0, 2e8), point(65536.0, 7e8)];
    let lines = Lines {
        x_axis: axis("block size", Unit::Bytes, Scale::Log),
        y_axis: axis("throughput", Unit::BytesPerS, Scale::Log),
        series: vec![
            series("pipe", SeriesStyle::Measured, pipe),
            series("Linux 2.4", SeriesStyle::Published, published),
        ],
    };
    insta::assert_snapshot!(drawing(&figure(ChartData::Lines(lines))));
}

#[test]
fn bars() {
    let groups = vec![BarGroup {
        name: "64 KiB".to_owned(),
        bars: vec![bar("pipe", Some(1.4e9), ""), bar("posix-mq", None, "the limit is 8 KiB")],
    }];
    let references = vec![
        Reference { name: "ceiling".to_owned(), value: 117e9 },
        Reference { name: "the study".to_owned(), value: 0.7e9 },
    ];
    let axis = axis("throughput", Unit::BytesPerS, Scale::Linear);
    insta::assert_snapshot!(drawing(&figure(ChartData::Bars(Bars { axis, groups, references }))));
}

#[test]
fn heat() {
    let cell = |value| ChartCell { value, ..ChartCell::default() };
    let heat = Heat {
        rows_label: "writer".to_owned(),
        columns_label: "reader".to_owned(),
        unit: Unit::BytesPerS,
        rows: vec!["c:tuned".to_owned(), "java:idiomatic".to_owned()],
        columns: vec!["c:tuned".to_owned(), "java:idiomatic".to_owned()],
        cells: vec![vec![cell(Some(2.2e9)), cell(Some(6e8))], vec![cell(Some(5.5e8)), cell(None)]],
    };
    insta::assert_snapshot!(drawing(&figure(ChartData::Heat(heat))));
}

fn heat_of(unit: Unit, values: &[f64]) -> String {
    let cells =
        values.iter().map(|value| ChartCell { value: Some(*value), ..ChartCell::default() }).collect();
    let (rows_label, columns_label) = ("asks".to_owned(), "answers".to_owned());
    let columns = vec!["n".to_owned(); values.len()];
    let heat =
        Heat { rows_label, columns_label, unit, rows: columns[..1].to_vec(), columns, cells: vec![cells] };
    drawing(&figure(ChartData::Heat(heat)))
}

/// Expected: 15.5 and 16.0 µs look alike, and 50.5 MB/s has its digits. Happened: all colours for 3 %, and "0.05".
#[test]
fn what_is_alike_looks_alike_and_what_is_small_has_digits() {
    let drawn = heat_of(Unit::Ns, &[15_500.0, 15_700.0, 15_800.0, 16_000.0]);
    let cells = drawn.split("<g class=\"cells\">").nth(1).and_then(|cells| cells.split("</g>\n<").next());
    let cells = cells.expect("cells");
    let used: Vec<usize> = (0..9).filter(|step| cells.contains(&format!("class=\"h{step}\" x"))).collect();
    assert!(used.len() <= 2 && used.iter().all(|step| (3..=5).contains(step)), "{used:?} in {cells}");
    let drawn = heat_of(Unit::BytesPerS, &[1.4e9, 1.4e9, 50.5e6, 4e8]);
    assert!([">50.5 MB/s<", ">1.40<", ">0.40<"].iter().all(|words| drawn.contains(words)), "{drawn}");
}

#[test]
fn distribution() {
    let points = [(2.0, 50_000.0), (10.0, 60_000.0), (100.0, 90_000.0), (f64::INFINITY, 200_000.0)];
    let points = points.map(|(x, y)| Point { x, y, low: None, high: None, n: Some(1000) }).to_vec();
    let lines = Lines {
        x_axis: axis("percentile", Unit::Rarity, Scale::Log),
        y_axis: axis("round trip", Unit::Ns, Scale::Log),
        series: vec![series("pipe", SeriesStyle::Measured, points)],
    };
    insta::assert_snapshot!(drawing(&figure(ChartData::Lines(lines))));
}

#[test]
fn flow() {
    let stage = |command: &str, wall_s: f64, held_up, bytes: Option<u64>| FlowStage {
        command: command.to_owned(),
        wall_s,
        cpu_s: wall_s / 2.0,
        read_wait_s: Some(wall_s / 4.0),
        write_wait_s: None,
        queued_s: Some(wall_s / 8.0),
        exit: "0".to_owned(),
        held_up,
        link: bytes.map(|bytes| FlowLink {
            spec: "pipe".to_owned(),
            bytes: Some((bytes, Certainty::Exact)),
            note: String::new(),
        }),
    };
    let stages = vec![
        stage("cat big", 2.0, false, Some(1_000_000_000)),
        stage("sort | of <a> kind", 4.0, true, Some(7190)),
        stage("head -1", 4.0, false, None),
    ];
    insta::assert_snapshot!(drawing(&figure(ChartData::Flow(Flow { wall_s: 4.0, stages }))));
}

/// Any number, the awkward ones often.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        Just(f64::MIN_POSITIVE),
        Just(f64::MAX),
        1e-3f64..1e12
    ]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(UNITS.to_vec())
}

fn scale() -> impl Strategy<Value = Scale> {
    prop::sample::select(vec![Scale::Linear, Scale::Log])
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z<&\"'é\u{1b}\n|]{0,60}"]
}

fn any_lines() -> impl Strategy<Value = ChartData> {
    let points = prop::collection::vec(
        (number(), number(), prop::option::of(number()), prop::option::of(number()), any::<Option<u32>>()),
        0..6,
    );
    let style = prop::sample::select(STYLES.to_vec());
    let series = prop::collection::vec((name(), style, points), 0..12);
    (unit(), scale(), unit(), scale(), series).prop_map(|(x_unit, x_scale, y_unit, y_scale, all)| {
        let point = |(x, y, low, high, n)| Point { x, y, low, high, n };
        let series = |(name, style, points): (String, _, Vec<_>)| Series {
            name,
            style,
            points: points.into_iter().map(point).collect(),
        };
        ChartData::Lines(Lines {
            x_axis: axis("x", x_unit, x_scale),
            y_axis: axis("y", y_unit, y_scale),
            series: all.into_iter().map(series).collect(),
        })
    })
}

fn any_bars() -> impl Strategy<Value = ChartData> {
    let bars = prop::collection::vec((name(), prop::option::of(number()), name()), 0..6);
    (unit(), scale(), bars, prop::collection::vec(number(), 0..3)).prop_map(
        |(unit, scale, bars, references)| {
            let bars = bars.into_iter().map(|(name, value, note)| bar(&name, value, &note)).collect();
            ChartData::Bars(Bars {
                axis: axis("value", unit, scale),
                groups: vec![BarGroup { name: String::new(), bars }],
                references: references
                    .into_iter()
                    .map(|value| Reference { name: "bound".to_owned(), value })
                    .collect(),
            })
        },
    )
}

fn any_heat() -> impl Strategy<Value = ChartData> {
    (unit(), prop::collection::vec(prop::option::of(number()), 12), name()).prop_map(
        |(unit, values, name)| {
            let cells: Vec<ChartCell> =
                values.into_iter().map(|value| ChartCell { value, ..ChartCell::default() }).collect();
            ChartData::Heat(Heat {
                rows_label: "row".to_owned(),
                columns_label: "column".to_owned(),
                unit,
                rows: vec![name.clone(); 3],
                columns: vec![name; 4],
                cells: cells.chunks(4).map(<[ChartCell]>::to_vec).collect(),
            })
        },
    )
}

fn any_flow() -> impl Strategy<Value = ChartData> {
    let times = (0.0f64..1e6, 0.0f64..1e6, prop::option::of(0.0f64..1e6), prop::option::of(0.0f64..1e6));
    let stage = (name(), times, any::<bool>(), prop::option::of(prop::option::of(any::<u64>())));
    (0.0f64..1e6, prop::collection::vec(stage, 0..6)).prop_map(|(wall_s, all)| {
        let link = |bytes: Option<u64>| FlowLink {
            spec: "pipe".to_owned(),
            bytes: bytes.map(|bytes| (bytes, Certainty::AtLeast)),
            note: String::new(),
        };
        let stage = |(command, (wall_s, cpu_s, read_wait_s, write_wait_s), held_up, bytes): (
            _,
            (_, _, _, _),
            _,
            Option<_>,
        )| FlowStage {
            command,
            wall_s,
            cpu_s,
            read_wait_s,
            write_wait_s,
            queued_s: read_wait_s,
            exit: "0".to_owned(),
            held_up,
            link: bytes.map(link),
        };
        ChartData::Flow(Flow { wall_s, stages: all.into_iter().map(stage).collect() })
    })
}

/// Every coordinate and length of a drawing.
fn geometry(svg: &str) -> impl Iterator<Item = &str> {
    const NAMES: [&str; 13] =
        ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "d", "transform", "viewBox"];
    NAMES.iter().flat_map(move |name| {
        let opening = format!(" {name}=\"");
        let values: Vec<&str> =
            svg.split(&opening).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        values
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_data_is_drawn_with_finite_numbers_and_has_whole_rows(
        chart in prop_oneof![any_lines(), any_bars(), any_heat(), any_flow()],
    ) {
        let figure = figure(chart);
        let svg = figure.svg(Theme::Auto);
        for value in geometry(&svg) {
            let digits = value.replace("translate", "").replace("rotate", "");
            prop_assert!(!digits.contains("NaN") && !digits.contains("inf"), "{value} in {figure:?}");
        }
        prop_assert!(!svg.contains('\u{1b}') && !svg.contains("<a"), "escaped");
        let table = figure.table();
        for row in &table.rows {
            prop_assert_eq!(row.cells.len(), table.columns.len());
        }
    }
}

/// Expected: a logarithmic axis has a tick at each measured value, if there are few. Happened: 1, 2 and none at 4 receivers.
#[test]
fn what_was_measured_has_a_tick() {
    let point = |x: f64| Point { x, y: 1e9 / x, low: None, high: None, n: Some(9) };
    for (values, ticks) in [([1.0, 4.0], ["1", "4"]), ([3.0, 7.0], ["3", "7"])] {
        let series = Series {
            name: "pipe".to_owned(),
            style: SeriesStyle::Measured,
            points: values.map(point).to_vec(),
        };
        let x_axis = ChartAxis::new("receivers", Unit::Count, Scale::Log);
        let y_axis = ChartAxis::new("throughput", Unit::BytesPerS, Scale::Log);
        let chart = ChartData::Lines(Lines { x_axis, y_axis, series: vec![series] });
        let (id, title, caption) = ("load".to_owned(), "Under load".to_owned(), String::new());
        let svg = Chart { id, title, caption, data: chart }.svg(Theme::Light);
        let across: Vec<&str> =
            svg.split("class=\"quiet middle\">").skip(1).filter_map(|text| text.split('<').next()).collect();
        assert_eq!(across, ticks);
    }
}
