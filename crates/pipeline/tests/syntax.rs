//! What becomes of a text: pipelines, stages, and which stages need no shell.

use pipeline::syntax::{Command, Item, Join, Opening, Redirection, Script, Stage, Start, Timed, parse};

fn script(text: &str) -> Script {
    parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// The only pipeline of a text.
fn only(text: &str) -> Item {
    let mut items = script(text).items;
    assert_eq!(items.len(), 1, "{text:?}");
    items.remove(0)
}

/// The texts of the stages of the only pipeline.
fn stages(text: &str) -> Vec<String> {
    only(text).pipeline.stages.into_iter().map(|stage| stage.text).collect()
}

/// The only stage's command, if it needs no shell.
fn direct(text: &str) -> Option<Command> {
    let stages = only(text).pipeline.stages;
    assert_eq!(stages.len(), 1, "{text:?}");
    match &stages[0].start {
        Start::Direct(command) => Some(command.clone()),
        Start::Shell => None,
    }
}

fn words(text: &str) -> Vec<String> {
    direct(text).unwrap_or_else(|| panic!("{text:?} needs a shell")).words
}

fn redirections(text: &str) -> Vec<Redirection> {
    direct(text).unwrap_or_else(|| panic!("{text:?} needs a shell")).redirections
}

#[test]
fn texts_without_commands_have_no_items() {
    for text in ["", "  \t", "\n\n", "# only a comment", "\n # one\n\n# two\n"] {
        assert!(script(text).items.is_empty(), "{text:?}");
    }
}

#[test]
fn lists_are_joined_as_bash_joins_them() {
    let items = script("a | b && ! c || d ; e\nf").items;
    let found: Vec<_> = items
        .iter()
        .map(|item| (item.join, item.ends_list, item.pipeline.negated, item.pipeline.text.as_str()))
        .collect();
    let expected = [
        (Join::Always, false, false, "a | b"),
        (Join::IfOk, false, true, "c"),
        (Join::IfFailed, true, false, "d"),
        (Join::Always, true, false, "e"),
        (Join::Always, true, false, "f"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn time_and_negation_stand_before_the_text() {
    for (text, timed, negated) in [
        ("a | b", Timed::No, false),
        ("time a | b", Timed::Bash, false),
        ("time -p a | b", Timed::Posix, false),
        ("! a | b", Timed::No, true),
        ("! ! a | b", Timed::No, false),
        ("time ! a | b", Timed::Bash, true),
        ("time -p ! a | b", Timed::Posix, true),
    ] {
        let pipeline = only(text).pipeline;
        assert_eq!((pipeline.timed, pipeline.negated), (timed, negated), "{text:?}");
        assert_eq!(pipeline.text, "a | b", "{text:?}");
    }
}

#[test]
fn what_only_a_shell_takes_is_one_stage() {
    for text in [
        "a &",
        "a | b && c &",
        "! a &",
        "time a &",
        "time",
        "time -p",
        "!",
        "! time a | b",
        "time -- a",
        "coproc a",
        "coproc x { a | b; }",
        "f() { a | b; }",
        "function f { a; }",
        "f() (a) > x",
    ] {
        let item = only(text);
        let stage = Stage { text: text.into(), line: 1, stderr_too: false, start: Start::Shell };
        assert_eq!(item.pipeline.stages, [stage], "{text:?}");
        assert_eq!((item.pipeline.timed, item.pipeline.negated), (Timed::No, false), "{text:?}");
    }
    let texts: Vec<_> = script("a | b & c & d").items.into_iter().map(|item| item.pipeline.text).collect();
    assert_eq!(texts, ["a | b &", "c &", "d"]);
}

#[test]
fn stages_are_cut_where_bash_cuts_them() {
    let cases: &[(&str, &[&str])] = &[
        ("a|b  |  c", &["a", "b", "c"]),
        ("a |\n# comment\n\n b # comment", &["a", "b"]),
        ("a \\\n | b\\\nc", &["a", "b\\\nc"]),
        ("(a | b) | c", &["(a | b)", "c"]),
        ("{ a | b; } 2>&1 | c", &["{ a | b; } 2>&1", "c"]),
        ("if a | b; then c; fi | d", &["if a | b; then c; fi", "d"]),
        ("while read x; do echo | b; done <f | sort", &["while read x; do echo | b; done <f", "sort"]),
        ("for i in a b; do c | d; done | e", &["for i in a b; do c | d; done", "e"]),
        ("for ((i = 0; i < 3; i++)); do a; done | b", &["for ((i = 0; i < 3; i++)); do a; done", "b"]),
        ("case $x in a|b) c | d;; (e) f;; esac | g", &["case $x in a|b) c | d;; (e) f;; esac", "g"]),
        ("[[ a || b && c ]] | d", &["[[ a || b && c ]]", "d"]),
        ("[[ $x =~ ^(a|b)$ ]] | c", &["[[ $x =~ ^(a|b)$ ]]", "c"]),
        ("(( a | b )) | c", &["(( a | b ))", "c"]),
        ("echo $(a | b) `c | d` | e", &["echo $(a | b) `c | d`", "e"]),
        ("echo \"$(echo \"a | b\" | c)\" | d", &["echo \"$(echo \"a | b\" | c)\"", "d"]),
        ("echo $((1 | 2)) ${x:-a|b} | c", &["echo $((1 | 2)) ${x:-a|b}", "c"]),
        ("a <(b | c) > >(d | e) | f", &["a <(b | c) > >(d | e)", "f"]),
        ("a=(1 '|' $(b | c)) d | e", &["a=(1 '|' $(b | c)) d", "e"]),
        ("echo 'a | b' \"c | d\" e\\|f | g", &["echo 'a | b' \"c | d\" e\\|f", "g"]),
        ("echo then fi | x if", &["echo then fi", "x if"]),
        ("echo é 'ü | ö' | grep ß | wc", &["echo é 'ü | ö'", "grep ß", "wc"]),
        ("a#b | c #d | e", &["a#b", "c"]),
        ("a 2>&1 >f | b", &["a 2>&1 >f", "b"]),
        ("<f | >g", &["<f", ">g"]),
    ];
    for (text, expected) in cases {
        assert_eq!(stages(text), *expected, "{text:?}");
    }
}

#[test]
fn standard_error_goes_along_behind_the_second_sign() {
    let pipeline = only("a |& { b; } |& c | d").pipeline;
    let found: Vec<_> = pipeline.stages.iter().map(|stage| (stage.text.as_str(), stage.stderr_too)).collect();
    assert_eq!(found, [("a", true), ("{ b; }", true), ("c", false), ("d", false)]);
    assert_eq!(pipeline.stages[0].start, parse("a").unwrap().items[0].pipeline.stages[0].start);
}

#[test]
fn documents_go_with_the_stage_that_reads_them() {
    let cases: &[(&str, &[&str])] = &[
        ("cat <<E\nbody\nE\n", &["cat <<E\nbody\nE\n"]),
        ("cat <<E\nbody\nE", &["cat <<E\nbody\nE"]),
        ("cat <<E | wc -l\n$(a | b)\nE\n", &["cat <<E\n$(a | b)\nE\n", "wc -l"]),
        ("cat <<A - <<B | c\n1\nA\n2\nB\n", &["cat <<A - <<B\n1\nA\n2\nB\n", "c"]),
        ("cat <<A | cat - <<'B' | c\n1\nA\n2\nB\n", &["cat <<A\n1\nA\n", "cat - <<'B'\n2\nB\n", "c"]),
        ("a | cat <<-E | b\n\tx\n\tE\n", &["a", "cat <<-E\n\tx\n\tE\n", "b"]),
        ("{ cat <<E\nbody\nE\n} | b", &["{ cat <<E\nbody\nE\n}", "b"]),
        ("{ cat <<E; } | b\nbody\nE\n", &["{ cat <<E; }\nbody\nE\n", "b"]),
        ("cat <<E | { a;\nbody\nE\nb; } | c", &["cat <<E\nbody\nE\n", "{ a;\nb; }", "c"]),
        ("cat <<E | { a <<F;\n1\nE\n2\nF\nb; } | c", &["cat <<E\n1\nE\n", "{ a <<F;\n2\nF\nb; }", "c"]),
        ("cat <<E |\nbody\nE\nwc", &["cat <<E\nbody\nE\n", "wc"]),
        ("echo $(cat <<E\nbody\nE\n) | b", &["echo $(cat <<E\nbody\nE\n)", "b"]),
        ("cat <<\"E F\" | b\nE\nE F\n", &["cat <<\"E F\"\nE\nE F\n", "b"]),
        ("cat <<E &\nbody\nE\n", &["cat <<E &\nbody\nE\n"]),
    ];
    for (text, expected) in cases {
        assert_eq!(stages(text), *expected, "{text:?}");
    }
    let items = script("cat <<E && b; c\nbody\nE\nd").items;
    let texts: Vec<_> = items.into_iter().map(|item| item.pipeline.text).collect();
    assert_eq!(texts, ["cat <<E\nbody\nE\n", "b", "c", "d"]);
}

#[test]
fn literal_words_lose_their_quotes() {
    let cases: &[(&str, &[&str])] = &[
        ("a b", &["a", "b"]),
        ("a '' \"\"", &["a", "", ""]),
        ("a 'b c'\"d e\"f\\ g", &["a", "b cd ef g"]),
        ("a \"\\$\\`\\\"\\\\\\n\" '\\n' \\n", &["a", "$`\"\\\\n", "\\n", "n"]),
        ("a b\\\nc \"d\\\ne\" 'f\\\ng'", &["a", "bc", "de", "f\\\ng"]),
        ("find . -exec ls {} \\;", &["find", ".", "-exec", "ls", "{}", ";"]),
        ("a {b} } {", &["a", "{b}", "}", "{"]),
        ("a '*' \"?\" \\[ '$x' '~'", &["a", "*", "?", "[", "$x", "~"]),
        ("a x~ a#b ! = ] % ^ @ +", &["a", "x~", "a#b", "!", "=", "]", "%", "^", "@", "+"]),
        ("a -b=c --d e:f", &["a", "-b=c", "--d", "e:f"]),
        ("awk '{print $1 | \"sort\"}'", &["awk", "{print $1 | \"sort\"}"]),
        ("'if' \\then", &["if", "then"]),
        ("é 'ü ö'", &["é", "ü ö"]),
    ];
    for (text, expected) in cases {
        assert_eq!(words(text), *expected, "{text:?}");
    }
}

#[test]
fn whatever_bash_would_expand_goes_to_a_shell() {
    for text in [
        "a *",
        "a b?",
        "a [b]",
        "a $b",
        "a \"$b\"",
        "a $",
        "a `b`",
        "a \"`b`\"",
        "a $(b)",
        "a $((1))",
        "a ${b}",
        "a ~",
        "a ~/b",
        "a --c=~/b",
        "a b:~",
        "a {b,c}",
        "a {1..3}",
        "a x{b,c}y",
        "a $'b'",
        "a $\"b\"",
        "a <(b)",
        "a >(b)",
        "$a",
        "a=b",
        "a=b c=d",
        "a=(1) b",
        "a+=b c",
        "a[0]=b c",
        "a=$b c",
        "a=~ b",
        "a=b:~ c",
        "UID=1 a",
        "BASH_ENV=x a",
        "export A=b",
        "declare A=b",
        "readonly a",
        "local a",
        "typeset a",
        "> f",
        "a > $f",
        "a > *",
        "a > ~/f",
        "a > ''",
        "a 2>& f",
        "a 1>& f",
        "a <& f",
        "a {x}> f",
        "a 3>&4-",
        "a <&4",
        "a > /dev/tcp/h/1",
        "a < /dev/udp/h/1",
        "a > /dev/fd/3",
        "a 2> /dev/stdout",
        "a <<< $b",
        "a <<E\n$b\nE\n",
        "a <<E\n`b`\nE\n",
        "''",
        "(a)",
        "{ a; }",
    ] {
        assert_eq!(direct(text), None, "{text:?}");
    }
}

#[test]
fn assignments_before_a_literal_command_are_its_environment() {
    let command = direct("A=b LC_ALL='C D' >f E= sort F=g").unwrap();
    let expected = [("A", "b"), ("LC_ALL", "C D"), ("E", "")];
    assert_eq!(command.assignments, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(command.words, ["sort", "F=g"]);
}

#[test]
fn plain_redirections_are_made_in_their_order() {
    let open = |fd, path: &str, how| Redirection::Open { fd, path: path.into(), how };
    let copy = |fd, from| Redirection::Duplicate { fd, from };
    let text = |fd, text: &str| Redirection::Text { fd, text: text.into() };
    let cases: &[(&str, Vec<Redirection>)] = &[
        ("a <f >g", vec![open(0, "f", Opening::Read), open(1, "g", Opening::Write)]),
        ("a >|f 2>>'g h'", vec![open(1, "f", Opening::Write), open(2, "g h", Opening::Append)]),
        ("a <>f 3<>g", vec![open(0, "f", Opening::ReadWrite), open(3, "g", Opening::ReadWrite)]),
        (">f a 2>&1", vec![open(1, "f", Opening::Write), copy(2, 1)]),
        ("a 3>f >&3 3>&-", vec![open(3, "f", Opening::Write), copy(1, 3), Redirection::Close { fd: 3 }]),
        ("a <&-", vec![Redirection::Close { fd: 0 }]),
        ("a &>f", vec![open(1, "f", Opening::Write), copy(2, 1)]),
        ("a >&f", vec![open(1, "f", Opening::Write), copy(2, 1)]),
        ("a &>>f", vec![open(1, "f", Opening::Append), copy(2, 1)]),
        ("a <<<b", vec![text(0, "b\n")]),
        ("a 3<<<'b c'", vec![text(3, "b c\n")]),
        ("a <<E\nb \"c\" 'd' \\x \\\\ \\$e \\`\nE\n", vec![text(0, "b \"c\" 'd' \\x \\ $e `\n")]),
        ("a <<'E'\n$b \\\\ `c\nE\n", vec![text(0, "$b \\\\ `c\n")]),
        ("a <<-\\E\n\t\tb\n\tE\n", vec![text(0, "b\n")]),
        ("a <<E\nb\\\nc\nE\n", vec![text(0, "bc\n")]),
        ("a <<E\nE\n", vec![text(0, "")]),
    ];
    for (text, expected) in cases {
        assert_eq!(redirections(text), *expected, "{text:?}");
    }
    assert_eq!(words("a 2 >f"), ["a", "2"]);
    assert_eq!(words("a2>f"), ["a2"]);
}

#[test]
fn errors_say_where_and_whether_more_could_mend_them() {
    for (text, offset, incomplete, message) in [
        ("| a", 0, false, "syntax error near unexpected token `|'"),
        ("é | | b", 5, false, "syntax error near unexpected token `|'"),
        ("a;;", 1, false, "syntax error near unexpected token `;;'"),
        ("a > | b", 4, false, "syntax error near unexpected token `|'"),
        ("a >", 3, false, "syntax error near unexpected token `newline'"),
        ("a )", 2, false, "syntax error near unexpected token `)'"),
        ("if a; fi", 6, false, "syntax error near unexpected token `fi'"),
        ("echo a=(1)", 7, false, "syntax error near unexpected token `('"),
        ("a |", 3, true, "syntax error: unexpected end of file"),
        ("a &&", 4, true, "syntax error: unexpected end of file"),
        ("a 'b", 2, true, "the ' quote is never closed"),
        ("a \"b", 2, true, "the \" quote is never closed"),
        ("a `b", 2, true, "the ` quote is never closed"),
        ("a $(b", 2, true, "the $( is never closed"),
        ("a <(b", 2, true, "the <( is never closed"),
        ("a ${b", 2, true, "the ${ is never closed"),
        ("a; (b", 3, true, "`(' is never closed"),
        ("{ a;", 0, true, "`{' is never closed"),
        ("a; if b; then { c; }", 3, true, "`if' is never closed"),
        ("while a; do b", 0, true, "`while' is never closed"),
        ("case a in", 0, true, "`case' is never closed"),
        ("[[ a", 0, true, "`[[' is never closed"),
        ("a <<E\nb\n", 2, true, "the here-document is never closed: no line is `E'"),
        ("a \\", 2, true, "a \\ with nothing behind it"),
        ("a \0", 2, false, "a NUL byte"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(
            (error.offset, error.incomplete, error.message.as_str()),
            (offset, incomplete, message),
            "{text:?}"
        );
    }
}

#[test]
fn nesting_is_bounded() {
    for (opening, closing) in
        [("(", ")"), ("( ", " )"), ("{ ", "; }"), ("if a; then ", "; fi"), ("$(", ")"), ("f() { ", "; }")]
    {
        let nested = |depth: usize| opening.repeat(depth) + "a" + &closing.repeat(depth);
        assert!(parse(&nested(8)).is_ok(), "{opening:?}");
        let error = parse(&nested(10_000)).expect_err(opening);
        assert_eq!(error.message, "too many constructs inside each other", "{opening:?}");
    }
}

#[test]
fn long_texts_are_read_in_linear_time() {
    let text = vec!["cat"; 500].join(" | ");
    assert_eq!(only(&text).pipeline.stages.len(), 500);
    let text = "echo a | cat && b\n".repeat(5_000);
    assert_eq!(script(&text).items.len(), 10_000);
}
