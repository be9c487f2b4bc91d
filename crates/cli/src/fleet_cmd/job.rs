//! The job that starts all nodes: printed, or submitted and followed to its record.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use model::{FleetRecord, shown_duration};
use process::Cleaner;
use remote::fleet::{self, FleetJob, RECORD, Rendezvous, Status};
use remote::launcher::{Launched, Launcher};

use super::{FleetArgs, check_size, new_folder, recorder, show};
use crate::bar::Bar;
use crate::bench::BenchArgs;
use crate::record::tool;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};
use crate::typed;

/// Time between two looks at the progress, each of which reads a file for each node.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) fn start(args: &FleetArgs, launcher: Launcher, submit: bool) -> anyhow::Result<ExitCode> {
    let size = match (args.nodes, args.hosts.len()) {
        (None, 0) if launcher == Launcher::Ssh => return usage("which hosts? --hosts A,B"),
        (None, 0) => return usage("how many nodes? --nodes N"),
        (nodes, 0) => nodes.unwrap_or_default() as usize,
        (None, hosts) => hosts,
        (Some(nodes), hosts) if nodes as usize == hosts => hosts,
        (Some(nodes), hosts) => return usage(format!("--nodes says {nodes}, and --hosts names {hosts}")),
    };
    check(args, launcher, submit, size)?;
    let own_file = matches!(launcher, Launcher::Slurm | Launcher::Mpi);
    let own = std::env::current_exe().context("cannot find the file of this program")?;
    let default = if own_file { word(&own)? } else { "hosepipe".to_owned() };
    let given = args.folder.clone().or_else(|| own_file.then(|| "hosepipe-fleet".into()));
    let folder = given.as_ref().map(std::path::absolute).transpose()?;
    let mut options = vec![
        format!("--pair-time={}", shown_duration(args.pair_time)),
        format!("--wait={}", shown_duration(args.wait)),
    ];
    options.extend(args.toward.map(|toward| format!("--toward={toward}")));
    if let Some(file) = &args.token_file {
        options.push(format!("--token-file={}", word(&std::path::absolute(file)?)?));
    }
    let job = FleetJob {
        launcher,
        nodes: size,
        hosts: args.hosts.clone(),
        hosepipe: args.hosepipe.clone().unwrap_or(default),
        // Nodes that ssh has started from here reach each other through ssh.
        folder: folder.as_deref().filter(|_| own_file || !submit).map(word).transpose()?,
        options,
        bench: args.bench.clone(),
    };
    let words = job.words(&[]).into_iter().chain(args.hosts.iter().cloned());
    words.map(|given| word(Path::new(&given))).collect::<Result<Vec<_>, _>>()?;
    if let Some(given) = given.filter(|_| submit) {
        new_folder(&given, "node-0")?;
    }
    if !submit {
        terminal::print(&job.text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let cleaner = Cleaner::start().context("cannot start the process that cleans up after us")?;
    let temporary = cleaner.make_folder().context("a folder for the work")?;
    let folder = folder.as_deref().unwrap_or(temporary.path());
    let stop = StopRequest::listen()?;
    let started = job.start(folder, temporary.path(), &cleaner);
    follow(args, started.map_err(UsageError)?, (folder, size), launcher == Launcher::Ssh, &stop)
}

/// Checks the options before a job is made of them.
fn check(args: &FleetArgs, launcher: Launcher, submit: bool, size: usize) -> anyhow::Result<()> {
    check_size(size)?;
    if !submit && !args.outputs.is_empty() {
        return usage("--json, --html and the like need --submit: without it the job is only printed");
    }
    if launcher == Launcher::Ssh && !submit && args.folder.is_none() {
        return usage(
            "by hand the nodes need a folder that all hosts see, --folder DIR; with --submit they do without",
        );
    }
    match typed::arguments::<BenchArgs>("bench", &args.bench) {
        Ok(bench) if bench.dry_run || !bench.outputs.is_empty() => {
            return usage(
                "a node's bench gives its record to the fleet: no --dry-run, --json, --html… after `--`",
            );
        }
        Ok(_) => {}
        Err(problem) => {
            let problem = problem.to_string();
            let problem = problem.trim_start_matches("error: ").trim_end();
            return usage(format!("bench {}: {problem}", args.bench.join(" ")));
        }
    }
    Ok(())
}

/// A word of a job.
fn word(word: &Path) -> anyhow::Result<String> {
    Ok(model::script_word(word).map_err(UsageError)?.to_owned())
}

/// Follows a job to its record. If it ends without one, or is stopped, the results so far are merged here.
fn follow(
    args: &FleetArgs,
    mut job: Launched<'_>,
    (folder, size): (&Path, usize),
    one_each: bool,
    stop: &StopRequest,
) -> anyhow::Result<ExitCode> {
    let to_record = recorder();
    let rendezvous = Rendezvous::Folder(folder.to_owned());
    let bar =
        Bar::new((fleet::steps(size) * size) as u64, " {pos}/{len} steps of all nodes {bar:20} {wide_msg}");
    let (mut gone, mut looked) = (vec![None; size], None::<Instant>);
    let mut record = loop {
        let goes_on = job.is_running().context("waiting for the job")? && !stop.is_set();
        for (rank, why) in job.failures().into_iter().filter(|_| one_each) {
            let unknown = Status::new(args.hosts[rank].clone(), size, tool(), None);
            fleet::publish_gone(&rendezvous, rank, unknown, &why)?;
        }
        if let Some(record) = rendezvous.get::<FleetRecord>(RECORD)? {
            break record;
        }
        if goes_on && looked.is_some_and(|at| at.elapsed() < LOOK_AGAIN) {
            continue;
        }
        looked = Some(Instant::now());
        let known = fleet::known(&rendezvous, size)?;
        let done = known.iter().flatten().map(|status| status.step).sum::<usize>() as u64;
        let here = known.iter().flatten().count();
        bar.set_position(done, &format!("{here} of {size} nodes are here"));
        if !goes_on {
            let failed = job.failures();
            if let (false, 0, [(_, why)]) = (one_each || stop.is_set(), here, &failed[..]) {
                return Err(anyhow::Error::msg(why.clone()).context("no node was started"));
            }
            for (rank, gone) in gone.iter_mut().enumerate() {
                let own = known[rank].as_ref().and_then(|status| status.failure.clone());
                let said = failed.iter().find(|(at, _)| *at == rank || !one_each);
                let over = || if stop.is_set() { "was stopped" } else { "ended before its work was done" };
                *gone = own.or(said.map(|(_, why)| why.clone())).or_else(|| Some(over().to_owned()));
            }
            break to_record(fleet::merged(&rendezvous, &gone)?);
        }
    };
    drop(bar);
    // A node that never came could not publish its name.
    for (node, host) in record.nodes.iter_mut().zip(&args.hosts).filter(|(node, _)| node.address.is_none()) {
        node.name.clone_from(host);
    }
    if !stop.is_set() {
        job.finish().context("waiting for the job's end")?;
    }
    show(args, record, stop)
}
