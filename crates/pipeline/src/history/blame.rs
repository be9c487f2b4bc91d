//! The time for which a pipeline waited for one stage.

use std::collections::BTreeMap;

use observe::activity::Slice;

/// The time for which the pipeline waited for one stage, divided by what the stage did meanwhile; and the time for which the stage itself waited for
/// programs that are not stages.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Blame {
    /// The time for which the pipeline waited for it.
    pub(crate) total_ns: f64,
    /// The number of samples with this stage.
    pub(crate) samples: u32,
    /// Parts of it: the stage computed, queued for a CPU, waited for a disk.
    pub(crate) cpu_ns: f64,
    pub(crate) queued_ns: f64,
    pub(crate) disk_ns: f64,
    /// Part of it: the stage was stopped by a signal.
    pub(crate) stopped_ns: f64,
    /// Part of it: the rest of the time before samples in which the stage slept.
    pub(crate) slept_ns: f64,
    /// Part of it: the stage was idle at a pipe that is not a link; by the program at the pipe's other end.
    pub(crate) waited_elsewhere_ns: BTreeMap<String, f64>,
    /// The stage ran on although no process read its output any more.
    pub(crate) unread_ns: f64,
    /// The stage waited for the standard input of the pipeline, or for its standard output.
    pub(crate) before_ns: f64,
    pub(crate) after_ns: f64,
    /// The stage may have waited for the standard input: it is not known whether it reads it.
    pub(crate) perhaps_before_ns: f64,
}

impl Blame {
    /// Adds a time for which the pipeline waited for the stage, which did this meanwhile.
    pub(super) fn add(&mut self, slice: &Slice, ns: f64) {
        self.total_ns += ns;
        self.cpu_ns += ns * slice.cpu;
        self.queued_ns += ns * slice.queued;
        let rest_ns = ns * (1.0 - slice.cpu - slice.queued);
        if slice.at_disk {
            self.disk_ns += rest_ns;
        } else if slice.is_stopped {
            self.stopped_ns += rest_ns;
        } else if !slice.is_ready {
            self.slept_ns += rest_ns;
        }
    }

    /// The whole of it: waits between two samples are divided in the same proportion as the sampled waits. `has_input`: its standard input had bytes.
    pub(super) fn whole(&self, has_input: bool) -> Self {
        let mut blame = self.clone();
        let elsewhere_ns: f64 = blame.waited_elsewhere_ns.values().sum();
        let known_ns = blame.cpu_ns + blame.queued_ns + blame.stopped_ns + elsewhere_ns;
        let waited_ns = (blame.total_ns - known_ns).max(0.0);
        blame.disk_ns *= waited_ns / (blame.disk_ns + blame.slept_ns).max(1.0);
        if has_input {
            blame.before_ns += std::mem::take(&mut blame.perhaps_before_ns);
        }
        blame
    }
}
