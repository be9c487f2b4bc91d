//! How long a way of passing data takes to start, which the studies did not measure: a conclusion is drawn from a time only if it is mostly the
//! work that the study describes.

use model::{Measure, StudyPart, StudyRecord};
use report::numbers;

use crate::view::{Texts, measure, texts};

/// The name of the measure of a way's start: its time with hardly any data.
pub(crate) fn start_of(way: &str) -> String {
    format!("{START}{way}")
}

/// Whether a measure is the start of a way.
pub(crate) fn is_start(measure: &Measure) -> bool {
    measure.name.starts_with(START)
}

const START: &str = "start of ";
/// A conclusion is drawn from a time if the start is at most this share of it.
const START_SHARE_MAX: f64 = 0.1;

/// The median time of a way's start, in seconds; `None` in records of earlier versions.
pub(crate) fn start_s(part: &StudyPart, way: &str) -> Option<f64> {
    stats::estimate::median(&measure(part, &start_of(way))?.samples)
}

/// Whether a time of a way is mostly the work that the study describes. An unknown start is assumed to be short at the study's own size.
pub(crate) fn is_work(record: &StudyRecord, part: &StudyPart, way: &str, time_s: f64) -> bool {
    start_s(part, way).map_or(record.scale >= 1.0, |start_s| start_s <= START_SHARE_MAX * time_s)
}

/// The facts for the sentences that draw no conclusion of a way's time: where the start is known, the time (`short`) and the start; else
/// `unknown start`, which has no text.
pub(crate) fn short_texts(part: &StudyPart, way: &str, time_s: f64) -> Texts {
    let start_s = start_s(part, way);
    let time = |seconds: f64| numbers::time(seconds * 1e9);
    texts([
        ("short", start_s.map(|_| time(time_s))),
        ("start", start_s.map(time)),
        ("unknown start", start_s.is_none().then(String::new)),
    ])
}
