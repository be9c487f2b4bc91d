//! The work of each node: its own bench, then its part of all pairs; then one node merges all results.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::auth::new_token;
use model::{BenchRecord, CaseRecord, FleetMeeting, FleetNode};
use process::{Capture, Wire};

use crate::fleet::member::{
    Member, Node, NodeError, OtherNode, Status, difference, known, status_name, take_part,
};
use crate::fleet::rendezvous::Rendezvous;
use crate::fleet::schedule::{partner, rounds};
use crate::launcher::Launched;

/// How much longer than the given time the two programs of a pair may take.
const PAIR_GRACE: Duration = Duration::from_secs(60);
/// Longest time until the end of a pair that is started first listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(60);
/// The name of the merged record on the rendezvous.
pub const RECORD: &str = "fleet";

/// All results of a fleet.
pub type Measured = (Vec<FleetNode>, Vec<FleetMeeting>);

/// The result of a program, or why there is none.
type Found<T> = Result<T, String>;

/// The number of steps of a node: its own bench, and one for each round of pairs.
pub fn steps(size: usize) -> usize {
    1 + rounds(size)
}

impl Node<'_> {
    /// Takes part to the end. On the node with the lowest rank that is still there, `keep` is called with the merged results, and the others wait
    /// for its end.
    ///
    /// # Errors
    /// The version differs from the first node's; an error of the rendezvous or of a program here; the user has asked for the end.
    pub fn run(&self, keep: &mut dyn FnMut(Measured) -> io::Result<()>) -> Result<(), NodeError> {
        take_part(self, |member| member.measure(keep))
    }
}

