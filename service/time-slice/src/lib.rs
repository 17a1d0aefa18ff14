//! The time slice of a thread.
//!
//! # Theory of operation
//!
//! Of the threads that wait for a processor, Linux (since 6.12) runs the one whose time slice ends first, among those within their share.
//! So a thread with short slices runs sooner after a wait for a socket, and gets no more processor time in all. A thread that computes
//! for long is interrupted more often instead. No privilege is needed.
//!
//! Threads and processes inherit the slice of the thread that starts them, so it must be requested before other threads start.
//!
//! **Invariant:** the two system calls here are the only unsafe code of this workspace.
//!
//! Deliberately outside: priorities, which give one program more than its share, and other scheduling policies than the default. A policy
//! that an operator has chosen (`chrt`) stays.

use std::{io, time::Duration};

/// Requests time slices of this length for the calling thread, and for the threads that it starts later. Linux clamps the length to 0.1 ms
/// to 100 ms; before 6.12 it ignores the length.
///
/// # Errors
/// [`Unsupported`](io::ErrorKind::Unsupported) on systems other than Linux, and for a thread with another scheduling policy than the
/// default. Otherwise the error of the system, for example if a sandbox forbids the call.
pub fn request(length: Duration) -> io::Result<()> {
    system::request(length)
}

/// The time slice of the calling thread; `None` if Linux does not report it, as before 6.12.
///
/// # Errors
/// The errors of [`request`].
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

    /// The attributes of this thread, if its policy is the default, `SCHED_OTHER`.
    fn usual() -> io::Result<sched_attr> {
        let attributes = get()?;
        if i32::try_from(attributes.sched_policy) == Ok(libc::SCHED_OTHER) {
            return Ok(attributes);
        }
        let text = "the thread has another scheduling policy";
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
        // SAFETY: the kernel writes at most SIZE bytes to an exclusive reference of that size, and any bytes are valid numbers.
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
        // SAFETY: the kernel reads as many bytes as `size` says, which is no more than the size of the reference.
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

    /// Runs in a separate thread, so that other tests do not see its slice.
    fn alone<T: Send>(run: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(run).join().expect("it ends"))
    }

    /// Whether the kernel supports slices of a chosen length. Prints a note if not.
    fn is_known() -> bool {
        let known = of_this_thread().expect("Linux tells").is_some();
        if !known {
            eprintln!("notice: not tested, this kernel has no time slices to ask for (6.12 has)");
        }
        known
    }

    #[test]
    fn slice_is_as_requested_within_its_bounds_and_inherited() {
        for (requested, given) in [(1, 100), (300, 300), (3_600_000_000, 100_000)] {
            alone(|| {
                request(Duration::from_micros(requested)).expect("anybody may");
                if is_known() {
                    let given = Some(Duration::from_micros(given));
                    assert_eq!(of_this_thread().expect("it tells"), given);
                    assert_eq!(alone(of_this_thread).expect("it tells"), given);
                }
            });
        }
    }
}
