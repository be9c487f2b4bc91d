//! What one item of a list leaves for the next: the directory, variables, exports, functions, options. The working
//! directory and the mode mask are this process's own; exported variables go into each stage's environment; the
//! rest is kept as a text that a shell reads before it runs a stage.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, memfd_create};

use crate::builtins::is_builtin;
use crate::environment::Environment;
use crate::jobs::{Jobs, put_in};
use crate::{lookup, signals};

/// A shell's state between two items of a list.
pub struct Session {
    pub(crate) environment: Environment,
    /// The shell that runs what needs one.
    pub(crate) shell: Shell,
    /// Functions and aliases that an earlier item has defined.
    functions: HashSet<String>,
    /// What a shell must read to be where the last one left off; none at the beginning.
    kept: Option<OwnedFd>,
    /// Options that matter to whoever runs a list.
    pub(crate) options: ShellOptions,
    /// The last pipeline's statuses, stage by stage (`PIPESTATUS`).
    pub(crate) statuses: Vec<i32>,
    /// The last pipeline's status (`$?`).
    pub(crate) status: i32,
    /// Whether another text follows, for which also the last item's leftovers are kept.
    pub stays: bool,
    /// Whether every text is a line of its own: at a prompt, and for what goes on from one.
    begins_lines: bool,
    /// Job control, where there is a prompt.
    pub(crate) jobs: Option<Jobs>,
}

/// A shell that takes `-c TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    pub(crate) path: PathBuf,
    /// Only of bash is it known how to ask what an item has left behind.
    pub(crate) is_bash: bool,
}

/// `set -o` options that change how a list goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ShellOptions {
    /// `pipefail`: a pipeline's status is its last failing stage's.
    pub(crate) pipefail: bool,
    /// `errexit`: a failing item ends the list.
    pub(crate) errexit: bool,
    /// `noclobber`: `>` does not overwrite, as only the shell looks at.
    pub(crate) noclobber: bool,
    /// `xtrace` or `verbose`: the shell shows what it runs, so it has to run everything.
    pub(crate) traced: bool,
}

/// Where an item writes down what it leaves behind.
pub(crate) struct Notebook {
    state: OwnedFd,
    exports: OwnedFd,
}

impl Session {
    /// A session as a shell named `shell` would begin it.
    ///
    /// # Errors
    /// There is no such shell.
    pub fn new(shell: &str) -> Result<Self, NoShell> {
        signals::remember_dispositions();
        let environment = Environment::of_a_shell();
        let found = lookup::program(shell, environment.get("PATH").or(Some(OsStr::new("/usr/bin:/bin"))));
        let path = found.ok_or_else(|| NoShell(shell.to_owned()))?;
        let is_bash = path.file_name().is_some_and(|name| name == "bash");
        Ok(Self {
            environment,
            shell: Shell { path, is_bash },
            functions: HashSet::new(),
            kept: None,
            options: ShellOptions::default(),
            statuses: Vec::new(),
            status: 0,
            stays: false,
            begins_lines: false,
            jobs: None,
        })
    }

    /// Puts a prompt before what is run from now on: with job control, each text a line of its own.
    pub fn begin_prompt(&mut self, jobs: Jobs) {
        self.begins_lines = true;
        self.jobs = Some(jobs);
    }

    /// The jobs, where there is a prompt.
    pub fn jobs(&self) -> Option<&Jobs> {
        self.jobs.as_ref()
    }

    /// The same, to be changed.
    pub fn jobs_mut(&mut self) -> Option<&mut Jobs> {
        self.jobs.as_mut()
    }

    /// A file with what a shell must read to be where this session is: functions, aliases, variables, options. It is
    /// there until the next item has run, and as long as this program is; `None` where nothing was left behind yet.
    pub fn state(&self) -> Option<PathBuf> {
        self.kept.as_ref().map(path_of).map(PathBuf::from)
    }

