//! Patterns of paths, on names alone: nothing is looked up, links stay unseen.

/// The names of `path`, made absolute against `cwd`, without `.` and `..`, in small letters: file systems may not tell
/// large ones from small ones.
pub(crate) fn names(path: &str, home: &str, cwd: &str) -> Vec<String> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let whole = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{cwd}/{path}"),
    };
    let mut names: Vec<String> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            _ => names.push(name.to_lowercase()),
        }
    }
    names
}

/// The parts of `pattern`, with `~` as the names of `home`.
fn parts(pattern: &str, home: &str) -> Vec<String> {
    match pattern.strip_prefix("~/") {
        Some(rest) => names(home, "", "/").into_iter().chain(rest.split('/').map(str::to_owned)).collect(),
        None => pattern.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
    }
}

/// Whether `path` is what `pattern` means.
pub(crate) fn is_meant(pattern: &str, home: &str, path: &[String]) -> bool {
    fits(&parts(pattern, home), path)
}

/// Whether `path` is what `pattern` means, or a folder that something lies in which it means.
pub(crate) fn holds(pattern: &str, home: &str, path: &[String]) -> bool {
    let parts = parts(pattern, home);
    let least = if pattern.starts_with("**") { 2 } else { 0 };
    (least..=parts.len()).any(|length| fits(&parts[..length], path))
}

fn fits(parts: &[String], path: &[String]) -> bool {
    match parts.split_first() {
        None => path.is_empty(),
        Some((part, rest)) if part == "**" => {
            rest.is_empty() || (0..=path.len()).any(|skipped| fits(rest, &path[skipped..]))
        }
        Some((part, rest)) => path.split_first().is_some_and(|(name, path)| name_fits(part, name) && fits(rest, path)),
    }
}

/// A name may be a pattern of the shell itself: it fits where it may stand for one that does.
fn name_fits(part: &str, name: &str) -> bool {
    if let Some(at) = name.find(['*', '?', '[', '{', '$']) {
        let (known, meant) = (&name[..at], part.split('*').next().unwrap_or_default());
        let (end, last) = (ending(name), part.rsplit('*').next().unwrap_or_default());
        return (known.starts_with(meant) || meant.starts_with(known)) && (end.ends_with(last) || last.ends_with(end));
    }
    match part.split_once('*') {
        None => part == name,
        Some((head, tail)) => name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail),
    }
}

/// How a name that is a pattern ends for sure.
fn ending(name: &str) -> &str {
    match name.rfind(['*', '?', '[', ']', '{', '}', '$']) {
        Some(at) if name[at..].starts_with(['*', '?', ']', '}']) => &name[at + 1..],
        Some(_) | None => "",
    }
}

/// The names in `pattern` that no other program is likely to write, for texts that cannot be read.
pub(crate) fn mark(pattern: &str) -> &str {
    let text = pattern.trim_start_matches("**/").trim_start_matches("~/").trim_end_matches("/**");
    text.split('*').next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_what_it_may_stand_for() {
        for (part, name, fits) in [
            ("settings*.json", "settings.local.json", true),
            ("settings*.json", "settings.yml", false),
            ("settings*.json", "*", true),
            ("settings*.json", "*.json", true),
            ("settings*.json", "*.md", false),
            ("settings*.json", "sett*", true),
            ("settings*.json", "s[e]t*n", true),
            ("settings*.json", "$x", true),
            ("settings*.json", "$x.md", true),
            ("settings*.json", "${x}.md", false),
            (".claude", ".cl*", true),
            (".claude", "*.rs", false),
        ] {
            assert_eq!(name_fits(part, name), fits, "{part} {name}");
        }
    }
}
