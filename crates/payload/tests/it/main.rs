//! What payloads promise, where a changed constant would go unnoticed elsewhere.

use model::PayloadKind;
use payload::{Period, Tile};

/// A lost, repeated or swapped block changes what follows, whatever its size: no block is a multiple of a prime.
#[test]
fn measured_payloads_repeat_after_a_prime_number_of_bytes() {
    let is_prime =
        |number: usize| (2..).take_while(|it| it * it <= number).all(|it| !number.is_multiple_of(it));
    for kind in [PayloadKind::Random, PayloadKind::Printable] {
        let period = |period| Tile::make(&kind, 1, period).expect("no file").period();
        let (bench, compared) = (period(Period::Bench), period(Period::Compared));
        assert!(is_prime(bench) && is_prime(compared), "{bench} {compared}");
        // The one lies in a core's second cache, the other in its first, beside what it is compared with.
        assert!(
            (100_000..200_000).contains(&bench) && (8000..16_000).contains(&compared),
            "{bench} {compared}"
        );
        assert_eq!(period(Period::Filter), 16 << 20);
    }
}
