//! The stages of a pipeline as the user typed them.

/// The stages of a text as the user typed them, if it certainly is one pipeline of `count` stages; otherwise none. (Only a shell can parse
/// every text.)
pub(crate) fn typed_stages(text: &str, count: usize) -> Vec<&str> {
    let stages: Vec<&str> = text.split('|').map(str::trim).collect();
    let is_one = |stage: &&str| {
        let is_compound = ["done", "fi", "esac", "}", ")"].iter().any(|end| stage.ends_with(end));
        is_compound || !outside_quotes(stage).contains([';', '&', '\n'])
    };
    if stages.len() == count && stages.iter().all(is_one) { stages } else { Vec::new() }
}

/// What is outside of quotes; all of it where a backslash may end a quote in another place.
fn outside_quotes(stage: &str) -> String {
    let mut quote = None;
    let is_outside = |letter: &char| {
        match quote {
            None if matches!(letter, '\'' | '"') => quote = Some(*letter),
            Some(open) if open == *letter => quote = None,
            _ => return quote.is_none(),
        }
        false
    };
    if stage.contains('\\') { stage.to_owned() } else { stage.chars().filter(is_outside).collect() }
}
