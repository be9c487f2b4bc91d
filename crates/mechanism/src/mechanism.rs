//! One way of moving bytes: what it is, whether it is there, and how it is opened.

use model::{DataLevel, Wait, ZeroCopy};

use crate::{
    Channel, Descriptor, Endpoint, Folder, LinkEnds, Meeting, OpenError, Options, Request, Unsupported,
};

/// One way of moving bytes.
pub trait Mechanism: Sync {
    /// What it is and what it can do.
    fn descriptor(&self) -> &'static Descriptor;

    /// Whether it is there on this machine.
    ///
    /// # Errors
    /// Why it is not, and what to do about it.
    fn probe(&self) -> Result<(), Unsupported> {
        Ok(())
    }

    /// How its ends wait when these options are given and `--wait` is not.
    fn wait(&self, options: &Options) -> Wait {
        let first = || self.descriptor().waits.first().copied().unwrap_or(Wait::Block);
        options.parsed("wait").unwrap_or_else(first)
    }

    /// What its ends can do with the payload when these options are given.
    fn data(&self, _options: &Options) -> &'static [DataLevel] {
        self.descriptor().data
    }

    /// Whether bytes pass by reference with these options, what shows it, and how often each is copied all the same; `None`
    /// where nothing passes by reference. Makes a small experiment of its own, never in the timed path.
    fn zero_copy(&self, _options: &Options) -> Option<ZeroCopy> {
        None
    }

    /// Opens both ends, sized as the system grants.
    ///
    /// # Errors
    /// A limit that the request exceeds, or the system's refusal.
    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError>;

    /// One end of it, whose other end is on another host; `None` where it cannot have one. Nothing is opened yet: the ends meet when
    /// this one is readied by its task ([`Endpoint::prepare`]), which leaves together with the other.
    ///
    /// # Errors
    /// A limit that the request exceeds, or what has no meaning there.
    fn open_end(
        &self,
        _request: &Request<'_>,
        _meeting: &Meeting,
    ) -> Option<Result<Box<dyn Endpoint>, OpenError>> {
        None
    }

    /// Opens it to stand between two unmodified programs; `None` where it cannot. Names that must live in a file
    /// system are made in `folder`, which nothing else uses meanwhile.
    ///
    /// # Errors
    /// A limit that an option exceeds, or the system's refusal.
    fn connect(&self, _options: &Options, _folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        None
    }
}
