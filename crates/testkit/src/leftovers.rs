//! Ways in which a program tries to leave something behind, and the look for what is left.

use std::fs;
use std::path::Path;

/// Each in words, with the shell text that leaves it: `left` is a program in the same folder that makes the file `up`
/// and stays, `HERE` the folder, `MARK` stands in the command line of all of them.
///
/// Where a kernel does not let somebody make namespaces, the plain program is left instead.
pub const WAYS: [(&str, &str); 19] = [
    ("in the background", "./left &"),
    ("a session of its own", "setsid ./left &"),
    ("without the environment", "setsid env -i /bin/sh ./left &"),
    ("forked twice", "( ( ./left & ) & )"),
    ("forked twice around a session", "( setsid sh -c './left & exit' & )"),
    ("nohup", "nohup ./left >nohup.out 2>&1 &"),
    ("disown", "bash -c './left & disown'"),
    ("as daemons do", "setsid sh -c 'cd /; HERE/left </dev/null >/dev/null 2>&1 & exit' &"),
    ("a group of its own", "bash -c 'set -m; ./left &'"),
    ("without the signal of its parent's death", "setpriv --pdeathsig clear setsid ./left &"),
    ("below an adoptive process", "perl -e 'syscall(PRCTL, 36, 1, 0, 0, 0); system(q(setsid ./left &)); sleep' MARK &"),
    ("as a sibling", "perl -e 'syscall(CLONE, 0x8011, 0, 0, 0, 0) or exec q(setsid), q(./left)' MARK"),
    (
        "a child that tells nobody of its end",
        "perl -e 'syscall(CLONE, 0, 0, 0, 0, 0) or exec q(setsid), q(./left)' MARK",
    ),
    ("namespaces of its own", "(unshare --user --pid --fork ./left || ./left) 2>/dev/null &"),
    ("faster than it is found", "setsid sh -c 'f() { : >HERE/up; : MARK; f & }; f' &"),
    ("five hundred", "perl -e 'for (1..500) { fork or do { open U, q(>>up); sleep 1000; exit } } sleep' MARK &"),
    ("deaf to TERM", "setsid sh -c 'trap \"\" TERM HUP INT; : >up; : MARK; while :; do sleep 1000.MARK; done' &"),
    ("without descriptors", "sh -c 'exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&-; cd HERE; setsid ./left &'"),
    ("stopped", "setsid sh -c ': >up; kill -STOP $$; : MARK' &"),
];

/// The numbers of `prctl` and `clone`, for programs that know them by nothing else.
const CALLS: [&str; 2] = if cfg!(target_arch = "x86_64") { ["157", "56"] } else { ["167", "220"] };

/// The shell text of a way, which runs in `folder` and ends with `end` once what it leaves is there. Makes the program
/// that is left; `mark` is one that nobody else uses, and a number, since `sleep` is told it.
pub fn text(way: &str, folder: &Path, mark: &str, end: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let left = folder.join("left");
    fs::write(&left, format!("#!/bin/sh\n: >{}/up\nexec sleep 1000.{mark}\n", folder.display())).expect("a folder");
    fs::set_permissions(&left, fs::Permissions::from_mode(0o755)).expect("our own file");
    let way = way.replace("HERE", &folder.display().to_string()).replace("MARK", mark);
    let way = way.replace("PRCTL", CALLS[0]).replace("CLONE", CALLS[1]);
    format!("cd {}; rm -f up; {way}\nwhile [ ! -e up ]; do sleep 0.005; done; {end}", folder.display())
}

/// The processes with `mark` in their command line that run, each with its command line; not this one.
pub fn alive(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("the kernel's files").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|pid| *pid != std::process::id());
    let told = others.filter_map(|pid| Some((pid, fs::read(format!("/proc/{pid}/cmdline")).ok()?)));
    let marked = told.map(|(pid, line)| (pid, String::from_utf8_lossy(&line).replace('\0', " ")));
    marked.filter(|(_, line)| line.contains(mark)).map(|(pid, line)| format!("{pid} {line}")).collect()
}
