//! What caps pipes, and FIFOs with them, and how many descriptors there may be.

use model::Host;

use super::{Finding, State, size, unless};
use crate::Vitals;

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    vec![largest(host, vitals), pages(host, vitals), descriptors(host)]
}

fn largest(host: &Host, vitals: &Vitals) -> Finding {
    const WANTED: u64 = 1 << 20;
    let name = "pipe-max-size";
    let why = "A pipe of 64 KiB is bound by wake-ups; F_SETPIPE_SZ up to this size lets the writer \
        run ahead (pipe:size=1MiB).";
    let Some(bytes) = host.limits.pipe_max_size else {
        return Finding::new(name, State::Unknown, "fs.pipe-max-size cannot be read", why);
    };
    let free = vitals.confinement.may_exceed_resources();
    let past = if free { ", but CAP_SYS_RESOURCE goes past that" } else { "" };
    let what = format!("a pipe may hold {}{past}", size(bytes));
    Finding::new(name, unless(free || bytes >= WANTED, State::Caps), what, why)
        .mend(format!("sudo sysctl -w fs.pipe-max-size={WANTED}"))
}

fn pages(host: &Host, vitals: &Vitals) -> Finding {
    const DEFAULT: u64 = 16384;
    let name = "pipe-user-pages-soft";
    let why = "Above it a user's new pipes shrink to one or two pages and cannot grow: pipelines \
        of large pipes suddenly crawl. The size granted is in every record.";
    let Some(pages) = host.limits.pipe_user_pages_soft else {
        return Finding::new(name, State::Unknown, "fs.pipe-user-pages-soft cannot be read", why);
    };
    let free = pages == 0 || vitals.confinement.may_exceed_pipe_pages();
    let what = match (pages, free) {
        (0, _) => "the pages of a user's pipes are not limited".to_owned(),
        (_, true) => format!(
            "the pipes of a user may hold {pages} pages together, but this process' capabilities \
            go past that"
        ),
        (_, false) => format!("the pipes of a user may hold {pages} pages together"),
    };
    Finding::new(name, unless(free || pages >= DEFAULT, State::Caps), what, why)
        .mend(format!("sudo sysctl -w fs.pipe-user-pages-soft={DEFAULT}"))
}

fn descriptors(host: &Host) -> Finding {
    let limit = host.limits.rlimit_nofile;
    let what = match limit {
        None => "files may be open without limit".to_owned(),
        Some(files) => format!("{files} files may be open"),
    };
    let fine = limit.is_none_or(|files| files >= 256);
    Finding::new(
        "nofile",
        unless(fine, State::Caps),
        what,
        "Long pipelines and chains hold several descriptors for each stage; above the limit \
        they end in EMFILE.",
    )
    .mend("ulimit -n 1024")
}
