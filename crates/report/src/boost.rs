//! The output of `hosepipe boost`: the pipes that were enlarged, and how long each was full.

use model::{BoostRecord, BoostedPipe, NamedProcess, SlowBuffer, one_line};

use crate::document::{Block, Context, Section};
use crate::layout::shortened;
use crate::limits::GAIN_MIN;
use crate::numbers::{grouped, time};
use crate::sheet::{Sheet, col};
use crate::show::Show;
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::words::{count, count_of};

/// Longest command in a sentence.
const COMMAND_CHARACTERS_MAX: usize = 60;
/// Most pipes that are shown: those that were full longest.
const SHOWN_MAX: usize = 10;

/// The table, and sentences on it.
fn section(record: &BoostRecord, context: &Context) -> Section {
    let mut section = context.section("boost", "Pipes");
    section.blocks.extend((!record.boosted.is_empty()).then(|| Block::Table(table(record))));
    context.conclude(&mut section, sentences(record), Block::Line);
    section
}

fn table(record: &BoostRecord) -> Table {
    let mut pipes: Vec<&BoostedPipe> = record.boosted.iter().collect();
    model::sort_by_key(&mut pipes, |pipe| std::cmp::Reverse(pipe.full_ns));
    pipes.truncate(SHOWN_MAX);
    let end = |end: &Option<NamedProcess>| {
        end.as_ref().map(|end| Value::from(format!("{} {}", end.command, end.pid)))
    };
    let time = |ns: u64| Some(Unit::Ns.of(ns as f64));
    let mut sheet = Sheet::new(&pipes);
    sheet.add(col("writer").fit(Fit::Cut), |pipe| end(&pipe.writer));
    sheet.add(col("reader").fit(Fit::Cut), |pipe| end(&pipe.reader));
    sheet.add("size", |pipe| {
        let [before, after] = [pipe.before_bytes, pipe.after_bytes].map(|bytes| Unit::Bytes.of(bytes as f64));
        Some(before.and(" → ", after))
    });
    sheet.add(col("wrote").right().drop(2), |pipe| {
        let rate = |rate: Option<u64>| rate.map_or(Value::Absent, |rate| Unit::BytesPerS.of(rate as f64));
        Some(rate(pipe.before_bytes_per_s).and(" → ", rate(pipe.after_bytes_per_s)))
    });
    sheet.add("full", |pipe| time(pipe.full_ns));
    sheet.add(col("watched").drop(1), |pipe| time(pipe.watched_ns));
    sheet.table()
}

/// Fields of a pipe in CSV.
const FIELDS: &str = "inode writer=writer/command writer_pid=writer/pid reader=reader/command \
    reader_pid=reader/pid before_bytes after_bytes watched_ns full_ns left";

impl Show for BoostRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(self, context)]
    }

    fn data(&self) -> Table {
        let mut sheet = Sheet::of_data(&self.boosted);
        sheet.fields(FIELDS, |pipe| pipe.clone());
        sheet.table()
    }
}

/// Whether larger pipes helped, as far as that was measured.
fn gain(record: &BoostRecord) -> String {
    let ratio = |pipe: &BoostedPipe| Some(pipe.after_bytes_per_s? as f64 / pipe.before_bytes_per_s? as f64);
    let ratios = record.boosted.iter().filter_map(ratio).filter(|ratio| ratio.is_finite());
    match ratios.max_by(f64::total_cmp) {
        None => {
            "Whether it helped is not known: there was too little to measure before or after. To find out: \
                 hosepipe compare 'COMMAND' 'hosepipe boost COMMAND'."
                .to_owned()
        }
        Some(most) if most < GAIN_MIN => {
            "It did not help: no writer wrote more than before. A stage that computes is not made faster."
                .to_owned()
        }
        Some(most) => format!("It may have helped: a writer wrote {most:.1} times as fast as before."),
    }
}

/// Processes whose buffers are at slow offsets, which cannot be changed while they run.
fn slow_buffers(record: &BoostRecord) -> Vec<String> {
    let sentence = |process: &SlowBuffer| {
        let offset = process.read_buffer_offset.or(process.write_buffer_offset).unwrap_or(0);
        format!(
            "Process {} keeps a buffer {} bytes into a page, where this CPU copies slowly. That is decided when a program starts: hosepipe \
             boost {}",
            process.pid,
            grouped(offset as f64, 0),
            shortened(&one_line(&process.command), COMMAND_CHARACTERS_MAX)
        )
    };
    record.slow_buffers.iter().take(SHOWN_MAX).map(sentence).collect()
}

fn sentences(record: &BoostRecord) -> Vec<String> {
    let pipes = record.boosted.len();
    let [wall, cpu] = [record.wall_ns, record.cpu_ns].map(|ns| time(ns as f64));
    let cost = format!("in {wall} (watching took {cpu} of CPU time)");
    let mut sentences = match pipes {
        0 if record.refused.is_some() => vec![format!("No pipe was enlarged {cost}.")],
        0 => vec![format!("No pipe was full in two samples in a row {cost}: none was enlarged.")],
        _ => vec![format!("{} enlarged {cost}. {}", count(pipes, "pipe"), gain(record))],
    };
    if pipes > SHOWN_MAX {
        sentences.push(format!("The {SHOWN_MAX} that were full longest are shown; --json has all."));
    }
    let left = record.boosted.iter().filter(|pipe| pipe.left).count();
    if left > 0 {
        sentences.push(format!(
            "{} held more than fits into the old size, and will be larger until the programs end.",
            count(left, "pipe")
        ));
    }
    sentences
        .extend(record.refused.iter().map(|why| format!("Not all that were full were enlarged: {why}.")));
    sentences.extend(record.tunables.iter().map(|value| {
        format!("This CPU copies slowly into some addresses: to keep buffers from them, GLIBC_TUNABLES={value} was set.")
    }));
    sentences.extend(slow_buffers(record));
    sentences.extend(record.pipe_quota.iter().map(ToString::to_string));
    if record.unseen > 0 {
        let unseen = count_of(record.unseen as usize, "process", "processes");
        sentences.push(format!("{unseen} could not be sampled: other users' or set-user-ID programs."));
    }
    sentences
}
