//! Sentences with placeholders.

use model::filled_completely;

/// A text with its placeholders, as in "{name}", filled. A part in brackets is left out if one of its placeholders has no value or an empty one; the
/// whole is `None` if one outside of them has none.
pub(crate) fn fill_template(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let complete = |part: &str| filled_completely(part, |name| value(name).filter(|value| !value.is_empty()));
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('[') {
        let (inside, after) = behind.split_once(']')?;
        made += &complete(before)?;
        made += &complete(inside).unwrap_or_default();
        rest = after;
    }
    Some(made + &complete(rest)?)
}

#[cfg(test)]
mod tests {
    use super::fill_template;

    #[test]
    fn what_is_in_brackets_may_lack() {
        let value = |name: &str| match name {
            "a" => Some("{b}".to_owned()),
            "b" => Some("2".to_owned()),
            "empty" => Some(String::new()),
            _ => None,
        };
        let filled = |text| fill_template(text, &value);
        assert_eq!(
            filled("{a}[, {b}][ {other}][ {empty}]."),
            Some("{b}, 2.".to_owned()),
            "values are not filled"
        );
        assert_eq!([filled("{other}"), filled("{empty}"), filled("[{b}")], [None, None, None]);
    }
}
