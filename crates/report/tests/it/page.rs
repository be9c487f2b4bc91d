//! What is on the page, as golden files: sections, figures and tables before they are HTML. That the HTML works in a
//! browser is tested where the binary is (crates/cli/tests/page.rs).

use std::collections::BTreeSet;

/// None of the records is of a study.
pub(crate) fn page(records: &[Loaded]) -> Document {
    report::page(records, StudyView::unknown)
}

fn render(records: &[Loaded]) -> String {
    page(records).html()
}

use crate::mock::{Mock, Work, held_up_by_the_second, ordinary, record};
use model::{
    BenchRecord, CompareRecord, CompareResult, DataLevel, ErrorKind, LinkRecord, Placement, Record,
    RecordHead, RunRecord, Spec, StageRecord, Tool, WorkerCase, WorkerEnd, WorkerStart,
};
use report::Value;
use report::chart::Chart;
use report::disjoint_records;
use report::document::{Block, Document};
use report::read::Loaded;
use report::study::StudyView;
use report::table::{Row, Table};

pub(crate) fn bench(name: &str, record: BenchRecord) -> Loaded {
    Loaded { name: name.to_owned(), record: Record::Bench(record) }
}

fn tool() -> Tool {
    Tool { version: "0.1.0".to_owned(), revision: None }
}

/// A run of three stages, of which the second one held the others up.
fn run(pipeline: &str) -> Loaded {
    let stage = |command: &str, wall_ms: u64, waits_ms: [u64; 2]| StageRecord {
        pipeline: 0,
        stage: 0,
        is_reduce: false,
        command: command.to_owned(),
        pid: Some(7),
        status: Some(0),
        signal: None,
        wall_ns: wall_ms * 1_000_000,
        user_ns: wall_ms * 500_000,
        system_ns: 0,
        blocked_read_ns: Some(waits_ms[0] * 1_000_000),
        blocked_write_ns: Some(waits_ms[1] * 1_000_000),
        queued_ns: Some(3_000_000),
        held_up_ns: None,
        max_rss_bytes: None,
        ..StageRecord::default()
    };
    let link = |stored: Option<u64>| LinkRecord {
        pipeline: 0,
        spec: "pipe".to_owned(),
        granted: [("pipe_bytes".to_owned(), 1 << 20)].into(),
        bytes: Some(100_000_000),
        bytes_is: Some(model::Certainty::Exact),
        lines: None,
        left_bytes: None,
        stored_bytes: stored,
        path: None,
        relay: false,
        kept: None,
        trouble: None,
        watched_ns: Some(4_000_000_000),
        full_ns: Some(3_900_000_000),
        empty_ns: Some(40_000_000),
    };
    let record = RunRecord {
        head: RecordHead {
            tool: tool(),
            host: record([]).head.host,
            arguments: vec!["run".to_owned(), pipeline.to_owned()],
            started: "2026-01-02T03:04:05Z".to_owned(),
            ..RecordHead::default()
        },
        pipeline: pipeline.to_owned(),
        via: "pipe".to_owned(),
        wall_ns: 8_940_000_000,
        status: 0,
        pipestatus: vec![Some(0); 3],
        without: None,
        latency: None,
        stages: vec![
            stage("cat big", 6790, [0, 6500]),
            StageRecord { stage: 1, ..stage("sort", 8940, [10, 20]) },
            StageRecord { stage: 2, ..stage("head -1", 8940, [8940, 0]) },
        ],
        links: vec![link(None), link(Some(7190))],
        partitions: None,
        bottleneck: Some(held_up_by_the_second()),
        why: None,
    };
    Loaded { name: "run.json".to_owned(), record: Record::Run(record) }
}

fn compare() -> Loaded {
    let result = |via: &str, median_s: f64| {
        let mut result = CompareResult::new("cat big | wc -c", via);
        result.times_s = [0.99, 1.0, 1.01, 1.0, 1.0, 1.0, 0.98].map(|factor| factor * median_s).to_vec();
        result.output_hash = Some("aa".to_owned());
        result.equal = Some(true);
        result
    };
    let mut results =
        vec![result("pipe", 0.77), result("tmpfile", 0.81), CompareResult::new("cat big | wc -c", "tcp")];
    results[1].stored_bytes = Some(1 << 30);
    results[1].equal = Some(false);
    results[2].error = Some("the link could not be made: EMFILE".to_owned());
    stats::summarise_times(&mut results, 1, stats::Analyses::Once);
    let record = CompareRecord {
        head: RecordHead {
            tool: tool(),
            arguments: vec!["compare".to_owned()],
            started: "2026-01-02T03:04:05Z".to_owned(),
            ..RecordHead::default()
        },
        seed: 1,
        trials: 7,
        warmup: 1,
        results,
        ..CompareRecord::default()
    };
    Loaded { name: "compare.json".to_owned(), record: Record::Compare(record) }
}

