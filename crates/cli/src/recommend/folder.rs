//! `--code-to`: the program in a file, or two programs in a folder with a README that says how to start them.

use std::path::Path;

use model::Spec;

use super::ends;
use super::program::{Program, Role, count_to_try};
use super::question::{Pattern, Question, Share};
use crate::destination::Destination;
use crate::terminal::usage;

/// Checks where the programs of a question are to be written: a regular file or a folder, or what does not exist yet.
///
/// # Errors
/// It is of another kind, or cannot be written.
pub(super) fn check(path: &Path, question: &Question) -> anyhow::Result<()> {
    if !question.is_of_pair() {
        return program_file(path).map(drop);
    }
    if path.metadata().is_ok_and(|there| !there.is_dir()) {
        return usage(format!(
            "`{}` is not a folder: the answer is two programs, for which --code-to takes a folder",
            path.display()
        ));
    }
    Ok(())
}

/// The file of a program: a regular file, or one that does not exist yet.
fn program_file(path: &Path) -> anyhow::Result<Destination> {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return usage(format!("`{}` is not a regular file", path.display()));
    }
    let destination = Destination::File(path.to_owned());
    destination.check().map(|()| destination)
}

/// Writes a program, and its library into the same folder; two programs into a folder, with a README.
///
/// # Errors
/// A file cannot be written.
pub(super) fn save(
    path: &Path,
    programs: &[Program],
    spec: &Spec,
    question: &Question,
) -> anyhow::Result<()> {
    if let [program] = programs {
        return save_one(path, program);
    }
    std::fs::create_dir_all(path).map_err(|error| {
        anyhow::anyhow!("cannot make the folder {}: {}", path.display(), model::describe_errno(&error))
    })?;
    for program in programs {
        save_one(&path.join(program.file()), program)?;
    }
    program_file(&path.join("README.md"))?.write(&readme(programs, spec, question))
}

fn save_one(path: &Path, program: &Program) -> anyhow::Result<()> {
    if let Some(library) = program.library {
        program_file(&path.with_file_name(library.file))?.write(library.text)?;
    }
    program_file(path)?.write(&program.text_in(path))
}

/// The commands that compile two programs, start all ends and time them.
pub(super) fn build_and_time(programs: &[Program], question: &Question) -> String {
    let commands = programs.iter().map(|one| one.language.commands(one.role.stem(one.language)).0);
    let compile: Vec<String> =
        commands.filter(|words| !words.is_empty()).map(|words| words.join(" ")).collect();
    compile.into_iter().chain([time(programs, question)]).collect::<Vec<_>>().join(" && ")
}

/// The command that starts all ends and times them: receivers in the background, then the senders.
fn time(programs: &[Program], question: &Question) -> String {
    let count = count_to_try(question.code.is_slow(), question.rate_per_s());
    let rate =
        question.rate_per_s().map_or(String::new(), |rate| format!(" {}", rate.div_ceil(question.senders)));
    let started = |role: Role, times: u32, arguments: String| {
        let program = programs.iter().find(|one| one.role == role);
        let command = program.map_or(Vec::new(), |one| one.language.commands(role.stem(one.language)).1);
        let command = format!("{}{arguments} &", command.join(" "));
        match times {
            1 => command,
            _ => format!("for i in $(seq {times}); do {command} done;"),
        }
    };
    // How many of them a receiver gets is not known before.
    let is_shared = question.share == Some(Share::Compete);
    let expected = if is_shared { 0 } else { count * u64::from(question.senders) };
    let receivers = started(Role::Receiver, question.receivers, format!(" {expected}"));
    let senders = started(Role::Sender, question.senders, format!(" {count}{rate}"));
    format!("({receivers} {senders} wait)")
}

fn readme(programs: &[Program], spec: &Spec, question: &Question) -> String {
    let bytes = report::words::count(question.message.0 as usize, "byte");
    let names: Vec<String> = programs.iter().map(|one| format!("`{}`", one.file())).collect();
    let (way, what) = match question.pattern {
        Pattern::Stream => ("one way", "message"),
        Pattern::RequestReply => ("there and back", "round trip"),
    };
    let commands = build_and_time(programs, question);
    let links = match ends::has_links(spec, question) {
        true => {
            "Each receiver takes the first link that is free (NAME.0, NAME.1, …), and the sender waits until all are taken.\n"
        }
        false => "",
    };
    format!(
        "# {spec}: messages of {bytes}, {way}\n\n\
         {}, written by `hosepipe recommend`. Start them in this folder, in any order:\n\n    {commands}\n\n\
         Arguments: the sender's COUNT, RATE ({what}s in a second; 0: as fast as it can) and NAME, where the ends meet; the receiver's COUNT (0: until\n\
         the end) and NAME. Each prints the nanoseconds of one {what} at its end. A message is one word of 64 bits, little-endian, repeated: its number\n\
         (40 bits) and the sender's id; a message of bytes 0xFF is a sender's last. Status: 0 all arrived as sent, 1 not, 2 wrong arguments.\n{links}",
        names.join(" and "),
    )
}
