//! Chains of processes, as `hosepipe top` shows them: `zcat 812 ─1.20 GB/s→ awk 813 ─3.00 kB/s→ sort 814`.

use model::{Certainty, Chain, ChainLink, ChainStage, Jobserver, StageActivity, TopSnapshot, one_line};

mod data;
mod drawn;

pub use drawn::{ChainLine, lines};

use crate::chart::{Chart, ChartData, Flow, FlowLink, FlowStage};
use crate::document::{Block, Context, Section};
use crate::lists::{distinct, joined_if_any};
use crate::numbers::{binary_size, percent, time};
use crate::sheet::{Sheet, col};
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::{ABSENT, Value};
use crate::words::{AT_LEAST, NOT_KNOWN, UNKNOWN, count, count_of};
use crate::{held_back, slow_copies, why};

/// Most leaders in the name of a stage.
const NAMED_MAX: usize = 2;
/// A link is full if at least this share of its capacity is used.
const FULL: f64 = 0.5;
/// An end of a link that no visible process has open.
pub(crate) const OUTSIDE: &str = "(outside)";
/// A writing end that no process has open any more.
pub(crate) const ENDED: &str = "(ended)";

/// The text if there is no chain.
pub const NOTHING: &str =
    "There is no chain: no pipe, FIFO, socket or pseudoterminal joins processes that can be seen.";

/// All chains, jobservers and the pipe quota of a snapshot.
fn section(seen: &TopSnapshot, context: &Context) -> Section {
    let mut section = context.section("chains", "Chains");
    let elapsed = time(seen.elapsed_ns as f64);
    if context.is_page() {
        section.lead.push(format!("Rates over {elapsed}."));
    } else if seen.chains.is_empty() {
        section.blocks.push(Block::Paragraph(NOTHING.to_owned()));
    } else {
        let stages = seen.chains.iter().flat_map(|chain| &chain.stages);
        section.blocks.push(Block::Heading(vec![
            count(seen.chains.len(), "chain"),
            count_of(stages.map(|stage| stage.processes.len()).sum(), "process", "processes"),
            format!("rates over {elapsed}"),
        ]));
    }
    for (at, chain) in seen.chains.iter().enumerate() {
        let drawing = lines(chain).into_iter().map(|line| line.pieces.join(" "));
        let sentences = sentences(chain, seen.elapsed_ns);
        if context.is_page() {
            let chart = chart(seen, chain, format!("chain-{}-{at}", context.number));
            section.blocks.extend(chart.map(Block::Chart));
            let mut table = Table { title: drawing.collect::<Vec<String>>().join("; "), ..table(chain) };
            // On a page the last column is beside the name: a phone shows the first two columns.
            let last = table.columns.len() - 1;
            table.columns[1..=last].rotate_right(1);
            table.rows.iter_mut().for_each(|row| row.cells[1..=last].rotate_right(1));
            section.blocks.extend([Block::Table(table), Block::Remarks(sentences)]);
        } else {
            section.blocks.extend(drawing.map(Block::Title));
            section.blocks.push(Block::Table(Table { notes: sentences, ..table(chain) }));
        }
    }
    section.blocks.extend(seen.jobservers.iter().map(tokens).map(Block::Line));
    section.blocks.extend(seen.pipe_quota.as_ref().map(|quota| Block::Line(quota.to_string())));
    section.blocks.extend(Some(notes(seen)).filter(|notes| !notes.is_empty()).map(Block::Remarks));
    section
}

/// A chain without branches as a flow.
fn chart(seen: &TopSnapshot, chain: &Chain, id: String) -> Option<Chart> {
    let behind = |at: usize| {
        let [from, to] = [at, at + 1];
        chain.links.iter().find(|link| link.writers == [from] && link.readers == [to])
    };
    let links: Vec<&ChainLink> = (0..chain.stages.len() - 1).map_while(behind).collect();
    if links.is_empty() || links.len() + 1 < chain.stages.len() || links.len() < chain.links.len() {
        return None;
    }
    let wall_s = seen.elapsed_ns as f64 / 1e9;
    let stage = |(at, stage): (usize, &ChainStage)| {
        let (cpu_s, queued_s) = (stage.cpus * wall_s, stage.queued * wall_s);
        let waits_s =
            |doing: StageActivity| (stage.doing == doing).then(|| (wall_s - cpu_s - queued_s).max(0.0));
        let link = |link: &&ChainLink| FlowLink {
            spec: link.kind.to_string(),
            bytes: link.bytes_per_s.map(|rate| ((rate * wall_s) as u64, certainty(link))),
            note: format!("in it: {}", held(link)),
        };
        FlowStage {
            command: name(stage),
            wall_s,
            cpu_s,
            read_wait_s: waits_s(StageActivity::WaitsToRead),
            write_wait_s: waits_s(StageActivity::WaitsToWrite),
            queued_s: Some(queued_s),
            exit: "0".to_owned(),
            held_up: chain.held_up_by == Some(at),
            link: links.get(at).map(link),
        }
    };
    let stages = chain.stages.iter().enumerate().map(stage).collect();
    Some(Chart {
        id,
        title: "Stages and what flowed between them".to_owned(),
        caption: format!(
            "What was seen in {}. A stage that waited in the last sample counts as waiting for all the time in which it used no CPU.",
            time(seen.elapsed_ns as f64)
        ),
        data: ChartData::Flow(Flow { wall_s, stages }),
    })
}

