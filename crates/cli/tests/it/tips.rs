//! Tips in errors of the command line: what to type instead.

use crate::bad_input::assert_refused;
use crate::common::Lab;

/// Happened: "unexpected argument 'data' found", and no more.
#[test]
fn a_pipeline_of_several_words_is_refused_with_the_quotes_it_needs() {
    for (args, tip) in [
        (&["run", "cat", "data"][..], "hosepipe run 'cat data'"),
        (&["run", "ls", "-l"], "hosepipe run 'ls -l'"),
        (&["run", "--via", "tcp", "grep", "-c", "x"], "hosepipe run 'a | b'"),
        (&["compare", "grep", "-c", "x", "f"], "hosepipe compare 'grep -c x f'"),
    ] {
        assert_refused(args, &["a pipeline is one word, in quotes", tip]);
    }
}

/// Happened: "to pass '--runs' as a value, use '-- --runs'", which makes a pipeline of it; "a similar argument exists: '--md'".
#[test]
fn an_option_that_is_not_known_is_refused_with_the_one_that_is_meant() {
    for (args, tip) in [
        (&["compare", "--runs", "3", "true", "false"][..], "here it is --trials"),
        (&["compare", "true", "-w", "3"], "here it is --warmup"),
        (&["compare", "-L", "n", "1,2", "true {n}"], "here it is --parameter"),
        (&["compare", "--command-name", "a", "true"], "here it is --name"),
        (&["compare", "--export-markdown", "f", "true"], "here it is --md"),
        (&["run", "-stats", "true"], "two dashes: --stats"),
        (&["run", "-via=tcp", "true"], "two dashes: --via"),
        (&["run", "--line-buffered", "2", "seq 3 | cat"], "follows an equals sign: --line-buffered=2"),
        (
            &["run", "--keep", "seq 3 | cat"],
            "--keep takes a value before the pipeline: --keep <DIR> 'seq 3 | cat'",
        ),
        (
            &["compare", "--json", "seq 3|wc"],
            "--json takes a value before the pipeline: --json <F> 'seq 3|wc'",
        ),
        (&["run", "seq 3", "wc"], "`hosepipe compare` takes several"),
    ] {
        assert_refused(args, &[tip]);
    }
    for args in [&["compare", "--reference", "true", "false"][..], &["run", "-x", "true"], &["top", "-1"]] {
        let refused = Lab::new().run(args).expect_code(2);
        assert!(!refused.stderr.contains("tip:"), "{}", refused.stderr);
    }
}

/// Happened: "unknown mechanism `pipe,fifo`", and "a similar value exists: 'stream'".
#[test]
fn several_values_typed_as_one_are_refused_with_what_separates_them() {
    for (args, tip) in [
        (&["bench", "pipe,fifo"][..], "put a space between them, as in pipe fifo"),
        (&["bench", "pipe:size=1MiB,fifo"], "as in pipe:size=1MiB fifo"),
        (&["bench", "pipe", "--block", "4k", "8k"], "separated by commas, as in --block 4KiB,8KiB"),
        (&["bench", "pipe", "--block", "4k 8k"], "separated by commas: --block 4k,8k"),
        (&["bench", "pipe", "--workload", "stream,pingpong"], "--workload takes one value"),
        (&["recommend", "--message", "1k", "--must", "filter,boundaries"], "--must filter --must boundaries"),
        (&["run", "--via", "pipe,file", "true"], "only `hosepipe compare` takes several"),
        (&["compare", "--via", "pipe file", "true"], "(--via pipe,file)"),
    ] {
        assert_refused(args, &[tip]);
    }
}

/// Happened: "unexpected argument '-5' found", and a tip that made a mechanism of it.
#[test]
fn a_negative_number_is_refused_as_the_value_that_it_is() {
    for (args, word) in [
        (&["bench", "pipe", "--block", "-5"][..], "`-5` is not a size: write bytes or a unit"),
        (&["bench", "pipe", "--time", "-5s"], "`-5s` is not a duration: write a whole number and a unit"),
        (&["recommend", "--message", "-5"], "`-5` is not a size"),
        (&["compare", "true", "--trials", "-3"], "`-3` is not a whole number from 1 to"),
        (&["gen", "--bytes", "-1"], "`-1` is not a size"),
    ] {
        assert_refused(args, &[word]);
    }
    for verb in [
        &["bench", "pipe", "--time"][..],
        &["recommend", "--message", "1k", "--time"],
        &["top", "--interval"],
    ] {
        assert_refused(&[verb, &["5"]].concat(), &["`5` has no unit: write 5s, 5m or 5ms"]);
    }
}
