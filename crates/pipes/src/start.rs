//! Before the shell's main: the configuration is read, and every trace of it is taken out of the environment, so that no program the
//! shell starts has this library.

use core::ffi::{c_char, c_int};

use crate::protocol::{Config, VARIABLE};
use crate::session::SESSION;
use crate::sys;

const PRELOAD: &[u8] = b"LD_PRELOAD";
const AT_PHDR: usize = 3;
const AT_PHNUM: usize = 5;
const PT_LOAD: u32 = 1;
const PT_PHDR: u32 = 6;
const EXECUTABLE: u32 = 1;

unsafe extern "C" {
    /// The environment as the C library has it. Not yet there where this library comes first; then the loader's word counts, which
    /// glibc passes on and musl does not.
    static environ: *mut *mut c_char;
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_THE_START: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = start;

unsafe extern "C" fn start(_argc: c_int, _argv: *mut *mut c_char, envp: *mut *mut c_char) {
    // SAFETY: the loader's own pointers, before anybody else runs: one of the two is the environment on the stack of the process.
    unsafe {
        let envp = if environ.is_null() { envp } else { environ };
        if let Some(value) = take_out(envp, VARIABLE.as_bytes()) {
            begin(value, after(envp));
            // The text is to be seen nowhere any more; the name was copied.
            core::ptr::write_bytes(value.as_ptr().cast_mut(), 0, value.len());
            take_own_preload_out(envp);
        }
    }
}

unsafe fn begin(text: &[u8], auxiliary: *const usize) {
    let Some(config) = Config::parse(text) else { return };
    if config.close >= 0 {
        sys::close(config.close);
    }
    // SAFETY: the caller's.
    let Some(code) = (unsafe { code_of_the_shell(auxiliary) }) else { return };
    SESSION.begin(&config, code);
}

/// Takes a variable out of the environment; its value.
unsafe fn take_out<'a>(envp: *mut *mut c_char, name: &[u8]) -> Option<&'a [u8]> {
    // SAFETY: a list of strings that ends with a null; strings end with a zero.
    unsafe {
        let mut at = envp;
        while !(*at).is_null() {
            if let Some(value) = value_of(*at, name) {
                while !(*at).is_null() {
                    *at = *at.add(1);
                    at = at.add(1);
                }
                return Some(value);
            }
            at = at.add(1);
        }
        None
    }
}

/// The value of an entry of this name.
unsafe fn value_of<'a>(entry: *const c_char, name: &[u8]) -> Option<&'a [u8]> {
    // SAFETY: the entry ends with a zero, which no name contains.
    unsafe {
        let entry = entry.cast::<u8>();
        let same = name.iter().enumerate().all(|(at, byte)| *entry.add(at) == *byte)
            && *entry.add(name.len()) == b'=';
        let value = entry.add(name.len() + 1);
        same.then(|| core::slice::from_raw_parts(value, (0..).take_while(|at| *value.add(*at) != 0).count()))
    }
}

/// Takes this library, which stands first, out of what is preloaded; what the user preloads stays, for the user's programs.
unsafe fn take_own_preload_out(envp: *mut *mut c_char) {
    // SAFETY: as for `take_out`.
    unsafe {
        let mut at = envp;
        while !(*at).is_null() {
            if let Some(value) = value_of(*at, PRELOAD) {
                let own = value.iter().take_while(|byte| **byte != b':' && **byte != b' ').count();
                if own == value.len() {
                    take_out(envp, PRELOAD);
                } else {
                    let rest = value.len() - own - 1;
                    core::ptr::copy(value.as_ptr().add(own + 1), value.as_ptr().cast_mut(), rest);
                    core::ptr::write_bytes(value.as_ptr().cast_mut().add(rest), 0, value.len() - rest);
                }
                return;
            }
            at = at.add(1);
        }
    }
}

/// What lies behind the environment: the auxiliary vector. Read before anything is taken out.
unsafe fn after(envp: *mut *mut c_char) -> *const usize {
    // SAFETY: one entry was taken out already: the list ends with two nulls.
    unsafe {
        let mut at = envp;
        while !(*at).is_null() {
            at = at.add(1);
        }
        at.add(2).cast()
    }
}

/// Where the shell's file is mapped, and where its code begins and ends, from its program headers (getauxval(3), elf(5)).
unsafe fn code_of_the_shell(auxiliary: *const usize) -> Option<(usize, usize, usize)> {
    let (mut headers, mut count) = (0usize, 0usize);
    // SAFETY: pairs of words that end with a zero.
    unsafe {
        let mut at = auxiliary;
        while *at != 0 {
            match *at {
                AT_PHDR => headers = *at.add(1),
                AT_PHNUM => count = *at.add(1),
                _ => {}
            }
            at = at.add(2);
        }
    }
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
    if headers == 0 {
        return None;
    }
    // SAFETY: the kernel's word for where they are and how many.
    let headers_list = unsafe { core::slice::from_raw_parts(headers as *const ProgramHeader, count) };
    let own = headers_list.iter().find(|header| header.kind == PT_PHDR)?;
    let base = headers.wrapping_sub(own.address as usize);
    let code = headers_list.iter().filter(|header| header.kind == PT_LOAD && header.flags & EXECUTABLE != 0);
    let ends = code.map(|header| {
        let from = base.wrapping_add(header.address as usize);
        (from, from + header.memory_bytes as usize)
    });
    let (from, to) =
        ends.fold((usize::MAX, 0), |(from, to), (begins, ends)| (from.min(begins), to.max(ends)));
    (from < to).then_some((base, from, to))
}
