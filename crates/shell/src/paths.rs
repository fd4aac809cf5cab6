//! Paths as text: nothing is looked up, links stay unseen.

use crate::bounds;

/// `path` made absolute against `cwd` and without `.` and `..`; nothing if that needs a folder that is not known.
///
/// A path in a home folder keeps its `~`, because whose home it is cannot be known.
pub(crate) fn resolve(path: &str, cwd: Option<&str>) -> Option<String> {
    if path.is_empty() || path.len() > bounds::VALUE_BYTES {
        return None;
    }
    if path.starts_with(['/', '~']) {
        return Some(normalise(path));
    }
    Some(normalise(&format!("{}/{path}", cwd?)))
}

fn normalise(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            // What lies above a home folder is somewhere else, and stays visible as such.
            ".." if !rooted && names.len() <= 1 => names.push(".."),
            ".." => {
                if !rooted && names.last() == Some(&"..") {
                    names.push("..");
                } else {
                    names.pop();
                }
            }
            other => names.push(other),
        }
    }
    let joined = names.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

/// Whether `path`, which is resolved, lies in `workspace`.
pub(crate) fn is_inside(path: &str, workspace: &str) -> bool {
    let workspace = workspace.trim_end_matches('/');
    path.strip_prefix(workspace).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Devices that only take or give bytes; they are no files to anybody.
pub(crate) fn is_harmless_device(path: &str, written: bool) -> bool {
    match path {
        "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" => true,
        "/dev/zero" | "/dev/urandom" | "/dev/random" => !written,
        other => other.strip_prefix("/dev/fd/").is_some_and(|rest| rest.bytes().all(|digit| digit.is_ascii_digit())),
    }
}

/// Whether `path` is this process's standard output or error under another name.
pub(crate) fn is_own_output(path: &str) -> bool {
    matches!(
        path,
        "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/fd/1" | "/dev/fd/2" | "/proc/self/fd/1" | "/proc/self/fd/2"
    )
}

/// The last name of `path`.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether `text` is a URL of a kind that programs fetch from or send to.
pub(crate) fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let scheme = scheme.to_ascii_lowercase();
    let scheme = scheme.rsplit('+').next().unwrap_or_default();
    !rest.is_empty() && ["http", "https", "ftp", "ftps", "sftp", "ssh", "git", "ws", "wss"].contains(&scheme)
}
