//! Which process the host is that started a hook.

use pintle_process::ProcessStat;

use super::host_program;

/// The names of shells, which may stand between a host and its hook.
const SHELLS: [&str; 14] =
    ["sh", "bash", "dash", "zsh", "busybox", "fish", "ksh", "ksh93", "mksh", "ash", "yash", "tcsh", "csh", "nu"];

/// The names of processes that adopt what others leave behind: no host, and above every terminal of a person.
const ADOPTING: [&str; 6] = ["systemd", "init", "tini", "dumb-init", "docker-init", "catatonit"];

/// How many processes above a hook are looked at: a chain that is longer has no agent at its top.
const MAX_ABOVE: usize = 1000;

/// What started a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HookStarter {
    /// The nearest process above the hook that is no shell, and since when that runs.
    process: (u32, u64),
    /// Whether a shell between them leads the session of the hook's terminal: a person may have typed the hook there, and
    /// what is above is the program that shows the terminal.
    is_at_terminal: bool,
}

impl HookStarter {
    /// What started the hook with this process; none where whoever started it has ended before it.
    pub(super) fn of(hook: &ProcessStat) -> Option<Self> {
        Self::above(hook, ProcessStat::of)
    }

    /// The same, where the system says `stat_of` a process.
    fn above(hook: &ProcessStat, stat_of: impl Fn(u32) -> Option<ProcessStat>) -> Option<Self> {
        let (mut pid, mut is_at_terminal) = (hook.parent, false);
        loop {
            let stat = stat_of(pid)?;
            if ADOPTING.contains(&stat.name.as_str()) {
                return None;
            }
            let is_shell = SHELLS.contains(&stat.name.as_str());
            let is_on_it = stat.terminal != 0 && (stat.terminal, stat.session) == (hook.terminal, hook.session);
            is_at_terminal |= is_shell && is_on_it && stat.session.cast_unsigned() == pid;
            if !is_shell || stat.parent <= 1 {
                return Some(Self { process: (pid, stat.since), is_at_terminal });
            }
            pid = stat.parent;
        }
    }

    /// The process of the host, and since when that runs. Of a hook that a person may have typed it is one that is known
    /// as the program of `host`, or none.
    pub(super) fn process_of(self, host: &str) -> Option<(u32, u64)> {
        if !self.is_at_terminal {
            return Some(self.process);
        }
        let host = pintle_guard::host(host)?;
        // Read again, because it may have ended meanwhile. Of each one it is read first since when it runs: if another one
        // has its number by the time its program is looked at, what is told is a process that has ended.
        let with_stat = |pid: u32| Some((pid, ProcessStat::of(pid)?));
        let above = std::iter::successors(with_stat(self.process.0), |(_, stat)| with_stat(stat.parent));
        let (pid, stat) =
            above.take(MAX_ABOVE).find(|(pid, stat)| host_program::is_of_named(host, (*pid, stat.name.as_str())))?;
        Some((pid, stat.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process with its terminal, of the session that `session` began.
    fn stat((name, parent): (&str, u32), (session, terminal): (i32, i32)) -> ProcessStat {
        ProcessStat { name: name.to_owned(), parent, group: session, session, terminal, has_ended: false, since: 7 }
    }

    #[test]
    fn whoever_adopts_a_hook_is_no_host() {
        let processes =
            [(1, "systemd", 0), (2, "systemd", 1), (3, "claude", 2), (4, "sh", 3), (5, "sh", 2), (6, "sh", 1)];
        let stat_of = |pid: u32| {
            let (_, name, parent) = processes.into_iter().find(|it| it.0 == pid)?;
            Some(stat((name, parent), (0, 0)))
        };
        for (parent, host) in [(1, None), (2, None), (3, Some(3)), (4, Some(3)), (5, None), (6, Some(6)), (9, None)] {
            let started = HookStarter::above(&stat(("pintle-hook", parent), (0, 0)), stat_of);
            let host = host.map(|pid| HookStarter { process: (pid, 7), is_at_terminal: false });
            assert_eq!(started, host, "{parent}");
        }
    }

    #[test]
    fn a_hook_that_was_typed_at_a_shell_is_no_agents() {
        // The shell 3 leads the session of the terminal 5; the agent 6 runs in it, and 9 is its tool on a terminal of its own.
        let processes = [
            (2, "tmux: server", 1, (2, 0)),
            (3, "bash", 2, (3, 5)),
            (4, "bash", 3, (3, 5)),
            (6, "node", 3, (3, 5)),
            (7, "sh", 6, (3, 5)),
            (8, "sh", 6, (8, 0)),
            (9, "bash", 6, (9, 11)),
        ];
        let stat_of = |pid: u32| {
            let (_, name, parent, of) = processes.into_iter().find(|it| it.0 == pid)?;
            Some(stat((name, parent), of))
        };
        let check = |parent: u32, expected: (u32, bool)| {
            let of = processes.iter().find(|it| it.0 == parent).unwrap().3;
            let started = HookStarter::above(&stat(("pintle-hook", parent), of), stat_of).unwrap();
            assert_eq!((started.process.0, started.is_at_terminal), expected, "{parent}");
        };
        check(3, (2, true));
        check(4, (2, true));
        check(6, (6, false));
        check(7, (6, false));
        check(8, (6, false));
        check(9, (6, true));
    }

    #[test]
    fn above_a_typed_hook_only_the_program_of_its_host_is_one() {
        let own = std::process::id();
        let process = (own, ProcessStat::of(own).unwrap().since);
        let started = |is_at_terminal| HookStarter { process, is_at_terminal };
        assert_eq!(started(false).process_of("claude"), Some(process));
        assert_eq!(started(true).process_of("pi"), None);
        assert_eq!(started(true).process_of("unknown"), None);
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
            let hook = stat(("pintle-hook", child.id()), (0, 0));
            let expected = HookStarter { process: (own, since), is_at_terminal: false };
            assert_eq!(HookStarter::of(&hook), Some(expected), "{shell}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
