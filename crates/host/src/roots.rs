//! The folders /proc and /sys: the real ones, or those of a test.

use std::fs;
use std::path::PathBuf;

/// The folder of the kernel's clock sources, below /sys.
pub(crate) const CLOCKS: &str = "devices/system/clocksource/clocksource0";

/// The two folders from which this crate reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots {
    /// proc(5).
    pub(crate) proc: PathBuf,
    /// sysfs(5).
    pub(crate) sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys") }
    }
}

impl Roots {
    /// The text of a file below /proc, without surrounding blanks; `None` where it cannot be read.
    pub(crate) fn proc_text(&self, path: &str) -> Option<String> {
        read(self.proc.join(path))
    }

    /// The text of a file below /sys, without surrounding blanks; `None` where it cannot be read.
    pub(crate) fn sys_text(&self, path: &str) -> Option<String> {
        read(self.sys.join(path))
    }

    /// A file below /proc that contains one number.
    pub(crate) fn proc_number(&self, path: &str) -> Option<u64> {
        self.proc_text(path)?.parse().ok()
    }

    /// A file below /sys that contains one number.
    pub(crate) fn sys_number(&self, path: &str) -> Option<u64> {
        self.sys_text(path)?.parse().ok()
    }

    /// The PIDs of all processes in /proc.
    pub(crate) fn proc_pids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// The names in a folder below /sys, sorted; none where it cannot be read.
    pub(crate) fn sys_names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.sys.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// Some of these files (device tree, DMI) are not UTF-8 or end in NUL.
fn read(path: PathBuf) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}

/// The value of `key` in lines `key: value`, as in /proc/meminfo and /proc/self/status.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// A line of /proc/meminfo, in bytes (the file counts in KiB and calls them kB).
pub(crate) fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let kib: u64 = field(meminfo, key)?.split(' ').next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The numbers in the line `name` of /proc/stat; none if there is no such line.
pub(crate) fn stat_numbers(stat: &str, name: &str) -> Vec<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_default().split_whitespace().map_while(|word| word.parse().ok()).collect()
}

/// The chosen word of a file such as `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_choices() {
        let text = "MemTotal:       24684084 kB\nMemFree:  5 kB\n";
        assert_eq!(field(text, "MemTotal"), Some("24684084 kB"));
        assert_eq!(field(text, "Mem"), None);
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always madvise"), None);
    }

    #[test]
    fn what_is_missing_is_none() {
        let roots = Roots { proc: "/nowhere/proc".into(), sys: "/nowhere/sys".into() };
        assert_eq!(roots.proc_text("cpuinfo"), None);
        assert_eq!(roots.sys_number("kernel/x"), None);
        assert!(roots.sys_names("devices").is_empty());
    }
}
