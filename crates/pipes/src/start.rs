//! Runs before the shell's `main`: reads the configuration and removes it from the environment, so that the programs that the
//! shell starts do not load this library.

use core::ffi::{c_char, c_int, c_ulong};
use core::ops::Range;

use crate::protocol::{Config, VARIABLE};
use crate::session::SESSION;
use crate::{end, sys};

const PRELOAD: &[u8] = b"LD_PRELOAD";
const AT_PHDR: c_ulong = 3;
const AT_PHNUM: c_ulong = 5;
const PT_LOAD: u32 = 1;
const PT_PHDR: u32 = 6;
const EXECUTABLE: u32 = 1;

unsafe extern "C" {
    /// The C library's pointer to the environment. It is null if this library is initialised first; then the loader's argument is
    /// used, which glibc passes and musl does not.
    static environ: *mut *mut c_char;

    /// getauxval(3).
    safe fn getauxval(kind: c_ulong) -> c_ulong;
}

#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISER: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = start;

unsafe extern "C" fn start(_argc: c_int, _argv: *mut *mut c_char, envp: *mut *mut c_char) {
    // SAFETY: the loader's pointers, before any other code runs: one of the two is the environment on the stack of the process.
    unsafe {
        let envp = if environ.is_null() { envp } else { environ };
        if let Some((entry, value)) = find(envp, VARIABLE.as_bytes()) {
            remove(entry);
            begin(value);
            // /proc/PID/environ must not show the value.
            value.fill(0);
            remove_own_preload(envp);
        }
    }
}

unsafe fn begin(digits: &[u8]) {
    let Some(config) = Config::from_digits(digits) else { return };
    if config.close >= 0 {
        sys::close(config.close);
    }
    if config.parent != 0 {
        end::end_with(config.parent);
    }
    if let Some((base, code)) = code_of_the_shell() {
        // SAFETY: as the caller guarantees.
        unsafe { SESSION.begin(config, base, code) };
    }
}

/// The entry of a variable in the environment, and its value.
unsafe fn find<'a>(envp: *mut *mut c_char, name: &[u8]) -> Option<(*mut *mut c_char, &'a mut [u8])> {
    // SAFETY: a list of strings that ends with a null; strings end with a zero, which no name contains.
    unsafe {
        let mut entries = (0..).map(|at| envp.add(at)).take_while(|entry| !(**entry).is_null());
        entries.find_map(|entry| {
            let text = (*entry).cast::<u8>();
            let same = name.iter().chain(b"=").enumerate().all(|(at, byte)| *text.add(at) == *byte);
            let value = text.add(name.len() + 1);
            let bytes = || (0..).take_while(|at| *value.add(*at) != 0).count();
            same.then(|| (entry, core::slice::from_raw_parts_mut(value, bytes())))
        })
    }
}

/// Removes an entry from the environment.
unsafe fn remove(entry: *mut *mut c_char) {
    // SAFETY: a list that ends with a null.
    unsafe {
        let mut at = entry;
        while !(*at).is_null() {
            *at = *at.add(1);
            at = at.add(1);
        }
    }
}

/// Removes a variable from an environment if it has this value.
///
/// # Safety
/// `envp` is null, or an environment that may be changed.
pub(crate) unsafe fn remove_variable(envp: *mut *mut c_char, (name, value): (&[u8], &[u8])) {
    // SAFETY: as the caller guarantees.
    unsafe {
        if !envp.is_null()
            && let Some((entry, found)) = find(envp, name)
            && found == value
        {
            remove(entry);
        }
    }
}

/// Removes this library, which is the last one, from LD_PRELOAD, and keeps the user's own libraries.
unsafe fn remove_own_preload(envp: *mut *mut c_char) {
    // SAFETY: the environment, as for `find`.
    unsafe {
        let Some((entry, value)) = find(envp, PRELOAD) else { return };
        match value.iter().rposition(|byte| *byte == b':') {
            None => remove(entry),
            Some(own) => value[own..].fill(0),
        }
    }
}

/// The address at which the shell's file is mapped, and the addresses of its code, from its program headers (elf(5)).
fn code_of_the_shell() -> Option<(usize, Range<usize>)> {
    #[repr(C)]
    struct ProgramHeader {
        kind: u32,
        flags: u32,
        offset: u64,
        address: u64,
        physical: u64,
        file_bytes: u64,
        memory_bytes: u64,
        align: u64,
    }
    let (begin, count) = (getauxval(AT_PHDR) as usize, getauxval(AT_PHNUM) as usize);
    if begin == 0 {
        return None;
    }
    // SAFETY: the address and the number of headers are the kernel's.
    let headers = unsafe { core::slice::from_raw_parts(begin as *const ProgramHeader, count) };
    let own = headers.iter().find(|header| header.kind == PT_PHDR)?;
    let base = begin.wrapping_sub(own.address as usize);
    let code = headers.iter().filter(|header| header.kind == PT_LOAD && header.flags & EXECUTABLE != 0);
    let (from, to) = code.fold((usize::MAX, 0), |(from, to), header| {
        let begins = base.wrapping_add(header.address as usize);
        (from.min(begins), to.max(begins + header.memory_bytes as usize))
    });
    (from < to).then_some((base, from..to))
}