fn sweep() -> BenchRecord {
    let mut cases = Vec::new();
    for block in [64, 1024, 8192, 65536] {
        let speed = (block as f64).sqrt() / 150.0;
        cases.push(Mock::stream("pipe").block(block).gb_per_s(speed, 1.0, Work::Waking));
        let queue = Mock::stream("posix-mq").block(block);
        cases.push(match block {
            ..=8192 => queue.gb_per_s(speed * 0.8, 1.0, Work::Copying),
            _ => queue.fails(
                ErrorKind::Limit,
                "the message is longer than 8KiB",
                Some("see `hosepipe doctor`"),
            ),
        });
        cases.push(Mock::round_trips("pipe").block(block).round_trip_ns(50_000 + block, 1.0));
    }
    record(cases)
}

fn workers() -> BenchRecord {
    let end = |language: &str, variant: &str| WorkerEnd {
        language: language.to_owned(),
        variant: variant.to_owned(),
        toolchain: Some(format!("{language} 1.2.3")),
    };
    let ends = [end("C", "tuned"), end("Java", "idiomatic")];
    let case = |writer: &WorkerEnd, reader: &WorkerEnd, start, gb_per_s| {
        let worker =
            WorkerCase { writer: writer.clone(), reader: reader.clone(), start, warmup_bytes: 1 << 26 };
        Mock::stream("pipe").gb_per_s(gb_per_s, 1.0, Work::Copying).with(|case| case.worker = Some(worker))
    };
    let (c, java) = (&ends[0], &ends[1]);
    record([
        case(c, c, WorkerStart::Pair, 2.1),
        case(java, java, WorkerStart::Pair, 0.53),
        case(c, c, WorkerStart::Harness, 2.2),
        case(c, java, WorkerStart::Harness, 0.6),
        case(java, c, WorkerStart::Harness, 0.55),
    ])
}

/// The page as text.
pub(crate) fn text(page: &Document) -> String {
    let mut text = format!("{}\n{}\n", page.title, page.subtitle);
    page.notices.iter().for_each(|notice| text.push_str(&format!("! {notice}\n")));
    for highlight in &page.highlights {
        text.push_str(&format!(
            "* {}{} {}: {}\n",
            highlight.figure, highlight.interval, highlight.spec, highlight.what
        ));
    }
    for section in &page.sections {
        text.push_str(&format!("\n## {} ({})\n", section.title, section.id));
        section.code.iter().chain(&section.lead).for_each(|line| text.push_str(&format!("{line}\n")));
        for block in &section.blocks {
            match block {
                Block::Chart(figure) => {
                    text.push_str(&format!("\n[{}] {}\n{}\n", figure.id, figure.title, figure.caption));
                    text.push_str(&rows(&figure.table()));
                }
                Block::Table(table) => text.push_str(&rows(table)),
                Block::Folded(heading, tables) => {
                    text.push_str(&format!("\n> {heading}\n"));
                    tables.iter().for_each(|table| text.push_str(&rows(table)));
                }
                Block::Remarks(lines) => lines.iter().for_each(|line| text.push_str(&format!("- {line}\n"))),
                other => panic!("not a block of a page: {other:?}"),
            }
        }
    }
    text
}

fn rows(table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(|column| column.head.clone()).collect();
    let cells = |row: &Row| row.cells.iter().map(Value::to_string).collect();
    let lines = std::iter::once(columns).chain(table.rows.iter().map(cells));
    let lines = lines.map(|cells| format!("{}\n", cells.join(" | ")));
    format!("\n{}\n{}", table.title, lines.collect::<String>())
}

fn figures(page: &Document) -> Vec<&Chart> {
    let of = |block: &'_ Block| matches!(block, Block::Chart(_));
    let blocks = page.sections.iter().flat_map(|section| &section.blocks).filter(|block| of(block));
    blocks.filter_map(|block| if let Block::Chart(figure) = block { Some(figure) } else { None }).collect()
}

