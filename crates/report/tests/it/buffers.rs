//! Where buffers begin: languages that are slow because of it, and sweeps over it.

use model::{Alignment, BenchRecord};
use report::Style;

use crate::golden::{format, plain, shown};
use crate::languages::worker;
use crate::mock::{Mock, Work, record};

/// Offsets 0 and 48 are slow nowhere, and no offset is on a machine without the fault.
#[test]
fn a_language_whose_buffers_are_at_a_slow_offset_is_named_where_the_machine_has_some() {
    let at = |name: &str, write: u64, read: u64| {
        worker(name, name, 2.0).with(|case| {
            for sample in &mut case.samples {
                (sample.write_buffer_offset, sample.read_buffer_offset) = (Some(write), Some(read));
            }
        })
    };
    let mut of = record([at("C tuned", 0, 0), at("Python tuned", 48, 48), at("Fortran idiomatic", 4080, 16)]);
    let places = "Page offsets of buffers, writer's and reader's: C tuned 0 and 0; Python tuned 48 and 48; Fortran idiomatic 4080 and 16.";
    let explained =
        |record: &BenchRecord| shown(record, &Style { width: 300, explain: true, ..Style::default() });
    assert!(
        explained(&of).contains(places) && !explained(&of).contains("of its speed"),
        "{}",
        explained(&of)
    );
    of.head.host.slow_copies = model::CopyCosts::simulated(0.3).slow_offsets();
    let text = explained(&of);
    assert!(text.contains("Fortran idiomatic reads into a buffer 16 bytes past a page's start: this CPU copies there at 0.30"), "{text}");
    assert!(text.contains("Fortran idiomatic writes from a buffer 16 bytes before a page's end"), "{text}");
    assert!(!text.contains("C tuned reads") && !text.contains("Python tuned reads"), "{text}");
}

#[test]
fn a_sweep_over_offsets_is_a_table_of_places() {
    let case = |align: Alignment| {
        let slow = (1..=31).contains(&align.receiver) || align.sender > 4064;
        Mock::stream("pipe")
            .gb_per_s(if slow { 1.2 } else { 4.0 }, 2.0, Work::Copying)
            .with(|case| case.align = align)
    };
    let swept = record(Alignment::sweep().into_iter().map(case));
    let text = plain(&swept, 100);
    let line = |place: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(&format!("{place} ")))
            .expect("a row")
            .to_owned()
    };
    assert!(
        line("0,16").ends_with("0.30") && line("4080,0").ends_with("0.30") && line("0,0").ends_with("1.00"),
        "{text}"
    );
    assert!(text.contains("by buffer offset (sender,receiver)") && !text.contains("mechanism "), "{text}");
    // Expected: a conclusion below the table. Happened: 128 rows and no sentence.
    let end = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let conclusion = "`pipe`, throughput of 64 KiB: 21 of 32 buffer offsets have surely less than 0.8 of the best speed; the slowest is";
    assert!(end.contains(conclusion), "{text}");
    let even =
        record(Alignment::sweep().into_iter().map(|align| {
            Mock::stream("pipe").gb_per_s(4.0, 2.0, Work::Copying).with(|case| case.align = align)
        }));
    let end = plain(&even, 300);
    assert!(end.contains("no buffer offset has surely less than 0.8 of the best speed"), "{end}");
    let page = format(&swept, "html");
    assert!(page.contains("by buffer offset") && page.contains("21 of 32 buffer offsets"));
    let few = record([Alignment::default(), "0,16".parse().expect("offsets")].map(case));
    assert!(plain(&few, 100).contains("pipe (align 0,16)"), "{}", plain(&few, 100));
}
