//! Texts with values in braces.

/// The text with each `{name}` replaced by its value. A brace that begins no name with a value stays.
pub fn filled(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        made.push_str(before);
        match behind.split_once('}').and_then(|(name, after)| Some((value(name)?, after))) {
            Some((value, after)) => {
                made.push_str(&value);
                rest = after;
            }
            None => {
                made.push('{');
                rest = behind;
            }
        }
    }
    made + rest
}

/// The same; `None` if a name in braces has no value.
pub fn filled_completely(text: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_complete = std::cell::Cell::new(true);
    let made = filled(text, |name| {
        let found = value(name);
        is_complete.set(is_complete.get() && found.is_some());
        found
    });
    is_complete.get().then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_values_are_replaced() {
        let value = |name: &str| (name == "n").then(|| "1".to_owned());
        for (text, expected) in [("awk '{print $1}' {{n}} {n", "awk '{print $1}' {1} {n"), ("{a{n}}", "{a1}")]
        {
            assert_eq!(filled(text, value), expected);
        }
        assert_eq!(filled_completely("{n} of {n}", value).as_deref(), Some("1 of 1"));
        assert_eq!(
            [filled_completely("{n} {m}", value), filled_completely("{", value)],
            [None, Some("{".to_owned())]
        );
    }
}
