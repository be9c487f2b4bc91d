//! A link that was given to a shell: who waits for it, what is known of it when it is over, and what is said then.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use mechanism::Order;
use model::LinkRecord;
use rustix::fs::FileType;

use crate::attention::Sight;
use crate::keep::Keep;
use crate::link::{Link, LinkReport};
use crate::proc::{self, Identity};

/// An open link and those who wait for it.
pub(crate) struct Served {
    pub(crate) link: Option<Link>,
    pub(crate) spec: String,
    pub(crate) granted: mechanism::Granted,
    pub(crate) order: Order,
    /// Readers that are held until the writers are done; closing one lets it go on.
    pub(crate) held: Vec<OwnedFd>,
    pub(crate) written: bool,
    /// How it can be seen from outside how full it is.
    pub(crate) sight: Option<Sight>,
    pub(crate) report: LinkReport,
    /// Where what flows is kept, and the file there.
    pub(crate) keep: Option<Rc<Keep>>,
    pub(crate) kept: Option<PathBuf>,
}

impl Served {
    pub(crate) fn close(&mut self) {
        if let Some(link) = self.link.take() {
            self.report = link.finish();
            if let Some(trouble) = &self.report.trouble {
                complain(trouble);
            }
        }
    }

    /// What tells the pipe that it is read from, where that is one.
    pub(crate) fn pipe(&self) -> Option<Identity> {
        match self.sight {
            Some(Sight::Pipe(identity)) => Some(identity),
            _ => None,
        }
    }

    pub(crate) fn record(&self, pipeline: u32) -> LinkRecord {
        let report = self.report.clone();
        LinkRecord {
            pipeline,
            spec: self.spec.clone(),
            granted: self.granted.clone(),
            bytes: report.bytes,
            stored_bytes: report.stored_bytes,
            path: report.path.map(|path| path.to_string_lossy().into_owned()),
            relay: report.relay,
            kept: self.kept.as_ref().map(|path| path.to_string_lossy().into_owned()),
            trouble: report.trouble,
            watched_ns: None,
            full_ns: None,
            empty_ns: None,
        }
    }
}

/// How it can be seen from outside how full a link is, by its reading end.
pub(crate) fn sight(read: &OwnedFd) -> Option<Sight> {
    let stat = rustix::fs::fstat(read).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Some(Sight::Pipe(proc::identity(&stat))),
        FileType::Socket => Some(Sight::Sockets),
        _ => None,
    }
}

/// Says on standard error what went wrong with a link.
pub(crate) fn complain(what: &str) {
    // That it cannot be said changes nothing.
    let _ = writeln!(io::stderr(), "hosepipe: {}", model::visible(what));
}
