//! Assigns the time of one sample to the stages that the others wait for. The walk begins at the last stages. It goes upstream from a stage that is
//! idle because its input is empty, and downstream from one that is idle because its output is full, to a stage that has something to do. Nothing
//! here reads the system.

use crate::fullness::Fill;

/// Smallest share of the whole time with which a stage is named as the bottleneck.
const NAMED_SHARE: f64 = 0.5;
/// Smallest factor by which its share exceeds that of every other stage.
const AHEAD: f64 = 1.4;

/// Whether the stage with the longest time, `first`, is named as the bottleneck: `next` is the next longest time.
pub fn stands_out(first: f64, next: f64, whole: f64) -> bool {
    first / whole.max(f64::MIN_POSITIVE) >= NAMED_SHARE && first >= AHEAD * next
}

/// A stage at a sample.
#[derive(Debug, Default, Clone, Copy)]
pub struct StageState {
    /// It had nothing to do, or was blocked.
    pub idle: bool,
    /// It did little, but may have something to do now.
    pub rests: bool,
    /// It sleeps for a given time, so it waits for no other stage.
    pub passes_time: bool,
    /// No process reads its output any more.
    pub is_unread: bool,
    /// The link that it waits for.
    pub waits_at: Option<usize>,
}

/// A link at a sample, with the indices of the stages at its ends.
#[derive(Debug, Clone, Default)]
pub struct LinkState {
    pub writers: Vec<usize>,
    pub readers: Vec<usize>,
    /// `None` if it may not be opened.
    pub fill: Option<Fill>,
}

/// The shares of the time that were assigned to each stage, and at each link to processes that are no stage. Each last stage assigns 1 in total,
/// or less if the state of a link is unknown or stages wait for each other in a circle.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub stages: Vec<f64>,
    pub outside: Vec<f64>,
    /// The number of last stages.
    last_stages: usize,
}

impl Waiting {
    /// The shares of the stages, with a sum of at most 1.
    pub fn shares(&self) -> Vec<f64> {
        let each = 1.0 / self.last_stages.max(1) as f64;
        self.stages.iter().map(|share| share * each).collect()
    }
}

/// The stages that write to no other stage; if all of them form circles, one of them.
fn last_stages(stages: usize, links: &[LinkState]) -> Vec<usize> {
    let has_reader =
        |at: usize| links.iter().any(|link| link.writers.contains(&at) && !link.readers.is_empty());
    let mut last: Vec<usize> = (0..stages).filter(|at| !has_reader(*at)).collect();
    if last.is_empty() {
        last.extend(stages.checked_sub(1));
    }
    last
}

/// Assigns the waiting at one sample.
pub fn assign_waiting(stages: &[StageState], links: &[LinkState]) -> Waiting {
    let last = last_stages(stages.len(), links);
    let (by_stage, outside) = (vec![0.0; stages.len()], vec![0.0; links.len()]);
    let waiting = Waiting { stages: by_stage, outside, last_stages: last.len() };
    let mut walk = Walk { stages, links, waiting, passed: vec![false; stages.len()] };
    // No stage waits for one that writes to no reader, or for those before it.
    for at in last.into_iter().filter(|at| !stages[*at].is_unread) {
        walk.passed.fill(false);
        walk.assign(at, 1.0, None);
    }
    walk.waiting
}

struct Walk<'a> {
    stages: &'a [StageState],
    links: &'a [LinkState],
    waiting: Waiting,
    passed: Vec<bool>,
}

