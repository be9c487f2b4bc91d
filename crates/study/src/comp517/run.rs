//! `comp517`: the study's pipelines over its five links and over ours, on material that is made for the part and
//! removed with it.

use mechanism::Folder;
use pipeline::Start;
use pipeline::contest::{Contender, Contest, Follower};

use super::{Comp517, Preset};
use crate::run::{PartRun, refused, with_remedy};

/// A part for each pipeline: what was finished is kept when a run of many minutes is stopped.
pub(super) fn pipeline(run: &mut PartRun<'_>, index: usize) -> anyhow::Result<()> {
    let study = Comp517::read();
    let preset = &study.pipelines[index];
    let preset = Preset { text: preset.text.clone(), material: study.material.scaled(run.job.scale) };
    let trials = run.repeat(study.trials.count);
    run.set("material", preset.runs_on());
    run.set("warm-up", format!("{} untimed round", study.choice.warmup));
    let place = Folder::private();
    let place = place.path().map_err(with_remedy)?;
    let made = preset.make(&place, &mut || {
        run.progress("making what the pipeline runs on", None);
        !run.is_stopped()
    });
    made.map_err(refused("what the pipeline runs on"))?;

    let shell = run.shell()?;
    let (text, shown) = (preset.text_at(&place), preset.shown());
    let contenders = study.links.iter().map(|link| Contender::new(&text, &shown, &link.via, &shell));
    let contenders = contenders.collect::<Result<Vec<_>, _>>()?;
    let contest = Contest {
        start: Start { hosepipe: run.job.hosepipe, shell: &shell },
        warmup: study.choice.warmup,
        trials,
        seed: run.job.seed,
        must_succeed: false,
    };
    let (results, signal) = contest.run(contenders, run)?;
    signal.into_iter().for_each(run.job.note_signal);
    let fewest = results.iter().map(|result| result.times_s.len()).min().unwrap_or(0);
    if fewest < trials as usize && results.iter().all(|one| one.error.is_none()) {
        run.note_time_over(&format!("after {fewest} rounds"));
    }
    run.made.results = results;
    Ok(())
}

impl Follower for PartRun<'_> {
    fn stops(&self) -> bool {
        self.is_stopped()
    }

    fn is_over(&self) -> bool {
        PartRun::is_over(self)
    }

    fn turn(&mut self, next: &model::CompareResult, done: f64, make: &mut dyn FnMut()) {
        self.progress(&format!("{} over {}", next.pipeline, next.via), Some(done));
        make();
    }
}
