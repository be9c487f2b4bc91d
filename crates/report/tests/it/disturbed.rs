//! What is said of a machine whose CPUs something else used, too.

use crate::golden::{format, plain};
use crate::mock::{Mock, Work, record};

/// Expected: a machine that was disturbed is named once, above the figures, with what disturbed it; a quiet one is not.
#[test]
fn other_programs_and_guests_are_named_above_the_figures() {
    let mut record = record([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]);
    let programs =
        "Other programs took 37 % of the CPUs during this run (most: cc1 (4711), ld (4712)): end them";
    let guests = "The hypervisor gave 12 % of the CPUs to other guests: read the intervals.";
    let slower = "The CPUs became slower during this run: their frequency fell by 26 %";
    for (programs_share, stolen_share, frequency_fell, named) in [
        (0.149, 0.099, Some(0.09), None),
        (0.37, 0.01, None, Some(programs)),
        (0.02, 0.12, Some(0.0), Some(guests)),
        (0.02, 0.01, Some(0.26), Some(slower)),
    ] {
        let programs = vec!["cc1 (4711)".to_owned(), "ld (4712)".to_owned()];
        record.head.other_load =
            Some(model::OtherLoad { programs_share, stolen_share, programs, frequency_fell });
        let text = plain(&record, 200);
        let mut above = text.lines().take_while(|line| !line.starts_with(" mechanism"));
        assert_eq!(
            above.any(|line| named.is_some_and(|named| line.starts_with(named))),
            named.is_some(),
            "{text}"
        );
        assert_eq!(text.matches("read the intervals").count(), usize::from(named.is_some()), "{text}");
        assert_eq!(format(&record, "html").contains("read the intervals"), named.is_some());
    }
}