#[test]
fn an_ordinary_record() {
    insta::assert_snapshot!("page_ordinary", text(&page(&[bench("run.json", record(ordinary()))])));
}

#[test]
fn a_sweep_is_lines_and_its_gaps_are_told() {
    insta::assert_snapshot!("page_sweep", text(&page(&[bench("sweep.json", sweep())])));
}

#[test]
fn hosts_stand_side_by_side() {
    let mut there = record(ordinary());
    there.head.host.kernel = "Linux 5.15.0".to_owned();
    there.head.host.memory_bytes = 8 << 30;
    let both = [bench("here/run.json", record(ordinary())), bench("there/run.json", there)];
    assert!(disjoint_records(&both).is_empty());
    insta::assert_snapshot!("page_two_hosts", text(&page(&both)));
}

#[test]
fn pipelines_and_comparisons() {
    insta::assert_snapshot!("page_pipelines", text(&page(&[run("cat big | sort | head -1"), compare()])));
}

#[test]
fn languages_and_their_matrix() {
    insta::assert_snapshot!("page_workers", text(&page(&[bench("workers.json", workers())])));
}

#[test]
fn records_with_nothing_in_common_are_named() {
    let one = bench("a.json", record([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]));
    let mut windows = record([Mock::stream("windows-named-pipe").gb_per_s(0.3, 1.0, Work::Waking)]);
    windows.head.host.kernel = "Wine 8.0".to_owned();
    let records = [one.clone(), bench("b.json", windows), run("true | true")];
    insta::assert_debug_snapshot!("strangers", disjoint_records(&records));
    assert_eq!(page(&records).notices, disjoint_records(&records));
    assert!(disjoint_records(&[one.clone(), one]).is_empty());
}

/// Expected: of fewer than six trials the interval is called what it is, the range of all; of one there is none.
#[test]
fn few_trials_have_a_range_and_one_has_nothing() {
    let of = |trials: usize| {
        let pipe =
            Mock::stream("pipe").gb_per_s(1.4, 5.0, Work::Copying).with(|case| case.samples.truncate(trials));
        let records = [bench("run.json", record([pipe]))];
        let caption = figures(&page(&records))[0].caption.clone();
        let tips: Vec<String> = render(&records).split("<title>").skip(2).map(str::to_owned).collect();
        (
            caption,
            tips.into_iter()
                .map(|tip| tip.split('<').next().unwrap_or_default().to_owned())
                .collect::<String>(),
        )
    };
    let (caption, tips) = of(3);
    assert!(caption.contains("the range of all trials") && !caption.contains("95 %"), "{caption}");
    assert!(tips.contains("range of all trials 1.") && !tips.contains("95 %"), "{tips}");
    let (caption, tips) = of(9);
    assert!(caption.contains("95 % interval") && tips.contains("95 % interval 1."), "{caption} {tips}");
    let (_, tips) = of(1);
    assert!(tips.contains("n = 1") && !tips.contains("95 %") && !tips.contains("range"), "{tips}");
}

/// Expected: a tile and a ceiling have their block and their interval, as every row of a table does.
#[test]
fn tiles_and_ceilings_have_their_block_and_their_interval() {
    let page = page(&[bench(
        "run.json",
        record([
            Mock::stream("pipe").gb_per_s(1.4, 40.0, Work::Copying),
            Mock::round_trips("pipe").round_trip_ns(50_000, 40.0),
            Mock::stream("memcpy").role(model::Role::Ceiling).gb_per_s(50.0, 40.0, Work::Copying),
        ]),
    )]);
    for tile in &page.highlights {
        assert!(tile.interval.starts_with(" ±") && tile.interval.ends_with(" %"), "{tile:?}");
    }
    assert_eq!(page.highlights.len(), 3, "{:?}", page.highlights);
    let table = rows(&figures(&page)[0].table());
    assert!(table.contains("ceiling: memcpy (64 KiB blocks, ±"), "{table}");
}

/// What was expected: data levels and placements in lists of their own. A page passed by reference is not a byte moved,
/// and one core is not two.
#[test]
fn data_levels_and_placements_are_figures_of_their_own() {
    let cases = [DataLevel::None, DataLevel::Verify].into_iter().flat_map(|data| {
        let pipe = Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Copying).data(data);
        [pipe.clone().on(Placement::Cross, &[0, 1]), pipe.on(Placement::Same, &[0, 0])]
    });
    let page = page(&[bench("run.json", record(cases))]);
    let titles: BTreeSet<&str> = figures(&page).iter().map(|figure| figure.title.as_str()).collect();
    assert_eq!(titles.len(), 4, "{titles:?}");
    assert!(
        titles.contains("Throughput, 64 KiB blocks · two processes on CPU 0 · every byte checked"),
        "{titles:?}"
    );
}