    /// Begins where the session that wrote `state` is. What it exports, its folder and its mask are for whoever starts
    /// this program.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn resume(&mut self, state: &Path) -> io::Result<()> {
        self.begins_lines = true;
        self.take_state(std::fs::File::open(state)?)
    }

    /// The last status (`$?`).
    pub fn status(&self) -> i32 {
        self.status
    }

    /// Sets the last status.
    pub fn set_status(&mut self, status: i32) {
        self.status = status;
        self.statuses = vec![status];
    }

    /// An exported variable's value.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.get(name)
    }

    /// Whether a command's name leads to anything: a builtin, a function, an alias or a program.
    pub fn knows(&self, name: &str) -> bool {
        is_builtin(name) || self.is_function(name) || self.program(name).is_some()
    }

    /// Names of the functions and aliases that were defined here.
    pub fn defined(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(String::as_str)
    }

    /// Whether a name is a function, or an alias, here.
    pub(crate) fn is_function(&self, name: &str) -> bool {
        self.functions.contains(name)
            || self.environment.exported_functions().any(|function| function == name)
    }

    /// Where a command's program lies.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        lookup::program(name, self.environment.get("PATH"))
    }

    /// The text given to a shell so that it runs `text`, which begins in line `line` of the whole, with everything
    /// earlier items have left.
    pub(crate) fn text_for_shell(&self, text: &str, line: usize) -> String {
        let text = &self.with_last_pid(text);
        let mut before = Vec::new();
        if let Some(kept) = &self.kept {
            before.push(format!(". {} 2>/dev/null", path_of(kept)));
            // A shell that finds no PATH makes one.
            if self.environment.get("PATH").is_none() {
                before.push("unset PATH".to_owned());
            }
        } else if self.jobs.is_some() && self.shell.is_bash {
            // As at bash's own prompt; later shells find it among what was kept.
            before.push("shopt -s expand_aliases".to_owned());
        }
        if self.kept.is_none() && self.options.pipefail && self.shell.is_bash {
            before.push("set -o pipefail".to_owned());
        }
        before.extend(self.statuses_again(text));
        // A shell reads a line before it runs it: what an earlier line has set changes how this one is read.
        let first_line = line == 1 && !self.begins_lines;
        let between = match (before.is_empty(), first_line) {
            (true, _) => "\n".repeat(line - 1),
            (false, true) => "; ".to_owned(),
            (false, false) => "\n".repeat((line - 1).max(1)),
        };
        before.join("; ") + &between + text
    }

    /// A text with `$!` put in at a prompt, where no shell has started what runs in the background.
    pub(crate) fn with_last_pid<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.jobs {
            Some(jobs) => put_in(text, jobs.last_pid()),
            None => Cow::Borrowed(text),
        }
    }

    /// What brings `$?` and PIPESTATUS about in another shell, which cannot be assigned to; nothing where it starts
    /// with the same.
    fn statuses_again(&self, text: &str) -> Option<String> {
        let asked = ["PIPESTATUS", "$?", "${?"].iter().any(|name| text.contains(name));
        // A bare `exit`, or a function, looks at the status as well.
        // Before the first pipeline there is nothing to bring about.
        if self.statuses.is_empty() || (!asked && self.status == 0) {
            return None;
        }
        let stages: Vec<String> = self.statuses.iter().map(|status| format!("(exit {status})")).collect();
        let stages =
            if text.contains("PIPESTATUS") { stages.join(" | ") } else { format!("(exit {})", self.status) };
        let negated = text.contains("PIPESTATUS") && self.status != self.status_of_stages();
        // What has already failed without an end must not end the shell (`set -e`).
        let goes_on = if self.status != 0 { " && :" } else { "" };
        Some(format!("{}{stages}{goes_on}", if negated { "! " } else { "" }))
    }

    /// The last stage's status, or with `pipefail` that of the last stage that failed.
    pub(crate) fn status_of_stages(&self) -> i32 {
        let failed = self.statuses.iter().rev().find(|status| **status != 0);
        let last = self.statuses.last();
        let decides = if self.options.pipefail { failed } else { last };
        decides.copied().unwrap_or(0)
    }

    /// Prepares for an item that may leave something behind.
    ///
    /// # Errors
    /// memfd_create(2) failed.
    pub(crate) fn notebook(&self) -> io::Result<Notebook> {
        let page = |name: &str| memfd_create(name, MemfdFlags::CLOEXEC);
        Ok(Notebook { state: page("state")?, exports: page("exports")? })
    }

    /// Takes over what an item has left behind. False where it wrote nothing down: it ended the whole list
    /// (`exit`, `kill $$`, an unset variable under `set -u`).
    ///
    /// # Errors
    /// The notes cannot be read, or the directory they name cannot be entered.
    pub(crate) fn take_over(&mut self, notebook: Notebook) -> io::Result<bool> {
        let exports = read_all(notebook.exports)?;
        if exports.is_empty() {
            return Ok(false);
        }
        let mut environment = Environment::parse(&exports);
        if let Some(folder) = environment.take("__hosepipe_folder") {
            enter(Path::new(&folder));
        }
        if let Some(mask) = environment.take("__hosepipe_umask").and_then(octal) {
            rustix::process::umask(Mode::from_raw_mode(mask));
        }
        if let Some(statuses) = environment.take("__hosepipe_statuses") {
            let statuses = statuses.to_string_lossy();
            self.statuses = statuses.split_whitespace().filter_map(|status| status.parse().ok()).collect();
        }
        // The shell that wrote this was one deeper than the list it stands in.
        environment.set("SHLVL", environment.depth().max(1).to_string());
        self.environment = environment;

        self.take_state(std::fs::File::from(notebook.state))?;
        Ok(true)
    }

    fn take_state(&mut self, mut state: std::fs::File) -> io::Result<()> {
        state.seek(SeekFrom::Start(0))?;
        let mut text = Vec::new();
        state.read_to_end(&mut text)?;
        self.read_state(&String::from_utf8_lossy(&text));
        self.kept = Some(state.into());
        Ok(())
    }

    fn read_state(&mut self, text: &str) {
        let option = |name: &str| text.lines().any(|line| line == format!("set -o {name}"));
        self.options = ShellOptions {
            pipefail: option("pipefail"),
            errexit: option("errexit"),
            noclobber: option("noclobber"),
            traced: option("xtrace") || option("verbose") || option("noexec"),
        };
        // Functions are written by `declare -F`, each after a mark of ours.
        let function = |line: &str| line.strip_prefix("# function ").map(str::to_owned);
        let alias = |line: &str| Some(line.strip_prefix("alias ")?.split_once('=')?.0.to_owned());
        let expanded = text.lines().any(|line| line == "shopt -s expand_aliases");
        let aliases = text.lines().filter(|_| expanded).filter_map(alias);
        self.functions = text.lines().filter_map(function).chain(aliases).collect();
    }
}

