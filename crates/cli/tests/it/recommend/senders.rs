//! What `recommend --must many-senders` prints, with four senders: their messages come through whole, in each language.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use model::CaseRecord;
use stats::choice::SIMPLEST_FIRST;

use super::programs::{compiled, is_there};
use super::{case, record};
use crate::common::Lab;
use crate::common::programs::python;

/// PIPE_BUF and more. Queues take messages of up to 8 KiB from every user.
const SIZES: [u32; 5] = [4096, 4097, 6000, 8192, 12288];
const QUEUE_BYTES_MAX: u32 = 8192;

/// A program that `recommend` advises.
struct Advised {
    name: String,
    spec: &'static str,
    text: String,
}

/// What `recommend` prints for several senders in a language, for each mechanism and size where it advises it.
fn advised(lab: &Lab, language: &str, between: &str) -> Vec<Advised> {
    let mut all = Vec::new();
    for (spec, bytes) in SIMPLEST_FIRST.iter().flat_map(|spec| SIZES.map(|bytes| (*spec, bytes))) {
        if matches!(spec, "posix-mq" | "sysv-msgq") && bytes > QUEUE_BYTES_MAX {
            continue;
        }
        let tasks = if between == "threads" { model::Tasks::Threads } else { model::Tasks::Processes };
        record(
            lab,
            "run.json",
            vec![CaseRecord { block_bytes: bytes.into(), tasks, ..case(spec, 900, 900) }],
        );
        let message = bytes.to_string();
        let question = ["recommend", "--must", "many-senders", "--from", "run.json", "--code-to", "advised"];
        let more = ["--message", &message, "--between", between, "--code", language];
        let done = lab.run(&[&question[..], &more].concat());
        let text = fs::read_to_string(lab.here("advised")).unwrap_or_default();
        match done.status.code() {
            Some(0) => {
                fs::remove_file(lab.here("advised")).expect("what was written");
                let name = format!("{spec}_{bytes}").replace([':', '=', '-'], "_").to_lowercase();
                all.push(Advised { name, spec, text });
            }
            code => assert_eq!((code, text.as_str()), (Some(2), ""), "{}", done.stderr),
        }
    }
    for (bytes, spec) in [(4096, "pipe"), (4096, "fifo"), (12288, "unix-dgram"), (8192, "posix-mq")] {
        let name = format!("{spec}_{bytes}").replace('-', "_");
        assert!(all.iter().any(|one| one.name == name), "{name} is advised");
    }
    all
}

/// Runs a program with four senders; it prints how many messages were mixed.
fn expect_whole(mut run: Command, one: &Advised, lab: &Lab) {
    // Tests run at the same time, and names of queues are those of the whole machine.
    static MEETINGS: AtomicU32 = AtomicU32::new(0);
    let number = MEETINGS.fetch_add(1, Ordering::Relaxed) % 64;
    let meeting = match one.spec {
        "posix-mq" => format!("/hosepipe-senders-{}-{number}", std::process::id()),
        "sysv-msgq" => (0x4000_0000 | (std::process::id() << 6) | number).to_string(),
        _ => format!("meeting{number}"),
    };
    let done = run.arg(meeting).arg(&one.name).current_dir(lab.here("")).output().expect("it starts");
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(said, ["0 of 800 mixed\n", ""].map(str::to_owned), "{}", one.name);
}

fn limited(program: &Path) -> Command {
    let mut run = Command::new("timeout");
    run.arg("60").arg(program);
    run
}

const IN_C: &str = r#"
static void *send_as(int letter) {
    char *message = malloc(BYTES);
    memset(message, letter, BYTES);
    for (int number = 0; number < 200; number++) send_message(SENDER, message);
    free(message);
    return NULL;
}
static void receive_all(void) {
    int mixed = 0;
    char *message = malloc(BYTES);
    for (int number = 0; number < 800; number++) {
        receive_message(RECEIVER, message);
        mixed += memcmp(message, message + 1, BYTES - 1) != 0;
    }
    printf("%d of 800 mixed\n", mixed);
    fflush(stdout);
    free(message);
}
"#;

