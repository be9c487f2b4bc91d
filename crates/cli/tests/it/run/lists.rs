//! What one item of a list leaves for the next.

use super::place::{assert_as_in_bash, recorded};
use crate::common::{Lab, skip};

#[test]
fn the_next_item_stands_where_the_last_one_went() {
    assert_as_in_bash("cd /usr; pwd; cd bin && pwd | cat; echo $OLDPWD", 0, "/usr\n/usr/bin\n/usr\n");
    assert_as_in_bash("cd / | cat; [ \"$PWD\" = / ] || echo elsewhere", 0, "elsewhere\n");
    assert_as_in_bash("(cd /); [ \"$PWD\" = / ] || echo elsewhere", 0, "elsewhere\n");
    assert_as_in_bash("cd /nonexistent; echo $?", 0, "1\n");
    assert_as_in_bash("mkdir -p a/b; cd a; touch x; ls | sort; cd ..; ls a | sort", 0, "b\nx\nb\nx\n");
}

#[test]
fn the_next_item_has_the_variables() {
    for (text, stdout) in [
        ("x=5; echo $x; x=6; echo $((x + 1)) | cat", "5\n7\n"),
        ("x=1; sh -c 'echo [$x]'; export x; sh -c 'echo [$x]'", "[]\n[1]\n"),
        ("export A='two  words'; sh -c 'echo \"$A\"' | cat; unset A; sh -c 'echo [$A]'", "two  words\n[]\n"),
        ("A=1 true; echo [$A]; A=2 sh -c 'echo $A'", "[]\n2\n"),
        ("echo a | read x; echo [$x]", "[]\n"),
        ("a=(1 'b c' 3); a+=(4); echo ${#a[@]} \"${a[1]}\"; unset 'a[0]'; echo ${!a[*]}", "4 b c\n1 2 3\n"),
        ("declare -A m=([k]='v w' [l]=2); m[n]=3; echo ${m[k]} ${#m[@]}", "v w 3\n"),
        ("x=a; x+=b; readonly x; echo $x", "ab\n"),
        ("declare -i n=3; n+=4; echo $n", "7\n"),
        ("x=$'tab\\there'; echo \"$x\" | cut -f 2", "here\n"),
        ("x=$(seq 3); echo $x; echo \"$x\" | wc -l", "1 2 3\n3\n"),
        ("IFS=:; x=a:b; set -- $x; echo $2", "b\n"),
        ("set -- one two; echo $# | cat; shift; echo $1", "2\ntwo\n"),
    ] {
        assert_as_in_bash(text, 0, stdout);
    }
}

#[test]
fn the_next_item_has_the_functions_and_options() {
    for (text, stdout) in [
        ("f() { echo f $1; }; f 1; f 2 | cat", "f 1\nf 2\n"),
        ("f() { sort -n | tail -1; }; seq 3 | f; unset -f f; f 2> /dev/null || echo gone", "3\ngone\n"),
        ("cat() { echo mine; }; echo yours | cat", "mine\n"),
        ("f() { echo $0 exported; }; export -f f; bash -c f | sed 's/.* //'", "exported\n"),
        ("umask 027; touch f; stat -c %a f; umask", "640\n0027\n"),
        ("shopt -s extglob\ntouch aa bb; ls !(aa) | cat", "bb\n"),
        ("shopt -s nullglob; echo [*.nothing]", "\n"),
        ("set -f; echo *; set +f; touch one; echo *", "*\none\n"),
        ("alias x=y; unalias x; echo $?", "0\n"),
        ("trap 'echo bye' EXIT; echo a; echo b | cat", "a\nb\nbye\n"),
        ("exec 3> f; echo a >&3; echo b | cat >&3; cat f", "a\nb\n"),
        ("sleep 0.05 & wait $!; echo $?", "0\n"),
    ] {
        assert_as_in_bash(text, 0, stdout);
    }
}

#[test]
fn quotes_and_here_documents_are_bashs() {
    for (text, stdout) in [
        ("echo 'a  b' \"c  d\" e\\ \\ f | cat", "a  b c  d e  f\n"),
        ("echo a b c | awk '{print $2}'; echo '$x' \"\\$x\"", "b\n$x $x\n"),
        ("x=5; cat <<E | tr a-z A-Z; echo $x\nvalue $x\nE\n", "VALUE 5\n5\n"),
        ("cat <<'E' | cat\n$x `y`\nE\necho after", "$x `y`\nafter\n"),
        ("cat <<-E\n\ttabs\n\tE\ncat <<< \"one $((1 + 1))\" | cat", "tabs\none 2\n"),
        ("cat <<A <<B\na\nA\nb\nB\n", "b\n"),
        ("echo a # a comment | not a stage\necho b |\n  cat", "a\nb\n"),
        ("echo \"it's\" | sed \"s/'/\\\"/\"", "it\"s\n"),
        ("printf '%s\\n' {1..3} | paste -sd+ | cat", "1+2+3\n"),
        ("ls /nonexistent |& wc -l; sh -c 'echo e >&2' |& tr e E", "1\nE\n"),
        ("diff <(seq 2) <(seq 3) | tail -1", "> 3\n"),
    ] {
        assert_as_in_bash(text, 0, stdout);
    }
}

#[test]
fn and_or_and_not_choose_the_next_item() {
    for (text, stdout) in [
        ("true && echo a || echo b", "a\n"),
        ("false && echo a || echo b", "b\n"),
        ("false || false || echo c; echo d", "c\nd\n"),
        ("true || echo no && echo yes", "yes\n"),
        ("! false && echo a", "a\n"),
        ("seq 3 | grep -q 2 && echo found; seq 3 | grep -q 4 || echo missing", "found\nmissing\n"),
    ] {
        assert_as_in_bash(text, 0, stdout);
    }
}

#[test]
fn the_record_names_each_stage_by_the_program_it_became() {
    let lab = Lab::new();
    let text =
        "x=5; f() { echo \"$x\"; }; f | sed 's/5/ 6 /' | (cat; echo) ; sleep 0; cd / && ls -d . | wc -l";
    let (done, record) = recorded(&lab, &[text]);
    assert_eq!((done.code(), done.stdout.as_str()), (0, " 6 \n\n1\n"));
    let commands: Vec<&str> = record.stages.iter().map(|stage| stage.command.as_str()).collect();
    assert_eq!(commands, ["(in the shell)", "sed 's/5/ 6 /'", "(cat)", "sleep 0", "ls -d .", "wc -l"]);
    let pipelines: Vec<u32> = record.stages.iter().map(|stage| stage.pipeline).collect();
    assert_eq!(pipelines, [0, 0, 0, 1, 2, 2]);
    let of_links: Vec<u32> = record.links.iter().map(|link| link.pipeline).collect();
    assert_eq!(of_links, [0, 0, 2]);
}

#[test]
fn every_shell_tells_what_its_stages_became() {
    for shell in ["bash", "dash", "zsh", "fish", "yash"] {
        if !std::process::Command::new(shell).args(["-c", ":"]).status().is_ok_and(|status| status.success())
        {
            skip(&format!("{shell} is not installed"));
            continue;
        }
        let (done, record) = recorded(&Lab::new(), &["--shell", shell, "seq 3 | cat | tail -n 1"]);
        assert_eq!((done.code(), done.stdout.as_str()), (0, "3\n"), "{shell}");
        let commands: Vec<&str> = record.stages.iter().map(|stage| stage.command.as_str()).collect();
        assert_eq!(commands, ["seq 3", "cat", "tail -n 1"], "{shell}");
    }
}
