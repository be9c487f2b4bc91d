//! What is said of a machine whose CPUs something else used, too.

use crate::golden::{format, plain};
use crate::mock::{Mock, Work, record};

/// Expected: a machine that was disturbed is named once, above the figures, with what disturbed it; a quiet one is not.
#[test]
fn other_programs_and_guests_are_named_above_the_figures() {
    let mut record = record([Mock::stream("pipe").gb_per_s(1.4, 1.0, Work::Waking)]);
    for (programs_share, stolen_share, told) in [
        (0.149, 0.049, None),
        (
            0.37,
            0.01,
            Some(
                "Other programs took 37 % of the CPUs during this run (most: cc1 (4711), ld (4712)). Measure",
            ),
        ),
        (0.02, 0.08, Some("The hypervisor gave 8.0 % of the CPUs to other guests. Measure without them")),
    ] {
        let programs = vec!["cc1 (4711)".to_owned(), "ld (4712)".to_owned()];
        record.head.other_load = Some(model::OtherLoad { programs_share, stolen_share, programs });
        let text = plain(&record, 200);
        let notice = text
            .lines()
            .take_while(|line| !line.starts_with(" mechanism"))
            .find(|line| line.contains("Measure"));
        assert_eq!(
            notice.is_some_and(|line| told.is_some_and(|told| line.starts_with(told))),
            told.is_some(),
            "{text}"
        );
        let said = text.matches("read the intervals").count();
        assert_eq!(said, usize::from(told.is_some()), "{text}");
        let page = format(&record, "html");
        assert_eq!(page.contains("read the intervals"), told.is_some());
    }
}
