//! A shell's start-up files: the user's own first, then hosepipe's. Programs that the shell starts do not inherit hosepipe's variables
//! or functions.

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
use pipeline::{ServerNames, ShellStartup};
use rustix::fs::{MemfdFlags, memfd_create};

const FUNCTIONS: &str = include_str!("begin/functions.sh");
const ASK: &str = include_str!("begin/ask.sh");

/// Makes a shell's start-up files, and the arguments and variables that name them.
///
/// # Errors
/// The path of this program cannot be read, or the system refuses memory or a folder.
pub fn begin(shell: &Shell, names: &ServerNames) -> Result<ShellStartup, OpenError> {
    let text = |template: &str| text(template, shell, names).map_err(refused("readlink of /proc/self/exe"));
    let mut startup = ShellStartup::default();
    // The path of a file with this text.
    let mut readable = |template: &str| {
        let (file, path) = in_memory(&text(template)?)?;
        startup.file = Some(file);
        Ok::<OsString, OpenError>(path)
    };
    match shell.kind {
        Kind::Bash => {
            startup.arguments = vec!["--rcfile".into(), readable(include_str!("begin/bash.sh"))?];
        }
        Kind::Yash => {
            let mut option = OsString::from("--rcfile=");
            option.push(readable(include_str!("begin/yash.sh"))?);
            startup.arguments.push(option);
        }
        Kind::Dash => startup.variables.push(("ENV".to_owned(), readable(include_str!("begin/dash.sh"))?)),
        Kind::Fish => {
            let mut command = OsString::from("source ");
            command.push(readable(include_str!("begin/fish.fish"))?);
            startup.arguments = vec!["--init-command".into(), command];
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
                // If standard error cannot be written, the warning is lost.
                let what = "the zshenv of this machine sets ZDOTDIR: this zsh has neither `via` nor the other functions";
                let _ = writeln!(io::stderr(), "hosepipe: {what}");
            }
            startup.variables.push(("ZDOTDIR".to_owned(), path.into()));
            startup.folder = Some(folder);
        }
        Kind::Other => {}
    }
    Ok(startup)
}

/// A zsh command that sets ZDOTDIR to the value that it has after zsh has read the machine's zshenv, which may change it. To find out, zsh is
/// started with ZDOTDIR set to `folder`, or to this process's value if that is `None`.
fn zdotdir(shell: &Shell, folder: Option<&Path>) -> String {
    let mut command = Command::new(&shell.path);
    command.args(["-f", "-c", "typeset -p ZDOTDIR"]).stdout(Stdio::piped()).stderr(Stdio::null());
    command.envs(folder.map(|folder| ("ZDOTDIR", folder)));
    let printed = process::output(&mut command).map(|(_, text)| String::from_utf8_lossy(&text).into_owned());
    // The machine's zshenv may print lines before it.
    let set = printed.unwrap_or_default().lines().last().unwrap_or_default().to_owned();
    if set.contains(" ZDOTDIR=") { set } else { "unset ZDOTDIR".to_owned() }
}

/// A file in memory with this text, and its path. It needs no removal.
fn in_memory(text: &str) -> Result<(OwnedFd, OsString), OpenError> {
    let made = memfd_create("hosepipe-begin", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let mut file = File::from(made.map_err(refused("memfd_create"))?);
    file.write_all(text.as_bytes()).map_err(refused("write"))?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file.into(), path.into()))
}

/// A template with the names of this run filled in.
fn text(template: &str, shell: &Shell, names: &ServerNames) -> io::Result<String> {
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

/// Quotes a word for fish.
fn fish_quoted(bytes: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(bytes).replace('\\', r"\\").replace('\'', r"\'"))
}

/// `$SHELL` if it is a known shell; else bash.
pub fn users_shell() -> OsString {
    let login_shell = std::env::var_os("SHELL").filter(|name| Path::new(name).is_absolute());
    let known = login_shell.filter(|name| Shell::find(name).is_ok_and(|shell| shell.kind != Kind::Other));
    known.unwrap_or_else(|| "bash".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled_in() {
        let names = ServerNames { socket: "s".to_owned(), ask: "/r".to_owned(), answer: "/a".to_owned() };
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
    fn words_are_quoted_for_fish() {
        assert_eq!(fish_quoted(b"a'b\\c"), r"'a\'b\\c'");
    }
}
