//! Changes what a program is started with, as hosepipe's server requests: more variables, more arguments, another standard output.

use core::ffi::c_char;
use core::slice;

use crate::message::ANSWER_HEAD_BYTES;
use crate::protocol::{CHANGE_BYTES_MAX, CHANGES_MAX, change};
use crate::{server, sys};

/// A list of strings that ends with a null: arguments, or an environment.
pub(crate) type List = *const *const c_char;

/// Room for the server's answer.
const ANSWER_BYTES_MAX: usize = ANSWER_HEAD_BYTES + CHANGE_BYTES_MAX;
/// Room for values of variables that are put together from the program's own and an additional one.
const JOINED_BYTES: usize = 16 << 10;

/// The arguments and the environment of a program that is about to be executed, which may get another standard output here. `None`: they stay
/// as they are.
///
/// # Safety
/// The arguments of execve(2).
pub(crate) unsafe fn changed(path: *const c_char, argv: List, envp: List) -> Option<(List, List)> {
    // SAFETY: the caller's: both lists end with a null.
    let [arguments, variables] = [argv, envp].map(|list| unsafe { len(list) });
    // A shell may try execve(2) in one folder of PATH after the other: only for a file that can be executed the server is asked.
    if arguments == 0 || !sys::is_executable(path) {
        return None;
    }
    let words = arguments + variables + 2 * CHANGES_MAX + 2;
    // Never unmapped: execve(2) frees it, and if that fails, little memory is lost.
    let area = sys::map(words * size_of::<usize>() + ANSWER_BYTES_MAX + JOINED_BYTES)?;
    // SAFETY: the memory is ours, zeroed, and large enough for these three parts.
    let (argv_new, envp_new, text, joined) = unsafe {
        let lists: *mut *const c_char = area.cast();
        let text = area.add(words * size_of::<usize>());
        (
            slice::from_raw_parts_mut(lists, arguments + CHANGES_MAX + 1),
            slice::from_raw_parts_mut(lists.add(arguments + CHANGES_MAX + 1), variables + CHANGES_MAX + 1),
            slice::from_raw_parts_mut(text, ANSWER_BYTES_MAX),
            slice::from_raw_parts_mut(text.add(ANSWER_BYTES_MAX), JOINED_BYTES),
        )
    };
    let (changes, output) = server::request_changes(path, argv, text)?;
    if let Some(output) = output {
        replace_output(output);
    }
    // SAFETY: the caller's list has as many entries.
    (0..variables).for_each(|at| envp_new[at] = unsafe { *envp.add(at) });
    let mut joined = Joined { room: joined, used: 0 };
    let (mut more_arguments, mut all_variables) = (0, variables);
    let entries = changes.split(|byte| *byte == 0).filter(|entry| entry.len() > 1).take(CHANGES_MAX);
    for entry in entries {
        let (how, value) = (entry[0], &entry[1..]);
        // The string ends with a zero, behind `value`.
        let new: *const c_char = value.as_ptr().cast();
        if how == change::ARGUMENT {
            argv_new[1 + more_arguments] = new;
            more_arguments += 1;
            continue;
        }
        let name = value.split_inclusive(|byte| *byte == b'=').next().unwrap_or_default();
        // SAFETY: strings that end with a zero, which no name contains.
        let has_name = |had: &*const c_char| unsafe { starts_with(*had, name) };
        match envp_new[..all_variables].iter().position(has_name) {
            Some(at) => {
                // SAFETY: as above; it is longer than the name.
                let is_empty = unsafe { *envp_new[at].add(name.len()) == 0 };
                let replaces = how == change::SET || is_empty;
                // SAFETY: as above.
                let (had, more) = unsafe { (text_of(envp_new[at]), text_of(envp_new[at].add(name.len()))) };
                let both = match how {
                    _ if replaces => Some(new),
                    change::FRONT => joined.join(value, b':', more),
                    separator => joined.join(had, separator, &value[name.len()..]),
                };
                envp_new[at] = both.unwrap_or(envp_new[at]);
            }
            None => {
                envp_new[all_variables] = new;
                all_variables += 1;
            }
        }
    }
    // SAFETY: as above: there is at least one argument, which stays the first.
    unsafe {
        argv_new[0] = *argv;
        for at in 1..arguments {
            argv_new[more_arguments + at] = *argv.add(at);
        }
    }
    Some((argv_new.as_ptr(), envp_new.as_ptr()))
}

/// Makes this descriptor the standard output, and the standard error if that is the same file.
fn replace_output(output: i32) {
    let is_both = sys::identity(1).is_some_and(|file| sys::identity(2) == Some(file));
    sys::dup(output, 1, 0);
    if is_both {
        sys::dup(output, 2, 0);
    }
    sys::close(output);
}

/// Number of entries of a list.
unsafe fn len(list: List) -> usize {
    if list.is_null() {
        return 0;
    }
    // SAFETY: the caller's: the list ends with a null.
    (0..).take_while(|at| unsafe { !(*list.add(*at)).is_null() }).count()
}

/// The bytes of a string that ends with a zero.
unsafe fn text_of<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(text.cast(), (0..).take_while(|at| *text.add(*at) != 0).count()) }
}

unsafe fn starts_with(text: *const c_char, name: &[u8]) -> bool {
    // SAFETY: the caller's: no byte after the first different one is read.
    name.iter().enumerate().all(|(at, byte)| unsafe { *text.add(at) as u8 == *byte })
}

/// Values that are put together.
struct Joined<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl Joined<'_> {
    /// A text, a separator and more; `None` where there is no room.
    fn join(&mut self, text: &[u8], separator: u8, more: &[u8]) -> Option<*const c_char> {
        let begins = self.used;
        for byte in text.iter().chain(&[separator]).chain(more).chain(&[0]) {
            *self.room.get_mut(self.used)? = *byte;
            self.used += 1;
        }
        Some(self.room[begins..].as_ptr().cast())
    }
}
