//! The prompt: folder, link, last status.

use std::borrow::Cow;
use std::path::Path;

use model::visible;
use nu_ansi_term::{Color as Ansi, Style};
use reedline::{Color, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus};

/// A prompt as it is shown once.
pub(crate) struct Shown {
    text: String,
}

impl Shown {
    /// Fills a template in: `{dir}`, `{link}` and `{status}`, which is empty where it is 0.
    pub(crate) fn new(template: &str, link: &str, status: i32, colours: bool) -> Self {
        let paint = |style: Style, text: String| {
            let text = visible(&text);
            if colours && !text.is_empty() { style.paint(text).to_string() } else { text }
        };
        let status = if status == 0 { String::new() } else { format!(" {status}") };
        let text = visible(template)
            .replace("{dir}", &paint(Ansi::Blue.bold(), folder()))
            .replace("{link}", &paint(Ansi::Cyan.normal(), link.to_owned()))
            .replace("{status}", &paint(Ansi::Red.bold(), status));
        Self { text }
    }
}

/// The working directory, with `~` for home.
fn folder() -> String {
    let Ok(folder) = std::env::current_dir() else { return "?".to_owned() };
    let home = std::env::var_os("HOME").filter(|home| Path::new(home).parent().is_some());
    match home.and_then(|home| folder.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}

impl Prompt for Shown {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing for ",
        };
        Cow::Owned(format!("({failing}earlier line with: {}) ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        Color::Reset
    }
}
