//! The page in a real browser: it opens without a complaint and fetches nothing, its charts are drawn at every width,
//! pointing and walking tell exact figures, and all of it can be read as tables.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::browser::{Browser, DESKTOP, PHONE, Window};
use crate::common::{Lab, busy, read_record, soon, until};
use model::{BenchRecord, Spec, Workload};
use report::chart::Theme;
use report::document::Block;
use report::read::{Loaded, read};

/// What the contract allows a page of 20,000 samples: of time on a quiet machine, and of processor time on any.
const OPENS_WITHIN: Duration = Duration::from_secs(2);

/// A record of a sweep, of one block size with a mechanism that has no figures, of a run, of a comparison: made once,
/// and written into the folder of each test.
fn records(lab: &Lab) -> Vec<String> {
    static MADE: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    let write = |(name, text): &(&str, String)| {
        let file = lab.here(name);
        std::fs::write(&file, text).expect("a file");
        file.display().to_string()
    };
    MADE.get_or_init(make_records).iter().map(write).collect()
}

fn make_records() -> Vec<(&'static str, String)> {
    let lab = Lab::new();
    let make = |args: &[&str]| {
        lab.run(&[args, &["--json", "made.json"]].concat()).expect_code(0);
        std::fs::read_to_string(lab.here("made.json")).expect("the record")
    };
    let bench = ["bench", "pipe", "unix-stream", "sysv-msgq", "--count", "40", "--trials", "3", "--block"];
    vec![
        ("sweep.json", make(&[&bench[..], &["1KiB,4KiB,16KiB,64KiB", "--workload", "stream"]].concat())),
        ("one.json", make(&[&bench[..], &["64KiB"]].concat())),
        ("run.json", make(&["run", "seq 100000 | tr '<script>alert(1)</script>' x | tail -1"])),
        ("compare.json", make(&["compare", "--via", "pipe,socketpair", "--trials", "2", "seq 1000 | wc -l"])),
    ]
}

/// The page of these records.
fn page(lab: &Lab, records: &[String]) -> PathBuf {
    let html = lab.here("page.html");
    let file = html.display().to_string();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    lab.run(&[&["report"], &records[..], &["--html", &file]].concat()).expect_code(0);
    html
}

/// Panics where a chart that is shown has nothing in it, or no size.
fn assert_charts_are_drawn(browser: &mut Browser, at: Window) {
    let empty = browser.text(
        "JSON.stringify([...document.querySelectorAll('figure')].filter(figure => { \
           const shown = [...figure.querySelectorAll('.chart > svg')].filter(svg => svg.getBoundingClientRect().width > 0); \
           if (shown.length !== 1) return true; \
           const pieces = [...shown[0].querySelectorAll('path, rect, circle')].map(piece => piece.getBBox()); \
           return pieces.filter(box => box.width > 0 || box.height > 0).length < 4 \
             || [...shown[0].querySelectorAll('text')].some(text => text.getBoundingClientRect().height < 8) \
         }).map(figure => figure.id))",
    );
    assert_eq!(empty, "[]", "figures without a chart at {at:?}");
    assert!(browser.evaluate("document.querySelectorAll('figure').length").as_u64() >= Some(5));
}

#[test]
fn it_opens_on_desktops_and_phones_without_a_complaint_or_a_request() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let html = page(&lab, &records(&lab));
    for window in [DESKTOP, PHONE, Window { dark: true, ..DESKTOP }, Window { dark: true, ..PHONE }] {
        browser.open(&html, window);
        assert_charts_are_drawn(&mut browser, window);
        assert_fits(&mut browser, window);
        let paper = browser.text("getComputedStyle(document.documentElement).getPropertyValue('--paper')");
        assert_eq!(paper == "#ffffff", !window.dark, "{paper} at {window:?}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{window:?}");
        let requests = browser.requests();
        assert!(
            requests.iter().all(|url| url.starts_with("file:") || url.starts_with("data:")),
            "{requests:?}"
        );
        assert_eq!(requests.iter().filter(|url| url.starts_with("file:")).count(), 1, "{requests:?}");
    }
}

