//! The words, operators and redirections of a text in the syntax of sh(1), each with its place. Nothing is expanded.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// Where it begins.
    pub(super) at: usize,
    /// As typed.
    pub(super) text: &'a str,
    pub(super) kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Word {
        /// What a program gets; `None` if only the shell knows, because of a variable, a command or a pattern for file names.
        value: Option<String>,
        /// The texts of commands whose output is a part of it, or whose output or input it names.
        commands: Vec<&'a str>,
    },
    /// `<`, `>`, `2>&` and the like, before the word that names the file.
    Redirection,
    /// What stands between commands: `|`, `;`, `&&`, a parenthesis, a line end.
    Operator,
}

/// The tokens of a text; `None` if a quote, or a command in a word, does not end.
pub(super) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token()? {
        let is_continued =
            tokens.last().is_some_and(|last: &Token<'_>| last.text == "|" && last.kind == Kind::Operator);
        // A line may end behind a `|`.
        if token.text != "\n" || !is_continued {
            tokens.push(token);
        }
    }
    Some(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes on if one of these comes next, the first of them; longer ones have to be first.
    fn skip(&mut self, texts: &[&str]) -> bool {
        let found = texts.iter().find(|text| self.rest().starts_with(**text));
        self.at += found.map_or(0, |text| text.len());
        found.is_some()
    }

    /// The next token: outside it is `None` where something does not end, inside at the end of the text.
    fn token(&mut self) -> Option<Option<Token<'a>>> {
        while self.skip(&[" ", "\t", "\\\n"]) {}
        if self.rest().starts_with('#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
        let at = self.at;
        if self.peek().is_none() {
            return Some(None);
        }
        let kind = if self.is_redirection() {
            self.skip(&["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"]);
            Kind::Redirection
        } else if self.skip(&["||", "|&", "|", "&&", "&", ";;", ";", "(", ")", "\n"]) {
            Kind::Operator
        } else {
            self.word()?
        };
        Some(Some(Token { at, text: &self.text[at..self.at], kind }))
    }

    /// Whether a redirection comes next, perhaps after the number of its descriptor, which is skipped.
    fn is_redirection(&mut self) -> bool {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let behind = &self.rest()[digits..];
        let is_it = behind.starts_with(['<', '>']) && !behind.starts_with("<(") && !behind.starts_with(">(");
        self.at += if is_it { digits } else { 0 };
        is_it || self.rest().starts_with("&>")
    }

    fn word(&mut self) -> Option<Kind<'a>> {
        let (mut value, mut commands, mut is_quoted) = (Some(String::new()), Vec::new(), false);
        let begin = self.at;
        while let Some(letter) = self.peek() {
            if !is_quoted && self.skip(&["<(", ">("]) || self.skip(&["$("]) {
                commands.push(self.command()?);
                value = None;
                continue;
            }
            if !is_quoted && " \t\n|&;()<>".contains(letter) {
                break;
            }
            self.at += letter.len_utf8();
            match letter {
                '"' => is_quoted = !is_quoted,
                '\'' if !is_quoted => {
                    let end = self.rest().find('\'')?;
                    value.iter_mut().for_each(|value| value.push_str(&self.rest()[..end]));
                    self.at += end + 1;
                }
                '`' => {
                    let end = self.rest().find('`')?;
                    commands.push(&self.rest()[..end]);
                    self.at += end + 1;
                    value = None;
                }
                '\\' => {
                    let escaped = self.peek()?;
                    self.at += escaped.len_utf8();
                    let keeps = is_quoted && !"$`\"\\".contains(escaped);
                    let letters = keeps.then_some('\\').into_iter().chain([escaped]);
                    value.iter_mut().for_each(|value| value.extend(letters.clone()));
                }
                '$' if self.begins_expansion(is_quoted) => {
                    if self.skip(&["{"]) {
                        commands.extend(self.parameter()?);
                    } else if !is_quoted && self.skip(&["'"]) {
                        let mut is_escaped = false;
                        let is_end = |(_, letter): &(usize, char)| {
                            let ends = *letter == '\'' && !is_escaped;
                            is_escaped = *letter == '\\' && !is_escaped;
                            ends
                        };
                        self.at += self.rest().char_indices().find(is_end)?.0 + 1;
                    }
                    value = None;
                }
                '*' | '?' | '[' | '{' if !is_quoted => value = None,
                '~' if !is_quoted && self.at == begin + 1 => value = None,
                _ => value.iter_mut().for_each(|value| value.push(letter)),
            }
        }
        (!is_quoted).then_some(Kind::Word { value, commands })
    }

    /// Reads up to the brace that ends a parameter, and returns the commands in it.
    fn parameter(&mut self) -> Option<Vec<&'a str>> {
        let (begin, mut depth) = (self.at, 0);
        let mut is_escaped = false;
        let end = self.rest().char_indices().find(|(at, letter)| {
            let was_escaped = is_escaped;
            is_escaped = *letter == '\\' && !was_escaped;
            match letter {
                _ if was_escaped => return false,
                '{' if self.text[begin..begin + at].ends_with('$') => depth += 1,
                '}' if depth == 0 => return true,
                '}' => depth -= 1,
                _ => {}
            }
            false
        })?;
        self.at += end.0 + 1;
        let inner = &self.text[begin..begin + end.0];
        let commands = tokens(inner)?.into_iter().filter_map(|token| match token.kind {
            Kind::Word { commands, .. } => Some(commands),
            Kind::Redirection | Kind::Operator => None,
        });
        Some(commands.flatten().collect())
    }

    /// Whether a `$` that was just read is not one itself. `$'…'` and `$"…"` have escapes and translations.
    fn begins_expansion(&self, is_quoted: bool) -> bool {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_{@*#?$!-".contains(letter);
        self.peek().is_some_and(|next| is_name(next) || !is_quoted && matches!(next, '\'' | '"'))
    }

    /// The text up to the parenthesis that ends a command.
    fn command(&mut self) -> Option<&'a str> {
        let (begin, mut depth) = (self.at, 0);
        loop {
            let token = self.token()??;
            match (&token.kind, token.text) {
                (Kind::Operator, "(") => depth += 1,
                (Kind::Operator, ")") if depth == 0 => return Some(&self.text[begin..token.at]),
                (Kind::Operator, ")") => depth -= 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<&str> {
        tokens(text).expect("it ends").iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_operators_and_redirections_are_told_apart() {
        assert_eq!(
            read("a|b||c |& d&&e&f;g\n(h)"),
            ["a", "|", "b", "||", "c", "|&", "d", "&&", "e", "&", "f", ";", "g", "\n", "(", "h", ")"]
        );
        assert_eq!(read("a 2>&1 >f 10<g &>h"), ["a", "2>&", "1", ">", "f", "10<", "g", "&>", "h"]);
        assert_eq!(
            read("a 'b; c' \"d | $(e \")\" | f)\" # g\nh"),
            ["a", "'b; c'", "\"d | $(e \")\" | f)\"", "\n", "h"]
        );
        assert_eq!(read(r"a $'b\'; c' d"), ["a", r"$'b\'; c'", "d"]);
        assert_eq!(read("a <(b | c) ${d:-e f} \\\n g"), ["a", "<(b | c)", "${d:-e f}", "g"]);
        for open in ["a 'b", "a \"b", "a $(b", "a `b", "a ${b", "a \\"] {
            assert_eq!(tokens(open), None, "{open}");
        }
    }

    #[test]
    fn commands_in_words_are_found() {
        let commands = |text| match tokens(text).expect("it ends").remove(0).kind {
            Kind::Word { commands, .. } => commands,
            kind => panic!("{kind:?}"),
        };
        assert_eq!(commands("\"x $(a \"b)\" | (c)) `d`\"$((1 + 2))"), ["a \"b)\" | (c)", "d", "(1 + 2)"]);
        assert_eq!(commands("'$(a)'"), Vec::<&str>::new());
        assert_eq!(commands("${x:-$(a)${y:-`b`}}z"), ["a", "b"]);
    }

    /// Every word whose value is known is what bash makes of it.
    #[test]
    fn values_are_those_of_bash() {
        for text in [r#"'a b'"c d"e\ f g\'h"#, r#""a\b" "a\"" 'x"y' "p$" a$"#, r"\\ \$x '$y' x=1 a%b,c"] {
            let mut bash = std::process::Command::new("bash");
            bash.args(["-c", &format!("printf '%s\\n' {text}")]).stdout(std::process::Stdio::piped());
            let (_, printed) = process::output(&mut bash).expect("bash");
            let value = |token: Token<'_>| match token.kind {
                Kind::Word { value, .. } => value,
                kind => panic!("{kind:?}"),
            };
            let ours: Option<Vec<String>> = tokens(text).expect("it ends").into_iter().map(value).collect();
            assert_eq!(ours.map(|words| words.join("\n") + "\n"), String::from_utf8(printed).ok(), "{text}");
        }
    }
}
