//! Which process the host is that started a hook.

use process::ProcessStat;

/// The names of shells, which may stand between a host and its hook.
const SHELLS: [&str; 14] =
    ["sh", "bash", "dash", "zsh", "busybox", "fish", "ksh", "ksh93", "mksh", "ash", "yash", "tcsh", "csh", "nu"];

/// The names of processes that adopt what others leave behind: no host, and above every terminal of a person.
const ADOPTING: [&str; 6] = ["systemd", "init", "tini", "dumb-init", "docker-init", "catatonit"];

/// The process of the host above the hook that `parent` started, past the shells that it may have started, and since
/// when that runs; none where the host has ended before its hook.
pub(super) fn host_process(parent: u32) -> Option<(u32, u64)> {
    host_above(parent, ProcessStat::of)
}

/// The same, where the system says `stat_of` a process.
fn host_above(parent: u32, stat_of: impl Fn(u32) -> Option<ProcessStat>) -> Option<(u32, u64)> {
    let mut pid = parent;
    loop {
        let stat = stat_of(pid)?;
        if ADOPTING.contains(&stat.name.as_str()) {
            return None;
        }
        if !SHELLS.contains(&stat.name.as_str()) || stat.parent <= 1 {
            return Some((pid, stat.since));
        }
        pid = stat.parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_adopts_a_hook_is_no_host() {
        let processes =
            [(1, "systemd", 0), (2, "systemd", 1), (3, "claude", 2), (4, "sh", 3), (5, "sh", 2), (6, "sh", 1)];
        let stat_of = |pid: u32| {
            let (_, name, parent) = processes.into_iter().find(|it| it.0 == pid)?;
            let group = i32::try_from(pid).ok()?;
            Some(ProcessStat { name: name.to_owned(), parent, group, has_ended: false, since: 7 })
        };
        for (parent, host) in [(1, None), (2, None), (3, Some(3)), (4, Some(3)), (5, None), (6, Some(6)), (9, None)] {
            assert_eq!(host_above(parent, stat_of), host.map(|pid| (pid, 7)), "{parent}");
        }
    }

    #[test]
    fn shells_stand_between_a_host_and_its_hook() {
        use std::io::{BufRead as _, BufReader};
        use std::process::{Command, Stdio};

        let own = std::process::id();
        let since = ProcessStat::of(own).unwrap().since;
        let dir = tempfile::tempdir().unwrap();
        for shell in SHELLS {
            let file = dir.path().join(shell);
            std::os::unix::fs::symlink("/bin/sh", &file).unwrap();
            let mut child = Command::new(&file)
                .args(["-c", "echo; read line"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // Whoever has said something bears its name.
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
            assert_eq!(host_process(child.id()), Some((own, since)), "{shell}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
