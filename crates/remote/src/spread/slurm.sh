# Runs these partitions, and their reduce, on Slurm: `bash THIS` makes one job of them, waits for it, and cancels it when asked to end.
if [ "${1-}" = run ]; then
    # In the job: tasks take one partition after the other. Without this srun gives a task fewer CPUs than sbatch.
    [ -z "${SLURM_CPUS_PER_TASK-}" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
    srun --kill-on-bad-exit=0 --wait=0 "$hosepipe" __part "$work" --take "$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}" \
        ${retries:+"--retries=$retries"} $keep_going $records ||
        { echo "Not everything was run: see the files .results and .log in $work"; exit 1; }
    status=0
    "$hosepipe" __part "$work" >"$work/reduced" 2>"$work/reduce.log" || status=$?
    echo $status >"$work/reduce.status"
    exit 0
fi
rm -f "$work/reduce.status"
trap '[ ! -e "$work/reduce.status" ] || exit "$(<"$work/reduce.status")"' EXIT
# As many tasks as CPUs are idle now, so that the job begins at once.
tasks=${jobs:-$(sinfo --noheader --format=%C | awk -F/ '{ idle += $2 } END { print idle + 0 }')}
tasks=$((tasks < count ? tasks : count))
set -- "$work/slurm.log" --job-name=hosepipe-spread --ntasks=$((tasks > 0 ? tasks : 1)) --open-mode=append \
    --output="$work/slurm.log" "${options[@]}" "$0" run
