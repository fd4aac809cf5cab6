//! Patterns of paths, on names alone: nothing is looked up, links stay unseen.

use std::borrow::Cow;

/// The path that `text` names, which may be a URL of a file: in any spelling that programs take.
pub fn path_named(text: &str) -> &str {
    const SCHEME: &str = "file:";
    let Some((_, rest)) = text.split_at_checked(SCHEME.len()).filter(|(begin, _)| begin.eq_ignore_ascii_case(SCHEME))
    else {
        return text;
    };
    match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest),
        None if rest.starts_with('/') => rest,
        None => text,
    }
}

/// The same, with the letters of a URL that are written as numbers.
pub(crate) fn path_meant(text: &str) -> Cow<'_, str> {
    let path = path_named(text);
    let is_url = path.len() < text.len();
    if is_url && path.contains('%') { decoded(path).into() } else { path.into() }
}

/// `path` with a letter in the place of each `%` and two digits.
fn decoded(path: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| byte == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(code) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(code);
            rest = &behind[2..];
        } else {
            bytes.push(byte);
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The names of `path`, made absolute against `cwd`, without `.` and `..`, in small letters: file systems may not tell
/// large ones from small ones.
pub(crate) fn names(path: &str, home: &str, cwd: &str) -> Vec<String> {
    let path = path_meant(path);
    let whole = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ if path.starts_with('/') => path.into_owned(),
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

/// Whether `path`, in which `**` stands for any folders, may stand for what `pattern` means, which has no `**` itself.
pub(crate) fn may_mean(pattern: &str, home: &str, path: &[String]) -> bool {
    meets_below(&parts(pattern, home), path)
}

fn meets_below(parts: &[String], path: &[String]) -> bool {
    match (parts.split_first(), path.split_first()) {
        (None, None) => true,
        (_, Some((name, below))) if name == "**" => {
            // Twice in a row is no more than once.
            let is_again = below.first().is_some_and(|next| next == "**");
            meets_below(parts, below) || (!is_again && !parts.is_empty() && meets_below(&parts[1..], path))
        }
        (Some((part, rest)), Some((name, below))) => name_fits(part, name) && meets_below(rest, below),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// The folder in which `path` lies if it ends as `file` does, a path of plain names.
pub(crate) fn folder_of<'p>(file: &str, path: &'p [String]) -> Option<&'p [String]> {
    let parts: Vec<&str> = file.split('/').collect();
    let (folder, names) = path.split_at_checked(path.len().checked_sub(parts.len())?)?;
    parts.iter().zip(names).all(|(part, name)| name_fits(part, name)).then_some(folder)
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

/// The names of `path` below the folder that `pattern` means, or no more of it where it is the file that it means; none
/// where it may be something else, as a name can be that nobody knows as a whole.
pub(crate) fn below<'p>(pattern: &str, home: &str, path: &'p [String]) -> Option<&'p [String]> {
    let parts = parts(pattern, home);
    let (above, is_folder) = match parts.split_last() {
        Some((last, above)) if last == "**" => (above, true),
        _ => (parts.as_slice(), false),
    };
    let (names, rest) = path.split_at_checked(above.len())?;
    let is_there = above.iter().zip(names).all(|(part, name)| !is_pattern(name) && name_fits(part, name));
    // What nobody knows may lead out of the folder again, `..` among its names; a pattern of the shell does not.
    let is_known = rest.iter().all(|name| name.starts_with(VISIBLE) || !name.contains(['*', '{', '$', '`']));
    (is_there && is_known && (is_folder || rest.is_empty())).then_some(rest)
}

/// Whether `path` is a pattern that a shell or a program expands, of which all is known, and that means the same to each.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.contains(['$', '`', '{', '…', '(', '|', '\\']) && !path.contains("]+") && path.contains(['*', '?', '['])
}

/// How a pattern begins that stands for no hidden name.
pub(crate) const VISIBLE: &str = "[^.]";

/// `name`, which a shell expands where it is a pattern, as one that stands for no hidden name.
pub(crate) fn visible(name: &str) -> String {
    let bracket = || if name.starts_with('[') { Some(bracket(name)?.1) } else { None };
    match name.strip_prefix('?').or_else(bracket) {
        _ if name.starts_with(VISIBLE) => name.to_owned(),
        _ if name.starts_with('*') => format!("{VISIBLE}{name}"),
        Some(rest) => format!("{VISIBLE}{rest}"),
        None => name.to_owned(),
    }
}

/// The letters that make a name a pattern.
const PATTERN: [char; 5] = ['*', '?', '[', '{', '$'];

fn is_pattern(name: &str) -> bool {
    name.contains(PATTERN)
}

/// Whether `name` is a pattern with nothing in it that leads anywhere: no letter, or those of an ending alone.
pub(crate) fn is_loose(name: &str) -> bool {
    let letter = |sign: &Sign| if let Sign::Is(letter) = sign { Some(*letter) } else { None };
    let letters: String = signs(name).iter().filter_map(letter).collect();
    let stem = match letters.rfind('.') {
        Some(at) if at > 0 || !name.starts_with('.') => &letters[..at],
        Some(_) | None => letters.as_str(),
    };
    is_pattern(name) && !stem.contains(char::is_alphanumeric)
}

