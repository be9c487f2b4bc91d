#!/bin/bash
# A worker in the shell: one end of a pipe, or both. docs/WORKERS.md describes its arguments and results, README.md how it
# uses POSIX tools and what these cannot do. No byte of the stream goes through the shell itself.

export LC_ALL=C # bytes, not characters; a decimal point, not a comma
set -u

readonly PERIOD=256
readonly PATTERN_BYTES=$((16 << 20))     # about as much as one dd sends, so that its start takes a small part of the time
readonly LARGEST_FILE_BYTES=$((1 << 30)) # largest file of the pattern

fail() { # STATUS SENTENCE
    printf 'worker: %s\n' "$2" >&2
    exit "$1"
}

# ---- the clock ----

# Sets offset_ns to CLOCK_MONOTONIC minus EPOCHREALTIME, in nanoseconds. The kernel shows CLOCK_MONOTONIC in hundredths of a
# second (/proc/uptime), so this waits for a change of that value. The error is at most the time between two reads.
calibrate_clock() {
    local try uptime last
    local -i before previous after apart_us best_us=1000000000
    [[ $(cat /sys/power/suspend_stats/success 2>/dev/null || echo 0) == 0 ]] ||
        fail 1 'this machine was suspended: /proc/uptime differs from CLOCK_MONOTONIC'
    for try in {1..10}; do
        before=${EPOCHREALTIME/./}
        read -r last _ </proc/uptime
        uptime=$last
        while [[ $uptime == "$last" ]]; do
            previous=before
            before=${EPOCHREALTIME/./}
            read -r uptime _ </proc/uptime
        done
        after=${EPOCHREALTIME/./}
        apart_us=after-previous
        if ((apart_us < best_us)); then
            best_us=apart_us
            offset_ns=$((10#${uptime/./} * 10000000 - (previous + after) / 2 * 1000))
        fi
        ((best_us < 100)) && return # a larger value: this process was interrupted between the reads
    done
}

now_ns() { # VARIABLE
    printf -v "$1" %d $((${EPOCHREALTIME/./} * 1000 + offset_ns))
}

# ---- the sender ----

# Makes a file with BYTES bytes of the stream, from POSITION on.
make_pattern() { # FILE POSITION BYTES
    local i text=
    local -i bytes=PERIOD
    (($3 <= LARGEST_FILE_BYTES)) || fail 1 "no pattern of $3 bytes: at most $LARGEST_FILE_BYTES"
    for ((i = 0; i < PERIOD; i++)); do
        printf -v text '%s\\%03o' "$text" $((($2 + i) % PERIOD))
    done
    printf "$text" >"$1"
    while ((bytes < $3)); do
        cat "$1" "$1" >"$scratch/doubled" && mv "$scratch/doubled" "$1" || fail 1 'no room for the pattern'
        bytes+=bytes
    done
    dd if="$1" of="$scratch/cut" bs="$3" count=1 2>"$scratch/errors" || fail 1 "$(head -n 1 "$scratch/errors")"
    mv "$scratch/cut" "$1"
}

# Prepares a part of the stream: NAME.whole, which is sent as often as it fits into the part, and NAME.rest, the shorter rest.
prepare_part() { # NAME POSITION BYTES
    local -i block divisor=PERIOD whole
    (($3 > 0)) || return 0
    block=$(($3 < BLOCK ? $3 : BLOCK))
    while ((block % divisor)); do
        divisor=divisor/2
    done
    whole=$((block * (PERIOD / divisor))) # bytes of whole blocks after which the pattern repeats
    ((whole < PATTERN_BYTES)) && whole+=$(((PATTERN_BYTES - 1) / whole * whole))
    whole=$((whole < $3 ? whole : $3))
    make_pattern "$scratch/$1.whole" "$2" "$whole"
    (($3 % whole == 0)) || make_pattern "$scratch/$1.rest" "$2" $(($3 % whole))
    printf -v "$1_whole" %d "$whole"
}

send_file() { # FILE BYTES
    dd if="$1" bs="$BLOCK" 2>"$scratch/errors" || fail 1 "write: dd ended with status $?"
    sent=$((sent + $2))
}

send_part() { # NAME BYTES
    local -i count
    (($2 > 0)) || return 0
    local whole_name=$1_whole
    local -i whole=${!whole_name}
    for ((count = $2 / whole; count > 0; count--)); do
        send_file "$scratch/$1.whole" "$whole"
    done
    (($2 % whole == 0)) || send_file "$scratch/$1.rest" $(($2 % whole))
}

# Writes the stream to standard output, and the result line to a temporary file.
send_stream() {
    local ready_ns began_ns
    sent=0
    now_ns ready_ns
    send_part warmup "$WARMUP"
    now_ns began_ns
    send_part timed "$BYTES"
    printf 'send bytes=%d ready_ns=%d began_ns=%d\n' "$sent" "$ready_ns" "$began_ns" >"$scratch/line"
}

prepare_stream() {
    prepare_part warmup 0 "$WARMUP"
    prepare_part timed "$WARMUP" "$BYTES"
}

append_result() { # LINE, which printf writes with one write(2)
    printf '%s\n' "$1" 2>/dev/null >>"$RESULT" || fail 1 "$RESULT: cannot be written"
}

run_send() {
    prepare_stream
    send_stream
    append_result "$(<"$scratch/line")"
}

run_pair() { # CHILD [ARGUMENT]...
    local status
    prepare_stream
    send_stream | "$@"
    status=("${PIPESTATUS[@]}")
    ((status[0] == 0)) || exit 1 # the sender has printed the reason
    append_result "$(<"$scratch/line")"
    ((status[1] == 0)) || fail 1 "$1: exit status ${status[1]}"
}

# ---- the receiver ----

# A bit of the XOR is 1 if the number of bytes with this bit is odd: `tr` keeps these bytes, `wc` counts them.
count_bytes_with_bit() { # BIT
    local text=
    local -i byte
    for ((byte = 0; byte < PERIOD; byte++)); do
        ((byte >> $1 & 1)) && printf -v text '%s\\%03o' "$text" "$byte"
    done
    tr -cd "$text" <"$scratch/bytes.$1" | wc -c >"$scratch/count.$1"
}

run_recv() {
    local ready_ns ended_ns status
    local -i bit received xor=0 expected=WARMUP+BYTES
    mkfifo "$scratch"/bytes.{0..7} || fail 1 'mkfifo failed'
    for bit in {0..7}; do
        count_bytes_with_bit "$bit" &
    done
    now_ns ready_ns
    dd bs="$BLOCK" 2>"$scratch/errors" | tee "$scratch"/bytes.{0..7} | wc -c >"$scratch/count"
    status=("${PIPESTATUS[@]}")
    wait
    for bit in {0..7}; do
        ((xor |= ($(<"$scratch/count.$bit") & 1) << bit))
    done
    now_ns ended_ns
    ((status[0] == 0)) || fail 1 "read: $(head -n 1 "$scratch/errors")"
    received=$(<"$scratch/count")
    append_result "recv bytes=$received xor=$xor ready_ns=$ready_ns ended_ns=$ended_ns"
    ((received == expected)) || fail 1 "received $received bytes instead of $expected"
}

# ---- the command line ----

# Sets the variable NAME to the number TEXT, which has only digits and must fit into 64 bits.
number() { # NAME TEXT SMALLEST
    local digits=$2 largest=9223372036854775807
    if [[ $digits =~ ^[0-9]+$ ]]; then
        while [[ $digits == 0?* ]]; do
            digits=${digits#0}
        done
        if ((${#digits} < ${#largest})) || { ((${#digits} == ${#largest})) && [[ ! $digits > $largest ]]; }; then
            ((digits >= $3)) && printf -v "$1" %d "$digits" && return
        fi
    fi
    fail 2 "$1 is \"$2\", not a whole number from $3 to 2^63 - 1"
}

(($# >= 5)) || fail 2 'expected: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]'
number BYTES "$2" 0
number BLOCK "$3" 1
number WARMUP "$4" 0
((BYTES <= 9223372036854775807 - WARMUP)) || fail 2 'BYTES and WARMUP together exceed 2^63 - 1'
role=$1
RESULT=$5
shift 5
case $role in
pair) (($# > 0)) || fail 2 'pair needs the command of its child' ;;
send | recv) (($# == 0)) || fail 2 "\"$1\" is an argument too many" ;;
*) fail 2 "the role is \"$role\", not send, recv or pair" ;;
esac

scratch=$(mktemp -d) || fail 1 'no folder for temporary files'
trap 'rm -rf "$scratch"' EXIT
calibrate_clock
"run_$role" "$@"
