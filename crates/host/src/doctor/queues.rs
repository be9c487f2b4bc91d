//! What caps message queues, of System V and of POSIX. The measure is the default block of 64 KiB and the
//! largest of a sweep, 1 MiB.

use model::Host;

use super::{Finding, State, size, unless};
use crate::Vitals;

/// The block of `hosepipe bench`: a queue that cannot take it makes an empty row.
const BLOCK: u64 = 64 << 10;
/// The largest block of a sweep: what the mending commands make room for.
const BLOCK_MAX: u64 = 1 << 20;

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings = system_v(host);
    findings.extend(posix(host, vitals));
    findings
}

fn system_v(host: &Host) -> Vec<Finding> {
    let limits = &host.limits;
    let why_long = "A block that is longer cannot be sent as one message (EINVAL), and its row of \
        sysv-msgq stays empty.";
    let why_deep = "The writer must wait whenever that much lies unread: with a few messages in the \
        queue every message is a wake-up.";
    let why_many =
        "Each queue measured needs one; queues of killed programs stay until `ipcrm` takes them away.";
    let (Some(longest), Some(deepest), Some(queues)) = (limits.msgmax, limits.msgmnb, limits.msgmni) else {
        return vec![Finding::new(
            "msg-limits",
            State::Unknown,
            "the limits of System V queues cannot be read",
            why_long,
        )];
    };
    // kernel.msgmnb alone does not make messages longer, nor kernel.msgmax queues deeper: both are needed.
    let command = format!("sudo sysctl -w kernel.msgmax={BLOCK_MAX} kernel.msgmnb={}", 4 * BLOCK_MAX);
    vec![
        Finding::new(
            "msgmax",
            unless(longest >= BLOCK, State::Caps),
            format!("a System V message may have {}", size(longest)),
            why_long,
        )
        .mend(&command),
        Finding::new(
            "msgmnb",
            unless(deepest >= 4 * BLOCK, State::Caps),
            format!("a System V queue may hold {}", size(deepest)),
            why_deep,
        )
        .mend(&command),
        Finding::new(
            "msgmni",
            unless(queues >= 32, State::Caps),
            format!("there may be {queues} System V queues"),
            why_many,
        )
        .mend("sudo sysctl -w kernel.msgmni=32000"),
    ]
}

fn posix(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let limits = &host.limits;
    let why_long = "A queue for longer blocks cannot be made (mq_open: EINVAL), and their row of posix-mq \
        stays empty.";
    let why_deep = "Few messages in flight make every message a wake-up; more keep both ends running.";
    let (Some(messages), Some(longest)) = (limits.mq_msg_max, limits.mq_msgsize_max) else {
        return vec![Finding::new(
            "mq-limits",
            State::Unknown,
            "the limits of POSIX queues cannot be read",
            why_long,
        )];
    };
    // CAP_SYS_RESOURCE goes past both maxima (mq_overview(7)), but not past RLIMIT_MSGQUEUE.
    let free = vitals.confinement.may_exceed_resources();
    let past = if free { ", but CAP_SYS_RESOURCE goes past that" } else { "" };
    vec![
        Finding::new(
            "mq-msgsize-max",
            unless(free || longest >= BLOCK, State::Caps),
            format!("a POSIX message may have {}{past}", size(longest)),
            why_long,
        )
        .mend(format!("sudo sysctl -w fs.mqueue.msgsize_max={BLOCK_MAX}")),
        Finding::new(
            "mq-msg-max",
            unless(free || messages >= 10, State::Caps),
            format!("a POSIX queue may hold {messages} messages{past}"),
            why_deep,
        )
        .mend("sudo sysctl -w fs.mqueue.msg_max=64"),
        msgqueue(host, vitals),
    ]
}

/// RLIMIT_MSGQUEUE counts all queues of a user, with some overhead for each message (getrlimit(2)).
fn msgqueue(host: &Host, vitals: &Vitals) -> Finding {
    let limit = host.limits.rlimit_msgqueue;
    let what = match limit {
        None => "the POSIX queues of a user are not limited".to_owned(),
        Some(bytes) => format!("all POSIX queues of a user may take {}", size(bytes)),
    };
    let fine = limit.is_none_or(|bytes| bytes >= 16 * BLOCK_MAX);
    let why = "mq_open sets the whole queue aside, messages × length, and is refused with EMFILE \
        above this, for root too: 10 messages of 64 KiB just fit in the usual 800 KiB, one \
        of 1 MiB does not.";
    let finding = Finding::new("msgqueue", unless(fine, State::Caps), what, why);
    finding.raise("sudo prlimit --pid $$ --msgqueue=unlimited", vitals)
}
