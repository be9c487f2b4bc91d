//! The live screen of `hosepipe top`: its loop samples, waits for keys and draws. `view` is the drawing.

mod view;

use std::collections::{HashMap, VecDeque};
use std::io::stdout;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use model::{Chain, TopSnapshot};
use observe::chains::ChainSampler;
use observe::pace::Pace;
use process::ready_within;
use ratatui::DefaultTerminal;
use rustix::event::PollFlags;
use rustix::process::{Signal, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;

use crate::copies::CostsOnDemand;
use crate::signals::StopRequest;
use crate::top_cmd::Which;

/// Longest wait for a key: signals are noticed within this time.
const KEY_WAIT_MAX: Duration = Duration::from_millis(250);
/// Number of samples in a link's history.
const HISTORY: usize = 240;

/// The order of the chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Rate,
    Cpu,
    Full,
    Name,
    Pid,
}

impl Sort {
    const ALL: [(Self, &str); 5] = [
        (Self::Rate, "rate"),
        (Self::Cpu, "CPU"),
        (Self::Full, "fullness"),
        (Self::Name, "name"),
        (Self::Pid, "PID"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(sort, _)| *sort == self).map_or("", |(_, word)| word)
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|(sort, _)| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].0
    }

    fn sort(self, chains: &mut [Chain]) {
        let most = |chains: &mut [Chain], of: fn(&Chain) -> f64| {
            chains.sort_by(|one, other| of(other).total_cmp(&of(one)));
        };
        // The sort below is stable: chains that are equal there stay in order of their PIDs.
        chains.sort_by_key(|chain| chain.stages[0].processes[0].pid);
        match self {
            Self::Rate => most(chains, rate),
            Self::Cpu => most(chains, cpus),
            Self::Full => {
                most(chains, |chain| chain.links.iter().filter_map(|link| link.fullness).fold(0.0, f64::max))
            }
            Self::Name => chains.sort_by(|one, other| name(one).cmp(name(other))),
            Self::Pid => {}
        }
    }
}

/// The largest rate among a chain's links.
fn rate(chain: &Chain) -> f64 {
    chain.links.iter().filter_map(|link| link.bytes_per_s).fold(0.0, f64::max)
}

fn cpus(chain: &Chain) -> f64 {
    chain.stages.iter().map(|stage| stage.cpus).sum()
}

fn name(chain: &Chain) -> &str {
    &chain.stages[0].processes[0].name
}

/// Identifies a chain while its stages come and go: the name of its first link.
fn key(chain: &Chain) -> &str {
    chain.links.first().map_or("", |link| &link.name)
}

/// What is on the screen.
struct Screen {
    which: Which,
    seen: TopSnapshot,
    /// The last rates of each link by its name, the latest last; `None` where a rate is not known.
    history: HashMap<String, VecDeque<Option<f64>>>,
    sort: Sort,
    /// The filter while it is typed.
    typed: Option<String>,
    selected: String,
    detail: bool,
    help: bool,
    paused: bool,
}

/// Shows chains until `q`, or a signal.
pub(crate) fn run(interval: Duration, which: Which, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let [stopped, continued] = [SIGTSTP, SIGCONT].map(|signal| {
        let noted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&noted)).map(|_| noted)
    });
    let (stopped, continued) = (stopped?, continued?);
    let mut terminal = ratatui::try_init().context("cannot take the terminal")?;
    let shown = show(&mut terminal, interval, which, stop, [&stopped, &continued]);
    if is_gone() {
        // Its drop would fail and print that to standard error, which is gone as well: that would panic.
        std::mem::forget(terminal);
        stop.note(Some(SIGHUP));
        return Ok(stop.exit_code(false));
    }
    ratatui::try_restore().context("cannot give the terminal back")?;
    shown?;
    Ok(stop.exit_code(false))
}

/// Whether the terminal is gone (POLLHUP of poll(2)). Where SIGHUP is ignored (nohup(1)), nothing else reports it.
fn is_gone() -> bool {
    ready_within(&stdout(), PollFlags::empty(), Some(Duration::ZERO)).unwrap_or(true)
}

