//! What each node does: its own bench, then all pairs, then one of them brings everything together.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::auth::new_token;
use model::{BenchRecord, CaseRecord, FleetMeeting, FleetNode};
use process::{Capture, Cleaner};

use crate::fleet::member::{Member, Seen, Status, Trouble, difference, known, status_name};
use crate::fleet::rendezvous::Rendezvous;
use crate::fleet::schedule::{partner, rounds};
use crate::launcher::Launched;

/// How long the two programs of a pair may take beyond the time that they were given.
const PAIR_GRACE: Duration = Duration::from_secs(60);
/// What the merged record is called there.
pub const RECORD: &str = "fleet";

/// What a node is to do.
pub struct Node<'a> {
    /// Which it is, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Where they meet.
    pub rendezvous: &'a Rendezvous,
    /// How it begins to be known.
    pub status: Status,
    /// This program's own file.
    pub hosepipe: PathBuf,
    /// A folder of its own, with a copy of what it has put on the rendezvous.
    pub folder: &'a Path,
    /// The arguments of its bench.
    pub bench: Vec<OsString>,
    /// The time of each pair.
    pub pair_time: Duration,
    /// A secret that every node has; without one the first of them makes one and puts it on the rendezvous.
    pub token_file: Option<PathBuf>,
    /// How long the others may take to come.
    pub patience: Duration,
    /// What ends programs should this process be killed.
    pub cleaner: &'a Cleaner,
    /// Says that the user wants no more.
    pub stop: &'a dyn Fn() -> bool,
}

/// All that was measured.
pub type Measured = (Vec<FleetNode>, Vec<FleetMeeting>);

/// What came of a program, or why nothing did.
type Found<T> = Result<T, String>;

/// How many steps a node goes: its own bench, and a partner in each round.
pub fn steps(size: usize) -> usize {
    1 + rounds(size)
}

impl Node<'_> {
    /// Takes part to the end. The first node that is still there is given what all have measured; `keep` puts it where it belongs, and the
    /// others wait for that.
    ///
    /// # Errors
    /// Another version than the first node's; a rendezvous or a program that does not work here; the user wants no more.
    pub fn run(&self, keep: &mut dyn FnMut(Measured) -> io::Result<()>) -> Result<(), Trouble> {
        Member::take_part(self, |member| member.go(keep))
    }
}

