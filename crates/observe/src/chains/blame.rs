//! Whom a chain waits for at one look: from its last stages upstream, past every stage that is idle because its input is empty, to the
//! one that has something to do; and from one that is idle because its output is full, downstream. Pure.

use crate::fullness::Fill;

/// Who is waited for this share of the time is named.
const NAMED_SHARE: f64 = 0.5;
/// And for so many times as long as anybody else.
const AHEAD: f64 = 1.4;

/// Whether the first of several is named as the one that was waited for, of so much time in all.
pub fn stands_out(first: f64, next: f64, whole: f64) -> bool {
    first / whole.max(f64::MIN_POSITIVE) >= NAMED_SHARE && first >= AHEAD * next
}

/// A stage at a look.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Standing {
    /// It had nothing to do, or could not do it.
    pub(crate) idle: bool,
    /// It did little, but may have something to do now.
    pub(crate) rests: bool,
    /// The link that it waits for.
    pub(crate) waits_at: Option<usize>,
}

/// A link at a look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between<'a> {
    pub(crate) writers: &'a [usize],
    pub(crate) readers: &'a [usize],
    /// `None` where nobody may look.
    pub(crate) fill: Option<Fill>,
}

/// How much the chain waits for each stage, 1 in all or less: the rest is up to somebody who cannot be seen, or cannot be told.
pub(crate) fn shares(stages: &[Standing], links: &[Between<'_>]) -> Vec<f64> {
    let hands_on =
        |at: usize| links.iter().any(|link| link.writers.contains(&at) && !link.readers.is_empty());
    let mut last: Vec<usize> = (0..stages.len()).filter(|at| !hands_on(*at)).collect();
    if last.is_empty() {
        // They go round: whichever it is that one begins with.
        last.extend(stages.len().checked_sub(1));
    }
    let mut walk = Walk { stages, links, shares: vec![0.0; stages.len()], passed: vec![false; stages.len()] };
    let each = 1.0 / last.len().max(1) as f64;
    for at in last {
        walk.passed.fill(false);
        walk.at(at, each, None);
    }
    walk.shares
}

struct Walk<'a> {
    stages: &'a [Standing],
    links: &'a [Between<'a>],
    shares: Vec<f64>,
    passed: Vec<bool>,
}

impl Walk<'_> {
    /// Puts so much down to a stage, or passes it on; `from` is the link by which one came.
    fn at(&mut self, at: usize, left: f64, from: Option<usize>) {
        if std::mem::replace(&mut self.passed[at], true) || left <= 0.0 {
            return;
        }
        let stage = self.stages[at];
        let full = |link: &Between<'_>| link.fill.is_some_and(Fill::is_full);
        let blocked = |place: &usize| {
            let link = &self.links[*place];
            Some(*place) != from
                && link.writers.contains(&at)
                && full(link)
                && stage.waits_at.is_none_or(|at| at == *place)
        };
        // One that has just been given room will soon have filled it again.
        if (stage.idle || stage.rests)
            && let Some(place) = (0..self.links.len()).find(blocked)
        {
            return self.among(self.links[place].readers, left, place);
        }
        let inputs: Vec<usize> =
            (0..self.links.len()).filter(|place| self.links[*place].readers.contains(&at)).collect();
        let up_to = |place: usize| {
            let link = &self.links[place];
            Fill::up_to(link.fill, stage.idle, !link.writers.is_empty())
        };
        let waited_for = stage.waits_at.filter(|place| inputs.contains(place));
        // Of several the emptiest one is waited for.
        let share = |place: &usize| up_to(*place).unwrap_or(1.0);
        let input = waited_for
            .or_else(|| inputs.iter().copied().min_by(|one, other| share(one).total_cmp(&share(other))));
        let Some(input) = input else {
            self.shares[at] += left;
            return;
        };
        let Some(here) = up_to(input) else { return };
        self.shares[at] += left * here;
        self.among(self.links[input].writers, left * (1.0 - here), input);
    }

    fn among(&mut self, stages: &[usize], left: f64, from: usize) {
        let each = left / stages.len().max(1) as f64;
        for at in stages {
            self.at(*at, each, Some(from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: Fill = Fill::NOTHING_YET;
    const FULL: Fill = Fill { share: 1.0, holds: true, ..EMPTY };

    fn busy(at: &[usize], stages: usize) -> Vec<Standing> {
        (0..stages).map(|stage| Standing { idle: !at.contains(&stage), ..Standing::default() }).collect()
    }

    fn named(stages: &[Standing], links: &[(&[usize], &[usize], Option<Fill>)]) -> Option<usize> {
        let links: Vec<Between<'_>> =
            links.iter().map(|(writers, readers, fill)| Between { writers, readers, fill: *fill }).collect();
        let shares = shares(stages, &links);
        assert!(shares.iter().sum::<f64>() <= 1.0 + 1e-9, "{shares:?}");
        shares.iter().position(|share| *share > 0.9)
    }

    #[test]
    fn the_stage_between_a_full_link_and_an_empty_one_is_waited_for() {
        let line =
            |first: Fill, second: Fill| [(&[0][..], &[1][..], Some(first)), (&[1], &[2], Some(second))];
        assert_eq!(named(&busy(&[1], 3), &line(FULL, EMPTY)), Some(1));
        assert_eq!(named(&busy(&[0], 3), &line(EMPTY, EMPTY)), Some(0), "a slow source");
        assert_eq!(named(&busy(&[2], 3), &line(FULL, FULL)), Some(2), "a slow end");
        assert_eq!(named(&busy(&[], 3), &line(FULL, FULL)), Some(2), "one that sleeps before a full link");
    }

    #[test]
    fn what_branches_goes_round_or_cannot_be_seen_ends() {
        // A writer of two that waits for the slow one.
        let mut stages = busy(&[], 3);
        stages[0].waits_at = Some(0);
        assert_eq!(named(&stages, &[(&[0], &[1], Some(FULL)), (&[0], &[2], Some(EMPTY))]), Some(1));
        // The same writer when it has just been given room.
        let mut stages = busy(&[0, 1], 3);
        stages[0].rests = true;
        assert_eq!(named(&stages, &[(&[0], &[1], Some(FULL)), (&[0], &[2], Some(EMPTY))]), Some(1));
        // A reader of two that waits for the second.
        let mut stages = busy(&[1], 3);
        stages[2].waits_at = Some(1);
        assert_eq!(named(&stages, &[(&[0], &[2], Some(FULL)), (&[1], &[2], Some(EMPTY))]), Some(1));
        // Two that ask and answer.
        let round = [(&[0][..], &[1][..], Some(EMPTY)), (&[1], &[0], Some(EMPTY))];
        assert_eq!(named(&busy(&[0], 2), &round), None, "each waits for the other");
        // Somebody who cannot be seen.
        assert_eq!(named(&busy(&[], 1), &[(&[], &[0], Some(EMPTY))]), None);
        assert_eq!(named(&busy(&[], 2), &[(&[0], &[1], None)]), None, "nobody may look");
        assert_eq!(shares(&[], &[]), Vec::<f64>::new());
    }
}
