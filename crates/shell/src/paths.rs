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
            // `/dev/fd` is a link.
            ".." if rooted && names == ["dev", "fd"] => names = vec!["proc", "self"],
            // Where these lead is not known.
            ".." if rooted && leads_away(&names) => names.push(".."),
            ".." => {
                if !rooted && names.last() == Some(&"..") {
                    names.push("..");
                } else {
                    names.pop();
                }
            }
            other => names.push(other),
        }
        if rooted {
            shorten(&mut names);
        }
    }
    let joined = names.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

/// Whether `names` is a link of a process to a folder, or lies above where one leads.
fn leads_away(names: &[&str]) -> bool {
    names.first() == Some(&"proc")
        && (names.last() == Some(&"..") || names.get(2) == Some(&"cwd") || (names.len() > 3 && names[2] == "fd"))
}

/// Takes out what leads to the same place under `/proc`: `root` is `/`, and a thread is told as its process.
fn shorten(names: &mut Vec<&str>) {
    match names.as_slice() {
        ["proc", _, "root"] => names.clear(),
        ["proc", "thread-self"] => *names = vec!["proc", "self"],
        ["proc", _, "task", _] => names.truncate(2),
        _ => {}
    }
}

/// Whether `path` holds signs of a pattern.
pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Whether the pattern `pattern`, a path whose `**` stands for any folders, may stand for `path`.
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    let patterns: Vec<&str> = pattern.split('/').collect();
    let names: Vec<&str> = path.split('/').collect();
    // Which names are reached by the patterns so far.
    let mut reached = vec![false; names.len() + 1];
    reached[0] = true;
    for part in patterns {
        let mut next = vec![false; names.len() + 1];
        for at in 0..=names.len() {
            if part == "**" {
                next[at] = reached[..=at].contains(&true);
            } else if at > 0 {
                next[at] = reached[at - 1] && name_fits(part, names[at - 1]);
            }
        }
        reached = next;
    }
    reached[names.len()]
}

/// Whether `pattern` may stand for `name`; a class such as `[a-z]` stands for any letter here.
fn name_fits(pattern: &str, name: &str) -> bool {
    let mut signs: Vec<char> = Vec::new();
    let mut rest = pattern;
    while let Some(sign) = rest.chars().next() {
        let class = rest.strip_prefix('[').and_then(|inside| inside.get(1..)?.find(']').map(|end| end + 3));
        rest = &rest[class.unwrap_or(sign.len_utf8())..];
        signs.push(if class.is_some() { '?' } else { sign });
    }
    let letters: Vec<char> = name.chars().collect();
    let (mut at, mut letter, mut back) = (0, 0, None);
    while letter < letters.len() {
        match signs.get(at) {
            Some('*') => {
                back = Some((at, letter));
                at += 1;
            }
            Some(sign) if *sign == '?' || *sign == letters[letter] => {
                at += 1;
                letter += 1;
            }
            Some(_) | None => {
                let Some((star, from)) = back else { return false };
                back = Some((star, from + 1));
                at = star + 1;
                letter = from + 1;
            }
        }
    }
    signs[at..].iter().all(|sign| *sign == '*')
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
