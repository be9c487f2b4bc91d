//! How a sample keeps its round trips: an HdrHistogram of nanoseconds in the library's V2+DEFLATE form, as
//! base64 (standard alphabet, padded). Whoever writes samples and whoever reads them agree on this alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use thiserror::Error;

/// The longest text that is read; a histogram of three digits up to an hour takes some 20 KiB.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Why a text is no histogram, or a histogram no text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("a latency histogram is not base64: {0}")]
    Base64(String),
    /// The bytes are no histogram.
    #[error("a latency histogram is not in the V2+DEFLATE form: {0}")]
    Format(String),
    /// The text is longer than any histogram of ours.
    #[error("a latency histogram has {0} bytes of text, more than the 1 MiB that is read")]
    TooLong(usize),
}

/// The longest round trip that we record, in nanoseconds; longer ones count as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// An empty histogram of round trip times: three significant digits from 1 ns to a minute.
pub fn latency_histogram() -> Option<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).ok()
}

/// The histogram as text.
///
/// # Errors
/// Where the library cannot serialise it (counts beyond 63 bits).
pub fn encode_histogram(histogram: &Histogram<u64>) -> Result<String, HistogramError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| HistogramError::Format(error.to_string()))?;
    Ok(STANDARD.encode(bytes))
}

/// The text as a histogram.
///
/// # Errors
/// Where the text is no histogram in the agreed form.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(HistogramError::TooLong(text.len()));
    }
    let bytes = STANDARD.decode(text).map_err(|error| HistogramError::Base64(error.to_string()))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError::Format(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_histogram_is_refused_with_the_reason() {
        assert!(matches!(decode_histogram("*"), Err(HistogramError::Base64(_))));
        assert!(matches!(decode_histogram("aG9zZXBpcGU="), Err(HistogramError::Format(_))));
        assert!(matches!(decode_histogram(&"A".repeat(TEXT_BYTES_MAX + 1)), Err(HistogramError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn text_reads_back(times in prop::collection::vec(1u64..10_000_000_000, 1..200)) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            for time in &times {
                histogram.record(*time).unwrap();
            }
            let read = decode_histogram(&encode_histogram(&histogram).unwrap()).unwrap();
            prop_assert_eq!(&read, &histogram);
        }
    }
}