/// Expected: a page is as wide as the window, also if the intervals of its main figures are wide. Happened: "43.7 MB/s (37.4 MB/s–95.1 MB/s)"
/// stood in one line, a phone showed a page of 566 px, and two fingers on a plot missed it.
#[test]
fn main_figures_with_wide_intervals_fit() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let mut record = read_record(&std::fs::read_to_string(&records(&lab)[0]).expect("the record"));
    for case in &mut record.cases {
        let Some(found) = case.throughput.as_mut() else { continue };
        case.samples = vec![case.samples[0].clone(); 9];
        (found.low, found.high) = (0.3 * found.median_bytes_per_s, 2.7 * found.median_bytes_per_s);
    }
    let html = page(&lab, &[write(&lab, "wide.json", &record)]);
    for window in [DESKTOP, PHONE] {
        browser.open(&html, window);
        let cards = "[...document.querySelectorAll('.highlights > div')]";
        let intervals =
            browser.text(&format!("{cards}.map(card => card.querySelector('small').textContent)"));
        assert!(intervals.contains('–'), "{intervals}");
        let wide =
            browser.text(&format!("{cards}.filter(card => card.scrollWidth > card.clientWidth).length"));
        assert_eq!(wide, "0", "cards whose text is wider than they are, at {window:?}: {intervals}");
        assert_fits(&mut browser, window);
    }
}

/// The page is no wider than its window.
fn assert_fits(browser: &mut Browser, window: Window) {
    let width = browser.evaluate("document.documentElement.scrollWidth").as_u64();
    assert!(width <= Some(u64::from(window.width)), "{width:?} wide at {window:?}");
}

/// Expected: the labels of an axis do not overlap and are within the chart at every width, also of a distribution with many nines, and
/// what scrolls sideways has a shade at its edge. Happened: percentiles were cut at 1300 px and overlapped at 400.
#[test]
fn labels_stand_apart_and_what_is_hidden_can_be_seen_to_be() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let html = page(&lab, &[records(&lab), vec![very_many_round_trips(&lab)]].concat());
    for width in [1300, 800, 400] {
        let window = Window { width, ..if width < 640 { PHONE } else { DESKTOP } };
        browser.open(&html, window);
        let bad = browser.text(
            "JSON.stringify([...document.querySelectorAll('.chart > svg')].flatMap(svg => { \
               const sheet = svg.getBoundingClientRect(); \
               const labels = [...svg.querySelectorAll('.ticks .middle, text.middle.small, text.quiet:not(.small)')].filter(() => sheet.width > 0); \
               const boxes = labels.map(label => [label.getBoundingClientRect(), label.textContent]); \
               return boxes.filter(([box], at) => box.left < sheet.left - 1 || box.right > sheet.right + 1 \
                 || boxes.some(([other], to) => to !== at && other.top < box.bottom && box.top < other.bottom \
                    && other.left < box.right && box.left < other.right)).map(([, text]) => text); \
             }))",
        );
        assert_eq!(bad, "[]", "labels cut or in each other at {width} px");
        let nines = "[...document.querySelectorAll('#distribution text')].filter(text => \
                     text.textContent === '99.99999 %' && text.getBoundingClientRect().width > 0).length";
        assert!(browser.evaluate(nines).as_u64() >= Some(1), "the rarest percentile is named at {width} px");
        browser.evaluate("document.querySelectorAll('details').forEach(folded => { folded.open = true; })");
        let hidden = browser.text(
            "JSON.stringify([...document.querySelectorAll('.scroll, .contents')] \
               .filter(box => box.scrollWidth > box.clientWidth) \
               .map(box => getComputedStyle(box).backgroundAttachment.includes('local, local, scroll, scroll')))",
        );
        assert!(!hidden.contains("false"), "{hidden} at {width} px");
        // Expected: a desktop's window has room for all columns. Happened: half of a table of 18 columns was cut off.
        assert!(width < 1280 || hidden == "[]", "tables wider than a window of {width} px: {hidden}");
        assert!(width > 400 || hidden.contains("true"), "a phone has tables that are wider than it");
    }
}

/// A record with so many round trips that the axis of their distribution has seven nines.
fn very_many_round_trips(lab: &Lab) -> String {
    let mut record = read_record(&std::fs::read_to_string(&records(lab)[1]).expect("the record"));
    record.cases.retain(|case| case.workload == Workload::PingPong && !case.samples.is_empty());
    for case in &mut record.cases {
        case.block_bytes = 7;
        for text in case.samples.iter_mut().filter_map(|sample| sample.latency_histogram.as_mut()) {
            let mut trips = model::decode_histogram(text).expect("a histogram");
            (0..24).for_each(|power| trips.record_n(1_000 << power, 20_000_000 >> power).expect("a place"));
            *text = model::encode_histogram(&trips).expect("a text");
        }
    }
    let file = lab.here("many.json");
    std::fs::write(&file, serde_json::to_string(&model::Record::from(record.clone())).expect("JSON"))
        .expect("a file");
    file.display().to_string()
}

