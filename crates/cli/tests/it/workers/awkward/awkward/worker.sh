# A worker that fails: worker.sh HOW ROLE BYTES BLOCK WARMUP RESULT [CHILD]... It moves nothing and claims what it likes.
how=$1 bytes=$(($3 + $5)) result=$6
echo "this worker $how" >&2

# Lines of a run of this instant, as far as the shell can tell the time; the clocks are looked at last.
claim() { printf 'send bytes=%d ready_ns=%s began_ns=%s\nrecv bytes=%d xor=%d ready_ns=%s ended_ns=%s\n' "$@" >>"$result"; }

case $how in
crashes) kill -SEGV $$ ;;
leaves) exit 3 ;;
silent) ;;
rubbish) echo "all is well" >>"$result" ;;
flood) head -c 100000 /dev/zero | tr '\0' x >&2; exit 4 ;;
miscounts) claim "$bytes" 1 1 $((bytes - 1)) 0 1 1 ;;
wrong-xor) claim "$bytes" 1 1 "$bytes" 77 1 1 ;;
other-clock) claim "$bytes" 1 1 "$bytes" 0 1 1 ;;
# With a child of its own, so that there is somebody to leave behind. The argument marks both.
hangs) sh -c 'sleep 1000; :' "$result" ;;
esac
