//! One end of a trial that runs here for another host, which is not trusted further than its token goes: what it asks for has limits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mechanism::{Folder, MeetingMode, PacedClient};
use model::{Case, CaseError, Cpu, DataLevel, Direction, ErrorKind, Load, NoSample, PayloadKind};
use payload::expected_checksum;
use serde_json::Value;

use crate::failure::no_report;
use crate::peer_endpoint::EndpointRequest;
use crate::prepare::prepare;
use crate::running::Running;
use crate::sample::corrupt;
use crate::tiles::{Tiles, tile};
use crate::trial::TrialSetup;

/// Most bytes whose checksum is computed while the other host waits.
const CONFIRMED_BYTES_MAX: u64 = 4 << 30;

/// Limits of a trial for another host: its block, its bytes, and its time.
const FAR_BLOCK_BYTES_MAX: u64 = 64 << 20;
const FAR_TRIAL_BYTES_MAX: u64 = 1 << 60;
const FAR_TRIAL_MAX: Duration = Duration::from_secs(600);

/// Runs one end of a trial for another host, which connects to `listener`. Calls `report` twenty times per second with the progress;
/// an error of `report` ends the trial. Returns the report of the end.
///
/// # Errors
/// The end cannot run here, or failed; or the error of `report`.
pub fn run_endpoint_for_peer(
    endpoint_request: &EndpointRequest,
    listener: &Arc<std::net::TcpListener>,
    cpus: &[Cpu],
    report: &mut dyn FnMut(u64) -> Result<(), CaseError>,
) -> Result<Value, CaseError> {
    let case = case(endpoint_request)?;
    let ready = prepare(&case, cpus)?;
    let tile = tile(&mut Tiles::new(), &case, endpoint_request.seed)?;
    let folder = Folder::private();
    let blocks = endpoint_request.blocks;
    let setup = TrialSetup {
        case: &case,
        ready: &ready,
        tile: &tile,
        folder: &folder,
        blocks,
        round: 0,
        seed: endpoint_request.seed,
        paced_client: PacedClient::Polls,
    };
    let mut running =
        Running::one_endpoint(&setup, MeetingMode::Listen(Arc::clone(listener)), endpoint_request.key)?;
    let began = Instant::now();
    let mut look = |moved| {
        report(moved)?;
        if began.elapsed() < FAR_TRIAL_MAX {
            return Ok(());
        }
        let text = format!("a trial takes longer than {} s", FAR_TRIAL_MAX.as_secs());
        Err(CaseError::new(ErrorKind::Limit, text))
    };
    let mut reports = running.wait(&|| false, &mut look).map_err(|why| match why {
        NoSample::Failed(error) => error,
        NoSample::Stopped => CaseError::new(ErrorKind::Died, "stopped"),
    })?;
    let report = reports.pop().ok_or_else(no_report)?;
    serde_json::to_value(report).map_err(|error| CaseError::new(ErrorKind::Died, error.to_string()))
}

/// Checks the number of bytes that the other host received from here, and the checksum of at most [`CONFIRMED_BYTES_MAX`].
///
/// # Errors
/// They are wrong; the message has the right ones.
pub fn check_confirmed(
    endpoint_request: &EndpointRequest,
    bytes: u64,
    checksum: Option<&str>,
) -> Result<(), CaseError> {
    let asked = &endpoint_request.case;
    let sent = endpoint_request.blocks.saturating_mul(asked.block_bytes);
    if bytes != sent {
        return Err(corrupt(format!("the other host says that {bytes} of {sent} bytes arrived")));
    }
    // A request that was refused has no payload to compare with: a file that it names is not read.
    let is_checked = asked.data == DataLevel::Verify && bytes <= CONFIRMED_BYTES_MAX;
    let case = case(endpoint_request).ok().filter(|_| is_checked);
    let tile = case.and_then(|case| tile(&mut Tiles::new(), &case, endpoint_request.seed).ok());
    match tile.and_then(|tile| expected_checksum(&tile, asked.check, bytes, &|| false)) {
        Some(expected) if checksum != Some(&expected) => Err(corrupt(format!(
            "the other host reports the checksum {} of {bytes} bytes, but their {} is {expected}",
            checksum.unwrap_or("none"),
            asked.check
        ))),
        _ => Ok(()),
    }
}

/// The case of a request as seen from this host: the requesting host is its peer. It has one end here, and no more.
fn case(endpoint_request: &EndpointRequest) -> Result<Case, CaseError> {
    let refuse = |text: &str| Err(CaseError::stated(ErrorKind::Unsupported, text));
    let asked = &endpoint_request.case;
    if !(1..=FAR_BLOCK_BYTES_MAX).contains(&asked.block_bytes) {
        return refuse("blocks between two hosts have 1 byte to 64 MiB");
    }
    if endpoint_request.blocks == 0 || endpoint_request.blocks > FAR_TRIAL_BYTES_MAX / asked.block_bytes {
        return refuse("a trial between two hosts has 1 block to 1 EiB");
    }
    if matches!(asked.payload, PayloadKind::File(_)) {
        return refuse("no file is read for another host");
    }
    let direction =
        Some(if asked.direction == Some(Direction::Here) { Direction::Peer } else { Direction::Here });
    let load = Load { rate_per_s: asked.load.rate_per_s, ..Load::default() };
    // What only the requesting host has is as in a case that asks for nothing.
    let Case { tasks, placement, relays, .. } = Case::stream(asked.spec.clone());
    Ok(Case { direction, tasks, placement, load, relays, ..asked.clone() })
}

#[cfg(test)]
mod tests {
    use mechanism::TrialKey;
    use model::{Check, Spec};

    use super::*;

    /// Expected: no file is read for another host. Happened: the file in a refused request was read for its confirmation.
    #[test]
    fn the_file_of_a_refused_request_is_not_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, b"secret").expect("written");
        let endpoint_request = |payload| EndpointRequest {
            case: Case {
                check: Check::Xor,
                payload,
                block_bytes: 6,
                direction: Some(Direction::Peer),
                ..Case::stream(Spec::plain("tcp"))
            },
            seed: 1,
            blocks: 1,
            key: TrialKey::default(),
        };
        let of_file = endpoint_request(PayloadKind::File(file.path().into()));
        assert!(check_confirmed(&of_file, 6, Some("wrong")).is_ok(), "there is nothing to compare with");
        assert!(check_confirmed(&endpoint_request(PayloadKind::Sequence), 6, Some("wrong")).is_err());
    }
}