impl Member<'_> {
    fn measure(&self, keep: &mut dyn FnMut(Measured) -> io::Result<()>) -> Result<(), NodeError> {
        let Node { rank, size, rendezvous, .. } = *self.node;
        Rendezvous::Folder(self.node.folder.to_owned()).put(&status_name(rank), &self.node.status)?;
        let token = self.token()?;
        let own = self.run_bench(&self.node.bench, None)?;
        self.put(&format!("bench-{rank}"), &own)?;
        self.publish(|own| own.step = 1)?;
        // A pair would disturb another node's bench.
        self.all_at(1)?;
        for step in 1..steps(size) {
            if let Some(partner) = partner(rank, step - 1, size) {
                if rank < partner {
                    unless_gone(self.listen(partner, step, &token))?;
                } else {
                    let cases = self.ask(partner, step, &token)?;
                    self.put(&format!("pair-{rank}-{partner}"), &cases)?;
                }
            }
            self.publish(|own| (own.step, own.listening) = (step + 1, None))?;
        }
        let end = steps(size);
        for lower in 0..rank {
            let is_over = |status: &Status| (status.step > end).then(|| status.lost.contains(&rank));
            match unless_gone(self.wait(lower, is_over))? {
                Some(true) => {
                    return Err(NodeError::Gone("the other nodes had counted it as gone".to_owned()));
                }
                Some(false) => return Ok(()),
                None => {}
            }
        }
        self.all_at(end)?;
        let gone: Vec<_> = self.others.borrow().iter().map(|seen| seen.gone.clone()).collect();
        let lost = (0..size).filter(|rank| gone[*rank].is_some()).collect();
        keep(merged(rendezvous, &gone)?)?;
        Ok(self.publish(|own| (own.step, own.lost) = (end + 1, lost))?)
    }

    /// Waits until each other node has reached a step or is gone.
    fn all_at(&self, step: usize) -> Result<(), NodeError> {
        let mut others = (0..self.node.size).filter(|rank| *rank != self.node.rank);
        let has_come = |status: &Status| (status.step >= step).then_some(());
        others.try_for_each(|other| unless_gone(self.wait(other, has_come)).map(drop))
    }

    /// Publishes a result, and keeps a copy in this node's own folder: the rendezvous may be lost.
    fn put(&self, name: &str, measured: &impl serde::Serialize) -> io::Result<()> {
        Rendezvous::Folder(self.node.folder.to_owned()).put(name, measured)?;
        self.node.rendezvous.put(name, measured)
    }

    /// The file of the secret. If none was given, the node with the lowest rank of those that have come makes one; if it is gone before it has, the
    /// next one. All nodes must have the version of hosepipe of that node.
    fn token(&self) -> Result<PathBuf, NodeError> {
        let Node { rank, rendezvous, .. } = *self.node;
        let given = self.node.token_file.as_ref();
        for lower in 0..rank {
            let Some(status) = unless_gone(self.wait(lower, |status| Some(status.clone())))? else {
                continue;
            };
            difference(&self.node.status, &status).map_or(Ok(()), |why| Err(NodeError::Gone(why)))?;
            if let Some(given) = given {
                return Ok(given.clone());
            }
            if let Some(secret) = self.secret_of(lower)? {
                return Ok(self.keep_secret(&secret)?);
            }
        }
        if let Some(given) = given {
            return Ok(given.clone());
        }
        let secret = new_token()?;
        rendezvous.put(&secret_name(rank), &secret)?;
        Ok(self.keep_secret(&secret)?)
    }

    /// The secret that another node has made; `None` if it is gone and has made none.
    fn secret_of(&self, rank: usize) -> Result<Option<String>, NodeError> {
        loop {
            let is_gone = self.read(rank)?.gone.is_some();
            let secret = self.node.rendezvous.get(&secret_name(rank))?;
            if secret.is_some() || is_gone {
                return Ok(secret);
            }
            self.check_running()?;
            std::thread::sleep(process::POLL_INTERVAL);
        }
    }

    fn keep_secret(&self, secret: &str) -> io::Result<PathBuf> {
        let path = self.node.folder.join("token");
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        io::Write::write_all(&mut file, secret.as_bytes())?;
        Ok(path)
    }

    /// The record of `hosepipe bench` with these arguments, or why there is none.
    fn run_bench(
        &self,
        arguments: &[OsString],
        most: Option<Duration>,
    ) -> Result<Found<BenchRecord>, NodeError> {
        let record = self.node.folder.join("record.json");
        let mut command = Command::new(&self.node.hosepipe);
        command.arg("bench").arg("--json").arg(&record).args(arguments).stdin(Stdio::null());
        let (mut bench, began) = (self.launch(command, Capture::Both)?, Instant::now());
        let waited = bench.follow(&mut || match most {
            Some(most) if began.elapsed() > most => {
                Err(NodeError::Gone(format!("took more than {} s", most.as_secs())))
            }
            _ => self.check_running(),
        });
        let read = fs::read(&record);
        // The next bench must not find it.
        let _ = fs::remove_file(&record);
        Ok(match (waited, read) {
            (Ok(()), Ok(text)) => model::from_json(text).map_err(|error| error.to_string()),
            (Ok(()), Err(_)) => Err(bench.failure()),
            (Err(NodeError::Gone(why)), _) => Err(why),
            (Err(trouble), _) => return Err(trouble),
        })
    }

    fn launch(&self, program: Command, capture: Capture) -> io::Result<Launched<'_>> {
        Launched::start(vec![program], capture, self.node.cleaner).map_err(io::Error::other)
    }

    /// Runs the other end for a partner.
    fn listen(&self, partner: usize, step: usize, token: &Path) -> Result<(), NodeError> {
        if self.wait(partner, |status| (status.step >= step).then_some(status.step))? > step {
            return Ok(());
        }
        let (output, its_output) = io::pipe()?;
        let mut command = Command::new(&self.node.hosepipe);
        let address = self.node.status.address.map(|address| SocketAddr::new(address, 0).to_string());
        command.args(["peer", "--listen", &address.unwrap_or_default(), "--token-file"]).arg(token);
        command.stdin(Stdio::null()).stdout(its_output);
        let mut peer = self.launch(command, Capture::Errors)?;
        let mut wire = Wire::new(output.into(), File::open("/dev/null")?.into(), "the other end");
        let (began, mut is_listening) = (Instant::now(), false);
        // Its line is awaited beside everything else: it may hang before it says anything.
        let mut hears = || -> io::Result<bool> {
            let line = if is_listening { None } else { wire.line(Duration::ZERO).ok().flatten() };
            if let Some(address) = line.as_ref().and_then(|line| line.trim().strip_prefix("listening on ")) {
                is_listening = true;
                self.publish(|own| own.listening = Some(Ok(address.to_owned())))?;
            }
            Ok(is_listening)
        };
        peer.follow(&mut || match (hears()?, self.read(partner)?) {
            (_, OtherNode { gone: Some(gone), .. }) => Err(NodeError::Gone(gone)),
            (_, OtherNode { last: Some(Status { step: at, .. }), .. }) if at > step => {
                Err(NodeError::Gone(String::new()))
            }
            // The next step shows the partner that it must not wait.
            (false, _) if began.elapsed() > LISTENS_WITHIN => {
                Err(NodeError::Gone("its own other end did not begin to listen".to_owned()))
            }
            _ => self.check_running(),
        })?;
        if !hears()? {
            self.publish(|own| own.listening = Some(Err(peer.failure())))?;
        }
        // It has ended by itself: the partner's result comes next.
        self.wait(partner, |status| (status.step > step).then_some(()))
    }

    /// Measures against a partner that listens.
    fn ask(&self, partner: usize, step: usize, token: &Path) -> Result<Found<Vec<CaseRecord>>, NodeError> {
        let listening = self.wait(partner, |status| match status.step {
            at if at > step => Some(Err("the other node had not waited".to_owned())),
            at if at == step => status.listening.clone(),
            _ => None,
        });
        let address = match listening {
            Ok(Ok(address)) => address,
            Ok(Err(why)) => return Ok(Err(format!("the other node could not listen: {why}"))),
            Err(NodeError::Gone(why)) => return Ok(Err(format!("the other node {why}"))),
            Err(trouble) => return Err(trouble),
        };
        let time = format!("{}ms", self.node.pair_time.as_millis());
        let words = ["tcp", "--peer", &format!("tcp://{address}"), "--time", &time, "--token-file"];
        let words: Vec<OsString> = words.iter().map(OsString::from).chain([token.into()]).collect();
        let most = Some(self.node.pair_time + PAIR_GRACE);
        Ok(self.run_bench(&words, most)?.map(|record| record.cases))
    }
}

