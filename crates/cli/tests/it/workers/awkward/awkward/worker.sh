# A worker that fails or lies: worker.sh HOW ROLE BYTES BLOCK WARMUP RESULT [CHILD]... Most move nothing and claim what they like.
how=$1 role=$2 bytes=$(($3 + $5)) result=$6
echo "this worker $how" >&2

# Lines of a run of this instant, as far as the shell can tell the time; the clocks are looked at last.
claim() { printf 'send bytes=%d ready_ns=%s began_ns=%s\nrecv bytes=%d xor=%d ready_ns=%s ended_ns=%s\n' "$@" >>"$result"; }

# CLOCK_MONOTONIC in hundredths of a second: rounded down, so that it is waited for before it is called the beginning.
now_ns() {
    read -r uptime _ </proc/uptime
    echo $((${uptime%.*}${uptime#*.} * 10000000))
}
begin() {
    sleep 0.03
    began_ns=$(now_ns)
}

# The XOR of the first $1 bytes of the stream.
xor_of_as_many() {
    case $(($1 % 4)) in
    0) echo 0 ;;
    1) echo $((($1 - 1) % 256)) ;;
    2) echo 1 ;;
    3) echo $(($1 % 256)) ;;
    esac
}

# What the liars send, the true stream or not.
stream() {
    case $how in
    zeros) head -c "$bytes" /dev/zero ;;
    never-xors) LC_ALL=C awk -v bytes="$bytes" 'BEGIN { for (i = 0; i < bytes; i++) printf "%c", i % 256 }' ;;
    esac
}

# The receiver's side of the liars: it takes what comes.
if [ "$role" = recv ]; then
    begin
    case $how in
    # Its sum is honest: there is no byte but 0.
    zeros) xor=$(tr -d '\0' | wc -c) ;;
    never-xors) cat >/dev/null && xor=0 ;;
    esac
    printf 'recv bytes=%d xor=%d ready_ns=%s ended_ns=%s\n' "$bytes" "$xor" "$began_ns" "$(now_ns)" >>"$result"
    exit
fi

case $how in
crashes) kill -SEGV $$ ;;
leaves) exit 3 ;;
silent) ;;
rubbish) echo "all is well" >>"$result" ;;
flood) head -c 100000 /dev/zero | tr '\0' x >&2; exit 4 ;;
miscounts) claim "$bytes" 1 1 $((bytes - 1)) 0 1 1 ;;
wrong-xor) claim "$bytes" 1 1 "$bytes" 77 1 1 ;;
other-clock) claim "$bytes" 1 1 "$bytes" "$(xor_of_as_many "$bytes")" 1 1 ;;
zeros | never-xors)
    shift 6
    begin
    stream | "$@"
    printf 'send bytes=%d ready_ns=%s began_ns=%s\n' "$bytes" "$began_ns" "$began_ns" >>"$result"
    ;;
moves-nothing)
    begin
    claim "$bytes" "$began_ns" "$began_ns" "$bytes" 0 "$began_ns" "$began_ns"
    ;;
guesses)
    begin
    claim "$bytes" "$began_ns" "$began_ns" "$bytes" "$(xor_of_as_many "$bytes")" "$began_ns" "$began_ns"
    ;;
guesses-slowly)
    begin
    sleep 1
    claim "$bytes" "$began_ns" "$began_ns" "$bytes" "$(xor_of_as_many "$bytes")" "$began_ns" "$(now_ns)"
    ;;
# Nobody will ever write to it.
fifo) rm "$result" && mkfifo "$result" ;;
folder) rm "$result" && mkdir "$result" && echo "in the way" >"$result/file" ;;
# With a child that is in another session, and where a result should be, nothing to be read.
hides)
    rm "$result" && mkfifo "$result"
    setsid sh -c 'sleep 1000; :' "$result" &
    sh -c 'sleep 1000; :' "$result"
    ;;
# With a child of its own, so that there is somebody to leave behind. The argument marks both.
hangs) sh -c 'sleep 1000; :' "$result" ;;
esac
