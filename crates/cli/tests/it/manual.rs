//! `hosepipe manual`: a page for each verb, whole, and without warnings of groff(1).

use std::fs;
use std::process::Command;

use crate::common::{Lab, files_in, skip};

const SECTIONS: [&str; 8] = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "\"EXIT STATUS\"",
    "ENVIRONMENT",
    "EXAMPLES",
    "\"SEE ALSO\"",
];

#[test]
fn every_verb_has_a_page_with_all_sections_and_groff_has_no_warning() {
    let lab = Lab::new();
    lab.run(&["manual", "man"]).expect_code(0);
    let pages = files_in(&lab.here("man"));
    let help = lab.run(&["--help"]).expect_code(0).stdout;
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let mut expected: Vec<String> = verbs
        .iter()
        .filter(|verb| !["", "help"].contains(*verb))
        .map(|verb| format!("hosepipe-{verb}.1"))
        .collect();
    expected.push("hosepipe.1".to_owned());
    for name in &expected {
        let text = fs::read_to_string(lab.here("man").join(name)).unwrap_or_else(|_| panic!("no {name}"));
        for section in SECTIONS {
            assert!(
                text.lines().any(|line| line == format!(".SH {section}")),
                "{name} lacks {section}: {text}"
            );
        }
        assert!(text.is_ascii() && !text.contains("--short"), "{name}");
    }
    assert_eq!(pages.len(), expected.len(), "{pages:?}");
    let read = Command::new("groff").args(["-ww", "-man", "-Tutf8", "-z"]).args(&pages).output();
    match read {
        Ok(read) => assert!(
            read.status.success() && read.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&read.stderr)
        ),
        Err(error) => skip(&format!("no groff here: {error}")),
    }
}

#[test]
fn pages_of_docs_and_the_schema_are_printed() {
    let lab = Lab::new();
    for (topic, said) in [("method", "floor"), ("links", "socketpair"), ("record", "elapsed_ns")] {
        let mut program = lab.command(&["help", topic]);
        program.env("COLUMNS", "80");
        let page = lab.finish(program).expect_code(0).stdout;
        assert!(page.contains(said) && !page.contains("](") && !page.contains("|---"), "{page}");
        // Blocks of code are as they are, and a path or a command cannot be broken.
        let long =
            page.lines().filter(|line| !line.starts_with("    ")).find(|line| line.chars().count() > 80);
        assert!(long.is_none_or(|line| !line.trim().contains(' ')), "{topic}: {long:?}");
    }
    let schema = lab.run(&["help", "record", "--schema"]).expect_code(0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["$defs"]["BenchRecord"].is_object());
    lab.run(&["help", "nothing"]).expect_code(2);
}