const FORKED_IN_C: &str = r#"
int senders_main(char **argv) {
    int ready[2], go[2];
    char byte = 0;
    name = argv[1];
    make_meeting_place();
    if (pipe(ready) || pipe(go)) err(1, "pipe");
    for (int letter = 'a'; letter <= 'd'; letter++)
        if (fork() == 0) {
            close(go[1]), open_end(SENDER);
            /* All are there before the first message is sent. */
            if (write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 0) err(1, "barrier");
            send_as(letter), _exit(0);
        }
    open_end(RECEIVER);
    for (int letter = 'a'; letter <= 'd'; letter++)
        if (read(ready[0], &byte, 1) != 1) err(1, "barrier");
    close(go[1]), receive_all();
    while (wait(NULL) > 0);
"#;

const THREADS_IN_C: &str = r#"
static void *send_in_thread(void *letter) { return send_as(*(char *)letter); }
static void *receive_in_thread(void *unused) { return open_end(RECEIVER), receive_all(), unused; }
int senders_main(char **argv) {
    pthread_t threads[5];
    name = argv[1];
    make_meeting_place();
    pthread_create(threads, NULL, receive_in_thread, NULL), open_end(SENDER);
    for (int at = 0; at < 4; at++) pthread_create(threads + 1 + at, NULL, send_in_thread, "abcd" + at);
    for (int at = 0; at < 5; at++) pthread_join(threads[at], NULL);
"#;

fn in_c(between: &str, main: &str) {
    if !is_there("cc") {
        return;
    }
    let lab = Lab::new();
    let programs = advised(&lab, "c", between);
    let (mut files, mut declared, mut arms) = (Vec::new(), "#include <string.h>\n".to_owned(), String::new());
    for Advised { name, text, .. } in &programs {
        let remove = if text.contains("remove_meeting_place(void)") { "remove_meeting_place();" } else { "" };
        let text = text.replace("\nint main(", "\nint printed_main(");
        let own = main.replace("senders_main", &format!("senders_{name}"));
        files.push((format!("{name}.c"), format!("{text}{IN_C}{own}    {remove}\n    return 0;\n}}\n")));
        declared += &format!("int senders_{name}(char **);\n");
        arms += &format!("    if (!strcmp(argv[2], \"{name}\")) return senders_{name}(argv);\n");
    }
    // Each printed main is a name of its own.
    for (at, (_, text)) in files.iter_mut().enumerate() {
        *text = text.replace("printed_main", &format!("printed_main_{at}"));
    }
    files.push((
        "main.c".to_owned(),
        format!("{declared}int main(int argc, char **argv) {{\n{arms}    return argc;\n}}\n"),
    ));
    let sources = files.iter().map(|(name, _)| name.as_str());
    let words: Vec<&str> = ["cc", "-pthread"].into_iter().chain(sources).chain(["-lrt"]).collect();
    let all = compiled(&format!("senders-{between}"), &words, &files, &lab);
    programs.iter().for_each(|one| expect_whole(limited(&all), one, &lab));
}

/// Expected: what is advised for several senders keeps their messages whole. Happened: `fifo` was, and four senders mixed 38 % of 6,000 B.
#[test]
fn four_senders_in_c_mix_no_message() {
    in_c("parent-child", FORKED_IN_C);
}

#[test]
fn four_threads_in_c_mix_no_message() {
    in_c("threads", THREADS_IN_C);
}

const IN_RUST: &str = r#"
pub fn senders_main() -> io::Result<()> {
    use std::io::{Read, Write};
    let name = std::env::args().nth(1).expect("a name");
    let (_meeting_place, [sender, receiver]) = make_meeting_place(&name)?;
    let ((mut ready, mut is_ready), (mut go, goes)) = (io::pipe()?, io::pipe()?);
    for letter in b"abcd" {
        if unsafe { fork() } == 0 {
            drop((goes, receiver));
            let mut end = sender.open()?;
            is_ready.write_all(b".")?;
            assert_eq!(go.read(&mut [0])?, 0);
            for _ in 0..200 {
                end.send(&[*letter; BYTES])?;
            }
            std::process::exit(0);
        }
    }
    drop(sender);
    let mut end = receiver.open()?;
    ready.read_exact(&mut [0; 4])?;
    drop(goes);
    let (mut mixed, mut message) = (0, vec![0; BYTES]);
    for _ in 0..800 {
        end.receive(&mut message)?;
        mixed += u32::from(message.iter().any(|byte| *byte != message[0]));
    }
    println!("{mixed} of 800 mixed");
    while unsafe { waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
    Ok(())
}
"#;

#[test]
fn four_senders_in_rust_mix_no_message() {
    if !is_there("rustc") {
        return;
    }
    let lab = Lab::new();
    let programs = advised(&lab, "rust", "parent-child");
    let (mut files, mut modules, mut arms) = (Vec::new(), String::new(), String::new());
    for Advised { name, text, .. } in &programs {
        files.push((format!("{name}.rs"), text.clone() + IN_RUST));
        modules += &format!("#[allow(dead_code)]\nmod {name};\n");
        arms += &format!("        Some(\"{name}\") => {name}::senders_main(),\n");
    }
    let main = format!(
        "{modules}fn main() -> std::io::Result<()> {{\n    match std::env::args().nth(2).as_deref() {{\n{arms}        _ => unreachable!(),\n    }}\n}}\n"
    );
    files.push(("all.rs".to_owned(), main));
    let all = compiled("senders-rust", &["rustc", "--edition=2021", "all.rs"], &files, &lab);
    programs.iter().for_each(|one| expect_whole(limited(&all), one, &lab));
}

const IN_PYTHON: &str = r#"
make_meeting_place()
ready, go = os.pipe(), os.pipe()
for letter in b"abcd":
    if os.fork() == 0:
        os.close(go[1])
        send, _ = open_end("sender")
        os.write(ready[1], b".")
        assert os.read(go[0], 1) == b""
        for _ in range(200):
            send(bytes([letter]) * BYTES)
        os._exit(0)
_, receive = open_end("receiver")
for _ in range(4):
    os.read(ready[0], 1)
os.close(go[1])
mixed = sum(len(set(receive())) != 1 for _ in range(800))
print(mixed, "of 800 mixed")
"#;

#[test]
fn four_senders_in_python_mix_no_message() {
    if !is_there("python3") {
        return;
    }
    let lab = Lab::new();
    for one in &advised(&lab, "python", "parent-child") {
        let (functions, _) = one.text.split_once("\ntry:\n    make_meeting_place()").expect("the main part");
        // The printed program takes a COUNT before its NAME.
        let text = functions.replace("import sys\n", "import sys\nsys.argv.insert(1, \"1\")\n") + IN_PYTHON;
        let program = lab.here("senders.py");
        fs::write(&program, text).expect("a file");
        let mut run = limited(Path::new(python()));
        run.arg(program);
        expect_whole(run, one, &lab);
    }
}
