//! This machine's processors, and the clock of samples.

/// Nanoseconds of the monotonic clock, which samples and slices have.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The processors that this process may run on, by number.
pub fn cpus() -> Vec<usize> {
    // SAFETY: a set of zeros is an empty set, and the call writes no more than its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    };
    // SAFETY: the number is below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}
