//! The loop of `hosepipe top` on a terminal: it samples, draws, and waits for keys and signals.

use std::io::stdout;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use crossterm::event::{self, Event, KeyEventKind};
use observe::chains::ChainSampler;
use observe::pace::Pace;
use process::ready_within;
use ratatui::DefaultTerminal;
use rustix::event::PollFlags;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;

use super::chain_filter::ChainFilter;
use super::screen::{KeyAction, Screen};
use super::still::LiveSearch;
use super::view;
use crate::copies::CostsOnDemand;
use crate::signals::StopRequest;

/// Longest wait for a key: signals are noticed within this time.
const KEY_WAIT_MAX: Duration = Duration::from_millis(250);

/// Shows chains until `q` is typed, or a signal comes.
pub(super) fn run(interval: Duration, filter: ChainFilter, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let [stopped, continued] = [SIGTSTP, SIGCONT].map(|signal| {
        let noted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&noted)).map(|_| noted)
    });
    let (stopped, continued) = (stopped?, continued?);
    BEFORE.get_or_init(|| tcgetattr(stdout()).ok());
    process::signals::set_last_step(give_terminal_back);
    let mut terminal = set_up_terminal()?;
    let shown = show(&mut terminal, interval, filter, stop, [&stopped, &continued]);
    if is_gone() {
        // The destructor would fail, and panic because standard error, on which it reports that, is gone too.
        std::mem::forget(terminal);
        stop.note(Some(SIGHUP));
        return Ok(stop.exit_code(false));
    }
    ratatui::try_restore().context("cannot restore the terminal")?;
    shown?;
    Ok(stop.exit_code(false))
}

/// The modes of the terminal before they were changed.
static BEFORE: OnceLock<Option<Termios>> = OnceLock::new();

/// Sets up the terminal. Ctrl-C and Ctrl-Z remain signals there: as keys, which do the same, they would not be noticed while this program is in a
/// system call.
fn set_up_terminal() -> anyhow::Result<DefaultTerminal> {
    let terminal = ratatui::try_init().context("cannot set up the terminal")?;
    let mut modes = tcgetattr(stdout())?;
    modes.local_modes |= LocalModes::ISIG;
    // Ctrl-\ would end this program and leave the terminal as it is.
    modes.special_codes[SpecialCodeIndex::VQUIT] = 0;
    tcsetattr(stdout(), OptionalActions::Now, &modes)?;
    Ok(terminal)
}

/// Gives the terminal back as it was, with calls that a signal handler may make: to leave the alternate screen and to show the cursor.
fn give_terminal_back() {
    // A terminal that takes no more bytes is not waited for.
    if ready_within(&stdout(), PollFlags::OUT, Some(Duration::ZERO)).is_ok_and(|is_ready| is_ready) {
        let _ = rustix::io::write(stdout(), b"\x1b[?1049l\x1b[?25h");
    }
    if let Some(Some(before)) = BEFORE.get() {
        let _ = tcsetattr(stdout(), OptionalActions::Now, before);
    }
}

/// Whether the terminal is gone (POLLHUP of poll(2)). Where SIGHUP is ignored (nohup(1)), nothing else reports it.
fn is_gone() -> bool {
    ready_within(&stdout(), PollFlags::empty(), Some(Duration::ZERO)).unwrap_or(true)
}

fn show(
    terminal: &mut DefaultTerminal,
    interval: Duration,
    filter: ChainFilter,
    stop: &StopRequest,
    [stopped, continued]: [&AtomicBool; 2],
) -> anyhow::Result<()> {
    let mut sampler = ChainSampler::start();
    let mut screen = Screen::new(filter);
    let costs = CostsOnDemand::default();
    let mut causes = LiveSearch::default();
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
            *terminal = set_up_terminal()?;
            terminal.clear()?;
            draw = true;
        }
        pace.sample(|| {
            sampler.sample();
            if !screen.paused {
                let mut snapshot = sampler.snapshot();
                costs.judge_all(&mut snapshot);
                causes.explain_still(&mut snapshot);
                screen.add_sample(snapshot);
                draw = true;
            }
            sampler.mark();
            true
        });
        if std::mem::take(&mut draw) {
            terminal.draw(|frame| view::draw(frame, &screen))?;
        }
        if event::poll(pace.left().min(KEY_WAIT_MAX))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match screen.press(key) {
                    KeyAction::Quit => return Ok(()),
                    KeyAction::Interrupt => stop.note(Some(SIGINT)),
                    KeyAction::Suspend => kill_current_process_group(Signal::TSTP)?,
                    KeyAction::Draw => draw = true,
                },
                Event::Resize(..) => draw = true,
                _ => {}
            }
        }
    }
    Ok(())
}
