//! How much a trial moves: the speed of a row is found by trials that grow until they are long enough.

use std::time::Duration;

/// The trials that find the speed of a row. An amount counts bytes, blocks, messages or round trips, as the row does.
#[derive(Debug, Clone, Copy)]
pub struct Sizing {
    /// The amount of the first trial: small, because the row may be slow.
    pub first: u64,
    /// Most of a trial; one of this amount is the last.
    pub most: u64,
    /// Largest factor between the amounts of two trials.
    pub growth_max: f64,
    /// A trial that takes this time shows the speed.
    pub enough: Duration,
    /// Trials of one amount that must all take this time: a single one may have been long because another program had the CPU.
    pub trials: usize,
    /// A single trial that takes this time is long enough, even if another program had the CPU for a part of it.
    pub alone: Duration,
}

/// The speed of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// What each of the last trials moved.
    pub amount: u64,
    /// The longest time of these trials.
    pub slowest: Duration,
    /// The shortest time of these trials.
    pub fastest: Duration,
    /// Seconds for one of the amount in each trial that was long enough, also of the trials before.
    pub times_s: Vec<f64>,
}

impl Speed {
    /// Of a trial.
    pub fn new(amount: u64, elapsed: Duration) -> Self {
        Self { amount, slowest: elapsed, fastest: elapsed, times_s: Vec::new() }
    }

    /// What is moved in this time, at the slowest speed that was seen.
    pub fn amount_in(&self, time: Duration) -> f64 {
        amount_in(time, self.amount, self.slowest)
    }
}

/// What is moved in `time` if `amount` takes `elapsed`.
pub(crate) fn amount_in(time: Duration, amount: u64, elapsed: Duration) -> f64 {
    amount as f64 * time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
}

/// A trial is to take this multiple of the time that is enough.
const MORE_THAN_ENOUGH: f64 = 1.5;

impl Sizing {
    /// Makes trials until they show the speed. `trial` makes one of an amount, and returns its measured time, and whether there is no time for
    /// another one; or `None` if the row has failed.
    ///
    /// # Errors
    /// Those of `trial`.
    pub fn find<E>(
        &self,
        mut trial: impl FnMut(u64) -> Result<Option<(Duration, bool)>, E>,
    ) -> Result<Option<Speed>, E> {
        let (mut amount, mut of_amount, mut times_s) = (self.first.min(self.most), Vec::new(), Vec::new());
        loop {
            let Some((elapsed, is_last)) = trial(amount)? else { return Ok(None) };
            of_amount.push(elapsed);
            let is_long = elapsed >= self.enough;
            if is_long {
                times_s.push(elapsed.as_secs_f64() / amount as f64);
            }
            let are_enough = is_long && (of_amount.len() >= self.trials || elapsed >= self.alone);
            if are_enough || is_last || amount == self.most {
                let (slowest, fastest) = (of_amount.iter().max(), of_amount.iter().min());
                let [slowest, fastest] = [slowest, fastest].map(|time| *time.unwrap_or(&elapsed));
                return Ok(Some(Speed { amount, slowest, fastest, times_s }));
            }
            if !is_long {
                let factor = amount_in(self.enough.mul_f64(MORE_THAN_ENOUGH), 1, elapsed);
                let more = amount as f64 * factor.clamp(MORE_THAN_ENOUGH, self.growth_max);
                amount = (more.ceil() as u64).min(self.most);
                of_amount.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SIZING: Sizing =
        Sizing { first: 100, most: u64::MAX, growth_max: 64.0, enough: MS, trials: 2, alone: Duration::MAX };

    /// The amounts of the trials of a row, and the speed that they show. `takes` is the time of a trial: its number from 0, and its amount.
    fn found(sizing: Sizing, takes: impl Fn(usize, u64) -> Duration) -> (Vec<u64>, Speed) {
        let mut amounts = Vec::new();
        let speed = sizing.find(|amount| {
            amounts.push(amount);
            let elapsed = takes(amounts.len() - 1, amount);
            Ok::<_, ()>(Some((elapsed, false)))
        });
        (amounts, speed.expect("no error").expect("no failure"))
    }

    #[test]
    fn trials_grow_until_two_of_one_amount_are_long_enough() {
        let us = |us: u64| Duration::from_micros(us);
        let (amounts, speed) = found(SIZING, |_, amount| us(amount / 10));
        assert_eq!(amounts, [100, 6400, 15_000, 15_000], "64 times, then what takes 1.5 ms");
        assert_eq!((speed.amount, speed.slowest, speed.fastest), (15_000, us(1500), us(1500)));
        assert_eq!((speed.amount_in(3 * MS), speed.times_s.len()), (30_000.0, 2));
    }

    /// Expected: the speed of the row. Happened: that of a trial during which another program had the CPU, so that all others were short.
    #[test]
    fn one_trial_that_lost_its_cpu_is_not_believed() {
        let takes = |at: usize, amount: u64| Duration::from_nanos(amount * 100) + MS * u32::from(at == 0);
        let (amounts, speed) = found(SIZING, takes);
        assert_eq!((amounts[..2].to_vec(), speed.amount > 10_000), (vec![100, 100], true));
        let alone = Sizing { alone: MS, ..SIZING };
        assert_eq!(found(alone, takes).0, [100], "unless it took so long that the loss does not matter");
    }

    #[test]
    fn the_largest_amount_and_the_last_trial_end_it() {
        let (amounts, speed) = found(Sizing { most: 700, ..SIZING }, |_, _| Duration::ZERO);
        assert_eq!((amounts, speed.amount), (vec![100, 700], 700));
        let last = |_| Ok::<_, ()>(Some((Duration::ZERO, true)));
        assert_eq!(SIZING.find(last), Ok(Some(Speed::new(100, Duration::ZERO))));
        assert_eq!(SIZING.find(|_| Ok::<_, ()>(None)), Ok(None));
        assert_eq!(SIZING.find(|_| Err("stopped")), Err("stopped"));
    }
}
