//! The rules of `rules.toml`: which stages each is for, and what it makes of them.

use std::path::Path;
use std::sync::LazyLock;

use model::file_on_path;
use serde::Deserialize;

use super::text::{Pipeline, Stage, Word};

/// What may make a stage, or several in a row, faster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it does, in Markdown.
    pub what: String,
    /// Why the output is the same, by construction; `None` if that is only so for the input at hand.
    pub equal: Option<String>,
    /// On which input the output would be another one.
    pub differs: Option<String>,
    /// Where what it relies on is documented.
    pub source: String,
    /// A program that it needs.
    needs: Option<String>,
    stage: Vec<Part>,
}

/// What one of the stages must be, and what becomes of it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Part {
    programs: Vec<String>,
    options: Option<Vec<String>>,
    arguments: Option<Vec<String>>,
    with: Vec<String>,
    lacks: Vec<String>,
    lacks_programs: Vec<String>,
    operands: Option<usize>,
    literal: bool,
    file: bool,
    count: bool,
    field: bool,
    variables: Vec<String>,
    insert: Vec<String>,
    drop: Vec<String>,
    program: Option<String>,
    words: Vec<String>,
    before: Vec<String>,
    unwrap: bool,
    remove: bool,
    input: bool,
}

/// What the stages of a rule say to each other.
#[derive(Debug, Default)]
struct Found {
    /// A word, as typed.
    file: Option<String>,
    count: Option<String>,
    field: Option<String>,
}

/// All rules.
pub fn rules() -> &'static [Rule] {
    #[derive(Default, Deserialize)]
    struct Rules {
        rule: Vec<Rule>,
    }
    // A test reads the file; a program whose file cannot be read has no rules.
    static RULES: LazyLock<Rules> =
        LazyLock::new(|| toml::from_str(include_str!("rules.toml")).unwrap_or_default());
    &RULES.rule
}

/// The rules whose programs are on this machine; they are looked for once.
pub fn available() -> &'static [&'static Rule] {
    static AVAILABLE: LazyLock<Vec<&Rule>> =
        LazyLock::new(|| rules().iter().filter(|rule| rule.is_available()).collect());
    &AVAILABLE
}

impl Rule {
    /// Number of stages that it is for, in a row.
    pub fn stages(&self) -> usize {
        self.stage.len()
    }

    /// Whether the programs that it starts are on PATH.
    fn is_available(&self) -> bool {
        let starts = self.stage.iter().flat_map(|part| [part.words.first(), part.before.first()]).flatten();
        self.needs.iter().chain(starts).all(|name| file_on_path(name).is_some())
    }

    /// Whether all words of the stages at a place are known: else one of them may be an option.
    pub fn knows_words(&self, pipeline: &Pipeline, place: usize) -> bool {
        let stages = (place..place + self.stages()).filter_map(|at| pipeline.at(at));
        stages.flat_map(|stage| &stage.words).all(|word| word.value.is_some())
    }

    /// The pipeline with this rule applied at a place; `None` where it does not hold.
    pub fn apply(&self, pipeline: &Pipeline, place: usize) -> Option<Pipeline> {
        let stages: Option<Vec<&Stage>> = (place..place + self.stages()).map(|at| pipeline.at(at)).collect();
        let stages = stages?;
        let mut found = Found::default();
        let parts = || self.stage.iter().zip(&stages);
        if !parts().all(|(part, stage)| part.holds(stage, &mut found)) || self.is_in_use(&stages) {
            return None;
        }
        let mut changed = pipeline.clone();
        // A new command does the work of several stages, of which one may have a variable.
        let mut variables: Vec<String> = Vec::new();
        for variable in stages.iter().flat_map(|stage| &stage.variables) {
            if !variables.contains(variable) {
                variables.push(variable.clone());
            }
        }
        for (at, (part, stage)) in (place..).zip(parts()) {
            changed.places[at] = part.change(stage, &variables, &found)?;
        }
        Some(changed)
    }

    /// Whether a name such as `awk` is already that of the program that would replace it.
    fn is_in_use(&self, stages: &[&Stage]) -> bool {
        let real = |name: &str| file_on_path(name)?.canonicalize().ok();
        self.stage.iter().zip(stages).any(|(part, stage)| {
            part.program
                .as_deref()
                .and_then(real)
                .is_some_and(|new| stage.program().and_then(real) == Some(new))
        })
    }
}

