//! The folder of two programs: its README, and the commands that compile, start and time them.

use model::Spec;

use crate::ends;
use crate::languages::CodeLanguage;
use crate::program::{Program, Role};
use crate::question::{Must, Question, Share};

/// The name of the README.
pub const README: &str = "README.md";
/// What is in a README that was written here.
pub const WRITTEN: &str = "written by `hosepipe recommend`";

/// The commands that compile two programs, start all ends and time them.
pub fn build_and_time(programs: &[Program], spec: &Spec, question: &Question) -> String {
    let commands = programs.iter().map(|one| one.commands().0);
    let compile: Vec<String> =
        commands.filter(|words| !words.is_empty()).map(|words| words.join(" ")).collect();
    compile.into_iter().chain([time(programs, spec, question)]).collect::<Vec<_>>().join(" && ")
}

/// The command that starts all ends and times them: receivers in the background, then the senders. It fails if an end does.
fn time(programs: &[Program], spec: &Spec, question: &Question) -> String {
    let [count, expected] = ends::counts(spec, question);
    let rate = question.sender_rate_per_s().map(|rate| format!(" {rate}"));
    let line = |role: Role, arguments: String| {
        let program = programs.iter().find(|one| one.role == role);
        let command = program.map_or(Vec::new(), |one| one.commands().1);
        format!("{} {arguments}", command.join(" "))
    };
    let sender = line(Role::Sender, format!("{count}{}", rate.unwrap_or_default()));
    let receiver = line(Role::Receiver, expected.to_string());
    let many =
        |times: u32, line: &str| format!("for i in $(seq {times}); do {line} & set -- \"$@\" $!; done");
    let wait = "for i; do wait $i || exit; done";
    match (question.senders, question.receivers) {
        (1, 1) => format!("({receiver} & {sender} && wait $!)"),
        (1, receivers) => format!("(set --; {}; {sender} && {wait})", many(receivers, &receiver)),
        (senders, 1) => format!("(set --; {}; {receiver} && {wait})", many(senders, &sender)),
        (senders, receivers) => {
            let remove = removal(spec, question).map_or(String::new(), |remove| format!("; {remove}"));
            format!("(set --; {}; {}; {wait}{remove})", many(receivers, &receiver), many(senders, &sender))
        }
    }
}

/// The command that removes what several senders and several receivers have shared: none of them knows that it is the last.
fn removal(spec: &Spec, question: &Question) -> Option<String> {
    let is_shared = question.senders > 1 && question.receivers > 1 && !ends::has_links(spec, question);
    let name = ends::meeting(spec, question);
    is_shared.then_some(match spec.mechanism.as_str() {
        "posix-mq" => format!("rm -f /dev/mqueue{name}"),
        "sysv-msgq" => format!("ipcrm -Q {name}"),
        "file" => format!("rmdir {name}"),
        _ => format!("rm -f {name}"),
    })
}

/// How the two programs are started, and what they print.
pub fn readme(programs: &[Program], spec: &Spec, question: &Question) -> String {
    let names: Vec<String> = programs.iter().map(|one| format!("`{}`", one.file())).collect();
    let what = question.pattern.unit();
    let whose = match question.share {
        Some(Share::Compete) => "that of a receiver is of the messages that it took itself",
        _ => "the slowest receiver's (with replies the client's) is the figure of the pair",
    };
    let mut text = format!(
        "# {spec}: messages of {}, {}\n\n\
         {}, {WRITTEN}. Start them in this folder, in any order:\n\n    {}\n\n\
         Arguments: the sender's COUNT, RATE ({what}s in a second of this sender; 0: as fast as it can) and NAME, where the ends meet; the receiver's COUNT\n\
         (0: not known) and NAME. Each prints the nanoseconds of one {what} at its end;\n\
         {whose}. A message is one word of 64 bits, little-endian, repeated: its\n\
         number (40 bits) and the sender's id; a message of bytes 0xFF is a sender's last.\n\
         Status: 0 all arrived as sent, 1 not, 2 wrong arguments. What a killed end leaves at NAME the next one takes over, or is removed by hand.\n",
        question.message_size(),
        question.pattern.way(),
        names.join(" and "),
        build_and_time(programs, spec, question),
    );
    let locks_file = question.code.both()[1] == CodeLanguage::Java && spec.mechanism != "tcp";
    if locks_file && (question.receivers == 1 || ends::has_links(spec, question)) {
        text += "A receiver in Java locks the file NAME.lock. One that is killed leaves it, unlocked: the next one takes it.\n";
    }
    if removal(spec, question).is_some() {
        let mount =
            if spec.mechanism == "posix-mq" { " where mqueue(7) is mounted at /dev/mqueue" } else { "" };
        text += &format!(
            "Several senders and several receivers leave what is at NAME: none knows that it is the last. The command above removes it{mount}.\n"
        );
    }
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
