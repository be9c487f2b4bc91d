//! `comp517`: runs the study's pipelines over its five links and three others. Each part makes its input and removes it.

use std::time::Instant;
use std::{fs, io};

use anyhow::Context;
use mechanism::Folder;
use model::{CompareResult, describe_errno};
use pipeline::Start;
use pipeline::contest::{Contender, Contest, Follower};

use super::{Comp517, Material, Preset, STUDY};
use crate::run::{PartRun, WARM_UP_ROUNDS, with_remedy};
use crate::start::start_of;

/// Measures the pipeline of a part over all links.
pub(super) fn pipeline(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study: Comp517 = STUDY.parameters();
    let text = run.part.pipeline.clone().context("a part without a pipeline")?;
    let preset = Preset { text, material: study.material.scaled(run.request.scale) };
    let trials = run.made.series;
    run.set("material", preset.runs_on());
    let private = Folder::private();
    let folder = private.path().map_err(with_remedy)?;
    let no_input = |error: io::Error| {
        let (input, why) = (folder.display(), describe_errno(&error));
        let remedy = "another folder (TMPDIR=DIR), or a smaller --scale";
        anyhow::anyhow!("the pipeline's input cannot be made in {input}: {why}: {remedy}")
    };
    let made = preset.make(&folder, &mut || {
        run.observer.progress("making the pipeline's input", None);
        !run.is_stopped()
    });
    made.map_err(no_input)?;

    let shell = run.shell()?;
    let (text, shown) = (preset.text_at(&folder), preset.shown());
    let mut texts = vec![(text, shown.clone())];
    // With the least input it takes as long as the start of its programs and links.
    if preset.has_input() {
        let (least, folder) = (Preset { material: Material::LEAST, ..preset }, folder.join("least"));
        fs::create_dir(&folder).and_then(|()| least.make(&folder, &mut || true)).map_err(no_input)?;
        texts.push((least.text_at(&folder), start_of(&shown)));
    }
    let contenders = texts.iter().flat_map(|(text, shown)| {
        study.links.iter().map(|link| Contender::new(text, shown, &link.via, &shell))
    });
    let contenders = contenders.collect::<Result<Vec<_>, _>>()?;
    let contest = Contest {
        start: Start { hosepipe: run.request.hosepipe, shell: &shell },
        warmup: WARM_UP_ROUNDS,
        trials,
        until: Instant::now().checked_add(run.left()),
        seed: run.request.seed,
        must_succeed: false,
        shows_messages: true,
        is_enough: &|_, _| false,
    };
    let (results, signal) = contest.run(contenders, run)?;
    signal.into_iter().for_each(run.request.note_signal);
    let (mut results, starts): (Vec<CompareResult>, Vec<CompareResult>) =
        results.into_iter().partition(|result| result.pipeline == shown);
    // Outputs of different inputs have nothing to do with each other.
    results.iter_mut().for_each(|result| result.same_output = None);
    for start in starts {
        run.measured(&start_of(&start.via), "s", start.times_s);
    }
    let fewest = results.iter().map(|result| result.times_s.len()).min().unwrap_or(0);
    if fewest < trials as usize && results.iter().all(|one| one.error.is_none()) {
        run.note_time_over(&format!("after {}", report::words::count(fewest, "round")));
    }
    run.made.results = results;
    Ok(())
}

impl Follower for PartRun<'_> {
    fn stops(&self) -> bool {
        self.is_stopped()
    }

    fn turn(&mut self, next: &CompareResult, done: f64, make: &mut dyn FnMut()) {
        self.observer.progress(&format!("{} over {}", next.pipeline, next.via), Some(done));
        make();
    }
}