impl Part {
    fn holds(&self, stage: &Stage, found: &mut Found) -> bool {
        let Some(program) = stage.program() else {
            return self.programs.is_empty() && self.input && !stage.has_input();
        };
        let is_among = |names: &[String]| names.iter().any(|name| name == program);
        if !self.programs.is_empty() && !is_among(&self.programs) || is_among(&self.lacks_programs) {
            return false;
        }
        let arguments: Option<Vec<&str>> =
            stage.arguments().iter().map(|word| word.value.as_deref()).collect();
        // What only the shell knows may be an operand, or part of one; it may not decide anything.
        let known: Vec<&str> =
            stage.arguments().iter().map(|word| word.value.as_deref().unwrap_or("?")).collect();
        let begins = |with: &[String]| {
            known.iter().any(|word| with.iter().any(|beginning| word.starts_with(beginning.as_str())))
        };
        let is_option = |word: &str| word.len() > 1 && word.starts_with('-');
        let operands: Vec<&Word> = operands(stage).collect();
        let only = |allowed: &Vec<String>| {
            known.iter().filter(|word| is_option(word)).all(|word| allowed.iter().any(|one| one == word))
        };
        let is_line =
            |lines: &Vec<String>| arguments.as_ref().is_some_and(|words| lines.contains(&words.join(" ")));
        let holds = self.options.as_ref().is_none_or(only)
            && self.arguments.as_ref().is_none_or(is_line)
            && (self.with.is_empty() || begins(&self.with))
            && !begins(&self.lacks)
            && self.operands.is_none_or(|most| operands.len() <= most)
            && (!self.literal || operands.first().is_some_and(|word| is_literal(word)))
            && (!self.input || !stage.has_input());
        if self.file {
            // `-` is the standard input for cat.
            let is_file = |name: &&String| *name != "-" && Path::new(name).is_file();
            let is_regular = |word: &&&Word| word.value.as_ref().filter(is_file).is_some();
            let only = (operands.len() == 1 && !stage.has_input()).then(|| operands[0]);
            found.file = only.as_ref().filter(is_regular).map(|word| word.text.clone());
        }
        if self.count {
            found.count = arguments.as_deref().and_then(lines_of_head);
        }
        if self.field {
            found.field = arguments.as_deref().and_then(printed_field);
        }
        holds
            && (!self.field || found.field.is_some())
            && (!self.file || found.file.is_some())
            && (!self.count || found.count.is_some())
    }

    /// What takes the place of a stage; `None` if nothing would change, but for a stage that is only looked at.
    fn change(&self, stage: &Stage, variables: &[String], found: &Found) -> Option<Vec<Stage>> {
        if self.remove {
            // Where its messages go would be lost.
            return stage.redirections.is_empty().then(Vec::new);
        }
        let mut new = stage.clone();
        let filled = |texts: &[String]| -> Option<Vec<Word>> {
            let words: Option<Vec<Vec<Word>>> = texts.iter().map(|text| fill(text, stage, found)).collect();
            words.map(|words| words.concat())
        };
        let mut before = Vec::new();
        if !self.before.is_empty() {
            let (input, others) =
                stage.redirections.iter().cloned().partition(|typed: &String| typed.starts_with('<'));
            before.push(Stage { words: filled(&self.before)?, redirections: input, ..stage.clone() });
            let arguments = stage.arguments().iter();
            let options = arguments.filter(|word| operands(stage).all(|operand| operand != *word)).cloned();
            new.words = stage.words.first().cloned().into_iter().chain(options).collect();
            new.redirections = others;
        }
        if !self.words.is_empty() {
            new.words = filled(&self.words)?;
            new.variables = variables.to_vec();
        }
        if let Some(program) = &self.program {
            *new.words.first_mut()? = Word::new(program);
        }
        let at_front = new.words.len().min(1);
        new.words.splice(at_front..at_front, filled(&self.insert)?);
        if !self.drop.is_empty() {
            new.words = without(&new.words, &self.drop)?;
        }
        if self.unwrap {
            new.words = unwrapped(&new.words)?;
        }
        for variable in &self.variables {
            if new.variables.contains(variable) {
                return None;
            }
            new.variables.push(variable.clone());
        }
        if self.input {
            new.redirections.push(format!("<{}", found.file.as_ref()?));
        }
        before.push(new);
        Some(before)
    }
}

