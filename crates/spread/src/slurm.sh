#!/usr/bin/env bash
# Hands {count} partitions to Slurm as an array job, and their reduce behind it; prints the numbers of both jobs.
set -euo pipefail
options=({options})
# An array has no more tasks than MaxArraySize, and this one no more than --jobs says: each may take several partitions.
tasks={count}
for most in "$(scontrol show config | awk '$1 == "MaxArraySize" { print $3 }')" {jobs}; do
    tasks=$((tasks < most ? tasks : most))
done
map=
trap '[ -z "$map" ] || scancel "$map"' EXIT
map=$(sbatch --parsable --job-name=hosepipe-map --array="0-$((tasks - 1))" --output=/dev/null "${options[@]}" <<'MAP'
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
map=${map%%;*}
reduce=$(sbatch --parsable --job-name=hosepipe-reduce --dependency="afterok:$map" --kill-on-invalid-dep=yes --output=/dev/null "${options[@]}" <<'REDUCE'
#!/usr/bin/env bash
work={work}
exec {hosepipe} __part "$work" >"$work/reduced" 2>"$work/reduce.log"
REDUCE
)
trap - EXIT
echo "$map ${reduce%%;*}"
