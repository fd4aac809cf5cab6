//! What a child gives up before it reads the first script: files, sockets, other processes, and memory without end.
//!
//! The engine offers scripts none of these. This is for the day on which a script finds a mistake in the engine.

use std::path::PathBuf;

use landlock::{ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};
use nix::libc;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::limits;

/// What a child still calls: reading, writing, memory, time, and its own end. All else fails with `EPERM`.
const CALLS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_setitimer,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_alarm,
];

/// Gives up all of it, for good. The limits have to hold; landlock and seccomp are taken as far as the kernel has them.
pub(crate) fn confine() -> Result<(), String> {
    limit_resources().map_err(|error| format!("its limits could not be set: {error}"))?;
    // Each alone would do, and some kernels have only one of them.
    let (files, calls) = (refuse_files(), refuse_calls());
    match (files, calls) {
        (Err(files), Err(calls)) => Err(format!("neither landlock ({files}) nor seccomp ({calls}) can be used")),
        (Ok(()), _) | (_, Ok(())) => Ok(()),
    }
}

/// Closes descriptors that the host itself was given without the mark to be closed.
pub(crate) fn close_others() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let paths: Vec<PathBuf> = open.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let numbers = paths.iter().filter_map(|path| path.file_name()?.to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // The one that listed the folder is closed already, and says so.
        nix::unistd::close(number).unwrap_or_default();
    }
}

fn limit_resources() -> nix::Result<()> {
    let address_bytes = own_address_bytes().map_or(RLIM_INFINITY, |own| own + limits::ADDRESS_BYTES);
    for (resource, wanted) in [
        (Resource::RLIMIT_AS, address_bytes),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_STACK, limits::STACK_BYTES),
    ] {
        let (_, hard) = getrlimit(resource)?;
        let limit = wanted.min(hard);
        setrlimit(resource, limit, limit)?;
    }
    Ok(())
}

/// What is mapped already: the program itself, which may be large.
fn own_address_bytes() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page_bytes).ok()?)
}

/// No rule is added, so nothing is allowed.
fn refuse_files() -> Result<(), String> {
    let ruled = || {
        let abi = ABI::V6;
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .restrict_self()
    };
    let status = ruled().map_err(|error| error.to_string())?;
    match status.ruleset {
        landlock::RulesetStatus::NotEnforced => Err("this kernel has none".into()),
        landlock::RulesetStatus::FullyEnforced | landlock::RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn refuse_calls() -> Result<(), String> {
    let arch = std::env::consts::ARCH.try_into().map_err(|_| "not for this processor")?;
    let allowed = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(allowed, refuse, SeccompAction::Allow, arch);
    let program: BpfProgram =
        filter.and_then(TryInto::try_into).map_err(|error: seccompiler::BackendError| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}
