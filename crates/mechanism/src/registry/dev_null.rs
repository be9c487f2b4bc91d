//! `dev-null`: the sender alone, into /dev/null. Shows what the sender costs (study `stover`, last column).

use std::fs::OpenOptions;

use super::null::Nothing;
use crate::prelude::*;

pub(super) static DEV_NULL: Mechanism = Mechanism {
    name: "dev-null",
    summary: "writes to /dev/null: what the sender alone costs",
    role: Role::Reference,
    workloads: STREAM_ONLY,
    tasks: ONE_TASK,
    waits: BLOCK_ONLY,
    data: &[DataLevel::None, DataLevel::Write],
    man_pages: &["null(4)"],
    default_specs: &["dev-null"],
    ..Mechanism::stream(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let file = OpenOptions::new().write(true).open("/dev/null");
    let file = file.in_call("open(/dev/null)")?;
    Ok(assemble(request, Direction::new(FdEnd::new(file.into(), FdWait::InCall)?, Nothing), None))
}
