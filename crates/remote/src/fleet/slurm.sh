# Hands the job $1 to Slurm and follows it to its end; asked to end, cancels it. What it left in its log $2 tells why it failed.
stopped=
trap 'stopped=1' TERM
job=$(trap '' TERM && sbatch --parsable "$1") || exit
job=${job%%;*}
while [ -z "$stopped" ]; do
    sleep 0.5
    # Slurm forgets a job some time after its end. Any other answer may be a controller that is busy.
    case $(squeue -h -o %T -j "$job" 2>&1) in
    COMPLETED) exit 0 ;;
    '' | FAILED | CANCELLED | TIMEOUT | NODE_FAIL | OUT_OF_MEMORY | *'Invalid job id'*) break ;;
    esac
done
[ -z "$stopped" ] || scancel "$job"
tail -n 5 "$2" >&2
exit 1
