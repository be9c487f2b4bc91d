#!/usr/bin/env bash
# Runs {count} partitions on Slurm as an array job, and their reduce behind it. Waits for both, and cancels them when asked to end.
set -euo pipefail
work={work} stopped= reduce=
options=({options})
# Asked a second time, it ends at once.
trap 'stopped=yes; trap - INT TERM HUP' INT TERM HUP
submit() {
    # Ctrl-C must not come between the job and its number.
    trap '' INT TERM HUP
    sbatch --parsable --output=/dev/null "$@" "${options[@]}" | cut -d ';' -f 1 && return
    echo 'Slurm did not take the work' >&2
    return 1
}
rm -f "$work/reduce.status"
# An array has no more tasks than MaxArraySize, and this one no more than --jobs says: each may take several partitions.
tasks={count}
for most in $(scontrol show config | awk '$1 == "MaxArraySize" { print $3 }') {jobs}; do
    tasks=$((tasks < most ? tasks : most))
done
map=$(submit --job-name=hosepipe-map --array="0-$((tasks - 1))" <<'MAP'
#!/usr/bin/env bash
work={work} retries={retries} failed=0
mapfile -t parts <"$work/left"
for ((at = SLURM_ARRAY_TASK_ID; at < ${#parts[@]}; at += SLURM_ARRAY_TASK_COUNT)); do
    printf -v name '%s/%06d' "$work" $((parts[at] + 1))
    for ((attempt = 0; attempt <= ${retries:-0}; attempt++)); do
        status=0
        {hosepipe} __part "$work" "${parts[at]}" 2>"$name.log" || status=$?
        [ $status != 0 ] || continue 2
    done
    echo $status >"$name.status"
    failed=1
    {keep_going} || { scancel --state=PENDING "$SLURM_ARRAY_JOB_ID"; break; }
done
exit $failed
MAP
)
reduce=$(submit --job-name=hosepipe-reduce --dependency="afterok:$map" --kill-on-invalid-dep=yes <<'REDUCE'
#!/usr/bin/env bash
work={work} status=0
{hosepipe} __part "$work" >"$work/reduced" 2>"$work/reduce.log" || status=$?
echo $status >"$work/reduce.status"
REDUCE
) || stopped=yes
# A controller that does not answer may do so again: the jobs go on meanwhile. Tasks that are cancelled may take KillWait to end.
until queue=$(squeue --noheader --jobs="$map${reduce:+,$reduce}") && [ -z "$queue" ]; do
    [ -z "$stopped" ] || scancel $map $reduce || true
    sleep 1 || true
done
[ -z "$stopped" ] || exit 130
[ -e "$work/reduce.status" ] || { echo "Not everything was run: see the files .status and .log in $work" >&2; exit 1; }
exit "$(<"$work/reduce.status")"