/// Figures with all their digits, as the record has them: on the row of a ranking, and on the points of a line.
#[test]
fn pointing_and_walking_tell_exact_figures() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let records = records(&lab);
    browser.open(&page(&lab, &records[1..2]), DESKTOP);
    let record = read_record(&std::fs::read_to_string(&records[1]).expect("the record"));
    let streams = || record.cases.iter().filter(|case| case.throughput.is_some() && case.mechanism == "pipe");
    let throughput = streams().next().and_then(|case| case.throughput.as_ref()).expect("a measured pipe");
    let row = r"svg.wide .row[data-tip^='pipe\a ']";
    browser.point_at(row);
    let said = browser.text("document.getElementById('tip').innerText");
    assert!(digits(&said).contains(&format!("{:.0}", throughput.median_bytes_per_s)), "{said}");
    assert!(said.contains("range of all trials") && said.contains("n = 3"), "{said}");
    browser.mouse("mouseMoved", (2.0, 2.0));
    assert_eq!(browser.text("document.getElementById('tip').hidden"), "true");
    browser.evaluate("document.querySelector('#throughput svg.wide .row[tabindex=\"0\"]').focus()");
    browser.press("ArrowDown");
    let second = browser.text("document.querySelectorAll('#throughput svg.wide .row')[1].dataset.tip");
    let said = browser.text("document.getElementById('tip').innerText");
    assert!(second.lines().all(|line| said.contains(line)), "{said} is not {second}");

    browser.open(&page(&lab, &records[..1]), DESKTOP);
    let mark = "#throughput svg.wide .plot .series:not(.bound) .mark";
    browser.point_at(mark);
    let said = browser.text("document.getElementById('tip').innerText");
    let named = browser.text(&format!("document.querySelector({mark:?}).dataset.tip"));
    assert!(named.lines().all(|line| said.contains(line)), "{said} is not {named}");
    browser.evaluate("document.querySelector('#throughput svg.wide .plot').focus()");
    browser.press("Escape");
    browser.press("ArrowRight");
    let first = browser.text("document.getElementById('tip').innerText");
    browser.press("ArrowRight");
    let second = browser.text("document.getElementById('tip').innerText");
    assert!(first.contains("1 KiB") && second.contains("4 KiB"), "{first} then {second}");
    browser.press("ArrowDown");
    let other = browser.text("document.getElementById('tip').innerText");
    assert!(other.contains("4 KiB") && other.lines().next() != second.lines().next(), "{other}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn digits(text: &str) -> String {
    text.replace(',', "")
}