/// `name` where it stands for itself alone, whatever letters are in it.
pub(crate) fn literal(name: &str) -> String {
    name.replace(PATTERN, "_")
}

/// A name may be a pattern of the shell itself: it fits where it may stand for one that does.
fn name_fits(part: &str, name: &str) -> bool {
    if is_pattern(name) {
        let wanted: Vec<Sign> =
            part.chars().map(|letter| if letter == '*' { Sign::Any } else { Sign::Is(letter) }).collect();
        return meets(&wanted, name);
    }
    match part.split_once('*') {
        None => part == name,
        Some((head, tail)) => name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail),
    }
}

/// Whether a file called `name` may be one of those that `pattern` stands for, a name with signs of a shell; capitals are
/// small letters.
pub fn pattern_means(pattern: &str, name: &str) -> bool {
    let letters: Vec<Sign> = name.to_lowercase().chars().map(Sign::Is).collect();
    meets(&letters, &pattern.to_lowercase())
}

/// Whether there is a text that `wanted` and `pattern` stand for. A `*` which stands for no hidden name may stand for nothing.
fn meets(wanted: &[Sign], pattern: &str) -> bool {
    let behind = pattern.strip_prefix(VISIBLE).and_then(|rest| rest.strip_prefix('*'));
    let behind =
        behind.map(|rest| rest.trim_start_matches('*')).filter(|rest| !rest.is_empty() && !rest.starts_with('.'));
    meet(wanted, &signs(pattern)) || behind.is_some_and(|behind| meet(wanted, &signs(behind)))
}

/// What stands at one place of a pattern.
#[derive(Clone, Copy)]
enum Sign {
    /// This letter.
    Is(char),
    /// Some letter, as `?` and brackets say.
    One,
    /// Some letter but a dot.
    NoDot,
    /// Some digit.
    Digit,
    /// Any text.
    Any,
}

/// What stands in `name`, which is a pattern of the shell or has parts that are not known.
fn signs(name: &str) -> Vec<Sign> {
    let (mut signs, mut rest) = (Vec::new(), name);
    while let Some(letter) = rest.chars().next() {
        let tail = &rest[letter.len_utf8()..];
        let (sign, left) = match letter {
            '*' => (Sign::Any, tail),
            '?' => (Sign::One, tail),
            '[' => bracket(rest).unwrap_or((Sign::Is('['), tail)),
            '$' if !tail.starts_with('{') => (Sign::Any, ""),
            '$' | '{' => (Sign::Any, rest.rfind('}').map_or("", |at| &rest[at + 1..])),
            _ => (Sign::Is(letter), tail),
        };
        signs.push(sign);
        rest = left;
    }
    signs
}

/// The brackets that `text` begins with, and what follows them; none where they are not closed.
fn bracket(text: &str) -> Option<(Sign, &str)> {
    let inside = text[1..].trim_start_matches(['^', '!']);
    // A bracket that closes stands for itself at the beginning.
    let first = inside.chars().next()?.len_utf8();
    let closed = if inside.contains("[:") { inside.find("]]").map(|at| at + 2) } else { None };
    let end = closed.or_else(|| inside[first..].find(']').map(|at| first + at + 1))?;
    let is_other = inside.len() + 1 < text.len();
    let sign = match &inside[..end] {
        letters if is_other && letters.starts_with('.') => Sign::NoDot,
        "0-9]" if !is_other => Sign::Digit,
        _ => Sign::One,
    };
    Some((sign, &inside[end..]))
}

/// Whether there is a text that both stand for.
fn meet(one: &[Sign], other: &[Sign]) -> bool {
    // For what is read of `one`: whether it meets as much of `other` as the place in the list says.
    let mut row: Vec<bool> = vec![true];
    for sign in other {
        row.push(matches!(sign, Sign::Any) && row[row.len() - 1]);
    }
    for wanted in one {
        let mut next = vec![matches!(wanted, Sign::Any) && row[0]];
        for (at, sign) in other.iter().enumerate() {
            let met = match (wanted, sign) {
                (Sign::Any, _) | (_, Sign::Any) => row[at + 1] || next[at],
                (Sign::Is(a), Sign::Is(b)) => row[at] && a == b,
                (Sign::Is(letter), Sign::NoDot) | (Sign::NoDot, Sign::Is(letter)) => row[at] && *letter != '.',
                (Sign::Is(letter), Sign::Digit) | (Sign::Digit, Sign::Is(letter)) => row[at] && letter.is_numeric(),
                (Sign::One | Sign::NoDot | Sign::Digit, _) | (_, Sign::One) => row[at],
            };
            next.push(met);
        }
        row = next;
    }
    row.last().copied().unwrap_or(false)
}

/// The names in `pattern` that no other program is likely to write, for texts that cannot be read.
pub(crate) fn mark(pattern: &str) -> &str {
    let text = marked(pattern);
    text.split('*').next().unwrap_or(text)
}

