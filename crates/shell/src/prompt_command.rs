//! The commands of a prompt: the shell's functions pass them to `hosepipe __prompt`, which sends most of them to the server.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use model::visible;

use crate::config::Config;

const HELP: &str = "\
What hosepipe adds to this shell (`command NAME` runs a program of one of these names):
  via [LINK]            the link that `|` makes from now on (pipe, tmpfile, socketpair, …)
  stats [on|off]        a line after each pipeline: its time, and the bytes through each link
  keep [DIR|off]        keep the bytes of each link in a numbered folder of DIR
  compare 'PIPELINE'    a pipeline over several links, in turns (with the options of `hosepipe compare`)
  presets               the pipelines of the study comp517, and those of config.toml
  preset NAME           run one of them
  hosepipe_help         this list
";

/// Runs a command for the server with this name. Returns the text to be printed.
///
/// # Errors
/// The command is wrong, or the server refused it.
pub fn run_prompt_command(server: &str, words: &[&str]) -> anyhow::Result<String> {
    match words {
        ["help"] => Ok(HELP.to_owned()),
        ["presets"] => Ok(list_presets()),
        ["preset", name] => preset(server, name),
        ["keep", folder] if *folder != "off" => {
            let folder = std::path::absolute(folder)?;
            ask_server(server, &["keep", &folder.to_string_lossy()])
        }
        ["presets" | "preset", ..] => bail!("usage: presets, or preset NAME"),
        _ => Ok(visible(&ask_server(server, words)?)),
    }
}

fn ask_server(server: &str, words: &[&str]) -> anyhow::Result<String> {
    let answer = pipeline::send_command(server, words);
    let gone = "hosepipe's server does not answer: pipelines use this shell's own pipes";
    answer.context(gone)?.map_err(|problem| anyhow!(problem))
}

fn list_presets() -> String {
    let presets = study::presets().into_iter().zip(1..);
    let of_the_study =
        presets.map(|(one, number)| format!("  {number}  {:<44} {}\n", one.shown(), one.runs_on()));
    let configured = Config::read().0.presets;
    let configured =
        configured.iter().map(|(name, text)| format!("  {}  {}\n", visible(name), visible(text)));
    of_the_study.chain(configured).collect()
}

/// The text of a named pipeline; makes its input files.
fn preset(server: &str, name: &str) -> anyhow::Result<String> {
    if let Some(text) = Config::read().0.presets.remove(name) {
        return Ok(text);
    }
    let index = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let preset = index.and_then(|index| study::presets().into_iter().nth(index));
    let preset = preset.with_context(|| format!("there is no preset `{name}`: `presets` shows them"))?;
    let folder = ask_server(server, &["folder"])?;
    let folder = Path::new(&folder);
    preset
        .make(folder, &mut || true)
        .with_context(|| format!("cannot make its files in {}", folder.display()))?;
    Ok(preset.text_at(folder))
}
