//! Shares of the processor: weights of tasks, and times scaled by them.
//!
//! Mirrors sched_prio_to_weight of kernel/sched/core.c, and __calc_delta and calc_delta_fair of
//! kernel/sched/fair.c, Linux 6.1.

use super::Task;

/// sysctl_sched_latency and sysctl_sched_min_granularity on one processor.
pub(super) const LATENCY_NS: u64 = 6_000_000;
pub(super) const MIN_GRANULARITY_NS: u64 = 750_000;
/// sysctl_sched_wakeup_granularity on one processor.
pub(super) const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;
/// sched_prio_to_weight of nice 0 and of nice 10.
pub(super) const WEIGHT: u64 = 1024;
const WEIGHT_NICE_10: u64 = 110;

/// se->load.weight. Only JFFS2's thread changes its nice value (set_user_nice).
pub(super) fn weight(task: Task) -> u64 {
    match task {
        Task::Jffs2Thread => WEIGHT_NICE_10,
        _ => WEIGHT,
    }
}

/// __calc_delta: `delta_ns * weight / total` by an inverse that is rounded down, so that half of 6
/// ms is 2,999,998 ns.
pub(super) fn calc_delta(delta_ns: u64, weight: u64, total: u64) -> u64 {
    let factor = weight * (u64::from(u32::MAX) / total);
    let surplus = 64 - (factor >> 32).leading_zeros();
    ((u128::from(delta_ns) * u128::from(factor >> surplus)) >> (32 - surplus)) as u64
}

/// calc_delta_fair: a time scaled by the task's weight.
pub(super) fn fair_ns(delta_ns: u64, task: Task) -> u64 {
    match weight(task) {
        WEIGHT => delta_ns,
        other => calc_delta(delta_ns, WEIGHT, other),
    }
}