/// Merges all results on the rendezvous; `gone` has for each node why it is gone, if it is.
///
/// # Errors
/// The rendezvous cannot be read.
pub fn merged(rendezvous: &Rendezvous, gone: &[Option<String>]) -> io::Result<Measured> {
    let known = known(rendezvous, gone.len())?;
    let name = |rank: usize| match &known[rank] {
        None => format!("#{rank}"),
        Some(status) => {
            let alone = known.iter().flatten().filter(|other| other.name == status.name).count() == 1;
            if alone { status.name.clone() } else { format!("{}#{rank}", status.name) }
        }
    };
    let mut nodes = Vec::new();
    for (rank, gone) in gone.iter().enumerate() {
        let bench: Option<Found<BenchRecord>> = rendezvous.get(&format!("bench-{rank}"))?;
        let failed = bench.as_ref().and_then(|bench| bench.as_ref().err());
        let failed = failed.map(|why| format!("its bench gave no record: {why}"));
        nodes.push(FleetNode {
            name: name(rank),
            address: known[rank].as_ref().and_then(|status| Some(status.address?.to_string())),
            bench: bench.and_then(Found::ok),
            failure: gone.clone().or(failed),
        });
    }
    let mut meetings = Vec::new();
    for (to, from) in (0..gone.len()).flat_map(|to| (to + 1..gone.len()).map(move |from| (to, from))) {
        let cases: Option<Found<Vec<CaseRecord>>> = rendezvous.get(&format!("pair-{from}-{to}"))?;
        let none = || Err(format!("{} did not measure it", nodes[from].name));
        let (cases, failure) = match cases.unwrap_or_else(none) {
            Ok(cases) => (cases, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        meetings.push(FleetMeeting { from, to, cases, failure });
    }
    Ok((nodes, meetings))
}

fn secret_name(rank: usize) -> String {
    format!("token-{rank}")
}

/// `None` if the other node is gone, which is no failure of this one.
fn unless_gone<T>(waited: Result<T, NodeError>) -> Result<Option<T>, NodeError> {
    match waited {
        Err(NodeError::Gone(_)) => Ok(None),
        other => other.map(Some),
    }
}
