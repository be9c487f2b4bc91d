//! Sentences on a program whose buffer begins at an offset in a page at which this CPU copies slowly.

use model::SlowCopies;

use crate::numbers::{grouped, percent, time};

/// The sentence for a stage of a run that has ended.
pub(crate) fn past(name: &str, slow: &SlowCopies) -> String {
    sentence(name, slow, "`--align-buffers`", &time(slow.saves_ns_max as f64))
}

/// The sentence for a running program that was sampled for `elapsed_ns`.
pub(crate) fn present(name: &str, slow: &SlowCopies, elapsed_ns: u64) -> String {
    let share = slow.saves_ns_max as f64 / elapsed_ns.max(1) as f64;
    let saves = format!("{} of a CPU", percent(share));
    sentence(name, slow, "`hosepipe run --align-buffers` or `hosepipe boost`", &saves)
}

/// A few words for a line of a chain: "slow reads at +16: --align-buffers".
pub fn in_brief(slow: &SlowCopies) -> String {
    let calls = if slow.writes { "writes" } else { "reads" };
    format!("slow {calls} at +{}: --align-buffers", slow.offset)
}

fn sentence(name: &str, slow: &SlowCopies, with: &str, saves: &str) -> String {
    let (does, calls) = if slow.writes { ("writes from", "writes") } else { ("reads into", "reads") };
    let bytes = grouped(slow.offset as f64, 0);
    format!(
        "{name} {does} a buffer {bytes} bytes into a page. This CPU copies there at {:.2} of its speed: with {with} its {calls} take at most \
         {saves} less.",
        slow.speed_share
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_has_the_offset_of_the_buffer_and_what_is_saved() {
        let slow = SlowCopies { writes: false, offset: 16, speed_share: 0.3, saves_ns_max: 620_000_000 };
        assert_eq!(
            past("`zstd` (stage 2)", &slow),
            "`zstd` (stage 2) reads into a buffer 16 bytes into a page. This CPU copies there at 0.30 of its speed: with \
             `--align-buffers` its reads take at most 620 ms less."
        );
        let slow = SlowCopies { writes: true, offset: 4080, ..slow };
        assert_eq!(
            present("zstd 7", &slow, 1_000_000_000),
            "zstd 7 writes from a buffer 4,080 bytes into a page. This CPU copies there at 0.30 of its speed: with `hosepipe run \
             --align-buffers` or `hosepipe boost` its writes take at most 62 % of a CPU less."
        );
    }
}