#[test]
fn lines_are_zoomed_switched_off_and_saved() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let records = records(&lab);
    browser.open(&page(&lab, &records[..1]), DESKTOP);
    let line = "document.querySelector('#throughput svg.wide .series .line').getAttribute('d')";
    let whole = browser.text(line);
    let [left, top, width, height] = browser.place("#throughput svg.wide .ground");
    let at = |x: f64, y: f64| (left + width * x, top + height * y);
    browser.mouse("mouseMoved", at(0.3, 0.1));
    browser.mouse("mousePressed", at(0.3, 0.1));
    browser.mouse("mouseMoved", at(0.9, 0.8));
    browser.mouse("mouseReleased", at(0.9, 0.8));
    assert_ne!(browser.text(line), whole, "the drag zoomed");
    let ticks = browser.text("document.querySelector('#throughput svg.wide .ticks').textContent");
    assert!(ticks.contains("KiB") && ticks.contains("B/s"), "{ticks}");
    browser.click("#throughput .reset");
    let again = browser.text(line);
    let numbers = |path: &str| -> Vec<f64> {
        path.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect()
    };
    for (before, after) in numbers(&whole).iter().zip(numbers(&again)) {
        assert!((before - after).abs() < 0.2, "{whole} is not {again}");
    }

    let off = "document.querySelectorAll('#throughput svg.wide .plot .series.off').length";
    browser.click("#throughput svg.wide .key");
    assert_eq!(browser.text(off), "1");
    assert_eq!(
        browser.text("document.querySelector('#throughput svg.wide .key').getAttribute('aria-pressed')"),
        "false"
    );
    let figure = browser.text("document.querySelector('#throughput figure').id");
    let svg = browser.download(&format!("{figure}.svg"), |browser| browser.click("#throughput .save"));
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>"), "{}", &svg[..svg.len().min(200)]);
    assert!(!svg.contains("var(") && !svg.contains("data-") && !svg.contains("NaN"), "stands alone");
    browser.click("#throughput svg.wide .key");
    assert_eq!(browser.text(off), "0");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn it_can_be_read_without_a_chart_and_printed() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let html = page(&lab, &records(&lab));
    browser.open(&html, DESKTOP);
    browser.press("Tab");
    assert_eq!(
        browser.text("document.activeElement.className"),
        "skip",
        "the first stop leads past the contents"
    );
    browser.press("Tab");
    assert_eq!(browser.text("document.activeElement.id"), "theme");
    browser.press("Enter");
    assert_eq!(browser.text("document.documentElement.dataset.theme"), "dark");
    let lacking = browser.text(
        "JSON.stringify([...document.querySelectorAll('figure')].filter(figure => { \
           const table = figure.querySelector('details table'); \
           return !table || !table.caption || !table.querySelector('th[scope=col]') || !table.querySelector('th[scope=row]'); \
         }).map(figure => figure.id))",
    );
    assert_eq!(lacking, "[]", "figures without a table");
    let nameless = browser.evaluate(
        "[...document.querySelectorAll('.chart > svg, button, nav, .scroll')].filter(element => \
           !(element.getAttribute('aria-label') || element.textContent.trim())).length",
    );
    assert_eq!(nameless.as_u64(), Some(0));
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({"media": "print"}));
    assert_eq!(browser.text("getComputedStyle(document.querySelector('nav')).display"), "none");
    assert_eq!(
        browser.text("getComputedStyle(document.documentElement).getPropertyValue('--paper')"),
        "#ffffff"
    );
    let printed = browser.call("Page.printToPDF", serde_json::json!({}));
    assert!(printed["data"].as_str().map_or(0, str::len) > 20_000);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// What was expected: text of a record is text. It is a command line, and may hold anything.