impl Walk<'_> {
    /// Assigns this share to a stage, or to those that it waits for; the walk came over the link `from`.
    fn assign(&mut self, at: usize, left: f64, from: Option<usize>) {
        if std::mem::replace(&mut self.passed[at], true) || left <= 0.0 {
            return;
        }
        let (stage, links) = (self.stages[at], self.links);
        let blocked = |place: &usize| {
            let link = &links[*place];
            Some(*place) != from
                && link.writers.contains(&at)
                && link.fill.is_some_and(Fill::is_full)
                && stage.waits_at.is_none_or(|at| at == *place)
        };
        // A stage that just got room will soon have filled it again.
        if (stage.idle || stage.rests)
            && let Some(place) = (0..links.len()).find(blocked)
        {
            return self.assign_among(&links[place].readers, left, place);
        }
        let reader_share = |place: usize| {
            let link = &links[place];
            let waits = stage.idle && !link.fill.is_some_and(|fill| fill.holds);
            if stage.passes_time && waits {
                return Some(1.0);
            }
            Fill::reader_share_if_known(link.fill, stage.idle, !link.writers.is_empty())
        };
        let inputs: Vec<usize> =
            (0..links.len()).filter(|place| links[*place].readers.contains(&at)).collect();
        let waited_for = stage.waits_at.filter(|place| inputs.contains(place));
        // Of several inputs it waits for the emptiest one.
        let share = |place: &usize| reader_share(*place).unwrap_or(1.0);
        let input = waited_for
            .or_else(|| inputs.iter().copied().min_by(|one, other| share(one).total_cmp(&share(other))));
        let Some(input) = input else {
            self.waiting.stages[at] += left;
            return;
        };
        let Some(here) = reader_share(input) else { return };
        self.waiting.stages[at] += left * here;
        self.assign_among(&links[input].writers, left * (1.0 - here), input);
    }

    fn assign_among(&mut self, stages: &[usize], left: f64, from: usize) {
        if stages.is_empty() {
            self.waiting.outside[from] += left;
        }
        let each = left / stages.len().max(1) as f64;
        for at in stages {
            self.assign(*at, each, Some(from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: Fill = Fill::NOTHING_YET;
    const FULL: Fill = Fill { share: 1.0, holds: true, ..EMPTY };

    fn busy(at: &[usize], stages: usize) -> Vec<StageState> {
        (0..stages).map(|stage| StageState { idle: !at.contains(&stage), ..StageState::default() }).collect()
    }

    fn shares(stages: &[StageState], links: &[(&[usize], &[usize], Option<Fill>)]) -> Vec<f64> {
        let link = |(writers, readers, fill): &(&[usize], &[usize], Option<Fill>)| LinkState {
            writers: writers.to_vec(),
            readers: readers.to_vec(),
            fill: *fill,
        };
        let links: Vec<LinkState> = links.iter().map(link).collect();
        assign_waiting(stages, &links).shares()
    }

    fn named(stages: &[StageState], links: &[(&[usize], &[usize], Option<Fill>)]) -> Option<usize> {
        let shares = shares(stages, links);
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
        // Two that send requests and answers to each other.
        let round = [(&[0][..], &[1][..], Some(EMPTY)), (&[1], &[0], Some(EMPTY))];
        assert_eq!(named(&busy(&[0], 2), &round), None, "each waits for the other");
        // A writer that is no stage.
        assert_eq!(named(&busy(&[], 1), &[(&[], &[0], Some(EMPTY))]), None);
        assert_eq!(named(&busy(&[], 2), &[(&[0], &[1], None)]), None, "the link may not be opened");
        assert_eq!(shares(&[], &[]), Vec::<f64>::new());
    }

    #[test]
    fn a_stage_that_lets_time_pass_is_waited_for_before_an_empty_link() {
        let mut stages = busy(&[0], 2);
        stages[1].passes_time = true;
        assert_eq!(named(&stages, &[(&[0], &[1], Some(EMPTY))]), Some(1));
        stages[1].idle = false;
        assert_eq!(named(&stages, &[(&[0], &[1], Some(EMPTY))]), Some(0), "it runs again");
    }

    #[test]
    fn a_full_output_is_the_readers_even_where_that_is_no_stage() {
        let output = LinkState { writers: vec![0], readers: Vec::new(), fill: Some(FULL) };
        let waiting = assign_waiting(&busy(&[], 1), &[output]);
        assert_eq!((waiting.stages, waiting.outside), (vec![0.0], vec![1.0]));
    }
}
