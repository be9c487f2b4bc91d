//! What a user's shell begins with: their own files first, then what hosepipe adds. No program that the shell starts sees any of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use mechanism::{Folder, OpenError};
use model::shell_quoted;
use pipeline::link::{LinkSpec, refused};
use pipeline::shell::{Kind, Shell};
use pipeline::{Begin, Names};
use rustix::fs::{MemfdFlags, memfd_create};

const FUNCTIONS: &str = include_str!("begin/functions.sh");
const ASK: &str = include_str!("begin/ask.sh");

/// Makes what a shell begins with.
///
/// # Errors
/// This program's own file is not known, or the system refuses memory or a folder.
pub fn begin(shell: &Shell, names: &Names) -> Result<Begin, OpenError> {
    let text = |template: &str| text(template, shell, names).map_err(refused("readlink of /proc/self/exe"));
    let mut begin = Begin::default();
    // Where the shell can read a text.
    let mut readable = |template: &str| {
        let (file, path) = in_memory(&text(template)?)?;
        begin.file = Some(file);
        Ok::<OsString, OpenError>(path)
    };
    match shell.kind {
        Kind::Bash => {
            begin.arguments = vec!["--rcfile".into(), readable(include_str!("begin/bash.sh"))?];
        }
        Kind::Yash => {
            let mut option = OsString::from("--rcfile=");
            option.push(readable(include_str!("begin/yash.sh"))?);
            begin.arguments.push(option);
        }
        Kind::Dash => begin.variables.push(("ENV".to_owned(), readable(include_str!("begin/dash.sh"))?)),
        Kind::Fish => {
            let mut command = OsString::from("source ");
            command.push(readable(include_str!("begin/fish.fish"))?);
            begin.arguments = vec!["--init-command".into(), command];
        }
        Kind::Zsh => {
            let rest = readable(include_str!("begin/zsh.zsh"))?;
            let folder = Folder::private();
            let path = folder.path()?.to_owned();
            let first = text(include_str!("begin/zshenv.zsh"))?
                .replace("@REST@", &rest.to_string_lossy())
                .replace("@ZDOTDIR@", &zdotdir(shell, None));
            std::fs::write(path.join(".zshenv"), first).map_err(refused("write"))?;
            if !zdotdir(shell, Some(&path)).contains(&*path.to_string_lossy()) {
                // That it cannot be said changes nothing.
                let what = "the zshenv of this machine sets ZDOTDIR: this zsh has no `via`, and none of the other functions";
                let _ = writeln!(io::stderr(), "hosepipe: {what}");
            }
            begin.variables.push(("ZDOTDIR".to_owned(), path.into()));
            begin.folder = Some(folder);
        }
        Kind::Other => {}
    }
    Ok(begin)
}

/// Makes ZDOTDIR what it is to a zsh that is given `ours`, or this process's own: the file of the whole machine is read before any
/// other, and may set it.
fn zdotdir(shell: &Shell, ours: Option<&Path>) -> String {
    let mut command = Command::new(&shell.path);
    command.args(["-f", "-c", "typeset -p ZDOTDIR"]).stdin(Stdio::null()).stderr(Stdio::null());
    command.envs(ours.map(|folder| ("ZDOTDIR", folder)));
    let said = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // That file may print something before.
    let set = said.unwrap_or_default().lines().last().unwrap_or_default().to_owned();
    if set.contains(" ZDOTDIR=") { set } else { "unset ZDOTDIR".to_owned() }
}

/// Puts a text where a shell can read it, in memory: nothing can be left of it. The file, and its path.
fn in_memory(text: &str) -> Result<(OwnedFd, OsString), OpenError> {
    let made = memfd_create("hosepipe-begin", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut file = File::from(made.map_err(refused("memfd_create"))?);
    file.write_all(text.as_bytes()).map_err(refused("write"))?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file.into(), path.into()))
}

/// A text with the names of this run in it.
fn text(template: &str, shell: &Shell, names: &Names) -> io::Result<String> {
    let quote = if shell.kind == Kind::Fish { fish_quoted } else { shell_quoted };
    let program = quote(std::env::current_exe()?.as_os_str().as_bytes());
    let links: Vec<&str> = LinkSpec::names().collect();
    let env = std::env::var_os("ENV").map(|value| format!("export ENV={}", shell_quoted(value.as_bytes())));
    let texts = [
        ("@FUNCTIONS@", FUNCTIONS.to_owned()),
        ("@ASK@", ASK.to_owned()),
        ("@HOSEPIPE@", program),
        ("@SHELL@", quote(shell.path.as_os_str().as_bytes())),
        ("@SOCKET@", names.socket.clone()),
        ("@RING@", names.ask.clone()),
        ("@ANSWER@", names.answer.clone()),
        ("@LINKS@", links.join(" ")),
        ("@ENV@", env.unwrap_or_else(|| "unset ENV".to_owned())),
    ];
    Ok(texts.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value)))
}

/// A word as fish reads it back.
fn fish_quoted(bytes: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(bytes).replace('\\', r"\\").replace('\'', r"\'"))
}

/// The shell of a user: theirs, where it is one of those that are known; else bash.
pub fn users_shell() -> OsString {
    let theirs = std::env::var_os("SHELL").filter(|name| Path::new(name).is_absolute());
    let known = theirs.filter(|name| Shell::find(name).is_ok_and(|shell| shell.kind != Kind::Other));
    known.unwrap_or_else(|| "bash".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_left_to_fill_in() {
        let names = Names { socket: "s".to_owned(), ask: "/r".to_owned(), answer: "/a".to_owned() };
        let shell = Shell::find("bash".as_ref()).expect("bash");
        for template in [
            include_str!("begin/bash.sh"),
            include_str!("begin/dash.sh"),
            include_str!("begin/yash.sh"),
            include_str!("begin/zsh.zsh"),
            include_str!("begin/fish.fish"),
        ] {
            let text = text(template, &shell, &names).expect("this program");
            let left =
                text.split('@').nth(1).filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase()));
            assert!(left.is_none_or(str::is_empty), "{left:?}");
        }
    }

    #[test]
    fn words_read_back() {
        assert_eq!(fish_quoted(b"a'b\\c"), r"'a\'b\\c'");
    }
}
