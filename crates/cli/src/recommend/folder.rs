//! `--code-to`: the program in a file, or two programs in a folder with a README that says how to start them.

use std::path::Path;

use model::Spec;

use super::ends;
use super::program::{Program, Role};
use super::question::{Must, Pattern, Question};
use crate::destination::Destination;
use crate::terminal::usage;

const README: &str = "README.md";
/// What is in a README that was written here.
const WRITTEN: &str = "written by `hosepipe recommend`";

/// Checks where the programs of a question are to be written: a regular file or a folder, or what does not exist yet.
///
/// # Errors
/// It is of another kind, or cannot be written.
pub(super) fn check(path: &Path, question: &Question) -> anyhow::Result<()> {
    if !question.is_of_pair() {
        return program_file(path).map(drop);
    }
    let Ok(there) = path.metadata() else {
        // It will be made in a folder that is there.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return match rustix::fs::access(parent, rustix::fs::Access::WRITE_OK) {
            Ok(()) if parent.is_dir() => Ok(()),
            _ => usage(format!(
                "cannot make the folder `{}`: `{}` is no folder that you may write to",
                path.display(),
                parent.display()
            )),
        };
    };
    if !there.is_dir() {
        return usage(format!(
            "`{}` is not a folder: the answer is two programs, for which --code-to takes a folder",
            path.display()
        ));
    }
    for (role, language) in [Role::Sender, Role::Receiver].into_iter().zip(question.code.both()) {
        program_file(&path.join(role.file(language)))?;
    }
    let readme = path.join(README);
    program_file(&readme)?;
    match std::fs::read_to_string(&readme) {
        Ok(text) if !text.contains(WRITTEN) => usage(format!(
            "`{}` is there and not of `hosepipe recommend`: give another folder",
            readme.display()
        )),
        _ => Ok(()),
    }
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
    if !path.is_dir() {
        std::fs::create_dir(path).map_err(|error| {
            anyhow::anyhow!("cannot make the folder {}: {}", path.display(), model::describe_errno(&error))
        })?;
    }
    for program in programs {
        save_one(&path.join(program.file()), program)?;
    }
    program_file(&path.join(README))?.write(&readme(programs, spec, question))
}

fn save_one(path: &Path, program: &Program) -> anyhow::Result<()> {
    if let Some(library) = program.library {
        program_file(&path.with_file_name(library.file))?.write(library.text)?;
    }
    program_file(path)?.write(&program.text_in(path))
}

/// The commands that compile two programs, start all ends and time them.
pub(super) fn build_and_time(programs: &[Program], question: &Question) -> String {
    let commands = programs.iter().map(|one| one.commands().0);
    let compile: Vec<String> =
        commands.filter(|words| !words.is_empty()).map(|words| words.join(" ")).collect();
    compile.into_iter().chain([time(programs, question)]).collect::<Vec<_>>().join(" && ")
}

/// The command that starts all ends and times them: receivers in the background, then the senders.
fn time(programs: &[Program], question: &Question) -> String {
    let [count, expected] = ends::counts(question);
    let rate = question.sender_rate_per_s().map(|rate| format!(" {rate}"));
    let line = |role: Role, arguments: String| {
        let program = programs.iter().find(|one| one.role == role);
        let command = program.map_or(Vec::new(), |one| one.commands().1);
        format!("{} {arguments}", command.join(" "))
    };
    let sender = line(Role::Sender, format!("{count}{}", rate.unwrap_or_default()));
    let receiver = line(Role::Receiver, expected.to_string());
    let many = |times: u32, line: &str| format!("for i in $(seq {times}); do {line} & done");
    match (question.senders, question.receivers) {
        (1, 1) => format!("({receiver} & {sender} && wait $!)"),
        (1, receivers) => format!("({}; {sender} && wait)", many(receivers, &receiver)),
        (senders, 1) => format!("({}; {receiver} && wait)", many(senders, &sender)),
        (senders, receivers) => format!("({}; {}; wait)", many(receivers, &receiver), many(senders, &sender)),
    }
}

fn readme(programs: &[Program], spec: &Spec, question: &Question) -> String {
    let bytes = report::words::count(question.message.0 as usize, "byte");
    let names: Vec<String> = programs.iter().map(|one| format!("`{}`", one.file())).collect();
    let (way, what) = match question.pattern {
        Pattern::Stream => ("one way", "message"),
        Pattern::RequestReply => ("there and back", "round trip"),
    };
    let mut text = format!(
        "# {spec}: messages of {bytes}, {way}\n\n\
         {}, {WRITTEN}. Start them in this folder, in any order:\n\n    {}\n\n\
         Arguments: the sender's COUNT, RATE ({what}s in a second of this sender; 0: as fast as it can) and NAME, where the ends meet; the receiver's COUNT\n\
         (0: not known) and NAME. Each prints the nanoseconds of one {what} at its end; the slowest receiver's (with replies the client's) is the figure of\n\
         the pair. A message is one word of 64 bits, little-endian, repeated: its number (40 bits) and the sender's id; a message of bytes 0xFF is a sender's\n\
         last. Status: 0 all arrived as sent, 1 not, 2 wrong arguments. What a killed end leaves at NAME the next one takes over, or is removed by hand.\n",
        names.join(" and "),
        build_and_time(programs, question),
    );
    if ends::has_links(spec, question) {
        text += "Each receiver takes the first link that is free (NAME.0, NAME.1, … or the next numbers), and the sender waits until all are taken.\n";
    }
    for must in &question.must {
        text += &format!("- `{must}`: {}.\n", must.text().asks);
    }
    if question.must.contains(&Must::Poll) {
        text += "A datagram to NAME.ask (tcp: to port NAME + 1000) makes the receiver print how many messages it has.\n";
    }
    text
}
