//! Whole scripts, as files that a shell is given: several lines whose effects meet in one process.

/// Name and text. Each is run in a folder of its own and may write files there.
pub(crate) const SCRIPTS: &[(&str, &str)] = &[
    (
        "errexit",
        r#"set -e
f() { false; echo "in f" | cat; }
f || echo "f is left with $?" | rev
if ! false | true; then echo never; else echo "the last one counts" | cat; fi
while false; do :; done
x=$(false; echo caught | cat) || echo no
echo "$x" | cat
! true | true
(set +e; false | cat; echo "inside $?" | cat)
( exit 3 ) | cat
set -o pipefail
(exit 4) | cat
echo never"#,
    ),
    (
        "nounset",
        r#"set -u
a=(1 2)
echo "${a[@]}" "${b[@]-none}" "${c:-d}" | tr ' ' '\n' | sort -r
(echo "$nothing") 2>/dev/null | wc -c
echo "${PIPESTATUS[*]}"
echo ${e?has no value} | cat
echo "after it"
echo $f
echo never"#,
    ),
    (
        "traps of a sourced file",
        r#"cat >lib.sh <<'E'
trap 'echo "exit trap $?" | rev' EXIT
trap 'echo "error at $LINENO" | cat' ERR
trap 'echo "got usr1" | cat' USR1
on_return() { trap 'echo returned | cat' RETURN; return 5; }
HERE=${BASH_SOURCE[0]}
E
. ./lib.sh
echo "$HERE ${BASH_SOURCE[0]##*/}" | cat
false
kill -USR1 $$
on_return
trap - ERR
false | true
trap -p EXIT USR1 | sort
exit 9"#,
    ),
    (
        "what eval leaves",
        r#"eval 'exec 3>out.txt; exec 4<&0; exec 0<<<"from the string"'
echo "to three" | cat >&3
read -r line
echo "$line" | tr a-z A-Z
exec 3>&- 0<&4
cat out.txt | rev
eval 'g() { local n=$1; [ "$n" -gt 0 ] || return 7; echo "$n" | cat; g $((n - 1)); }'
g 3; echo $?
eval "$(printf 'h() { echo made | cat; }\n')"; h
unset -f h; h 2>/dev/null; echo $?"#,
    ),
    (
        "jobs",
        r#"for i in 3 1 2; do
  { sleep 0.0$i; exit $i; } | cat &
  { sleep 0.0$i; exit $i; } &
  pids[i]=$!
done
for i in 1 2 3; do wait "${pids[i]}"; echo "$i: $?" | cat; done
wait
(sleep 0.02; exit 6) & last=$!
echo "while it runs" | cat
wait $last; echo "six: $?"
{ sleep 0.2 | cat; } >/dev/null 2>&1 & kill $!; wait $! 2>/dev/null; echo "killed: $?"
set -m
sleep 0.05 | cat &
jobs %1 | wc -l
wait %1; echo "job one: $?"
wait -n 2>/dev/null; echo "none: $?""#,
    ),
    (
        "arrays",
        r#"declare -A count
while read -r word; do (( ++count[$word] )); done < <(printf '%s\n' b a b c b a)
for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort
mapfile -t lines < <(seq 5 | tac)
echo "${#lines[@]} ${lines[@]:1:2} ${lines[-1]}" | cat
lines+=("six and" seven); unset 'lines[0]'
printf '<%s>' "${lines[@]}" | cat; echo
declare -n ref=lines; echo "${ref[5]}" | rev
declare -p lines | tr '"' "'"
IFS=, ; echo "${lines[*]}" | cat; set -- ${lines[*]}; echo $# | cat"#,
    ),
    (
        "patterns",
        r#"shopt -s extglob nullglob
touch a1.c a2.h b1.c 'with blank.c'
for f in !(b*).@(c|h); do echo "$f"; done | sort -r
case hosepipe in +([a-z])) echo letters | cat ;;& h*) echo h | cat ;; esac
[[ "key = value" =~ ^([a-z]+)\ *=\ *(.*)$ ]] && printf '%s|' "${BASH_REMATCH[@]}" | cat; echo
v=aXbXc; echo "${v//X/-} ${v%%X*} ${v##*X} ${v^^} ${v@Q}" | cat
echo no*such | cat; shopt -u nullglob; echo no*such | cat
printf '%s\n' {1..3}{a,b} | paste -sd' '"#,
    ),
    (
        "here-documents",
        r#"x=value
cat <<E | sed 's/^/> /' && cat <<-'F' | tr a-z A-Z
$x $(echo nested | rev) `echo old`
\$x
E
	kept $x
	F
{ cat; cat <<<"string $x"; } <<E | cat -A
tab	here
E
f() { cat <<E
from f: $1
E
}
f one | cat; f two | rev
cat /dev/fd/5 5<<E | wc -l
a
b
E
while read -r a b; do echo "$b-$a"; done <<E | sort
1 z
2 y
E"#,
    ),
    (
        "functions",
        r#"count=0
bump() { count=$((count + 1)); }
bump; bump | cat; seq 3 | while read -r _; do bump; done; echo "$count" | cat
shopt -s lastpipe
seq 3 | while read -r _; do bump; done; echo "$count" | cat
outer() { local v=outer; inner; echo "$v" | cat; }; inner() { v=changed; echo "${FUNCNAME[*]}" | cat; }
outer
export -f bump; export count; bash -c 'bump; echo $count | cat'
r() { return 200; }; r | true; echo "${PIPESTATUS[@]}"; true | r; echo $?
builtin() { echo "mine: $*" | cat; command builtin "$@"; }; builtin echo through; unset -f builtin
command -v bump; type -t bump | rev
shopt -s expand_aliases
alias up='tr a-z A-Z'
echo shout | up"#,
    ),
    (
        "descriptors",
        r#"exec 5>five 6>&1
{ echo out; echo err >&2; echo five >&5; echo six >&6; } 2>&1 | sed 's/^/piped /' | sort
exec 5>&-
cat five | rev
{ echo a >&2; echo b; } |& sort -r
{ echo a >&2; echo b; } 2>/dev/null | cat
ls nosuchfile 2>&1 >/dev/null | wc -l
exec 7< <(seq 3); read -r one <&7; cat <&7 | tac; echo "$one"
coproc UP { while read -r l; do echo "${l^^}"; done; }
echo word >&"${UP[1]}"; read -r l <&"${UP[0]}"; echo "$l" | cat
echo closed | cat >&- 2>/dev/null; echo "${PIPESTATUS[1]}"
(exec >file; echo in the file | cat); cat file | cat"#,
    ),
    (
        "the shell's own numbers",
        r#"[ "$$" = "$BASHPID" ] && echo same | cat
(echo "$$") | { read -r a; [ "$a" = "$$" ] && echo the same number | cat; }
p=$(sh -c 'echo $PPID'); [ "$p" != "$$" ] && echo a child of the subshell | cat
bash -c 'echo $PPID' | { read -r p; [ "$p" = "$$" ] && echo a child of the shell; }
echo "$BASH_SUBSHELL $SHLVL" | tr -d 0-9; (echo $BASH_SUBSHELL | cat)
echo "$LINENO" | cat
f() { echo "$LINENO ${BASH_LINENO[0]}" | cat; }
f
RANDOM=5; echo "$RANDOM"
echo "${0##*/} $# $-" | tr -d ' '; : a b; echo "$_" | cat
SECONDS=100; [ $SECONDS -ge 100 ] && echo counted | cat
echo "$BASH_COMMAND" | cat; printenv _ | cat
times | wc -l
ulimit -n 64; seq 3 | tac | cat | wc -l
umask 077; echo x | tee private >/dev/null; stat -c %a private | cat"#,
    ),
    (
        "options",
        r#"set -o noclobber; echo a >f; { echo b >f; } 2>/dev/null | cat; echo $?; cat f | cat
set -f; echo * | cat; set +f
set -v
echo shown | cat
set +v
set -- a 'b c'; for w; do echo "<$w>"; done | cat; shift; echo "$1" | rev
getopts ab: o -b value && echo "$o $OPTARG" | cat
PS4='+$LINENO '; set -x; x=1; set +x
set -r
cd / 2>/dev/null; echo "$?" | cat
echo x 2>/dev/null >g | cat; ls g 2>/dev/null | wc -l
PATH=/ 2>/dev/null; echo still | cat"#,
    ),
    (
        "builtins",
        r#"TIMEFORMAT='took %0R'; { time sleep 0 | true; } 2>&1 | cat
hash -p /bin/echo nosuch; nosuch hashed | cat; hash -d nosuch; nosuch 2>/dev/null | cat; echo "${PIPESTATUS[0]}"
complete -W 'a b' foo; complete -p foo | cat; complete -r foo
export V; V=5; sh -c 'echo "$V"' | cat; V=6 sh -c 'echo "$V"' | cat; echo "$V"
PWD=/etc; /bin/pwd | sed 's|.*/||' | wc -c; cd .; pwd | sed 's|.*/||' | wc -c
readonly r=1; (r=2) 2>/dev/null | cat; echo "$r ${PIPESTATUS[0]}" | cat; (r=2 env) 2>/dev/null | grep -c '^PATH='
printf -v made '%s-%s' a b; echo "$made" | cat; printf '%(%Y)T\n' 0 | cat
select w in one two; do echo "$w" | cat; break; done <<<2 2>/dev/null
let n=2**10; echo $((n >> 1)) | cat; (( n > 5 )) && echo larger | cat
enable -n test; type -t test | cat; enable test
caller | wc -l; dirs | wc -l; pushd . >/dev/null; dirs -v | wc -l; popd | wc -l"#,
    ),
    (
        "many pipelines",
        r#"n=0
for i in {1..40}; do seq $i | tail -n 1 | while read -r l; do echo $l; done; done | awk '{s += $1} END {print s}'
until (( n == 5 )); do n=$(echo $n | awk '{print $1 + 1}'); done; echo $n | cat
a() { cat; }; echo deep | a | a | a | a | a | a | a | a | a | a | cat
( ( ( echo nested | cat ) | cat ) | cat ) | { { cat | cat; } | cat; }
yes 2>/dev/null | head -n 3 | sort -u; seq 100000 | tail -n 1
head -c 300000 /dev/zero | tr '\0' x | wc -c
x=$(seq 3000 | sort -n | tail -n 2 | tr '\n' ' '); echo "$x" | cat
cat <(seq 2) <(seq 3 | tac) | paste -sd+ | cat
diff <(seq 3) <(seq 4) | tail -n 1 | cat
tee >(wc -c >count) <<<five | cat; until [ -s count ]; do :; done; cat count | cat"#,
    ),
];
