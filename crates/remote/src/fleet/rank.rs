//! The rank of this process, the number of processes and the node's name, from the environment that a launcher sets.

/// A process among those that a launcher has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rank {
    /// Its rank, from 0.
    pub rank: usize,
    /// The number of processes; `None` where the launcher does not set it.
    pub size: Option<usize>,
    /// The launcher's name of the node.
    pub node: Option<String>,
}

/// The variables of each launcher: the rank, the number of processes, the node. Slurm's come last: mpirun in a job of Slurm sets its own
/// in addition. Indexed Jobs of Kubernetes set no size.
const LAUNCHERS: &[(&str, &str, Option<&str>)] = &[
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", None),
    ("PMIX_RANK", "PMIX_SIZE", None),
    ("PMI_RANK", "PMI_SIZE", None),
    ("JOB_COMPLETION_INDEX", "", None),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", Some("SLURMD_NODENAME")),
];

/// The rank in the environment: of Slurm (srun(1)), of Open MPI or another PMI, of a Kubernetes Indexed Job. `None` if no launcher has
/// started this process.
///
/// # Errors
/// A sentence: a variable is not a number, or the rank is beyond the size.
pub fn launched_rank(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Rank>, String> {
    let number = |name: &str| match variable(name) {
        None => Ok(None),
        Some(text) => {
            text.parse::<usize>().map(Some).map_err(|_| format!("{name} is `{text}`, which is not a number"))
        }
    };
    for (rank, size, node) in LAUNCHERS {
        let Some(rank) = number(rank)? else { continue };
        let (size, node) = (number(size)?, node.and_then(variable));
        if size.is_some_and(|size| rank >= size) {
            return Err(format!("the launcher gives rank {rank} of {}", size.unwrap_or_default()));
        }
        return Ok(Some(Rank { rank, size, node }));
    }
    Ok(None)
}
