//! Draws the screen of `hosepipe top`: the list of chains, one chain in detail, or the keys.

use model::{Chain, visible};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, Wrap};
use report::chains::{self, ChainLine};
use report::numbers::{percent, speed, time};

use super::chain_filter::ChainFilter;
use super::screen::{Screen, cpus, rate};
use crate::terminal::wrap;

/// Width of the rate and the CPU time before a chain.
const BEFORE_COLUMNS: usize = 21;
const KEYS: &str = "q quit · / filter · s sort · ↑ ↓ enter detail · space pause · ? help";
const HELP: &str = include_str!("keys.txt");

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let areas = Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]);
    let [heading, body, keys] = areas.areas(frame.area());
    frame.render_widget(Line::styled(heading_of(screen), DIM), heading);
    match &screen.typed {
        Some(text) => frame.render_widget(Line::raw(format!("/{}▏", visible(text))), keys),
        None => frame.render_widget(Line::styled(KEYS, DIM), keys),
    }
    let chains = screen.chains();
    match chains.get(screen.selected_index()) {
        _ if screen.help => frame.render_widget(Paragraph::new(HELP), body),
        None => frame.render_widget(Paragraph::new(explain_empty(screen)).wrap(Wrap { trim: true }), body),
        Some(chain) if screen.detail => detail(frame, body, screen, chain),
        Some(_) => list(frame, body, screen, &chains),
    }
}

fn heading_of(screen: &Screen) -> String {
    let shown = match &screen.filter() {
        ChainFilter::All => String::new(),
        ChainFilter::Of(pid) => format!(" · of process {pid}"),
        ChainFilter::Named(text) => format!(" · with `{}`", visible(text)),
    };
    let foreign = match screen.snapshot.foreign_processes {
        0 => String::new(),
        1 => " · 1 process cannot be seen".to_owned(),
        foreign => format!(" · {foreign} processes cannot be seen"),
    };
    let over = time(screen.snapshot.elapsed_ns as f64);
    let paused = if screen.paused { " · PAUSED" } else { "" };
    let number = screen.chains().len();
    let chains = if number == 1 { "chain" } else { "chains" };
    format!(
        "hosepipe top · {number} {chains}{shown} · rates over {over} · by {}{paused}{foreign}",
        screen.order()
    )
}

fn explain_empty(screen: &Screen) -> String {
    if screen.snapshot.elapsed_ns == 0 {
        return "Sampling …".to_owned();
    }
    screen.filter().explain_none(&screen.snapshot).unwrap_or_else(|| chains::NOTHING.to_owned())
}

/// The chains, each with its lines; scrolled so far that the selected one is visible.
fn list(frame: &mut Frame<'_>, area: Rect, screen: &Screen, chains: &[&Chain]) {
    let selected = screen.selected_index();
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut ends_at = 0;
    for (at, chain) in chains.iter().enumerate() {
        for (number, line) in chains::lines(chain).into_iter().enumerate() {
            let before = match number {
                0 => format!("{:>12} {:>6}  ", speed(rate(chain)), percent(cpus(chain))),
                _ => " ".repeat(BEFORE_COLUMNS),
            };
            let style = if at == selected { SELECTED } else { Style::new() };
            lines.push(line_of(before, line, style));
        }
        // That processes wait for each other is not to be overlooked.
        if chain.why.as_ref().is_some_and(|answer| answer.cause.is_circle()) {
            let width = usize::from(area.width).saturating_sub(BEFORE_COLUMNS);
            let said = wrap(&chains::sentence(chain), width);
            lines.extend(said.into_iter().map(|line| Line::styled(" ".repeat(BEFORE_COLUMNS) + &line, BOLD)));
        }
        if at == selected {
            ends_at = lines.len();
        }
    }
    let rows = usize::from(area.height);
    let from = ends_at.saturating_sub(rows);
    frame.render_widget(Paragraph::new(lines.into_iter().skip(from).take(rows).collect::<Vec<_>>()), area);
}

fn line_of<'a>(before: String, line: ChainLine, style: Style) -> Line<'a> {
    let piece = |(at, piece): (usize, String)| {
        let style = if line.held_up_by == Some(at) { style.patch(BOLD) } else { style };
        [Span::styled(piece, style), Span::styled(" ", style)]
    };
    let pieces = line.pieces.into_iter().enumerate().flat_map(piece);
    Line::from_iter(std::iter::once(Span::styled(before, style)).chain(pieces))
}

/// A line, broken before the pieces that do not fit.
fn wrapped(line: Line<'_>, width: usize) -> Vec<Line<'_>> {
    let mut lines = vec![Line::default()];
    for piece in line.spans {
        let last = lines.len() - 1;
        if lines[last].width() + piece.width() > width && lines[last].width() > 2 {
            lines.push(Line::raw("  "));
        }
        let last = lines.len() - 1;
        lines[last].push_span(piece);
    }
    lines
}

/// One chain: its drawing, its bottleneck, its stages, its processes, and the history of its links.
fn detail(frame: &mut Frame<'_>, area: Rect, screen: &Screen, chain: &Chain) {
    let width = usize::from(area.width);
    let drawn = chains::lines(chain).into_iter().map(|line| line_of(String::new(), line, Style::new()));
    let mut lines: Vec<Line<'_>> = drawn.flat_map(|line| wrapped(line, width)).collect();
    let sentences = chains::sentences(chain, screen.snapshot.elapsed_ns);
    let said = sentences.iter().flat_map(|sentence| wrap(sentence, width));
    lines.extend(said.into_iter().map(|line| Line::styled(line, BOLD)));
    lines.push(Line::raw(""));
    let plain = report::Style { width: width.max(20), ..report::Style::default() };
    lines.extend(chains::table(chain).terminal(&plain).lines().map(|line| Line::raw(line.to_owned())));
    lines.push(Line::raw(""));
    for process in chain.stages.iter().flat_map(|stage| &stage.processes) {
        let command = model::one_line(&process.command);
        lines.push(Line::styled(format!(" {:>7} {command}", process.pid), DIM));
    }
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let [above, below] = Layout::vertical([Constraint::Length(rows), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(lines), above);
    history(frame, below, screen, chain);
}

/// The rate of each link, sample by sample.
fn history(frame: &mut Frame<'_>, area: Rect, screen: &Screen, chain: &Chain) {
    let each = area.height / u16::try_from(chain.links.len().max(1)).unwrap_or(u16::MAX);
    for (at, link) in chain.links.iter().enumerate().take_while(|_| each >= 2) {
        let rates: Vec<Option<u64>> = screen
            .history
            .get(&link.name)
            .map(|rates| rates.iter().map(|rate| rate.map(|rate| rate as u64)).collect())
            .unwrap_or_default();
        let most = rates.iter().copied().flatten().max();
        let most = most.map_or("peak unknown".to_owned(), |most| format!("peak {}", speed(most as f64)));
        let title = format!(" {} {} · {most}", link.kind, visible(&link.name));
        let y = area.y + at as u16 * each;
        frame.render_widget(Line::styled(title, DIM), Rect { y, height: 1, ..area });
        let room =
            Rect { y: y + 1, height: (each - 1).min(4), x: area.x + 1, width: area.width.saturating_sub(2) };
        let skipped = rates.len().saturating_sub(usize::from(room.width));
        frame.render_widget(
            Sparkline::default().data(rates[skipped..].to_vec()).absent_value_symbol("·"),
            room,
        );
    }
}
