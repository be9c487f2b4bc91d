//! The round trips of a sample: an HdrHistogram of nanoseconds in the library's V2+DEFLATE form, as base64 (standard alphabet,
//! padded).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::io::Read;
use thiserror::Error;

/// Longest text that is read, and most bytes that are unpacked from it; a histogram of three digits up to an hour takes about
/// 20 KiB.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The precision of all histograms of hosepipe, in significant digits.
const DIGITS: u8 = 3;
/// The largest range that is read, in nanoseconds: an hour.
const RANGE_NS_MAX: u64 = 3_600_000_000_000;
/// The first bytes (the "cookies") of the V2+DEFLATE form, and of the V2 form inside it.
const DEFLATE_COOKIE: u64 = 0x1c84_9314;
const V2_COOKIE: u64 = 0x1c84_9313;
/// The length of the V2 header.
const HEADER_BYTES: usize = 40;

/// Why a histogram cannot be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("a latency histogram is not base64: {0}")]
    Base64(String),
    /// The bytes are not a histogram.
    #[error("a latency histogram is not in the V2+DEFLATE form: {0}")]
    Format(String),
    /// The text is longer than any histogram of hosepipe.
    #[error("a latency histogram has {0} bytes of text, more than the 1 MiB that is read")]
    TooLong(usize),
}

/// Longest round trip that is recorded, in nanoseconds; longer ones count as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// An empty histogram of round trip times: three significant digits from 1 ns to a minute.
pub fn latency_histogram() -> Option<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS).ok()
}

/// The histogram as text.
///
/// # Errors
/// The library cannot serialise it (counts beyond 63 bits).
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
/// The text is not a histogram in this form.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(HistogramError::TooLong(text.len()));
    }
    let packed = STANDARD.decode(text).map_err(|error| HistogramError::Base64(error.to_string()))?;
    let bytes = unpacked(&packed).map_err(HistogramError::Format)?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError::Format(error.to_string()))
}

/// The V2 form inside. The library allocates memory by its length, digits and range, so these are checked before it reads them.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>, String> {
    let number = |bytes: &[u8], at: usize, length: usize| {
        let digits = bytes.get(at..at + length).unwrap_or_default();
        digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let (head, body) = packed.split_at_checked(8).ok_or("it is too short")?;
    let mut bytes = Vec::new();
    let mut inflater = ZlibDecoder::new(body).take(TEXT_BYTES_MAX as u64 + 1);
    inflater.read_to_end(&mut bytes).map_err(|error| crate::describe_errno(&error))?;
    if number(head, 0, 4) != DEFLATE_COOKIE || number(&bytes, 0, 4) != V2_COOKIE {
        return Err("it does not begin with the right bytes".to_owned());
    }
    let (length, digits, range_ns) = (number(&bytes, 4, 4), number(&bytes, 12, 4), number(&bytes, 24, 8));
    let found = bytes.len().saturating_sub(HEADER_BYTES);
    if bytes.len() > TEXT_BYTES_MAX {
        Err("it unpacks to more than 1 MiB".to_owned())
    } else if length != found as u64 {
        Err(format!("its header says {length} bytes and it has {found}"))
    } else if digits > u64::from(DIGITS) {
        Err(format!("it has {digits} digits, and hosepipe writes {DIGITS}"))
    } else if range_ns > RANGE_NS_MAX {
        Err(format!("its range of {range_ns} ns is more than an hour"))
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wrong_text_is_refused_with_the_reason() {
        assert!(matches!(decode_histogram("*"), Err(HistogramError::Base64(_))));
        assert!(matches!(decode_histogram("aG9zZXBpcGU="), Err(HistogramError::Format(_))));
        assert!(matches!(decode_histogram(&"A".repeat(TEXT_BYTES_MAX + 1)), Err(HistogramError::TooLong(_))));
    }

    /// Expected: the sizes in a header are checked before memory is allocated for them.
    /// Happened: 4.2 GB for a length of 0xffffffff, 2.5 GB for five digits up to 2^63 - 1.
    #[test]
    fn a_header_with_wrong_sizes_is_refused() {
        let mut ours = Vec::new();
        let packed = STANDARD.decode(encode_histogram(&latency_histogram().unwrap()).unwrap()).unwrap();
        ZlibDecoder::new(&packed[8..]).read_to_end(&mut ours).unwrap();
        let refused = |at: usize, bytes: &[u8]| {
            let mut changed = ours.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            let mut packed = packed[..8].to_vec();
            let mut encoder = flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, &changed).unwrap();
            encoder.finish().unwrap();
            decode_histogram(&STANDARD.encode(packed))
                .map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert_eq!(refused(0, &ours[..4]), "", "unchanged");
        let lies: [(usize, &[u8], &str); 5] = [
            (0, &[0x1c, 0x84, 0x93, 0x14], "does not begin with the right bytes"),
            (4, &[0xff; 4], "says 4294967295 bytes"),
            (15, &[5], "has 5 digits"),
            (12, &[0xff; 4], "digits"),
            (24, &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "more than an hour"),
        ];
        for (at, bytes, said) in lies {
            assert!(refused(at, bytes).contains(said), "{at}: {}", refused(at, bytes));
        }
        let unpacks_to = |bytes: usize| {
            let mut packed = packed[..8].to_vec();
            let mut encoder = flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, &[&ours[..40], &vec![0; bytes - 40]].concat()).unwrap();
            encoder.finish().unwrap();
            decode_histogram(&STANDARD.encode(packed)).expect_err("a bomb").to_string()
        };
        let too_much = [TEXT_BYTES_MAX + 1, 8 << 20].map(unpacks_to);
        assert!(too_much.iter().all(|error| error.contains("more than 1 MiB")), "{too_much:?}");
        let at_most = unpacks_to(TEXT_BYTES_MAX);
        assert!(at_most.contains("and it has 1048536"), "{at_most}");
    }

    #[test]
    fn the_longest_text_and_the_largest_range_are_read() {
        let text = "A".repeat(TEXT_BYTES_MAX);
        assert!(matches!(decode_histogram(&text), Err(HistogramError::Format(_))));
        let hour = Histogram::<u64>::new_with_bounds(1, RANGE_NS_MAX, DIGITS).unwrap();
        assert_eq!(decode_histogram(&encode_histogram(&hour).unwrap()).unwrap().high(), RANGE_NS_MAX);
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
