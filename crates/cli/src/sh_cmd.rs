//! `hosepipe sh`: the user's own shell, with a link of their choice for its `|`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use pipeline::Text;

use crate::script;
use crate::typed;

/// Your own shell, whose `|` is yours to choose
#[derive(Debug, Args)]
#[command(
    override_usage = "hosepipe sh [--via LINK] [--shell SHELL] [--pipefail] [ARGUMENTS OF THE SHELL]...",
    after_help = "\
Examples:
  hosepipe sh                              a prompt; `help` there says what it knows
  hosepipe sh --via tmpfile                every `|` is a temporary file from the beginning
  hosepipe sh --via socketpair script.sh a b
  hosepipe sh -e -o pipefail -c 'ls | wc' name a b
  echo 'seq 10 | tac' | hosepipe sh --shell zsh -s

What stands behind hosepipe's own options is the shell's, as it takes it.

~/.config/hosepipe/config.toml may set how a prompt begins: link = \"pipe\", stats = true,
prompt = \"{dir} ({link}){status}> \". Earlier lines are kept in ~/.local/share/hosepipe/history."
)]
pub(crate) struct ShArgs {
    /// What stands between stages [default: pipe; at a prompt what config.toml says]
    #[arg(long, value_name = "LINK", value_parser = typed::Link::One)]
    via: Option<String>,

    /// A pipeline's status is its last failing stage's, as after `set -o pipefail`
    #[arg(long)]
    pipefail: bool,

    /// The shell
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    shell: String,

    /// The shell's own arguments: its options, a file to run and what that is given, -c TEXT, -s
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the shell and exits with its status.
pub(crate) fn run(args: &ShArgs) -> anyhow::Result<ExitCode> {
    let pipefail: &[&str] = if args.pipefail { &["-o", "pipefail"] } else { &[] };
    let arguments = pipefail.iter().map(Into::into).chain(args.arguments.iter().cloned()).collect();
    let via = script::link(args.via.as_deref().unwrap_or("pipe"))?;
    let shell = script::shell(&args.shell)?;
    script::exit(&pipeline::run(&Text { shell: &shell, arguments, via: &via, keep: None, watched: None })?)
}
