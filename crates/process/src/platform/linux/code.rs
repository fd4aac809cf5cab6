//! The code of this program in memory.

use std::ffi::c_void;
use std::{fs, io, ptr};

use nix::errno::Errno;
use nix::libc;

/// Gives back the memory that the code of this program takes, for a process that will wait for long: what it needs again
/// is mapped as it is used, from what the kernel keeps of the file, which costs some microseconds each time.
///
/// # Errors
/// The system does not tell where the code lies, or does not take it back.
pub fn give_back_code() -> io::Result<()> {
    advise(libc::MADV_DONTNEED)
}

/// Gives the system `advice` on all code of this program.
#[expect(unsafe_code, reason = "there is no safe form: of other memory, what was written would be lost")]
fn advise(advice: libc::c_int) -> io::Result<()> {
    for (start, end) in
        code(&fs::read_to_string("/proc/self/maps")?, &fs::read_link("/proc/self/exe")?.to_string_lossy())
    {
        let start = ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: code is only read and run, and nothing of it differs from the file, from where it comes back.
        Errno::result(unsafe { libc::madvise(start, end - start.addr(), advice) })?;
    }
    Ok(())
}

/// The first address and the end of each part of `maps` that is code of `program` and cannot be written to, as
/// proc_pid_maps(5) has them.
fn code(maps: &str, program: &str) -> Vec<(usize, usize)> {
    let parts = maps.lines().filter_map(|line| {
        let mut words = line.splitn(6, ' ');
        let (range, rights) = (words.next()?, words.next()?);
        let file = words.nth(3)?.trim_start();
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        (rights == "r-xp" && file == program).then_some((address(start)?, address(end)?))
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_itself_is_meant() {
        let maps = "\
5584fb9ab000-5584fba29000 r--p 00000000 fe:00 5595242                    /opt/a b/pintle
5584fba29000-5584fbb00000 r-xp 0007e000 fe:00 5595242                    /opt/a b/pintle
5584fbb00000-5584fbb10000 rwxp 0007e000 fe:00 5595242                    /opt/a b/pintle
5584fbb10000-5584fbb20000 rw-p 00155000 fe:00 5595242                    /opt/a b/pintle
7f569fcfb000-7f569fe51000 r-xp 00026000 fe:00 1234                       /usr/lib/libc.so.6
7f569feeb000-7f569feec000 r-xp 00000000 00:00 0                          [vdso]
7f569ff00000-7f569ff01000 r-xp 00000000 00:00 0
";
        assert_eq!(code(maps, "/opt/a b/pintle"), [(0x5584_fba2_9000, 0x5584_fbb0_0000)]);
        assert_eq!(code(maps, "/opt/a"), []);
    }

    #[test]
    fn what_is_given_back_takes_no_memory_and_still_runs() {
        let held = || {
            let (maps, program) = (fs::read_to_string("/proc/self/smaps").unwrap(), fs::read_link("/proc/self/exe"));
            let program = program.unwrap().to_string_lossy().into_owned();
            let at = maps.lines().position(|line| line.contains(" r-xp ") && line.ends_with(&program)).unwrap();
            let held = maps.lines().skip(at).find_map(|line| line.strip_prefix("Rss:")).unwrap();
            held.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        // All of it is there before: of what a busy machine has mapped so far, some is used again by then.
        advise(libc::MADV_POPULATE_READ).unwrap();
        let before = held();
        give_back_code().unwrap();
        let after = held();
        assert!(after < before, "{before} KiB, then {after} KiB");
    }
}
