//! Why nothing flows in a chain (`observe::why`).

use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{Chain, ChainStage, TopSnapshot, WhyAnswer, WhyVerdict};
use observe::why::{Asked, explain};
use process::spawn_thread;

/// Largest share of a CPU of a stage that counts as doing nothing.
const STILL_CPUS_MAX: f64 = 0.005;
/// Shortest time between two searches on a terminal.
const SEARCH_PAUSE: Duration = Duration::from_secs(4);

/// The causes of chains, by the numbers of their processes.
type Causes = HashMap<Vec<i32>, WhyAnswer>;

/// Notes why, for each chain in which nothing flows.
pub(super) fn explain_still(snapshot: &mut TopSnapshot) {
    let found = causes(still(snapshot).map(|chain| pids(chain)).collect());
    note(snapshot, &found);
}

/// The same on a terminal, which does not wait for the search: its answers come with a later sample.
#[derive(Default)]
pub(super) struct LiveSearch {
    known: Causes,
    search: Option<JoinHandle<Causes>>,
    ended: Option<Instant>,
}

impl LiveSearch {
    /// Notes what is known, and looks for more.
    pub(super) fn explain_still(&mut self, snapshot: &mut TopSnapshot) {
        if let Some(search) = self.search.take_if(|search| search.is_finished()) {
            self.known = search.join().unwrap_or_default();
            self.ended = Some(Instant::now());
        }
        let chains: Vec<Vec<i32>> = still(snapshot).map(|chain| pids(chain)).collect();
        // What flowed meanwhile rests for another reason.
        self.known.retain(|pids, _| chains.contains(pids));
        note(snapshot, &self.known);
        let is_due = self.ended.is_none_or(|ended| ended.elapsed() > SEARCH_PAUSE);
        if is_due && self.search.is_none() && !chains.is_empty() {
            // Without a thread the causes stay unknown.
            self.search = spawn_thread("hosepipe-why", move || causes(chains)).ok();
        }
    }
}

/// The chains in which nothing flows.
fn still(snapshot: &mut TopSnapshot) -> impl Iterator<Item = &mut Chain> {
    snapshot.chains.iter_mut().filter(|chain| {
        let rests = |stage: &ChainStage| stage.cpus < STILL_CPUS_MAX;
        chain.stages.iter().all(rests)
            && chain.links.iter().all(|link| link.bytes_per_s.unwrap_or(0.0) == 0.0)
    })
}

fn pids(chain: &Chain) -> Vec<i32> {
    chain.stages.iter().flat_map(|stage| &stage.processes).map(|process| process.pid).collect()
}

fn note(snapshot: &mut TopSnapshot, causes: &Causes) {
    for chain in still(snapshot) {
        chain.why = causes.get(&pids(chain)).cloned();
    }
}

/// Of each chain the cause that outranks the others.
fn causes(chains: Vec<Vec<i32>>) -> Causes {
    if chains.is_empty() {
        return Causes::default();
    }
    let answers = explain(&Asked::Each(chains.concat()), &[]).answers;
    let first = |pids: Vec<i32>| {
        let own = answers.iter().filter(|answer| pids.contains(&answer.asked.pid));
        let first =
            own.filter(|answer| answer.verdict == WhyVerdict::Stuck).min_by_key(|answer| answer.cause)?;
        Some((pids, first.clone()))
    };
    chains.into_iter().filter_map(first).collect()
}