/// The meaning of the signs, and the processes and sockets that are not shown.
fn notes(seen: &TopSnapshot) -> Vec<String> {
    let any = |is: fn(&ChainLink) -> bool| seen.chains.iter().flat_map(|chain| &chain.links).any(is);
    let at_most = seen.chains.iter().flat_map(|chain| &chain.stages).any(|stage| stage.at_most);
    let foreign = match seen.foreign_processes {
        1 => "1 process does not show what it has open: it belongs to another user, or has rights that this user lacks."
            .to_owned(),
        many => format!(
            "{many} processes do not show what they have open: they belong to other users, or have rights that this user lacks."
        ),
    };
    let pairs = count_of(seen.two_way_sockets, "pair of sockets", "pairs of sockets");
    let undirected = if seen.two_way_sockets == 1 {
        "does not show in which direction its bytes go: it is"
    } else {
        "do not show in which direction bytes go: they are"
    };
    let notes = [
        any(is_outside).then(|| {
            format!("{OUTSIDE}: no visible process has that end open, only one of another user or container, or none any more.")
        }),
        any(|link| link.at_least).then(|| AT_LEAST.to_owned()),
        any(|link| link.bytes_per_s.is_none() && !is_outside(link)).then(|| NOT_KNOWN.to_owned()),
        at_most.then(|| "≤: children that ended are counted with everything that they did in their life.".to_owned()),
        (seen.foreign_processes > 0).then_some(foreign),
        (seen.two_way_sockets > 0)
            .then(|| format!("{pairs} between processes {undirected} no link of a chain.")),
    ];
    notes.into_iter().flatten().collect()
}

fn is_outside(link: &ChainLink) -> bool {
    (link.writers.is_empty() && !link.over) || link.readers.is_empty()
}

pub(crate) fn rate(link: &ChainLink) -> String {
    let rate = link.bytes_per_s.map(|rate| Unit::BytesPerS.of(rate).with_certainty(certainty(link)));
    rate.map_or_else(|| UNKNOWN.to_owned(), |rate| rate.to_string())
}

fn certainty(link: &ChainLink) -> Certainty {
    if link.at_least { Certainty::AtLeast } else { Certainty::Exact }
}

/// A stage by its processes: `make 12 (cc1 19 +2)`, `a 3, b 4`.
pub fn name(stage: &ChainStage) -> String {
    let one = |process: &model::ChainProcess| format!("{} {}", one_line(&process.name), process.pid);
    let (leaders, others) = stage.processes.split_at(stage.leaders.min(stage.processes.len()));
    let more = |number: usize| if number > 0 { format!(" +{number}") } else { String::new() };
    let named: Vec<String> = leaders.iter().take(NAMED_MAX).map(one).collect();
    let mut name = named.join(", ") + &more(leaders.len().saturating_sub(NAMED_MAX));
    if let Some((first, rest)) = others.split_first() {
        name.push_str(&format!(" ({}{})", one(first), more(rest.len())));
    }
    name
}

/// Sentences on the stages that hold output back, those whose copies are slow, and the one that holds the chain up. `elapsed_ns` is
/// the time between the samples.
pub fn sentences(chain: &Chain, elapsed_ns: u64) -> Vec<String> {
    let held = |stage: &ChainStage| {
        let held = stage.held_back.as_ref()?;
        let process = stage.processes.iter().find(|process| process.pid == held.pid);
        let name = process.map(|process| format!("{} {}", one_line(&process.name), process.pid));
        Some(held_back::present(&name.unwrap_or_else(|| self::name(stage)), held))
    };
    let slow = |stage| Some(slow_copies::present(&name(stage), stage.slow_copies.as_ref()?, elapsed_ns));
    let stages = || chain.stages.iter();
    stages().filter_map(held).chain(stages().filter_map(slow)).chain([sentence(chain)]).collect()
}

/// The stage that holds the chain up, and what it does.
pub fn sentence(chain: &Chain) -> String {
    if let Some(answer) = &chain.why {
        return why::sentence(answer);
    }
    let Some(at) = chain.held_up_by else {
        let flows = chain.links.iter().any(|link| link.bytes_per_s.is_none_or(|rate| rate > 0.0));
        let first = &chain.stages[0];
        return if flows {
            "No stage in particular holds the chain up.".to_owned()
        } else {
            format!("Nothing flows: {} {}.", name(first), doing(chain, first))
        };
    };
    let stage = &chain.stages[at];
    let (name, does) = (name(stage), doing(chain, stage));
    let is_full =
        |link: &ChainLink| link.readers.contains(&at) && link.fullness.is_some_and(|share| share >= FULL);
    let input = if chain.links.iter().any(is_full) { ", and what it reads is full" } else { "" };
    match stage.doing {
        StageActivity::Works => format!("{name} holds the chain up: it is at work{input}."),
        // It has just begun to wait for another stage.
        StageActivity::WaitsToRead | StageActivity::WaitsToWrite => {
            format!("{name} held the chain up in most of the last samples; now it {does}.")
        }
        _ => format!("{name} holds the chain up: it {does}{input}."),
    }
}

