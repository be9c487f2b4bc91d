//! `$!` at a prompt: the shells that run its lines have not started what runs behind it, so the number is put into
//! their text.

use std::borrow::Cow;

/// How `$!` is written.
const NAMES: [&str; 2] = ["${!}", "$!"];

/// The text with `$!` replaced where a shell would expand it; nothing stands for it where there is no number. A text
/// that puts something into the background by itself is left alone: there it means that.
pub(crate) fn put_in(text: &str, pid: Option<i32>) -> Cow<'_, str> {
    if !NAMES.iter().any(|name| text.contains(name)) {
        return Cow::Borrowed(text);
    }
    let number = pid.map(|pid| pid.to_string()).unwrap_or_default();
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    let (mut single, mut double) = (false, false);
    while let Some(first) = rest.chars().next() {
        if !single && let Some(name) = NAMES.iter().find(|name| rest.starts_with(**name)) {
            made.push_str(&number);
            rest = &rest[name.len()..];
            continue;
        }
        let mut length = first.len_utf8();
        match first {
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '\\' if !single => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            '&' if !single && !double => {
                let joined = made.ends_with(['<', '>', '|']) || rest[1..].starts_with(['&', '>']);
                if !joined {
                    return Cow::Borrowed(text);
                }
                length += usize::from(rest[1..].starts_with('&'));
            }
            _ => {}
        }
        made.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Cow::Owned(made)
}

#[cfg(test)]
mod tests {
    use super::put_in;

    #[test]
    fn it_stands_where_a_shell_would_expand_it() {
        assert_eq!(put_in("kill $!; echo \"pid ${!}\"", Some(42)), "kill 42; echo \"pid 42\"");
        assert_eq!(put_in("x=$! && echo $! 2>&1", Some(7)), "x=7 && echo 7 2>&1");
        assert_eq!(put_in("echo '$!' \\$! \"it's $!\"", Some(7)), "echo '$!' \\$! \"it's 7\"");
        assert_eq!(put_in("echo \"$!\"", None), "echo \"\"");
    }

    #[test]
    fn a_text_with_a_background_of_its_own_keeps_its_own() {
        for text in ["(sleep 1 & echo $!)", "sleep 1 & wait $!", "ls | wc"] {
            assert_eq!(put_in(text, Some(7)), text);
        }
    }
}