/// Whether a name that begins as [`mark`] ends may go on, as `pattern` says.
pub(crate) fn goes_on(pattern: &str) -> bool {
    marked(pattern).contains('*')
}

fn marked(pattern: &str) -> &str {
    pattern.trim_start_matches("**/").trim_start_matches("~/").trim_end_matches("/**")
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
            (".claude", "*", true),
            (".claude", "[^.]*", false),
            (".claude", "[!.]*", false),
            (".claude", "[.]cl*", true),
            (".claude", "[id]", false),
            (".claude", "[...slug]", false),
            (".claude", "?claude", true),
            (".claude", "[[:punct:]]claude", true),
            (".claude", "{.claude,x}", true),
            ("plugin*", "[^.]*", true),
            ("settings*.json", "settings[", false),
            ("a1", "a[0-9]", true),
            ("ab", "a[0-9]", false),
            ("ab", "a[!0-9]", true),
            ("key", "[^.]*key", true),
            ("key", "[^.]ey", true),
            (".key", "[^.]*key", false),
            (".key", "[^.]*.key", false),
        ] {
            assert_eq!(name_fits(part, name), fits, "{part} {name}");
        }
        for (pattern, name, means) in [
            ("*.json", "Settings.JSON", true),
            ("*.json", "settings.jsonl", false),
            ("[^.]*", ".x", false),
            ("[^.]*", "x", true),
            ("s[a-f]?tings*", "settings.json", true),
            ("a", "a*", false),
        ] {
            assert_eq!(pattern_means(pattern, name), means, "{pattern} {name}");
        }
    }

    #[test]
    fn urls_of_files_are_paths_in_any_spelling() {
        for (text, path) in [
            ("file:///a/b", "/a/b"),
            ("File:///a/b", "/a/b"),
            ("file://localhost/a/b", "/a/b"),
            ("file:/a/b", "/a/b"),
            ("file://~/b", "~/b"),
            ("file:b", "file:b"),
            ("files:///b", "files:///b"),
            ("/a/b", "/a/b"),
            ("é", "é"),
        ] {
            assert_eq!(path_named(text), path, "{text}");
        }
        assert_eq!(names("FILE://localhost/U/.x", "/u", "/w"), ["u", ".x"]);
        assert_eq!(names("file:///u/%2Ex/100%/%zz", "/u", "/w"), ["u", ".x", "100%", "%zz"]);
        assert_eq!(names("/u/%2Ex", "/u", "/w"), ["u", "%2ex"]);
    }

    #[test]
    fn a_pattern_without_a_name_in_it_is_loose() {
        for (name, loose) in [
            ("*", true),
            ("**", true),
            (".*", true),
            ("*.rs", true),
            ("$x", true),
            ("[a-z]+", true),
            (".cl*ude", false),
            ("sett*.json", false),
            ("opencode.*", false),
            ("a", false),
        ] {
            assert_eq!(is_loose(name), loose, "{name}");
        }
    }

    #[test]
    fn what_is_found_below_a_folder_may_be_any_file_of_that_name() {
        for (path, may) in [
            ("/u/.x/**/key", true),
            ("/u/**/k*", true),
            ("/**/.x/**/*", true),
            ("/u/.x/g/**/key", true),
            ("/u/.x/g/**/**/**/key", true),
            ("/u/.x/**/lock", false),
            ("/u/y/**/key", false),
            ("/u/.x/g", false),
        ] {
            assert_eq!(may_mean("~/.x/g/key", "/u", &names(path, "/u", "/")), may, "{path}");
        }
        let (many, mixed) = ("/**".repeat(1000), "/**/a*".repeat(600));
        for path in [many, mixed] {
            assert!(!may_mean("~/.x/g/key", "/u", &names(&format!("{path}/no"), "/u", "/")));
        }
        let path = names("/u/.x/g/k*", "/u", "/");
        assert_eq!(folder_of("g/key", &path), Some(&path[..2]));
        assert_eq!(folder_of("g/lock", &path), None);
        assert_eq!(folder_of("g/key", &path[3..]), None);
    }

    #[test]
    fn what_lies_below_is_known_by_plain_names_alone() {
        for (path, rest) in [
            ("/u/.x/plans", Some("")),
            ("/u/.x/plans/a/b.md", Some("a/b.md")),
            ("/u/.x/plans/[id]", Some("[id]")),
            ("/u/.x/plans/[^.]*", Some("[^.]*")),
            ("/u/.x/plans/*", None),
            ("/u/.x/plans/$x", None),
            ("/u/.x/p*", None),
            ("/u/.x", None),
            ("/v/.x/plans", None),
        ] {
            let names = names(path, "/u", "/");
            let found = below("~/.x/plans/**", "/u", &names).map(|rest| rest.join("/"));
            assert_eq!(found.as_deref(), rest, "{path}");
        }
        assert!(below("~/.x/a.md", "/u", &names("/u/.x/a.md", "/u", "/")).is_some());
        assert!(below("~/.x/a.md", "/u", &names("/u/.x/a.md/b", "/u", "/")).is_none());
    }
}