/// What a stage does, and which stage it waits for.
fn doing(chain: &Chain, stage: &ChainStage) -> String {
    let names = |stages: &[usize]| match stages {
        [] => "a process that is not visible".to_owned(),
        stages => stages.iter().map(|at| name(&chain.stages[*at])).collect::<Vec<_>>().join(" or "),
    };
    match (stage.doing, stage.waits_at.and_then(|at| chain.links.get(at))) {
        (StageActivity::WaitsToRead, Some(link)) if link.writers.is_empty() && link.over => {
            "is at the end of its input".to_owned()
        }
        (StageActivity::WaitsToRead, Some(link)) => format!("waits for {} to write", names(&link.writers)),
        (StageActivity::WaitsToWrite, Some(link)) => format!("waits for {} to read", names(&link.readers)),
        (doing, _) => doing.to_string(),
    }
}

/// The links that each stage writes to.
fn links_behind(chain: &Chain) -> Vec<Vec<&ChainLink>> {
    let mut behind = vec![Vec::new(); chain.stages.len()];
    for link in &chain.links {
        link.writers.iter().for_each(|stage| behind[*stage].push(link));
    }
    behind
}

/// The stages of a chain, each with the links behind it.
pub fn table(chain: &Chain) -> Table {
    let moved = |stage: &ChainStage, rate: Option<f64>| {
        let is = if stage.at_most { Certainty::AtMost } else { Certainty::Exact };
        Some(rate.map_or(Value::Absent, |rate| Unit::BytesPerS.of(rate).with_certainty(is)))
    };
    let rows: Vec<_> = chain.stages.iter().zip(links_behind(chain)).collect();
    let of_links = |links: &[&ChainLink], cell: fn(&ChainLink) -> String| {
        Some(links.iter().map(|link| cell(link)).collect::<Vec<_>>().join(", ").into())
    };
    let mut sheet = Sheet::new(&rows);
    sheet.add(col("stage").fit(Fit::Cut), |(stage, _)| Some(name(stage).into()));
    sheet.add("whose", |(stage, _)| Some(whose(stage).into()));
    sheet.add("CPU", |(stage, _)| Some(Unit::Share.of(stage.cpus)));
    sheet.add(col("reads").drop(1), |(stage, _)| moved(stage, stage.read_bytes_per_s));
    sheet.add(col("writes").drop(1), |(stage, _)| moved(stage, stage.write_bytes_per_s));
    sheet.add(col("behind it").right(), |(_, links)| of_links(links, held));
    sheet.add(col("full").right(), |(_, links)| {
        of_links(links, |link| link.fullness.map_or_else(|| ABSENT.to_owned(), percent))
    });
    sheet.add(col("what it does").fit(Fit::Wrap), |(stage, _)| Some(doing(chain, stage).into()));
    let mut table = sheet.table();
    table.embolden(chain.held_up_by);
    table
}

/// The other users and containers to which the processes of a stage belong; empty if there are none.
pub(crate) fn whose(stage: &ChainStage) -> String {
    let owner = |process: &model::ChainProcess| {
        let container = process.container.iter().map(|name| format!("container {}", one_line(name)));
        joined_if_any(process.user.iter().map(|name| one_line(name)).chain(container), ", ")
    };
    distinct(stage.processes.iter().filter_map(owner)).join("; ")
}

/// The tokens of a jobserver: how many are free, and which makes hold the others.
fn tokens(jobserver: &Jobserver) -> String {
    let holders = jobserver.makes.iter().filter(|make| make.held_tokens > 0);
    let holder_texts =
        holders.map(|make| format!("make {} holds {}", make.pid, count(make.held_tokens as usize, "token")));
    let held = joined_if_any(holder_texts, ", ").unwrap_or_else(|| "none is held".to_owned());
    let free = jobserver.free_tokens.map_or_else(|| UNKNOWN.to_owned(), |free| free.to_string());
    let makes: Vec<String> = jobserver.makes.iter().map(|make| make.pid.to_string()).collect();
    let (name, makes) = (one_line(&jobserver.name), makes.join(", "));
    format!("{name} is the jobserver of make {makes}: {free} free, {held}.")
}

/// The bytes in a link, and its capacity.
pub(crate) fn held(link: &ChainLink) -> String {
    let size = |bytes: u64| binary_size(bytes as f64);
    match (link.held_bytes, link.capacity_bytes) {
        (Some(held), Some(capacity)) => format!("{} of {}", size(held), size(capacity)),
        (Some(held), None) => size(held),
        (None, _) => ABSENT.to_owned(),
    }
}
