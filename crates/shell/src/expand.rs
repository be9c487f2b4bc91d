//! Commands of ours that stand for stages: `compare`, `preset`, and what prints something into a pipeline or a file.

use anyhow::{Context, bail};
use experiment::{FOLDER_NAME, Needs};
use pipeline::syntax::{Command, Item, Join, Redirection, Script, Stage, Start, Timed, parse};

use crate::builtins;
use crate::front::{Onward, Shell};
use crate::presets;
use crate::say::Said;

/// The stages that a command of ours stands for.
struct Stages {
    stages: Vec<Stage>,
    /// What `compare` will compare after it.
    compared: Option<String>,
}

impl Shell {
    /// Does an item whose first stage is a command of ours.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(crate) fn take_ours(
        &mut self,
        item: &Item,
        words: &[String],
        asked_to_end: &dyn Fn() -> Option<i32>,
    ) -> anyhow::Result<Onward> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let pipeline = &item.pipeline;
        let redirected =
            matches!(&pipeline.stages[0].start, Start::Direct(command) if !command.redirections.is_empty());
        let alone = pipeline.stages.len() == 1 && !redirected && pipeline.timed == Timed::No;
        let Some(stands_for) = self.stages_of(&words, &pipeline.stages[0], alone)? else {
            if !alone {
                bail!("`{}` works on this shell itself: it stands alone, not in a pipeline", words[0]);
            }
            let onward = self.ours(&words)?;
            if pipeline.negated {
                self.session.set_status(i32::from(self.session.status() == 0));
            }
            return Ok(onward);
        };
        let mut pipeline = pipeline.clone();
        pipeline.stages.splice(0..1, stands_for.stages);
        let texts: Vec<&str> = pipeline.stages.iter().map(|stage| stage.text.as_str()).collect();
        let text = texts.join(" | ");
        if let [Stage { start: Start::Shell, .. }] = pipeline.stages.as_slice() {
            // A shell is given the whole text.
            pipeline.text.clone_from(&text);
        }
        let item = Item { join: Join::Always, ends_list: item.ends_list, offset: 0, pipeline };
        let script = Script { items: vec![item] };
        self.run(&script, &text, false, stands_for.compared.as_deref(), asked_to_end)
    }

    /// What a command stands for; `None` where it is done by this process.
    fn stages_of(&mut self, words: &[&str], stage: &Stage, alone: bool) -> anyhow::Result<Option<Stages>> {
        let redirections = match &stage.start {
            Start::Direct(command) => command.redirections.clone(),
            Start::Shell => Vec::new(),
        };
        Ok(match words {
            ["compare"] => Some(self.compare(None, stage, redirections)?),
            ["compare", links] => Some(self.compare(Some(links), stage, redirections)?),
            ["preset", number] => Some(self.preset(number, redirections)?),
            ["kill", ..] => Some(Stages { stages: vec![self.kill(words, stage)?], compared: None }),
            _ if alone => None,
            _ => self.printed(words)?.map(|text| {
                let mut printing = vec![Redirection::Text { fd: 0, text }];
                printing.extend(redirections);
                Stages { stages: vec![direct(stage, &["cat"], printing)], compared: None }
            }),
        })
    }

    fn preset(&mut self, number: &str, redirections: Vec<Redirection>) -> anyhow::Result<Stages> {
        let study = experiment::comp517();
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some(preset) = index.and_then(|index| study.pipelines.get(index)) else {
            let count = study.pipelines.len();
            bail!("there is no preset `{number}`: 1 to {count} are there, `presets` shows them");
        };
        let place = self.scratch.path()?;
        let needs = preset.needs();
        if needs == Needs::Files && !place.join(FOLDER_NAME).exists() {
            self.voice.say(Said::Aside, "making the folder of files, once …");
        }
        presets::make(&study, needs, &place)
            .with_context(|| format!("cannot make the files in {}", place.display()))?;
        let text = preset.text_at(&place);
        self.voice.say(Said::Aside, &text);
        let mut stages: Vec<Stage> =
            parse(&text)?.items.into_iter().flat_map(|item| item.pipeline.stages).collect();
        if let Some(Stage { start: Start::Direct(last), .. }) = stages.last_mut() {
            last.redirections.extend(redirections);
        }
        Ok(Stages { stages, compared: Some(text) })
    }

    /// `hosepipe compare` on the last pipeline, which begins with what is defined here.
    fn compare(
        &mut self,
        links: Option<&str>,
        stage: &Stage,
        redirections: Vec<Redirection>,
    ) -> anyhow::Result<Stages> {
        let Some(last) = self.last.clone() else {
            bail!("there is no pipeline yet to compare: run one first")
        };
        let hosepipe = std::env::current_exe().context("this program's own file")?;
        let mut words = vec![hosepipe.to_string_lossy().into_owned(), "compare".to_owned()];
        words.extend(links.map(|links| format!("--via={links}")));
        words.extend(self.session.state().map(|state| format!("--state={}", state.display())));
        words.extend(["--".to_owned(), last]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(Stages { stages: vec![direct(stage, &words, redirections)], compared: None })
    }

    /// What a command prints that changes nothing; `None` where it is none of those.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn printed(&self, words: &[&str]) -> anyhow::Result<Option<String>> {
        Ok(Some(match words {
            ["via"] => format!("{}\n", self.via),
            ["stats"] => format!("{}\n", if self.stats { "on" } else { "off" }),
            ["keep"] => match &self.keep {
                Some(folder) => format!("{}\n", folder.display()),
                None => "off\n".to_owned(),
            },
            ["presets"] => {
                let study = experiment::comp517();
                let line = |index| format!("{}  {}\n", index + 1, presets::line(&study, index));
                (0..study.pipelines.len()).map(line).collect()
            }
            ["jobs"] => self.job_list()?,
            ["history"] => crate::history::last_lines(crate::history::LINES_SHOWN),
            ["history", lines] => {
                crate::history::last_lines(lines.parse().context("history takes a number of lines")?)
            }
            ["help"] => builtins::help(),
            _ => return Ok(None),
        }))
    }
}

/// A stage that is one program, by the name that was typed.
fn direct(stage: &Stage, words: &[&str], redirections: Vec<Redirection>) -> Stage {
    let words = words.iter().map(|&word| word.to_owned()).collect();
    let command = Command { assignments: Vec::new(), words, redirections };
    Stage { start: Start::Direct(command), ..stage.clone() }
}