#[test]
fn what_round_trips_alone_say_is_said_with_them() {
    let noisy = Mock::round_trips("pipe").round_trip_ns(52_000, 40.0);
    let page = page(&[bench("run.json", record([noisy]))]);
    let section = page.sections.first().expect("a section");
    assert_eq!(section.id, "round-trips");
    assert!(
        !section.lead.is_empty() && matches!(section.blocks.last(), Some(Block::Remarks(_))),
        "{section:?}"
    );
}

/// Texts of a record that would be code if they were not escaped.
#[test]
fn nothing_of_a_record_is_markup() {
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}";
    let mut bad = record(ordinary());
    bad.head.host.cpu_model = hostile.to_owned();
    bad.head.arguments.push(hostile.to_owned());
    bad.cases[0].spec = Spec { mechanism: hostile.to_owned(), options: [(hostile.to_owned(), None)].into() };
    bad.cases[0].mechanism = hostile.to_owned();
    bad.cases
        .iter_mut()
        .filter_map(|case| case.error.as_mut())
        .for_each(|error| error.message = hostile.to_owned());
    let records = [bench(hostile, bad), bench("other.json", sweep()), run(hostile)];
    let html = render(&records);
    let outside = html.replace(&script_of(&html), "");
    assert!(!outside.contains("<script>alert") && !outside.contains("<img"), "escaped");
    assert!(!html.contains('\u{1b}'), "control characters are made visible in figures");
    for figure in figures(&page(&records)) {
        let svg = figure.svg(report::chart::Theme::Auto);
        assert!(
            !svg.contains("<script") && !svg.contains("<img") && !svg.contains('\u{1b}'),
            "{}",
            figure.id
        );
    }
}

/// Expected: no number of a record, however false, breaks the page.
/// Happened: figures of 300 digits in its labels, and `inf`.
#[test]
fn times_out_of_range_are_short() {
    let mut hostile = compare();
    let Record::Compare(record) = &mut hostile.record else { panic!("a comparison") };
    for result in &mut record.results {
        result.times_s = vec![1e308, -1e308, 1e308];
        let figures = [&mut result.mean_s, &mut result.stddev_s, &mut result.median_s];
        figures.into_iter().for_each(|figure| *figure = Some(f64::MAX));
    }
    let html = render(&[hostile]);
    let outside = html.replace(&script_of(&html), "");
    let digits = outside.split(|character: char| !character.is_ascii_digit());
    assert!(digits.clone().all(|run| run.len() < 40), "{:?}", digits.max_by_key(|run| run.len()));
    assert!(outside.split(|character: char| !character.is_alphanumeric()).all(|word| word != "inf"));
}

fn script_of(html: &str) -> String {
    let (from, to) =
        (html.find("<script>(() => {").expect("the script"), html.rfind("</script>").expect("its end"));
    html[from..to].to_owned()
}

#[test]
fn names_in_links_are_unique_and_nothing_is_fetched() {
    let mut other = record(ordinary());
    other.head.host.kernel = "Linux 5.15.0".to_owned();
    let records = [
        bench("a.json", record(ordinary())),
        bench("b.json", other),
        bench("c.json", sweep()),
        bench("d.json", workers()),
        run("a | b"),
        compare(),
    ];
    let html = render(&records);
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for (at, _) in html.match_indices("http") {
        let what = &html[at..(at + 30).min(html.len())];
        assert!(what.starts_with("http://www.w3.org/2000/svg") || what.starts_with("http-equiv"), "{what}");
    }
    assert!(!html.contains("NaN") || html.matches("NaN").count() == script_of(&html).matches("NaN").count());
}

#[test]
fn a_record_without_a_case_is_a_page() {
    let html = render(&[bench("empty.json", record([]))]);
    assert!(html.contains("The machine") && html.ends_with("</html>\n"));
}

