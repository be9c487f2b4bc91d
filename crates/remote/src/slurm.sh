# Hands a job to Slurm with the words after $1, its log, and follows it to its end; asked to end, cancels it. The log tells why it failed.
log=$1 stopped=
shift
# Asked a second time, it ends at once.
trap 'stopped=1; trap - INT TERM HUP' INT TERM HUP
# A signal must not come between the job and its number.
job=$(trap '' INT TERM HUP && sbatch --parsable "$@") || exit 1
job=${job%%;*}
while sleep 0.5 || true; do
    # A controller that does not answer may do so again.
    [ -z "$stopped" ] || scancel "$job" || true
    # Slurm forgets a job some time after its end. A squeue that a signal has ended says nothing of it.
    state=$(squeue -h -o %T -j "$job" 2>&1) || state=${state:-unknown}
    case $state in
    COMPLETED) exit 0 ;;
    '' | FAILED | CANCELLED | TIMEOUT | DEADLINE | NODE_FAIL | BOOT_FAIL | OUT_OF_MEMORY | *'Invalid job id'*) break ;;
    esac
done
[ -z "$stopped" ] || exit 130
tail -n 5 "$log" >&2
exit 1
