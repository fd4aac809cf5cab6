//! sed: edits are harmless, `e`, `w` and `r` are not.

use super::{Look, Touched, unread};

/// The files that a sed script writes, or why it cannot be known what it does.
pub(crate) fn look(script: &str) -> Look {
    let mut writes = Vec::new();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            letter.is_whitespace() || letter == ';' || letter == '{' || letter == '}'
        });
        if rest.is_empty() {
            return Ok(Touched { writes, ..Touched::default() });
        }
        rest = after_address(rest).ok_or_else(|| unread("sed", rest))?;
        let Some(command) = rest.chars().next() else { return Ok(Touched { writes, ..Touched::default() }) };
        rest = &rest[command.len_utf8()..];
        rest = match command {
            's' => after_substitution(rest, &mut writes)?,
            'y' => {
                let mark = rest.chars().next().ok_or_else(|| unread("sed", "y"))?;
                let (_, after) = part(&rest[mark.len_utf8()..], mark).ok_or_else(|| unread("sed", "y"))?;
                part(after, mark).ok_or_else(|| unread("sed", "y"))?.1
            }
            'w' | 'W' => {
                let (file, after) = rest.split_once('\n').unwrap_or((rest, ""));
                writes.push(file.trim().to_owned());
                after
            }
            // Texts and comments go on to the end of their line.
            'a' | 'i' | 'c' | '#' => after_text(rest),
            'b' | 't' | 'T' | ':' | 'q' | 'Q' | 'l' | 'L' => {
                rest.trim_start_matches(|letter: char| letter != ';' && letter != '\n' && letter != '}')
            }
            'd' | 'D' | 'p' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'F' | 'z' => rest,
            '{' | '}' | ';' => rest,
            other => return Err(unread("sed", &other.to_string())),
        };
    }
}

/// Skips the lines that a command is for.
fn after_address(mut rest: &str) -> Option<&str> {
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            letter.is_whitespace() || ",!$+~".contains(letter) || letter.is_ascii_digit()
        });
        let first = rest.chars().next()?;
        let mark = match first {
            '/' => '/',
            '\\' => rest[1..].chars().next()?,
            _ => return Some(rest),
        };
        let from = if first == '/' { 1 } else { 1 + mark.len_utf8() };
        rest = part(&rest[from..], mark)?.1;
        rest = rest.trim_start_matches(['I', 'M']);
    }
}

/// `/from/to/flags`.
fn after_substitution<'s>(rest: &'s str, writes: &mut Vec<String>) -> Result<&'s str, String> {
    let refuse = || unread("sed", "s");
    let mark = rest.chars().next().ok_or_else(refuse)?;
    let (_, after) = part(&rest[mark.len_utf8()..], mark).ok_or_else(refuse)?;
    let (_, flags) = part(after, mark).ok_or_else(refuse)?;
    let end = flags.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(flags.len());
    if let Some(at) = flags[..end].find('w') {
        let (file, after) = flags[at + 1..].split_once('\n').unwrap_or((&flags[at + 1..], ""));
        writes.push(file.trim().to_owned());
        return Ok(after);
    }
    if flags[..end].contains(['e', 'E']) {
        return Err(unread("sed", "s///e"));
    }
    Ok(&flags[end..])
}

/// The text up to `mark`, and what follows it; nothing where a bracket holds the mark, which each `sed` reads its own way.
fn part(rest: &str, mark: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == mark => return Some((&rest[..at], &rest[at + mark.len_utf8()..])),
            '[' => {
                let inside = rest[at + 1..].find(']').map(|end| &rest[at + 1..at + 1 + end]);
                if inside.is_some_and(|inside| inside.contains(mark)) {
                    return None;
                }
            }
            _ => {}
        }
    }
    None
}

/// Text after `a`, `i` or `c`: to the end of the line, and on while lines end with a backslash.
fn after_text(rest: &str) -> &str {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        at += line.len();
        if !line.trim_end_matches('\n').ends_with('\\') {
            break;
        }
    }
    &rest[at..]
}
