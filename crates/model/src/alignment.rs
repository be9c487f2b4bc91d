//! The page offsets of both ends' buffers (`--align`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes from the start of a page to a buffer, at most 4095.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alignment {
    /// For the buffer from which the sender sends.
    pub sender: u16,
    /// For the buffer into which the receiver receives.
    pub receiver: u16,
}

/// The largest offset.
const MAX: u16 = 4095;
/// Offsets of a sweep for one end; the other end's offset is 0. CPUs with slow copies have them at receivers' offsets 1 to 31, and at
/// senders' offsets 1 to 31 bytes before the end of a page.
const RECEIVERS: [u16; 21] =
    [0, 1, 2, 4, 8, 12, 16, 20, 24, 28, 30, 31, 32, 33, 40, 48, 64, 80, 96, 112, 128];
const SENDERS: [u16; 11] = [4064, 4065, 4066, 4068, 4072, 4076, 4080, 4084, 4088, 4092, 4095];

impl Alignment {
    /// The offsets of `--align sweep`.
    pub fn sweep() -> Vec<Self> {
        let sender = SENDERS.map(|sender| Self { sender, receiver: 0 });
        sender.into_iter().chain(RECEIVERS.map(|receiver| Self { sender: 0, receiver })).collect()
    }

    /// Whether both begin at the start of a page, the default.
    pub fn are_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The position in a sweep: the receiver's offset, or the sender's as a negative number of bytes before the end of a page.
    pub fn place(&self) -> i32 {
        if self.sender > 0 { i32::from(self.sender) - i32::from(MAX) - 1 } else { self.receiver.into() }
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.sender, self.receiver)
    }
}

impl FromStr for Alignment {
    type Err = String;
    /// "16" for both ends, "0,16" for the sender and the receiver.
    fn from_str(text: &str) -> Result<Self, String> {
        let (sender, receiver) = text.split_once(',').unwrap_or((text, text));
        let offset = |word: &str| word.trim().parse().ok().filter(|offset| *offset <= MAX);
        offset(sender).zip(offset(receiver)).map(|(sender, receiver)| Self { sender, receiver }).ok_or_else(|| {
            format!("a buffer begins 0 to {MAX} bytes past the start of a page: 16 for both ends, 0,16 for the sender and the receiver, or sweep")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_read_as_they_are_shown() {
        for (text, shown) in [("16", "16,16"), ("0,16", "0,16"), ("4095, 1", "4095,1")] {
            let read: Alignment = text.parse().expect("sound");
            assert_eq!((read.to_string().as_str(), shown.parse()), (shown, Ok(read)));
        }
        for wrong in ["", "4096", "-1", "1,2,3", "1,", "x"] {
            assert!(wrong.parse::<Alignment>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_sweep_goes_up_from_before_a_page_to_behind_its_start() {
        let places: Vec<i32> = Alignment::sweep().iter().map(Alignment::place).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
        assert_eq!((places.first(), places.last()), (Some(&-32), Some(&128)));
    }

    #[test]
    fn only_the_start_of_a_page_is_usual() {
        assert!(Alignment::default().are_usual());
        assert!(!Alignment { sender: 0, receiver: 16 }.are_usual());
    }
}