/// The shell that was named is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no shell `{0}` that can be executed")]
pub struct NoShell(String);

impl Notebook {
    /// What a shell does after an item, to write down what it leaves: a command of its own. It ends with the item's
    /// status.
    pub(crate) fn closing_text(&self) -> String {
        let (state, exports) = (path_of(&self.state), path_of(&self.exports));
        // Names that bash keeps to itself are left out: they cannot be set, or say nothing to another shell.
        format!(
            r##"{{ __hosepipe_status=$? __hosepipe_statuses="${{PIPESTATUS[*]}}"
{{ builtin set +o; builtin shopt -p; builtin alias -p
while IFS= builtin read -r __hosepipe_name; do case $__hosepipe_name in
BASH_*|BASH|BASHOPTS|BASHPID|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|OPTERR|PIPESTATUS|PPID|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|__hosepipe_*) ;;
*) builtin declare -p "$__hosepipe_name";; esac; done < <(builtin compgen -v)
builtin printf 'set --'; case $# in 0) ;; *) builtin printf ' %q' "$@";; esac; builtin echo
builtin declare -f
while builtin read -r _ __hosepipe_flags __hosepipe_name; do builtin echo "# function $__hosepipe_name"
case $__hosepipe_flags in *x*) builtin echo "declare -fx $__hosepipe_name";; esac; done < <(builtin declare -F)
}} >| {state}
__hosepipe_folder=$PWD __hosepipe_umask=$(builtin umask) __hosepipe_statuses=$__hosepipe_statuses /usr/bin/env -0 >| {exports}
builtin exit $__hosepipe_status; }} 2>/dev/null
"##
        )
    }
}

/// A descriptor of ours as a path that another process of this user can open.
fn path_of(fd: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd())
}

fn read_all(fd: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::from(fd);
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn octal(text: OsString) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(&text.into_vec()).ok()?, 8).ok()
}

/// A folder that has gone meanwhile is where the shell was, too: later stages then say so themselves.
fn enter(folder: &Path) {
    let _ = std::env::set_current_dir(folder);
}
