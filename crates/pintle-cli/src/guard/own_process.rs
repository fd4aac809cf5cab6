//! Processes of the guard by their numbers: it hides what it is from others of its user, so that a link does not say it.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the files of processes are.
const PROCESSES: &str = "/proc";

/// How the names of our programs begin.
const OWN_NAME: &str = "pintle";

/// The program of the process whose `/proc/ID/exe` is `asked`, if that is this one or another one of ours.
pub(super) fn own_process(asked: &Path) -> Option<PathBuf> {
    let process = asked.strip_prefix(PROCESSES).ok()?.to_str()?.strip_suffix("/exe")?;
    if !process.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let status = fs::read_to_string(format!("{PROCESSES}/{process}/status")).ok()?;
    // Threads have numbers, too.
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim();
    let is_this = process == std::process::id().to_string();
    let name = fs::read_to_string(format!("{PROCESSES}/{process}/comm")).unwrap_or_default();
    (is_this || name.starts_with(OWN_NAME)).then(|| Path::new("/").join(OWN_NAME))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known_by_its_number_and_others_are_not() {
        let program = |path: String| own_process(Path::new(&path));
        let id = std::process::id();
        assert_eq!(program(format!("/proc/{id}/exe")), Some(PathBuf::from("/pintle")));
        for other in [
            format!("/proc/{}/exe", std::os::unix::process::parent_id()),
            format!("/proc/{id}/cwd"),
            format!("/proc/{id}/task/{id}/exe"),
            "/proc/exe".to_owned(),
            "/proc/x/exe".to_owned(),
        ] {
            assert_eq!(program(other.clone()), None, "{other}");
        }
    }
}