/// The arguments that are no options.
fn operands(stage: &Stage) -> impl Iterator<Item = &Word> {
    let value = |word: &Word| word.value.clone().unwrap_or_else(|| word.text.clone());
    stage.arguments().iter().filter(move |word| !value(word).starts_with('-') || value(word) == "-")
}

/// A text of a rule as words. `None` for operands that awk(1) would take for assignments.
fn fill(text: &str, stage: &Stage, found: &Found) -> Option<Vec<Word>> {
    if text == "{operands}" {
        // The first operand of awk is its program.
        let programs =
            usize::from(found.field.is_some() && stage.program().is_some_and(|name| name.ends_with("awk")));
        let operands: Vec<Word> = operands(stage).skip(programs).cloned().collect();
        return operands.iter().all(|word| !word.text.contains('=')).then_some(operands);
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let text = text.replace("{cpus}", &cpus.to_string());
    let text = text.replace("{field}", found.field.as_deref().unwrap_or_default());
    Some(vec![Word::new(&text.replace("{count}", found.count.as_deref().unwrap_or_default()))])
}

/// Whether no regular expression has more characters for it than those it consists of.
fn is_literal(word: &Word) -> bool {
    let Some(pattern) = &word.value else { return false };
    !pattern.is_empty()
        && !pattern.contains(['\\', '.', '*', '[', ']', '^', '$', '+', '?', '(', ')', '{', '}', '|', '\n'])
}

/// The field that awk prints of each line, if that is all it does.
fn printed_field(arguments: &[&str]) -> Option<String> {
    let program = arguments.first()?.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let number = program.trim_end_matches(';').strip_prefix("print")?.trim().strip_prefix('$')?;
    number.parse::<u32>().ok().map(|number| number.to_string())
}

/// The number of lines that `head` prints with these arguments.
fn lines_of_head(arguments: &[&str]) -> Option<String> {
    let number = match arguments {
        [] => "10",
        ["-n", number] => number,
        [one] => one.strip_prefix("-n").or_else(|| one.strip_prefix('-'))?,
        _ => return None,
    };
    let is_number = number.bytes().all(|letter| letter.is_ascii_digit());
    number.parse::<u32>().ok().filter(|lines| is_number && *lines > 0).map(|lines| lines.to_string())
}

/// The command that stdbuf(1) starts; `None` where a shell would run it itself.
fn unwrapped(words: &[Word]) -> Option<Vec<Word>> {
    const OF_SHELLS: &[&str] = &["printf", "echo", "time", "kill", "test", "[", "pwd"];
    let mut at = 1;
    while let Some(option) = words.get(at).filter(|word| word.text.starts_with('-')) {
        at += if ["-i", "-o", "-e"].contains(&option.text.as_str()) { 2 } else { 1 };
    }
    let inner = words.get(at..)?.to_vec();
    let name = inner.first()?.value.as_deref()?;
    (!OF_SHELLS.contains(&name)).then_some(inner)
}

/// Words without these options, of which some have a value in a word of its own; `None` if there is none of them. What stands behind the first
/// operand may be an option of something else.
fn without(words: &[Word], dropped: &[String]) -> Option<Vec<Word>> {
    let found = |at: usize, text: &String| {
        let parts = text.split(' ').count();
        let typed: Vec<&str> = words.get(at..at + parts)?.iter().map(|word| word.text.as_str()).collect();
        (typed.join(" ") == *text).then_some(parts)
    };
    let (mut kept, mut at) = (words[..words.len().min(1)].to_vec(), 1);
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        match dropped.iter().find_map(|text| found(at, text)) {
            Some(parts) => at += parts,
            None => {
                kept.push(word.clone());
                at += 1;
            }
        }
    }
    kept.extend_from_slice(&words[at.min(words.len())..]);
    (kept.len() < words.len()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Rules {
        rule: Vec<Rule>,
    }

    /// All that the rules make of a text.
    fn all(text: &str) -> Vec<(String, String)> {
        let pipeline = Pipeline::parse(text).expect("plain");
        let places = 0..pipeline.places.len();
        let tried = places.flat_map(|place| rules().iter().map(move |rule| (place, rule)));
        tried
            .filter_map(|(place, rule)| {
                Some((format!("{}@{}", rule.name, place + 1), rule.apply(&pipeline, place)?.to_string()))
            })
            .collect()
    }

    fn made(text: &str, rule: &str) -> Option<String> {
        all(text).into_iter().find_map(|(name, text)| (name == rule).then_some(text))
    }

    #[test]
    fn the_table_can_be_read_and_each_rule_says_whether_the_output_is_the_same() {
        let read: Rules = toml::from_str(include_str!("rules.toml")).expect("the table");
        assert!(read.rule.len() > 20);
        for rule in &read.rule {
            assert!(rule.equal.is_some() != rule.differs.is_some(), "{}: one of the two", rule.name);
            assert!(!rule.stage.is_empty() && !rule.source.is_empty(), "{}", rule.name);
        }
    }

    /// docs/TUNE.md has a row for each rule.
    #[test]
    fn the_page_has_every_rule() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/TUNE.md");
        let row = |rule: &Rule| {
            let equal = rule.equal.as_ref().map(|because| format!("always: {because}"));
            let here = rule.differs.as_ref().map(|differs| format!("here; {differs}"));
            let cells = [
                format!("`{}`", rule.name),
                rule.what.clone(),
                equal.or(here).unwrap_or_default(),
                rule.source.clone(),
            ];
            format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
        };
        let rows: String = rules().iter().map(row).collect();
        let page = std::fs::read_to_string(&file).expect("docs/TUNE.md");
        let head = "| rule | what | the output is the same | source |\n|---|---|---|---|\n";
        let (before, rest) = page.split_once(head).expect("the table");
        let behind = rest.split_once("\n\n").map_or("", |(_, behind)| behind);
        let made = format!("{before}{head}{rows}\n{behind}");
        if std::env::var_os("HOSEPIPE_WRITE_TUNE").is_some() {
            std::fs::write(&file, &made).expect("written");
        }
        let kept = std::fs::read_to_string(&file).expect("docs/TUNE.md");
        assert!(
            kept == made,
            "docs/TUNE.md is stale: HOSEPIPE_WRITE_TUNE=1 cargo test -p hosepipe-pipeline --lib tune"
        );
    }

    #[test]
    fn sorted_counts_become_counts_by_hash() {
        let text = r#"cut -d" " -f7 | sort | uniq -c | sort -rn"#;
        let awk = r#"awk '{n[$0]++} END {for (line in n) printf "%7d %s\n", n[line], line}'"#;
        assert_eq!(
            made(text, "count-by-hash-and-order@2").as_deref(),
            Some(&*format!(r#"cut -d" " -f7 | {awk} | sort -rn"#))
        );
        assert_eq!(
            made(text, "count-by-hash@2").as_deref(),
            Some(&*format!(r#"cut -d" " -f7 | {awk} | sort -k1.9 | sort -rn"#))
        );
        assert_eq!(
            made("awk '{ print $6 }' f | sort | uniq -c | sort -rn", "count-fields-and-order@1").as_deref(),
            Some(r#"awk '{n[$6]++} END {for (line in n) printf "%7d %s\n", n[line], line}' f | sort -rn"#)
        );
        assert_eq!(made("awk -F, '{print $6}' | sort | uniq -c", "count-fields@1"), None);
        assert_eq!(made("awk '{print $6, $7}' | sort | uniq -c", "count-fields@1"), None);
        let made_of_bytes = made("LC_ALL=C sort | uniq -c", "count-by-hash@1").expect("it holds");
        assert!(
            made_of_bytes.starts_with("LC_ALL=C awk") && made_of_bytes.ends_with("| LC_ALL=C sort -k1.9")
        );
        assert_eq!(made("sort -k2 | uniq -c", "count-by-hash@1"), None, "only whole lines are counted");
        assert_eq!(made("sort f | uniq", "sort-unique@1").as_deref(), Some("sort -u f"));
        assert_eq!(
            made("sort -u f <g 2>/dev/null", "sort-unique-by-hash@1").as_deref(),
            Some("awk '!n[$0]++' f <g | sort -u 2>/dev/null")
        );
    }

    #[test]
    fn each_kind_of_change_is_made_where_it_holds() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let name = file.path().display().to_string();
        assert_eq!(
            made(&format!("cat {name} | wc -l"), "input-from-file-here@1"),
            Some(format!("wc -l <{name}"))
        );
        assert_eq!(made("cat /nonexistent | wc -l", "input-from-file@1"), None);
        assert_eq!(made(&format!("cat -n {name} | wc -l"), "input-from-file@1"), None);
        assert_eq!(made(&format!("cat {name} {name} | wc -l"), "input-from-file@1"), None);
        let text = "x=1 grep -v GET log | wc -l";
        assert_eq!(made(text, "count-matches@1").as_deref(), Some("x=1 grep -c -v GET log"));
        assert_eq!(made(text, "literal@1").as_deref(), Some("x=1 grep -F -v GET log | wc -l"));
        assert_eq!(made(text, "bytes@1").as_deref(), Some("x=1 LC_ALL=C grep -v GET log | wc -l"));
        assert_eq!(made("LC_ALL=C grep x", "bytes@1"), None);
        assert_eq!(made("grep -o x | wc -l", "count-matches@1"), None, "-o prints several of a line");
        assert_eq!(made("grep x a b | wc -l", "count-matches@1"), None, "-c prints one for each file");
        assert_eq!(made("grep x | head -n5", "first-matches@1").as_deref(), Some("grep -m 5 x"));
        assert_eq!(made("grep x | head -c5", "first-matches@1"), None);
        assert_eq!(made("grep x | head -n -5", "first-matches@1"), None);
        assert_eq!(made("grep 'a.b'", "literal@1"), None);
        assert_eq!(
            made("grep --line-buffered -v x | cat", "no-line-buffer@1").as_deref(),
            Some("grep -v x | cat")
        );
        assert_eq!(made("stdbuf -oL tr a b", "no-stdbuf@1").as_deref(), Some("tr a b"));
        assert_eq!(made("stdbuf -o L -i0 tr a b", "no-stdbuf@1").as_deref(), Some("tr a b"));
        assert_eq!(made("stdbuf -oL printf %q 'a b'", "no-stdbuf@1"), None, "a shell has its own");
        assert_eq!(
            made("sort x=1 | uniq -c", "count-by-hash@1"),
            None,
            "awk would take it for an assignment"
        );
        assert_eq!(made("python3 x.py -u", "no-buffer-python@1"), None, "an option of x.py");
        assert_eq!(made("cat | wc -l", "input-from-file@1"), None);
        assert_eq!(made("cat - | wc -l", "input-from-file@1"), None);
        assert_eq!(made("xargs -n 1 echo", "more-arguments@1").as_deref(), Some("xargs echo"));
        assert_eq!(made("dd if=f", "blocks@1").as_deref(), Some("dd bs=128K if=f"));
        assert_eq!(made("dd if=f bs=4k", "blocks@1"), None);
        assert_eq!(made("sort -S1G", "sort-memory@1"), None);
    }

    #[test]
    fn what_only_the_shell_knows_decides_nothing() {
        assert_eq!(made("grep $x log | wc -l", "literal@1"), None);
        assert_eq!(made("sort $x | uniq $y", "sort-unique@1"), None);
        assert_eq!(made("$sort | uniq -c", "count-by-hash@1"), None);
    }

    #[test]
    fn a_changed_pipeline_can_be_changed_again() {
        let pipeline = Pipeline::parse("sort | uniq -c | sort -rn").expect("plain");
        let rule = |name: &str| rules().iter().find(|rule| rule.name == name).expect("a rule");
        let once = rule("count-by-hash-and-order").apply(&pipeline, 0).expect("it holds");
        let twice = rule("bytes").apply(&once, 0).expect("it holds");
        assert!(twice.to_string().starts_with("LC_ALL=C awk"));
        assert!(rule("count-by-hash").apply(&once, 0).is_none());
        assert!(rule("bytes").apply(&once, 1).is_none(), "nothing is left there");
        assert!(rule("bytes").apply(&once, 2).is_some());
    }
}