impl Member<'_> {
    fn go(&self, keep: &mut dyn FnMut(Measured) -> io::Result<()>) -> Result<(), Trouble> {
        let Node { rank, size, rendezvous, .. } = *self.node;
        Rendezvous::Folder(self.node.folder.to_owned()).put(&status_name(rank), &self.node.status)?;
        let token = self.token()?;
        let own = self.measured(&self.node.bench, None)?;
        self.put(&format!("bench-{rank}"), &own)?;
        self.publish(|own| own.step = 1)?;
        // No pair begins while another node's bench is still running: it would be disturbed.
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
                Some(true) => return Err(Trouble::Gone("was taken for gone by the others".to_owned())),
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

    /// Waits until all others have reached a step, or are gone.
    fn all_at(&self, step: usize) -> Result<(), Trouble> {
        let mut others = (0..self.node.size).filter(|rank| *rank != self.node.rank);
        let has_come = |status: &Status| (status.step >= step).then_some(());
        others.try_for_each(|other| unless_gone(self.wait(other, has_come)).map(drop))
    }

    /// Puts up what was measured, and keeps it in this node's own folder: the rendezvous may be lost.
    fn put(&self, name: &str, measured: &impl serde::Serialize) -> io::Result<()> {
        Rendezvous::Folder(self.node.folder.to_owned()).put(name, measured)?;
        self.node.rendezvous.put(name, measured)
    }

    /// The file of the secret, which the first node that has come makes where none was given. Its version of hosepipe is everybody's.
    fn token(&self) -> Result<PathBuf, Trouble> {
        let Node { rank, rendezvous, .. } = *self.node;
        let mut first = rank;
        for lower in 0..rank {
            let Some(before) = unless_gone(self.wait(lower, |status| Some(status.clone())))? else {
                continue;
            };
            if let Some(difference) = difference(&self.node.status, &before) {
                return Err(Trouble::Gone(difference));
            }
            first = lower;
            break;
        }
        if let Some(given) = &self.node.token_file {
            return Ok(given.clone());
        }
        let name = format!("token-{first}");
        if first == rank {
            rendezvous.put(&name, &new_token()?)?;
        }
        let secret = loop {
            if let Some(secret) = rendezvous.get::<String>(&name)? {
                break secret;
            }
            self.wait(first, |_| Some(()))?;
            std::thread::sleep(process::POLL_INTERVAL);
        };
        let path = self.node.folder.join("token");
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        io::Write::write_all(&mut file, secret.as_bytes())?;
        Ok(path)
    }

    /// The record of `hosepipe bench` with these arguments, or why there is none.
    fn measured(
        &self,
        arguments: &[OsString],
        most: Option<Duration>,
    ) -> Result<Found<BenchRecord>, Trouble> {
        let record = self.node.folder.join("record.json");
        let mut command = Command::new(&self.node.hosepipe);
        command.arg("bench").arg("--json").arg(&record).args(arguments).stdin(Stdio::null());
        let (mut bench, began) = (self.launch(command, Capture::Both)?, Instant::now());
        let waited = bench.follow(&mut || match most {
            Some(most) if began.elapsed() > most => {
                Err(Trouble::Gone(format!("took more than {} s", most.as_secs())))
            }
            _ => self.goes_on(),
        });
        let read = fs::read(&record);
        // The next one must not find it.
        let _ = fs::remove_file(&record);
        Ok(match (waited, read) {
            (Ok(()), Ok(text)) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
            (Ok(()), Err(_)) => Err(bench.failure()),
            (Err(Trouble::Gone(why)), _) => Err(why),
            (Err(trouble), _) => return Err(trouble),
        })
    }

    fn launch(&self, program: Command, capture: Capture) -> io::Result<Launched<'_>> {
        Launched::start(vec![program], capture, self.node.cleaner).map_err(io::Error::other)
    }

    /// Holds the other end for a partner.
    fn listen(&self, partner: usize, step: usize, token: &Path) -> Result<(), Trouble> {
        if self.wait(partner, |status| (status.step >= step).then_some(status.step))? > step {
            return Ok(());
        }
        let (said, says) = io::pipe()?;
        let mut command = Command::new(&self.node.hosepipe);
        let address = self.node.status.address.map(|address| SocketAddr::new(address, 0).to_string());
        command.args(["peer", "--listen", &address.unwrap_or_default(), "--token-file"]).arg(token);
        command.stdin(Stdio::null()).stdout(says);
        let mut peer = self.launch(command, Capture::Errors)?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        if let Some(address) = line.trim().strip_prefix("listening on ") {
            self.publish(|own| own.listening = Some(Ok(address.to_owned())))?;
        }
        peer.follow(&mut || match self.look(partner)? {
            Seen { gone: Some(gone), .. } => Err(Trouble::Gone(gone)),
            Seen { last: Some(Status { step: at, .. }), .. } if at > step => {
                Err(Trouble::Gone(String::new()))
            }
            _ => self.goes_on(),
        })?;
        if line.is_empty() {
            self.publish(|own| own.listening = Some(Err(peer.failure())))?;
        }
        // It has ended by itself: the partner is about to say what it found.
        self.wait(partner, |status| (status.step > step).then_some(()))
    }

    /// Measures against a partner that listens.
    fn ask(&self, partner: usize, step: usize, token: &Path) -> Result<Found<Vec<CaseRecord>>, Trouble> {
        let listening = self.wait(partner, |status| match status.step {
            at if at > step => Some(Err("the other one had not waited".to_owned())),
            at if at == step => status.listening.clone(),
            _ => None,
        });
        let address = match listening {
            Ok(Ok(address)) => address,
            Ok(Err(why)) => return Ok(Err(format!("the other one could not listen: {why}"))),
            Err(Trouble::Gone(why)) => return Ok(Err(format!("the other one {why}"))),
            Err(trouble) => return Err(trouble),
        };
        let time = format!("{}ms", self.node.pair_time.as_millis());
        let words = ["tcp", "--peer", &format!("tcp://{address}"), "--time", &time, "--token-file"];
        let words: Vec<OsString> = words.iter().map(OsString::from).chain([token.into()]).collect();
        let most = Some(self.node.pair_time + PAIR_GRACE);
        Ok(self.measured(&words, most)?.map(|record| record.cases))
    }
}

/// What all nodes have put on the rendezvous so far; some of them are gone.
///
/// # Errors
/// What the system answered.
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
        let none = || Err(format!("{} did not get to it", nodes[from].name));
        let (cases, failure) = match cases.unwrap_or_else(none) {
            Ok(cases) => (cases, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        meetings.push(FleetMeeting { from, to, cases, failure });
    }
    Ok((nodes, meetings))
}

/// `None` where the other node is gone, which is no failure of this one.
fn unless_gone<T>(waited: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match waited {
        Err(Trouble::Gone(_)) => Ok(None),
        other => other.map(Some),
    }
}
