//! Chains as a kind of record: their table for programs, and whether their places exist.

use model::{Chain, ChainLink, ChainStage, TopRecord};

use super::{links_behind, name, section};
use crate::document::{Context, Section};
use crate::sheet::Sheet;
use crate::show::{Show, indexes};
use crate::table::Table;
use crate::unit::Unit;
use crate::value::Value;

impl Show for TopRecord {
    fn sections(&self, context: &Context) -> Vec<Section> {
        vec![section(&self.seen, context)]
    }

    /// A row for each stage and each link that it writes to.
    fn data(&self) -> Table {
        type Written<'a> = (usize, &'a ChainStage, Option<&'a ChainLink>);
        let stages = self.seen.chains.iter().enumerate().flat_map(|(number, chain)| {
            chain.stages.iter().zip(links_behind(chain)).map(move |(stage, links)| (number, stage, links))
        });
        let rows: Vec<Written> = stages
            .flat_map(|(number, stage, links)| {
                let none = links.is_empty().then_some(None);
                links.into_iter().map(Some).chain(none).map(move |link| (number, stage, link))
            })
            .collect();
        let whole = |rate: Option<f64>| Some(Unit::BytesPerS.of(rate?));
        let mut sheet = Sheet::of_data(&rows);
        sheet.data("chain", |(at, ..)| Some(Value::count(*at as u64 + 1)));
        sheet.data("stage", |(_, stage, _)| Some(name(stage).into()));
        sheet.data("pid", |(_, stage, _)| Some(Unit::Count.of(stage.processes.first()?.pid.into())));
        sheet.data("cpus", |(_, stage, _)| Some(Unit::Share.of(stage.cpus)));
        sheet.data("read_bytes_per_s", |(_, stage, _)| whole(stage.read_bytes_per_s));
        sheet.data("write_bytes_per_s", |(_, stage, _)| whole(stage.write_bytes_per_s));
        sheet.data("doing", |(_, stage, _)| Some(stage.doing.to_string().into()));
        sheet.data("held_up", |(_, stage, _)| Some(Unit::Share.of(stage.held_up)));
        sheet.fields("link=name", |(.., link)| *link);
        sheet.data("link_bytes_per_s", |(.., link)| whole((*link)?.bytes_per_s));
        sheet.fields(
            "link_at_least=at_least link_held_bytes=held_bytes link_capacity_bytes=capacity_bytes",
            |(.., link)| *link,
        );
        sheet.data("link_fullness", |(.., link)| Some(Unit::Share.of((*link)?.fullness?)));
        sheet.table()
    }

    fn check(&self) -> Result<(), String> {
        self.seen.chains.iter().try_for_each(check)
    }
}

/// Largest number of pairs of a writer and a reader in all links of a chain.
const JOINED_MAX: usize = 1 << 20;

/// Whether every place in a chain exists.
fn check(chain: &Chain) -> Result<(), String> {
    let stages = chain.stages.len();
    if stages == 0 {
        return Err("a chain has no `stages`".to_owned());
    }
    indexes("`held_up_by`", 1, chain.held_up_by, "stages", stages)?;
    let pairs = |link: &ChainLink| link.writers.len().saturating_mul(link.readers.len());
    let joined = chain.links.iter().map(pairs).fold(0, usize::saturating_add);
    if joined > JOINED_MAX {
        return Err(format!("the links of a chain join {joined} pairs of stages"));
    }
    let ends = chain.links.iter().flat_map(|link| link.writers.iter().chain(&link.readers));
    indexes("an end of a link", 1, ends.copied(), "stages", stages)?;
    let waits_at = chain.stages.iter().filter_map(|stage| stage.waits_at);
    indexes("`waits_at`", 1, waits_at, "links", chain.links.len())
}
