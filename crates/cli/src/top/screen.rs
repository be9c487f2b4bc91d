//! The state of the screen of `hosepipe top`: the last sample, the order, the filter and the selection; and how keys change it.

use std::collections::{HashMap, VecDeque};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use model::{Chain, TopSnapshot};

use super::chain_filter::ChainFilter;

/// Number of samples in a link's history.
const HISTORY: usize = 240;

/// Sorts chains.
type Sort = fn(&mut [Chain]);

/// The orders of the chains: a word for the heading, and the sort. Chains that are equal stay in the order of their PIDs.
const ORDERS: [(&str, Sort); 5] = [
    ("rate", |chains| largest_first(chains, rate)),
    ("CPU", |chains| largest_first(chains, cpus)),
    ("fullness", |chains| largest_first(chains, fullness)),
    ("name", |chains| model::sort_by(chains, |one, other| name(one).cmp(name(other)))),
    ("PID", |_| {}),
];

fn largest_first(chains: &mut [Chain], value: fn(&Chain) -> f64) {
    model::sort_by(chains, |one, other| value(other).total_cmp(&value(one)));
}

/// The largest rate among a chain's links.
pub(super) fn rate(chain: &Chain) -> f64 {
    chain.links.iter().filter_map(|link| link.bytes_per_s).fold(0.0, f64::max)
}

pub(super) fn cpus(chain: &Chain) -> f64 {
    chain.stages.iter().map(|stage| stage.cpus).sum()
}

/// The largest fullness among a chain's links.
fn fullness(chain: &Chain) -> f64 {
    chain.links.iter().filter_map(|link| link.fullness).fold(0.0, f64::max)
}

fn name(chain: &Chain) -> &str {
    &chain.stages[0].processes[0].name
}

/// Identifies a chain while its stages come and go: the name of its first link.
fn key(chain: &Chain) -> &str {
    chain.links.first().map_or("", |link| &link.name)
}

/// What is on the screen.
#[derive(Default)]
pub(super) struct Screen {
    filter: ChainFilter,
    pub(super) snapshot: TopSnapshot,
    /// The last rates of each link by its name, the latest last; `None` where a rate is not known.
    pub(super) history: HashMap<String, VecDeque<Option<f64>>>,
    /// The index of the order in [`ORDERS`].
    order: usize,
    /// The filter while it is typed.
    pub(super) typed: Option<String>,
    selected: String,
    pub(super) detail: bool,
    pub(super) help: bool,
    pub(super) paused: bool,
}

/// What the loop has to do after a key.
pub(super) enum KeyAction {
    Draw,
    Quit,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

impl Screen {
    pub(super) fn new(filter: ChainFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Shows a new sample, and adds its rates to the history.
    pub(super) fn add_sample(&mut self, snapshot: TopSnapshot) {
        self.snapshot = snapshot;
        let links = || self.snapshot.chains.iter().flat_map(|chain| &chain.links);
        self.history.retain(|name, _| links().any(|link| link.name == *name));
        for link in links() {
            let history = self.history.entry(link.name.clone()).or_default();
            history.push_back(link.bytes_per_s);
            history.drain(..history.len().saturating_sub(HISTORY));
        }
        self.sort();
    }

    fn sort(&mut self) {
        let chains = &mut self.snapshot.chains;
        model::sort_by_key(chains, |chain| chain.stages[0].processes[0].pid);
        let (_, sort) = ORDERS[self.order];
        sort(chains);
    }

    /// The order of the chains, as a word.
    pub(super) fn order(&self) -> &'static str {
        let (word, _) = ORDERS[self.order];
        word
    }

    /// The chains that pass the filter, in order.
    pub(super) fn chains(&self) -> Vec<&Chain> {
        let filter = self.filter();
        self.snapshot.chains.iter().filter(|chain| filter.matches(chain)).collect()
    }

    /// The filter: the one that is being typed, else the one that was entered.
    pub(super) fn filter(&self) -> ChainFilter {
        self.typed.as_ref().map_or_else(|| self.filter.clone(), |text| ChainFilter::named(text))
    }

    /// The index of the selected chain; 0 if it has gone.
    pub(super) fn selected_index(&self) -> usize {
        self.chains().iter().position(|chain| key(chain) == self.selected).unwrap_or(0)
    }

    fn select(&mut self, steps: isize) {
        let at = self.selected_index().saturating_add_signed(steps);
        let chains = self.chains();
        let selected = chains.get(at.min(chains.len().saturating_sub(1))).map(|chain| key(chain).to_owned());
        self.selected = selected.unwrap_or_default();
    }

    pub(super) fn press(&mut self, pressed: KeyEvent) -> KeyAction {
        if pressed.modifiers.contains(KeyModifiers::CONTROL) {
            match pressed.code {
                KeyCode::Char('c') => return KeyAction::Interrupt,
                KeyCode::Char('z') => return KeyAction::Suspend,
                _ => return KeyAction::Draw,
            }
        }
        if let Some(mut text) = self.typed.take() {
            match pressed.code {
                KeyCode::Enter => self.filter = ChainFilter::named(&text),
                KeyCode::Esc => {}
                KeyCode::Backspace => {
                    text.pop();
                    self.typed = Some(text);
                }
                KeyCode::Char(character) => self.typed = Some(text + character.encode_utf8(&mut [0; 4])),
                _ => self.typed = Some(text),
            }
            return KeyAction::Draw;
        }
        let leaves_help = std::mem::take(&mut self.help);
        match pressed.code {
            KeyCode::Esc | KeyCode::Char('q') if leaves_help => {}
            KeyCode::Esc if self.detail => self.detail = false,
            KeyCode::Esc => self.filter = ChainFilter::All,
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('?' | 'h') => self.help = !leaves_help,
            KeyCode::Char('/') => self.typed = Some(String::new()),
            KeyCode::Char('s') => {
                self.order = (self.order + 1) % ORDERS.len();
                self.sort();
            }
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Enter => {
                self.select(0);
                self.detail = !self.detail;
            }
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-10),
            KeyCode::PageDown => self.select(10),
            KeyCode::Home => self.select(isize::MIN),
            KeyCode::End => self.select(isize::MAX),
            _ => {}
        }
        KeyAction::Draw
    }
}
