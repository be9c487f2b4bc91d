//! How programs are made to write line by line (`--line-buffered`): the changes with which each is started, chosen by its file.

use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use model::file_on_path;
use observe::elf::Elf;
use observe::line_buffering::{Method, known_program, writes_blocks};
use pipes::protocol::change;

use crate::program_file::Program;

/// Which stages write line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineBuffered {
    /// All of them.
    All,
    /// Those with these numbers, from 1.
    Stages(Vec<usize>),
}

impl FromStr for LineBuffered {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let number = |word: &str| word.parse().ok().filter(|number| *number > 0);
        let numbers: Option<Vec<usize>> = text.split(',').map(number).collect();
        numbers.map(Self::Stages).ok_or_else(|| {
            format!("`{text}` is neither `all` nor numbers of stages from 1, such as 2 or 2,3")
        })
    }
}

/// How a program is made to write line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineBuffering {
    /// A phrase that is printed after the program's name.
    pub(crate) description: String,
    /// Entries as [`change`] has them.
    pub(crate) changes: Vec<Vec<u8>>,
    /// Whether a terminal becomes its output.
    pub(crate) terminal: bool,
}

/// The methods that this machine has, besides variables, arguments and terminals.
pub(crate) struct LineBufferingMethods {
    /// stdbuf's library, and the loader of its C library.
    library: Option<(String, Vec<u8>)>,
}

impl LineBufferingMethods {
    /// Finds stdbuf's library by running stdbuf(1).
    pub(crate) fn find() -> Self {
        Self { library: library() }
    }

    /// How this program is made to write line by line.
    pub(crate) fn for_program(&self, program: &Program) -> LineBuffering {
        let is_of_loader = |(_, loader): &&(String, Vec<u8>)| program.loader.as_ref() == Some(loader);
        let library = self.library.as_ref().filter(is_of_loader);
        let mut changes = vec![set("PYTHONUNBUFFERED=1"), joined(b' ', "PERL5OPT=-Mvars;$|=1")];
        // Not for a program with another loader, which would refuse the library.
        if let Some((library, _)) = library {
            changes.extend([joined(b':', &format!("LD_PRELOAD={library}")), set("_STDBUF_O=L")]);
        }
        let way = |words: &str| LineBuffering {
            description: words.to_owned(),
            changes: changes.clone(),
            terminal: false,
        };
        let terminal = |why: &str| {
            let words = format!(
                "through a terminal (pty), as {why}; it sees a terminal, and may write columns (NO_COLOR=1 and TERM=dumb prevent \
                 colours)"
            );
            LineBuffering { terminal: true, ..way(&words) }
        };
        let name = program.name.as_str();
        if program.starts_others() {
            return way("by variables, for the programs that it starts");
        }
        if writes_blocks(name) {
            return way("as it is: it reads all of its input before it writes, or its output has no lines");
        }
        let known = known_program(name).map(|program| program.method);
        match known {
            Some(Method::Variable(variable, ignored)) if !program.has_option(ignored) => {
                return way(&format!("by {variable}"));
            }
            Some(Method::Variable(variable, _)) => {
                return terminal(&format!("its options make it ignore {variable}"));
            }
            // With -W INTERACTIVE the records of mawk end with a line feed, even if RS is set.
            Some(Method::Arguments(_)) if name == "mawk" && program.arguments_contain(b"RS") => {
                return way("as it is: with -W INTERACTIVE it would ignore its RS");
            }
            Some(Method::Arguments(more)) if !program.is_script => {
                let mut way = way(&format!("by {}", more.join(" ")));
                way.changes
                    .extend(more.iter().map(|argument| [&[change::ARGUMENT], argument.as_bytes()].concat()));
                return way;
            }
            Some(Method::Terminal) => return terminal("this program has no variable for it"),
            Some(Method::Arguments(_) | Method::Library) | None => {}
        }
        match (&program.loader, library) {
            (None, _) => terminal("it is linked statically"),
            (Some(_), _) if program.is_privileged => {
                terminal("nothing is preloaded into a set-user-ID program")
            }
            (Some(_), Some(_)) if known.is_some() => way("by stdbuf's library"),
            (Some(_), Some(_)) if program.uses_stdio => {
                way("by stdbuf's library, if it writes its output with stdio(3)")
            }
            (Some(_), Some(_)) => terminal("it does not write with the C library"),
            (Some(_), None) if self.library.is_some() => terminal("it has another C library than stdbuf"),
            (Some(_), None) => terminal("stdbuf's library was not found"),
        }
    }
}

/// The changes that make a program write to a terminal as it would to a pipe.
pub(crate) fn at_terminal() -> [Vec<u8>; 2] {
    [set("NO_COLOR=1"), set("TERM=dumb")]
}