/// The name and the class of each key and of each bar in a page's wide drawings.
fn colours(html: &str) -> Vec<(String, String)> {
    let wide = html.split("<svg").filter(|svg| svg.contains("figure wide"));
    let cut = |text: &str, from: &str, to: &str| {
        let (_, rest) = text.split_once(from)?;
        Some(rest.split_once(to)?.0.to_owned())
    };
    let last = |text: String| text.rsplit('>').next().map(str::to_owned);
    let found = wide.flat_map(|svg| {
        let keys = svg.split("class=\"key series ").skip(1);
        let keys = keys.map(|key| {
            (cut(key, "stroke=\"none\">", "</text>").and_then(last), key.get(..2).map(str::to_owned))
        });
        let rows = svg.split("<g class=\"row\">").skip(1);
        let rows = rows.map(|row| {
            let class = cut(row, "class=\"bar ", "\"").or_else(|| cut(row, "class=\"stem ", "\""));
            (cut(row, "class=\"mono\">", "</text>"), class)
        });
        keys.chain(rows).filter_map(|(name, class)| Some((name?, class?))).collect::<Vec<_>>()
    });
    found.collect()
}

/// Expected: a mechanism has one colour on a page. Happened: each chart gave its colours in the order of its own figures, so that the
/// colour of a pipe's streams was that of another mechanism's round trips.
#[test]
fn a_mechanism_keeps_its_colour_in_all_charts_of_a_page() {
    let names = ["pipe", "tcp", "unix-stream", "fifo"];
    let cases = names.iter().enumerate().flat_map(|(at, name)| {
        let speed = 1.0 + at as f64;
        let sizes = [64, 1024, 4096, 65536];
        let streams = sizes.map(|bytes| Mock::stream(name).block(bytes).gb_per_s(speed, 1.0, Work::Copying));
        let trips = Mock::round_trips(name).round_trip_ns(1000 * (at as u64 + 1), 2.0);
        streams.into_iter().chain([trips])
    });
    let html = render(&[bench("run.json", record(cases))]);
    let found = colours(&html);
    for name in names {
        let own: BTreeSet<&str> =
            found.iter().filter(|one| one.0 == name).map(|one| one.1.as_str()).collect();
        assert_eq!(own.len(), 1, "{name}: {found:?}");
        assert!(found.iter().filter(|one| one.0 == name).count() >= 3, "lines and bars: {found:?}");
    }
    let all: BTreeSet<&str> = found.iter().map(|one| one.1.as_str()).collect();
    assert!(all.len() >= names.len(), "{found:?}");
}

/// Expected: the pipe of a tile ran where the fastest stream did. Happened: one ran on one CPU and the other on two.
#[test]
fn tiles_compare_like_placements() {
    let on = |spec: &str, place, cpus: &[u32], speed| {
        Mock::stream(spec).gb_per_s(speed, 1.0, Work::Copying).on(place, cpus)
    };
    let tiles = |cases: Vec<Mock>| page(&[bench("run.json", record(cases))]).highlights;
    let shown = tiles(vec![
        on("pipe", Placement::Same, &[0, 0], 1.0),
        on("tcp", Placement::Cross, &[0, 1], 9.0),
        on("pipe", Placement::Cross, &[0, 1], 3.0),
    ]);
    let pipe = shown.iter().find(|tile| tile.what.contains("the plain pipe")).expect("a tile");
    assert!(pipe.figure == "3.00 GB/s" && pipe.what.ends_with("placed `cross`"), "{pipe:?}");
    let alone =
        tiles(vec![on("pipe", Placement::Same, &[0, 0], 1.0), on("tcp", Placement::Cross, &[0, 1], 9.0)]);
    assert!(alone.iter().all(|tile| !tile.what.contains("the plain pipe")), "{alone:?}");
}

/// Expected: the columns of a wide table follow below, each part with the names of the rows. Happened: they were cut off.
#[test]
fn a_wide_table_is_shown_in_parts() {
    let columns = (0..25).map(|at| format!("column {at}"));
    let row = (0..25).map(|at| format!("cell {at}")).collect::<Vec<String>>();
    let table = report::Table::new("wide", columns, [row]);
    let html = report::document::Document::from_blocks(vec![Block::Table(table)]).html();
    assert_eq!(html.matches("<caption>wide").count(), 3);
    assert_eq!(html.matches("<th scope=\"row\">cell 0</th>").count(), 3);
    for at in 1..25 {
        assert_eq!(html.matches(&format!(">cell {at}</td>")).count(), 1, "{at}");
    }
}
