//! How long a thread runs at a time beside others.
//!
//! # Theory of operation
//!
//! Of threads that wait for a processor, Linux (since 6.12) runs first whose time slice ends first, among those that have had no more than
//! their share. So a thread that asks for short slices is served sooner after it has waited for a socket, and gets no more of the processor in
//! all: whoever works for long is interrupted more often instead. No privilege is needed.
//!
//! Threads and processes inherit the slice of the thread that starts them, so it is asked for before any other thread is started.
//!
//! **Invariant:** the two system calls here are all the code of this workspace that the compiler does not check.
//!
//! Deliberately outside: priorities, which give one program more than its share, and other policies than the usual one. Whoever has chosen
//! those (`chrt`) keeps them.

use std::{io, time::Duration};

/// Asks for time slices of this length for the calling thread, and for all threads that it starts from then on. Linux takes 0.1 ms to
/// 100 ms, and the nearer of these for anything else; before 6.12 the length is ignored.
///
/// # Errors
/// Where the system lets nobody ask: [`Unsupported`](io::ErrorKind::Unsupported) on other systems than Linux, and for a thread of another
/// scheduling policy than the usual one; else what the system says, as where a sandbox forbids the call.
pub fn request(length: Duration) -> io::Result<()> {
    system::request(length)
}

/// Returns the time slice of the calling thread; `None` where Linux does not tell, as before 6.12.
///
/// # Errors
/// As those of [`request`].
pub fn of_this_thread() -> io::Result<Option<Duration>> {
    system::of_this_thread()
}

#[cfg(target_os = "linux")]
mod system {
    use std::{io, mem::size_of, time::Duration};

    use libc::sched_attr;

    const THIS_THREAD: libc::c_int = 0;
    const NO_FLAGS: libc::c_uint = 0;
    #[expect(clippy::cast_possible_truncation, reason = "it has 48 bytes")]
    const SIZE: u32 = size_of::<sched_attr>() as u32;

    pub(super) fn request(length: Duration) -> io::Result<()> {
        let attributes = sched_attr {
            sched_runtime: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            ..usual()?
        };
        set(&attributes)
    }

    pub(super) fn of_this_thread() -> io::Result<Option<Duration>> {
        let length = usual()?.sched_runtime;
        Ok((length > 0).then(|| Duration::from_nanos(length)))
    }

    /// Returns the attributes of this thread, if its policy is the usual one, `SCHED_OTHER`.
    fn usual() -> io::Result<sched_attr> {
        let attributes = get()?;
        if i32::try_from(attributes.sched_policy) == Ok(libc::SCHED_OTHER) {
            return Ok(attributes);
        }
        let text = "the thread has a scheduling policy of its own";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    #[expect(unsafe_code, reason = "sched_getattr(2) has no safe form")]
    fn get() -> io::Result<sched_attr> {
        let mut attributes = sched_attr {
            size: SIZE,
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the kernel writes at most SIZE bytes to an exclusive reference of that size, and any bytes are numbers.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                THIS_THREAD,
                &raw mut attributes,
                SIZE,
                NO_FLAGS,
            )
        };
        answer(result)?;
        Ok(attributes)
    }

    #[expect(unsafe_code, reason = "sched_setattr(2) has no safe form")]
    fn set(attributes: &sched_attr) -> io::Result<()> {
        // SAFETY: the kernel reads as many bytes as `size` says, which is no more than the reference has.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_setattr,
                THIS_THREAD,
                &raw const *attributes,
                NO_FLAGS,
            )
        };
        answer(result)
    }

    fn answer(result: libc::c_long) -> io::Result<()> {
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{io, time::Duration};

    pub(super) fn request(_: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn of_this_thread() -> io::Result<Option<Duration>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use super::*;

    /// Runs in a thread of its own, whose slice is nobody else's.
    fn alone<T: Send>(run: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(run).join().expect("it ends"))
    }

    /// Returns whether the kernel knows slices of a length of their own; says so where it does not.
    fn is_known() -> bool {
        let known = of_this_thread().expect("Linux tells").is_some();
        if !known {
            eprintln!("notice: not tested, this kernel has no time slices to ask for (6.12 has)");
        }
        known
    }

    #[test]
    fn slice_is_as_requested_and_inherited() {
        alone(|| {
            let requested = Duration::from_micros(300);
            request(requested).expect("anybody may");
            if is_known() {
                assert_eq!(of_this_thread().expect("it tells"), Some(requested));
                let inherited = alone(of_this_thread);
                assert_eq!(inherited.expect("it tells"), Some(requested));
            }
        });
    }

    #[test]
    fn slice_has_bounds() {
        for (requested, given) in [(1, 100), (3_600_000_000, 100_000)] {
            alone(|| {
                request(Duration::from_micros(requested)).expect("anybody may");
                if is_known() {
                    let slice = of_this_thread().expect("it tells");
                    assert_eq!(slice, Some(Duration::from_micros(given)));
                }
            });
        }
    }
}