#[test]
fn a_script_in_a_record_does_not_run() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let records = records(&lab);
    let mut record = read_record(&std::fs::read_to_string(&records[1]).expect("the record"));
    let hostile = "\"><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
    record.cases[0].spec = Spec { mechanism: hostile.to_owned(), options: [].into() };
    record.head.host.cpu_model = hostile.to_owned();
    let bad = write(&lab, "bad.json", &record);
    browser.open(&page(&lab, &[bad.clone(), records[2].clone()]), DESKTOP);
    assert!(browser.text("document.title").starts_with("hosepipe"));
    assert_eq!(browser.text("document.querySelectorAll('img').length"), "0");
    for svg in figures(&[bad, records[2].clone()]) {
        let text = serde_json::to_string(&svg).expect("JSON");
        let script = format!("(text => {PARSED})({text})");
        assert_eq!(browser.text(&script), "svg", "well-formed, and nothing in it runs: {svg}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The page's own script has its hash in the policy of the page. Scripts and handlers that got in beside the template do not run.
#[test]
fn the_policy_of_the_page_stops_scripts_that_are_not_its_own() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let html = page(&lab, &records(&lab));
    let text = std::fs::read_to_string(&html).expect("the page");
    let owned = "document.title='owned'";
    let injected = format!(
        "<script>{owned}</script><img src=x onerror=\"{owned}\"><svg onload=\"{owned}\"></svg>\
         <details open ontoggle=\"{owned}\">x</details><iframe srcdoc=\"<script>parent.{owned}</script>\"></iframe>"
    );
    assert!(text.contains("<main id=\"main\">"));
    let text = text.replacen("<main id=\"main\">", &format!("<main id=\"main\">{injected}"), 1);
    std::fs::write(&html, text).expect("the page");
    browser.open(&html, DESKTOP);
    assert!(browser.text("document.title").starts_with("hosepipe"));
    let refused = browser.complaints();
    for refusal in ["inline script", "inline event handler"] {
        assert!(refused.iter().any(|text| text.contains(refusal)), "{refusal}: {refused:?}");
    }
    let named = browser.text("document.getElementById('theme').textContent");
    assert!(["Light", "Dark"].contains(&named.as_str()), "the page's own script has run: {named}");
}

/// What a text is as XML: the name of its root; what is wrong; or the name of an element that has no place in a figure.
const PARSED: &str = "{ const tree = new DOMParser().parseFromString(text, 'image/svg+xml'); \
    const wrong = tree.querySelector('parsererror, script, img, foreignObject'); \
    return wrong ? wrong.outerHTML : tree.documentElement.nodeName; }";

/// Every figure of some records, as files for papers.
fn figures(files: &[String]) -> Vec<String> {
    let text = |file: &String| std::fs::read_to_string(file).expect("the record");
    let loaded: Vec<Loaded> = files.iter().map(|file| read(file, &text(file)).expect("a record")).collect();
    let blocks = report::page(&loaded, study::view).sections.into_iter().flat_map(|section| section.blocks);
    let svg = |block| match block {
        Block::Chart(figure) => Some(figure.svg(Theme::Auto)),
        _ => None,
    };
    let figures: Vec<String> = blocks.filter_map(svg).collect();
    assert!(figures.len() > 2, "streams, round trips, a flow");
    figures
}

#[test]
fn two_fingers_and_the_wheel_zoom() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    browser.open(&page(&lab, &records(&lab)[..1]), PHONE);
    browser.call(
        "Emulation.setTouchEmulationEnabled",
        serde_json::json!({"enabled": true, "maxTouchPoints": 2}),
    );
    let line = "document.querySelector('#throughput svg.narrow .series .line').getAttribute('d')";
    let whole = browser.text(line);
    let touch = |browser: &mut Browser, [left, top, width, height]: [f64; 4], what: &str, shares: &[f64]| {
        let fingers: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(id, share)| serde_json::json!({"x": left + width * share, "y": top + height / 2.0, "id": id}))
            .collect();
        browser.call("Input.dispatchTouchEvent", serde_json::json!({"type": what, "touchPoints": fingers}));
    };
    let place = browser.place("#throughput svg.narrow .ground");
    touch(&mut browser, place, "touchStart", &[0.45, 0.55]);
    for spread in [0.1, 0.2, 0.3] {
        touch(&mut browser, place, "touchMove", &[0.45 - spread, 0.55 + spread]);
    }
    touch(&mut browser, place, "touchEnd", &[]);
    let pinched = until("two fingers zoom", soon(), || Some(browser.text(line)).filter(|now| *now != whole));
    assert_eq!(browser.text("visualViewport.scale"), "1", "the plot is zoomed, and not the page as well");
    let event = "new WheelEvent('wheel', {deltaY: 200, ctrlKey: true, bubbles: true, cancelable: true, \
                 clientX: 180, clientY: 300})";
    browser
        .evaluate(&format!("document.querySelector('#throughput svg.narrow .plot').dispatchEvent({event})"));
    assert_ne!(browser.text(line), pinched, "the wheel zoomed");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn twenty_thousand_samples_open_in_two_seconds() {
    let Some(mut browser) = Browser::start() else { return };
    let lab = Lab::new();
    let records = records(&lab);
    let mut rows = read_record(&std::fs::read_to_string(&records[1]).expect("the record"));
    multiply(&mut rows, 50, 200);
    let mut lines = read_record(&std::fs::read_to_string(&records[0]).expect("the record"));
    multiply(&mut lines, 25, 100);
    let count = |record: &BenchRecord| record.cases.iter().map(|case| case.samples.len()).sum::<usize>();
    assert!(count(&rows) + count(&lines) >= 20_000, "{} and {}", count(&rows), count(&lines));
    let html = page(&lab, &[write(&lab, "rows.json", &rows), write(&lab, "lines.json", &lines)]);
    let mut open = || {
        let began = Instant::now();
        (browser.processor_time_to_open(&html, DESKTOP), began.elapsed())
    };
    let (used, took) = (0..3).map(|_| open()).min().expect("three times");
    assert!(used < OPENS_WITHIN, "opened with {used:?} of processor time");
    assert!(took < OPENS_WITHIN * busy(), "opened in {took:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Makes `specs` cases of each case, with `samples` samples each.
fn multiply(record: &mut BenchRecord, specs: usize, samples: usize) {
    let measured: Vec<_> = record.cases.iter().filter(|case| !case.samples.is_empty()).cloned().collect();
    record.cases = (0..specs)
        .flat_map(|number| {
            measured.iter().map(move |case| {
                let mut case = case.clone();
                case.spec.options.insert("copy".to_owned(), Some(number.to_string()));
                case.samples = case.samples.iter().cycle().take(samples).cloned().collect();
                case
            })
        })
        .collect();
}

fn write(lab: &Lab, name: &str, record: &BenchRecord) -> String {
    let file = lab.here(name);
    std::fs::write(&file, serde_json::to_string(&model::Record::from(record.clone())).expect("JSON"))
        .expect("a file");
    file.display().to_string()
}
