//! `dev-null`: the sender alone, into /dev/null. Shows what the sender costs (study `stover`, last column).

use std::fs::OpenOptions;

use model::{DataLevel, Role};

use super::null::Nothing;
use crate::descriptor::{BLOCK_ONLY, Descriptor, ONE_TASK, STREAM_ONLY};
use crate::fd::{FdSender, FdWait};
use crate::loops::{Direction, assemble};
use crate::{Channel, Mechanism, OpenError, Request};

pub(crate) struct DevNull;

impl Mechanism for DevNull {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "dev-null",
            summary: "writes to /dev/null: what the sender alone costs",
            role: Role::Reference,
            workloads: STREAM_ONLY,
            tasks: ONE_TASK,
            waits: BLOCK_ONLY,
            data: &[DataLevel::None, DataLevel::Write],
            man_pages: &["null(4)"],
            default_specs: &["dev-null"],
            ..Descriptor::STREAM
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let file = OpenOptions::new().write(true).open("/dev/null");
        let file = file.map_err(OpenError::system("open(/dev/null)"))?;
        let sender = FdSender::new(file.into(), FdWait::InCall)?;
        Ok(assemble(request, Direction { sender, receiver: Nothing, granted: Default::default() }, None))
    }
}
