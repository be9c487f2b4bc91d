//! Checks of a record beyond its types: numbers that can be measured, indexes that exist, histograms that can be read.

use std::fmt::{Formatter, Result as Written};

use model::{CaseRecord, Chain, FleetRecord, Record, RunRecord, decode_histogram};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Larger than any rate, time or share that can be measured, and than all quotients of those that the types of a record can hold.
const NUMBER_MAX: f64 = 1e40;
/// Pairs of a writer and a reader in the links of one chain.
const JOINED_MAX: usize = 1 << 20;

/// Any JSON without a number that is negative or larger than [`NUMBER_MAX`]; whole numbers have the bounds of their type.
pub(super) struct Measurable;

impl<'de> Deserialize<'de> for Measurable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Measurable {
    type Value = Self;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("a value of a record")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self, E> {
        if number < 0 { Err(E::custom(format_args!("{number} is negative"))) } else { Ok(self) }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self, E> {
        match number {
            _ if number < 0.0 => Err(E::custom(format_args!("{number:e} is negative"))),
            _ if number > NUMBER_MAX => {
                Err(E::custom(format_args!("{number:e} is more than anything that can be measured")))
            }
            _ => Ok(self),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, Self>()?.is_some() {}
        Ok(self)
    }
}

/// Checks that every index in a record exists, and that every histogram can be read.
///
/// # Errors
/// A sentence on the first one that does not.
pub(super) fn check(record: &Record) -> Result<(), String> {
    match record {
        Record::Bench(record) => histograms(&record.cases),
        Record::Study(record) => record.parts.iter().try_for_each(|part| histograms(&part.cases)),
        Record::Fleet(record) => of_fleet(record),
        Record::Top(record) => record.seen.chains.iter().try_for_each(of_chain),
        Record::Run(record) => of_run(record),
        Record::Compare(_) | Record::Diff(_) | Record::Boost(_) => Ok(()),
    }
}

fn histograms(cases: &[CaseRecord]) -> Result<(), String> {
    let samples = cases.iter().flat_map(|case| case.samples.iter().chain(&case.disturbed));
    let texts = samples.flat_map(|sample| [&sample.latency_histogram, &sample.service_histogram]);
    texts.flatten().try_for_each(|text| match decode_histogram(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    })
}

fn of_fleet(record: &FleetRecord) -> Result<(), String> {
    let ranks = record.meetings.iter().flat_map(|meeting| [meeting.from, meeting.to]);
    places("a rank in `meetings`", 0, ranks, "nodes", record.nodes.len())?;
    record
        .nodes
        .iter()
        .filter_map(|node| node.bench.as_ref())
        .try_for_each(|bench| histograms(&bench.cases))?;
    record.meetings.iter().try_for_each(|meeting| histograms(&meeting.cases))
}

fn of_run(record: &RunRecord) -> Result<(), String> {
    let stage = record.bottleneck.as_ref().and_then(|bottleneck| bottleneck.stage);
    places("`bottleneck.stage`", 1, stage, "stages", record.stages.len())
}

fn of_chain(chain: &Chain) -> Result<(), String> {
    let stages = chain.stages.len();
    if stages == 0 {
        return Err("a chain has no `stages`".to_owned());
    }
    places("`held_up_by`", 1, chain.held_up_by, "stages", stages)?;
    let joined: usize = chain
        .links
        .iter()
        .map(|link| link.writers.len().saturating_mul(link.readers.len()))
        .fold(0, usize::saturating_add);
    if joined > JOINED_MAX {
        return Err(format!("the links of a chain join {joined} pairs of stages"));
    }
    let ends = chain.links.iter().flat_map(|link| link.writers.iter().chain(&link.readers));
    places("an end of a link", 1, ends.copied(), "stages", stages)?;
    places(
        "`waits_at`",
        1,
        chain.stages.iter().filter_map(|stage| stage.waits_at),
        "links",
        chain.links.len(),
    )
}

/// Checks that all indexes are before the end of a list. In the record they count from `first`.
fn places(
    what: &str,
    first: usize,
    places: impl IntoIterator<Item = usize>,
    list: &str,
    end: usize,
) -> Result<(), String> {
    match places.into_iter().find(|place| *place >= end) {
        Some(place) => Err(format!("{what} is {}, and `{list}` ends before it", place.saturating_add(first))),
        None => Ok(()),
    }
}