fn show(
    terminal: &mut DefaultTerminal,
    interval: Duration,
    which: Which,
    stop: &StopRequest,
    [stopped, continued]: [&AtomicBool; 2],
) -> anyhow::Result<()> {
    let mut sampler = ChainSampler::default();
    let mut screen = Screen::new(which);
    let costs = CostsOnDemand::default();
    // The first sample comes sooner than `interval`, so that rates appear soon.
    let mut pace = Pace::new(interval.min(KEY_WAIT_MAX), interval, interval);
    let mut draw = true;
    while !stop.is_set() && !is_gone() {
        if stopped.swap(false, Ordering::Relaxed) {
            ratatui::try_restore()?;
            emulate_default_handler(SIGTSTP)?;
            continued.store(true, Ordering::Relaxed);
        }
        if continued.swap(false, Ordering::Relaxed) {
            *terminal = ratatui::try_init().context("cannot take the terminal again")?;
            terminal.clear()?;
            draw = true;
        }
        if pace.begin() {
            sampler.sample();
            if !screen.paused {
                let mut seen = sampler.seen();
                costs.judge_all(&mut seen);
                screen.take(seen);
                draw = true;
            }
            sampler.mark();
            pace.end(true);
        }
        if std::mem::take(&mut draw) {
            terminal.draw(|frame| view::draw(frame, &screen))?;
        }
        if event::poll(pace.left().min(KEY_WAIT_MAX))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match screen.press(key) {
                    Wish::Leave => return Ok(()),
                    Wish::Interrupt => stop.note(Some(SIGINT)),
                    Wish::Stop => kill_current_process_group(Signal::TSTP)?,
                    Wish::Draw => draw = true,
                },
                Event::Resize(..) => draw = true,
                _ => {}
            }
        }
    }
    Ok(())
}

/// What a key asks for.
enum Wish {
    Draw,
    Leave,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Stop,
}

impl Screen {
    fn new(which: Which) -> Self {
        Self {
            which,
            seen: TopSnapshot::default(),
            history: HashMap::new(),
            sort: Sort::Rate,
            typed: None,
            selected: String::new(),
            detail: false,
            help: false,
            paused: false,
        }
    }

    /// Shows a new sample, and adds its rates to the history.
    fn take(&mut self, seen: TopSnapshot) {
        self.seen = seen;
        let links = || self.seen.chains.iter().flat_map(|chain| &chain.links);
        self.history.retain(|name, _| links().any(|link| link.name == *name));
        for link in links() {
            let history = self.history.entry(link.name.clone()).or_default();
            history.push_back(link.bytes_per_s);
            history.drain(..history.len().saturating_sub(HISTORY));
        }
        self.sort.sort(&mut self.seen.chains);
    }

    /// The chains that pass the filter, in order.
    fn chains(&self) -> Vec<&Chain> {
        let typed = self.typed.as_ref().map(|text| Which::Named(text.to_lowercase()));
        let which = typed.as_ref().unwrap_or(&self.which);
        self.seen.chains.iter().filter(|chain| which.is(chain)).collect()
    }

    /// The index of the selected chain; 0 if it has gone.
    fn at(&self) -> usize {
        self.chains().iter().position(|chain| key(chain) == self.selected).unwrap_or(0)
    }

    fn select(&mut self, steps: isize) {
        let at = self.at().saturating_add_signed(steps);
        let chains = self.chains();
        let selected = chains.get(at.min(chains.len().saturating_sub(1))).map(|chain| key(chain).to_owned());
        self.selected = selected.unwrap_or_default();
    }

    fn press(&mut self, pressed: KeyEvent) -> Wish {
        if pressed.modifiers.contains(KeyModifiers::CONTROL) {
            match pressed.code {
                KeyCode::Char('c') => return Wish::Interrupt,
                KeyCode::Char('z') => return Wish::Stop,
                _ => return Wish::Draw,
            }
        }
        if let Some(mut text) = self.typed.take() {
            match pressed.code {
                KeyCode::Enter => {
                    self.which = if text.is_empty() { Which::All } else { Which::Named(text.to_lowercase()) }
                }
                KeyCode::Esc => {}
                KeyCode::Backspace => {
                    text.pop();
                    self.typed = Some(text);
                }
                KeyCode::Char(character) => self.typed = Some(text + character.encode_utf8(&mut [0; 4])),
                _ => self.typed = Some(text),
            }
            return Wish::Draw;
        }
        let leaves_help = std::mem::take(&mut self.help);
        match pressed.code {
            KeyCode::Esc | KeyCode::Char('q') if leaves_help => {}
            KeyCode::Esc if self.detail => self.detail = false,
            KeyCode::Esc => self.which = Which::All,
            KeyCode::Char('q') => return Wish::Leave,
            KeyCode::Char('?' | 'h') => self.help = !leaves_help,
            KeyCode::Char('/') => self.typed = Some(String::new()),
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.sort.sort(&mut self.seen.chains);
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
        Wish::Draw
    }
}
