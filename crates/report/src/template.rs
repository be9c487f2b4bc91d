//! Sentences with placeholders.

/// A text with its placeholders, as in "{name}", filled. A part in brackets is left out if one of its placeholders has no value or an empty one; the
/// whole is `None` if one outside of them has none.
pub(crate) fn filled(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', '{']) {
        filled += &rest[..at];
        let may_lack = rest[at..].starts_with('[');
        let (inside, after) = rest[at + 1..].split_once(if may_lack { ']' } else { '}' })?;
        filled += &match may_lack {
            true => self::filled(inside, value).unwrap_or_default(),
            false => value(inside).filter(|value| !value.is_empty())?,
        };
        rest = after;
    }
    Some(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn what_is_in_brackets_may_lack() {
        let value = |name: &str| match name {
            "a" => Some("{b}".to_owned()),
            "b" => Some("2".to_owned()),
            "empty" => Some(String::new()),
            _ => None,
        };
        let filled = |text| filled(text, &value);
        assert_eq!(
            filled("{a}[, {b}][ {other}][ {empty}]."),
            Some("{b}, 2.".to_owned()),
            "values are not filled"
        );
        assert_eq!([filled("{other}"), filled("{empty}"), filled("[{b}")], [None, None, None]);
    }
}
