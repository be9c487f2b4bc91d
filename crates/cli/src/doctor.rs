//! `hosepipe doctor`: prints the machine's figures (crate `engine`) and findings (crate `host`).

use std::process::ExitCode;

use clap::Args;
use host::{Finding, Severity};
use model::{AS_ROOT, CopySpeed, SlowOffsets, visible};
use report::document::{Block, Document};
use report::{MeasuredFinding, Style, hanging, machine_table, measured_findings, wrap};
use serde::Serialize;

use crate::destination::OUTPUTS;
use crate::terminal;

/// Measures this machine in three seconds, and shows what would distort or limit figures on it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hosepipe doctor                                      figures, what they mean, and findings
  hosepipe doctor --quick                              findings only: nothing is measured
  hosepipe doctor --json | jq '.[] | select(.remedy)'  findings with a command as remedy
  hosepipe doctor --json | jq '.[] | select(.figure) | [.name, .figure.median, .figure.unit] | @tsv'

The figures are first in the JSON: entries like the findings, whose `state` is `measured`, with a `figure`: `unit` (ns or
bytes_per_s), `median`, `low`, `high` (the 95 % interval) and `repeats`. The last entry, `copy-alignment`, has `speeds` by the
offset of the destination within a page, and `slow`: the slow offsets and their share of the full speed, or null.
Exit status: 0, also where there are findings; 2 the command line is wrong.")]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long, help_heading = OUTPUTS)]
    json: bool,
    /// Measure nothing
    #[arg(long)]
    quick: bool,
}

/// Width of the two columns before the text: state and name.
const STATE: usize = 8;
const NAME: usize = 21;

/// Longest line: longer ones are hard to read.
const WIDTH_MAX: usize = 110;

/// An entry of the JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Examined<'a> {
    Measured(MeasuredFinding),
    Copies {
        #[serde(flatten)]
        finding: &'a Finding,
        speeds: &'a [CopySpeed],
        /// Where they are slow; `null` where they are not.
        slow: Option<SlowOffsets>,
    },
    Found(&'a Finding),
}

/// Prints the figures, then the findings, worst first; as JSON in one array, in the order of examination. The status is 0, also
/// with findings.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    // Before the measurement, whose own load would be found.
    let mut findings = host::diagnose();
    let costs = if args.quick { None } else { host::copy_costs().ok() };
    let copies = costs.as_ref().map(|costs| (costs, host::copy_finding(costs)));
    let figures = if args.quick { Vec::new() } else { engine::measure_machine(&host::cpus()) };
    if args.json {
        let measured = measured_findings(&figures).into_iter().map(Examined::Measured);
        let copies = copies.iter().map(|(costs, finding)| {
            let slow = costs.slow_offsets();
            Examined::Copies { finding, speeds: &costs.speeds, slow }
        });
        let entries: Vec<Examined> =
            measured.chain(findings.iter().map(Examined::Found)).chain(copies).collect();
        terminal::print_data(&report::json::to_text(&entries)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    findings.extend(copies.map(|(_, finding)| finding));
    let style = terminal::style();
    let style = Style { width: style.width.min(WIDTH_MAX), ..style };
    let measured = match figures.as_slice() {
        [] => String::new(),
        figures => Document::from_blocks(vec![Block::Table(machine_table(figures))]).terminal(&style) + "\n",
    };
    terminal::print_painted(&format!("{measured}{}", render(&findings, style.width, style.color)))?;
    Ok(ExitCode::SUCCESS)
}

/// The findings as text of at most `width` columns, worst first, and a line that counts them. Commands are never broken, so that
/// users can copy them; good findings have one line.
pub(crate) fn render(findings: &[Finding], width: usize, color: bool) -> String {
    let mut text = String::new();
    for state in Severity::ALL.iter().copied() {
        for finding in findings.iter().filter(|finding| finding.state == state) {
            text.push_str(&entry(finding, width.saturating_sub(STATE + NAME).max(24), color));
        }
    }
    let counts = Severity::ALL.iter().filter_map(|state| {
        let count = findings.iter().filter(|finding| finding.state == *state).count();
        let plural = if state == &Severity::Note && count > 1 { "s" } else { "" };
        (count > 0).then(|| format!("{count} {state}{plural}"))
    });
    text.push_str(&format!("\n{}\n", counts.collect::<Vec<_>>().join(", ")));
    text
}

/// One finding: state, name and value; below them why it matters, and the command.
fn entry(finding: &Finding, width: usize, color: bool) -> String {
    let mut lines = wrap(&finding.what, width);
    if finding.state != Severity::Good {
        lines.extend(wrap(finding.why, width));
    }
    let prompt = |command: &String| if command.starts_with(AS_ROOT) { "" } else { "$ " };
    lines.extend(finding.remedy.iter().map(|command| format!("{}{command}", prompt(command))));
    let label = format!("{}{:NAME$}", paint(finding.state, color), finding.name);
    hanging(&label, STATE + NAME, lines.iter().map(|line| visible(line)))
}

/// The padded word of a state, coloured.
fn paint(state: Severity, color: bool) -> String {
    let code = match state {
        Severity::Spoils => "31",
        Severity::Caps => "33",
        Severity::Note => "36",
        Severity::Unknown => "2",
        Severity::Good => "32",
    };
    let word = state.word();
    if color { format!("\x1b[{code}m{word:STATE$}\x1b[0m") } else { format!("{word:STATE$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        let finding = |name, state, remedy: Option<&str>| Finding {
            name,
            state,
            what: format!("the {name} is as it is"),
            why: "It makes the figures of this machine unlike those of any other.",
            remedy: remedy.map(str::to_owned),
        };
        let command = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/governor";
        vec![
            finding("clock", Severity::Good, None),
            finding("governor", Severity::Spoils, Some(command)),
            finding("hypervisor", Severity::Note, None),
        ]
    }

    #[test]
    fn worst_first_and_commands_in_one_piece() {
        let expected = "\
spoils  governor             the governor is as it is
                             It makes the figures of this
                             machine unlike those of any
                             other.
                             $ echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/governor
note    hypervisor           the hypervisor is as it is
                             It makes the figures of this
                             machine unlike those of any
                             other.
good    clock                the clock is as it is

1 spoils, 1 note, 1 good
";
        assert_eq!(render(&findings(), 58, false), expected);
    }

    #[test]
    fn colour_is_only_on_the_state() {
        let text = render(&findings(), 80, true);
        assert!(text.starts_with("\x1b[31mspoils  \x1b[0mgovernor "), "{text:?}");
        assert_eq!(text.matches("\x1b[0m").count(), 3);
        assert!(!render(&findings(), 80, false).contains('\x1b'));
    }

    #[test]
    fn no_width_is_too_small() {
        assert!(render(&findings(), 0, false).contains("the governor is as it is"));
    }
}