fn set(variable: &str) -> Vec<u8> {
    joined(change::SET, variable)
}

fn joined(separator: u8, variable: &str) -> Vec<u8> {
    [&[separator], variable.as_bytes()].concat()
}

/// The library that stdbuf(1) preloads, and stdbuf's loader.
fn library() -> Option<(String, Vec<u8>)> {
    let stdbuf = file_on_path("stdbuf")?;
    let loader = Elf::open(&stdbuf)?.loader()?;
    let mut command = Command::new(&stdbuf);
    command.args(["-oL", "env"]).env_remove("LD_PRELOAD").stdout(Stdio::piped()).stderr(Stdio::null());
    let (_, printed) = process::output(&mut command).ok()?;
    let text = String::from_utf8(printed).ok()?;
    let library = text.lines().find_map(|line| line.strip_prefix("LD_PRELOAD="))?;
    // LD_PRELOAD is split at these characters (ld.so(8)).
    let is_one = !library.contains([':', ' ']) && Path::new(library).is_file();
    is_one.then(|| (library.to_owned(), loader))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn stages_are_chosen_by_number() {
        let read = |text: &str| text.parse::<LineBuffered>();
        assert_eq!(read("all"), Ok(LineBuffered::All));
        assert_eq!(read("2,3"), Ok(LineBuffered::Stages(vec![2, 3])));
        for wrong in ["", "0", "2,", "x", "-1", "1;2"] {
            assert!(read(wrong).is_err_and(|problem| problem.contains("numbers of stages")), "{wrong}");
        }
    }

    #[test]
    fn each_program_goes_its_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("a file");
            path
        };
        let methods =
            LineBufferingMethods { library: Some(("/lib/x.so".to_owned(), b"/no/such\0".to_vec())) };
        let way = |path: &Path, arguments: &[&str]| {
            let words: Vec<&[u8]> = arguments.iter().map(|word| word.as_bytes()).collect();
            methods.for_program(&Program::read(path, &words))
        };
        let static_one = way(&file("mine", "\x7fELF\0stdout\0"), &["mine"]);
        assert!(
            static_one.terminal && static_one.description.contains("statically"),
            "{}",
            static_one.description
        );
        let python = file("python3.11", "\x7fELF");
        assert_eq!(way(&python, &["python3", "-c", "E"]).description, "by PYTHONUNBUFFERED");
        assert!(way(&python, &["python3", "-sE", "x"]).description.contains("ignore PYTHONUNBUFFERED"));
        let mawk = file("mawk", "\x7fELF");
        let plain = way(&mawk, &["awk", "{print}"]);
        assert_eq!((plain.description.as_str(), plain.terminal), ("by -W INTERACTIVE", false));
        assert!(plain.changes.ends_with(&[b"--W".to_vec(), b"-INTERACTIVE".to_vec()]), "{:?}", plain.changes);
        assert!(way(&mawk, &["awk", "BEGIN{RS=\"\"}{print}"]).description.starts_with("as it is"));
        let script = file("script", &format!("#!{} -u\nx\n", python.display()));
        assert_eq!(way(&script, &["script", "-E"]).description, "by PYTHONUNBUFFERED");
        assert!(way(Path::new("/bin/sh"), &["sh"]).description.contains("that it starts"));
        assert!(plain.changes.iter().all(|entry| !entry.starts_with(b":LD_PRELOAD")), "of another loader");
    }

    #[test]
    fn a_dynamic_program_of_the_c_library_gets_stdbufs() {
        let methods = LineBufferingMethods::find();
        if let (Some(_), Some(cut)) = (&methods.library, file_on_path("cut")) {
            let way = methods.for_program(&Program::read(Path::new(&cut), &[b"cut"]));
            assert_eq!((way.description.as_str(), way.terminal), ("by stdbuf's library", false));
            assert!(way.changes.contains(&b"=_STDBUF_O=L".to_vec()));
        }
    }

    /// Expected: what is said of a program is true of it. Happened: "by stdbuf's library" of gzip and iconv, whose output it does not change.
    #[test]
    fn the_library_is_not_said_to_work_where_that_is_not_known() {
        let methods = LineBufferingMethods::find();
        let words = |name: &str| {
            let path = file_on_path(name)?;
            Some(methods.for_program(&Program::read(Path::new(&path), &[name.as_bytes()])).description)
        };
        for name in ["iconv", "gzip", "sort"] {
            assert!(words(name).is_none_or(|words| words.starts_with("as it is: it reads all")), "{name}");
        }
        if methods.library.is_some() {
            assert!(words("od").is_none_or(|words| words == "by stdbuf's library"));
            assert!(
                words("base64").is_none_or(|words| words.contains("if it writes its output with stdio(3)"))
            );
        }
    }
}
