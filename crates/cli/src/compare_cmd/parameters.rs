//! `-P NAME VALUES`: replaces `{NAME}` in command lines by each of several values.

use std::collections::BTreeMap;

use crate::terminal::usage;

/// Most pipelines; more are assumed to be a mistake.
const PIPELINES_MAX: usize = 1000;

/// The value of each parameter, by its name.
pub(super) type Values = BTreeMap<String, String>;

/// A name and its values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    name: String,
    values: Vec<String>,
}

/// Parses the arguments of each `-P`: a name and values, separated by commas; `\,` is a comma in a value.
///
/// # Errors
/// A name that is empty, contains braces, or occurs twice.
pub(super) fn read(typed: &[String]) -> anyhow::Result<Vec<Parameter>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for pair in typed.chunks_exact(2) {
        let (name, list) = (&pair[0], &pair[1]);
        if name.is_empty() || name.contains(['{', '}']) {
            return usage(format!(
                "`-P {name}`: the name must not be empty or contain braces, as in -P n 1,2,4"
            ));
        }
        if parameters.iter().any(|known| known.name == *name) {
            return usage(format!(
                "`-P {name}` is given twice: give all its values at once, as in -P {name} 1,2,4"
            ));
        }
        let values = list.replace("\\,", "\0").split(',').map(|value| value.replace('\0', ",")).collect();
        parameters.push(Parameter { name: name.clone(), values });
    }
    Ok(parameters)
}

/// For each text, every combination of the values of the parameters that occur in it or in one of `beside`, the command lines that run
/// before and after it; the last parameter changes first.
///
/// # Errors
/// A parameter occurs nowhere, or there are too many combinations.
pub(super) fn combined<'a>(
    texts: &'a [String],
    beside: &[&str],
    parameters: &[Parameter],
) -> anyhow::Result<Vec<(&'a str, Values)>> {
    let occurs = |parameter: &Parameter, text: &str| text.contains(&format!("{{{}}}", parameter.name));
    let occurs_beside = |parameter: &Parameter| beside.iter().any(|text| occurs(parameter, text));
    let nowhere = |parameter: &&Parameter| {
        !occurs_beside(parameter) && !texts.iter().any(|text| occurs(parameter, text))
    };
    if let Some(Parameter { name, .. }) = parameters.iter().find(nowhere) {
        return usage(format!("`-P {name}`: {{{name}}} is in no command line"));
    }
    let mut all = Vec::new();
    for text in texts {
        let mut combinations = vec![Values::new()];
        for parameter in parameters.iter().filter(|one| occurs(one, text) || occurs_beside(one)) {
            if combinations.len() * parameter.values.len() + all.len() > PIPELINES_MAX {
                return usage(format!("-P makes more than {PIPELINES_MAX} pipelines: give fewer values"));
            }
            let each = combinations.iter().flat_map(|values| {
                parameter.values.iter().map(|value| {
                    let own = (parameter.name.clone(), value.clone());
                    values.clone().into_iter().chain([own]).collect()
                })
            });
            combinations = each.collect();
        }
        all.extend(combinations.into_iter().map(|values| (text.as_str(), values)));
    }
    Ok(all)
}

/// The text with each `{NAME}` replaced by its value; other braces stay.
pub(super) fn filled(text: &str, values: &Values) -> String {
    model::filled(text, |name| values.get(name).cloned())
}

/// The name of the filled text in records. Values that do not occur in it follow as a comment, so that names differ.
pub(super) fn name_in_records(text: &str, values: &Values) -> String {
    let unused = values.iter().filter(|(name, _)| !text.contains(&format!("{{{name}}}")));
    let pairs: Vec<String> = unused.map(|(name, value)| format!("{name}={value}")).collect();
    let comment = if pairs.is_empty() { String::new() } else { format!(" # {}", pairs.join(" ")) };
    filled(text, values) + &comment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(typed: &[&str]) -> Vec<Parameter> {
        read(&typed.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).expect("parameters")
    }

    fn made(texts: &[&str], beside: &[&str], typed: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let all = combined(&texts, beside, &parameters(typed)).map_err(|problem| problem.to_string())?;
        Ok(all.iter().map(|(text, values)| name_in_records(text, values)).collect())
    }

    #[test]
    fn every_combination_of_what_stands_in_a_text() {
        let typed = ["n", "1,2", "flag", ",-r"];
        let all = made(&["sort {flag} f", "sort -S{n} {flag} f", "cat {f}"], &[], &typed);
        let expected = [
            "sort  f",
            "sort -r f",
            "sort -S1  f",
            "sort -S1 -r f",
            "sort -S2  f",
            "sort -S2 -r f",
            "cat {f}",
        ];
        assert_eq!(all.expect("combinations"), expected);
        assert_eq!(
            made(&["a {n}"], &[], &["n", "x\\,y,{n}"]),
            Ok(vec!["a x,y".to_owned(), "a {n}".to_owned()])
        );
        let beside = made(&["run"], &["make N={n}"], &["n", "1,2"]);
        assert_eq!(beside, Ok(vec!["run # n=1".to_owned(), "run # n=2".to_owned()]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(made(&["a {m}"], &[], &["n", "1"]).is_err_and(|problem| problem.contains("{n} is in no")));
        let many = "1,".repeat(100);
        let crowd = made(&["{a}{b}"], &[], &["a", &many, "b", &many]);
        assert!(crowd.is_err_and(|problem| problem.contains("1000")));
        for typed in [["", "1", "n", "1"], ["{n}", "1", "m", "1"], ["n", "1", "n", "2"]] {
            assert!(read(&typed.map(str::to_owned)).is_err(), "{typed:?}");
        }
    }
}
