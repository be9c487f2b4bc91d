//! The arguments that make the question.

use clap::Args;
use engine::RATE_MAX;
use model::ByteSize;
use programs::{Between, Code, CodeLanguage, Must, Pattern, Question, Share};
use stats::Demand;

use crate::typed::{self, Listed};

/// What the user asks.
#[derive(Debug, Clone, Args)]
pub(super) struct QuestionArgs {
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    message: ByteSize,

    /// One way, or there and back
    #[arg(long, default_value_t = Pattern::Stream, value_parser = typed::one_of(Pattern::ALL))]
    pattern: Pattern,

    /// The two ends: a parent and its child, unrelated processes, or threads of one process [default: parent-child; of two programs:
    /// processes]
    #[arg(long, value_parser = typed::one_of(Between::ALL))]
    between: Option<Between>,

    /// How many senders there are, each a program
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::whole(1u32..=64))]
    senders: u32,

    /// How many receivers there are, each a program (--share)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::whole(1u32..=64))]
    receivers: u32,

    /// Whether each message is for one of the receivers, or for all
    #[arg(long, value_parser = typed::one_of(Share::ALL))]
    share: Option<Share>,

    /// Messages, or round trips, that are made in a second (50k: 50000): mechanisms and programs are measured at this rate, and of those
    /// that reach it the one with the least CPU time is taken
    #[arg(long, value_name = "N", value_parser = rate)]
    messages_per_second: Option<f64>,

    /// CPU time that both ends together may take, in percent of one CPU (200: two CPUs, which allows ends that spin)
    #[arg(long, value_name = "PERCENT", value_parser = typed::any_percent)]
    cpu_budget: Option<f64>,

    /// What else it must do; may be given several times
    #[arg(long, value_name = "WHAT", value_parser = typed::one_of(Must::ALL))]
    must: Vec<Must>,

    /// The language of the program to print, or those of a program that sends and one that receives (rust,python)
    #[arg(long, value_name = "LANGUAGE[,LANGUAGE]", default_value_t, value_parser = languages())]
    code: Code,
}

fn languages() -> Listed<Code> {
    Listed { read: str::parse, values: || CodeLanguage::ALL.iter().map(|one| one.word().into()).collect() }
}

/// Parses a rate of at least one message in a second: at a lower one a measurement would have no messages.
fn rate(text: &str) -> Result<f64, String> {
    let found = typed::rate(text)?;
    (found >= 1.0)
        .then_some(found)
        .ok_or_else(|| format!("`{text}` is less than 1 a second, the lowest rate that is measured"))
}

impl QuestionArgs {
    /// The question.
    ///
    /// # Errors
    /// What cannot be asked together: a sentence.
    pub(super) fn question(&self) -> Result<Question, String> {
        let (messages_per_s, budget) = (self.messages_per_second, self.cpu_budget);
        let question = Question {
            message_bytes: self.message.0,
            pattern: self.pattern,
            between: self.between,
            senders: self.senders,
            receivers: self.receivers,
            share: self.share,
            // Within the limits of `bench --rate`: what is asked beyond them is reached by none.
            rate_per_s: messages_per_s.map(|rate| rate.ceil().clamp(1.0, f64::from(RATE_MAX)) as u32),
            demand: Demand { messages_per_s, cpus_max: budget.map(|percent| percent / 100.0) },
            must: self.must.clone(),
            code: self.code,
        };
        check(&question).map(|()| question)
    }
}

/// What cannot be asked together.
fn check(asked: &Question) -> Result<(), String> {
    let (is_of_pair, has_several_ends) = (asked.is_of_pair(), asked.has_several_ends());
    let asks = |must: Must| is_of_pair && asked.must.contains(&must);
    let problem = if asked.share.is_some() && asked.receivers == 1 {
        "--share is for several receivers: give --receivers N as well"
    } else if asked.share.is_none() && asked.receivers > 1 {
        "with several receivers say --share compete (each message is for one of them) or --share broadcast (for all)"
    } else if is_of_pair && asked.between() != Between::Processes {
        "the answer to this is two programs, which are processes (Go and Java have no other form): leave --between out, or ask for one language, one \
         sender and one receiver"
    } else if has_several_ends && asked.pattern == Pattern::RequestReply {
        "--pattern request-reply is between one sender and one receiver: leave --senders and --receivers out"
    } else if has_several_ends && asked.must.iter().any(|must| must.is_of_crash()) {
        "what survives the crash of an end is known of one sender and one receiver: leave --senders and --receivers out, or the crash"
    } else if asks(Must::Poll) && !asked.code.both()[1].facts().has_one_file {
        "receivers that wait in poll(2) are in C, Rust and Python: ask for one of these (--code go,python), or leave --must poll out"
    } else if asks(Must::ManySenders) {
        "where the answer is two programs, several senders are asked for by --senders N, not by --must many-senders"
    } else if asks(Must::Filter) {
        "--must filter is for programs that know only standard input and output, and the answer to this is two programs that meet at a name: leave \
         one of them out"
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}
