//! Whether this machine copies slowly at some offsets in a page: measured once after each start of the machine, and only if a command
//! needs it.

use std::cell::OnceCell;

use model::{CopyCosts, CopyFigures, SlowCopies, TopSnapshot};

use crate::terminal;

/// Whether --align-buffers has an effect on this machine; if not, a remark says so.
pub(crate) fn alignment_has_effect() -> bool {
    let is_slow = is_slow();
    if !is_slow {
        terminal::remark(
            "hosepipe: --align-buffers changes nothing: this CPU copies as fast into one address as into another.",
        );
    }
    is_slow
}

/// Whether this machine copies slowly at some offsets in a page. Measuring takes less than 0.2 s.
pub(crate) fn is_slow() -> bool {
    host::copy_costs().is_ok_and(|costs| costs.slow_offsets().is_some())
}

/// The copy speeds of this machine, measured when the first program may be slow because of its buffers.
#[derive(Default)]
pub(crate) struct CostsOnDemand(OnceCell<Option<CopyCosts>>);

impl CostsOnDemand {
    /// The slow copies of a program, if they slow it down.
    pub(crate) fn find_slow(&self, seen: &CopyFigures) -> Option<SlowCopies> {
        if !seen.may_be_slow() {
            return None;
        }
        seen.find_slow(self.0.get_or_init(|| host::copy_costs().ok()).as_ref()?)
    }

    /// Sets the slow copies of all stages. The kernel's share of their CPU time is unknown, so that all of it is counted as the kernel's.
    pub(crate) fn judge_all(&self, seen: &mut TopSnapshot) {
        let ns = seen.elapsed_ns as f64;
        let bytes = |rate: Option<f64>| rate.map(|rate| (rate * ns / 1e9) as u64);
        for stage in seen.chains.iter_mut().flat_map(|chain| &mut chain.stages) {
            let cpu_ns = (stage.cpus * ns) as u64;
            stage.slow_copies = self.find_slow(&CopyFigures {
                read_offset: stage.read_buffer_offset,
                write_offset: stage.write_buffer_offset,
                read_bytes: bytes(stage.read_bytes_per_s),
                written_bytes: bytes(stage.write_bytes_per_s),
                wall_ns: seen.elapsed_ns,
                cpu_ns,
                kernel_ns: cpu_ns,
            });
        }
    }
}
