//! Numbers that are not known: which they are does not matter, because nothing that could be run comes of them.

/// Variables whose values are numbers, whichever.
const NUMBERS: &[&str] = &["?", "#", "$", "!", "LINENO"];

/// Those that only bash sets itself.
const NUMBERS_OF_BASH: &[&str] =
    &["RANDOM", "SECONDS", "UID", "EUID", "BASHPID", "EPOCHSECONDS", "COLUMNS", "LINES", "SRANDOM", "EPOCHREALTIME"];

/// Longest expression that stands in its number.
const SHOWN: usize = 64;

/// A text that stands for the number that `expression` comes to. What could be taken for a path or a pattern is left out.
pub(crate) fn of(expression: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || " _+-".contains(letter);
    let shown = expression.len() < SHOWN && expression.chars().all(plain);
    if shown { format!("$(({expression}))") } else { "$((…))".to_owned() }
}

/// Whether the variable `name` is a number in every shell.
pub(crate) fn is_everywhere(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Whether it is one in bash alone.
pub(crate) fn is_in_bash(name: &str) -> bool {
    NUMBERS_OF_BASH.contains(&name)
}

/// Whether `text` is a number, or stands for one.
pub(crate) fn is_number(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['-', '+']);
    let inside = |begin: &str, end: &str, letters: &str| {
        text.strip_prefix(begin)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_alphanumeric() || letters.contains(letter)))
    };
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        || inside("$((", "))", " _+-…")
        || inside("${#", "}", "_@*[]")
        || text.strip_prefix('$').is_some_and(|name| is_everywhere(name) || is_in_bash(name))
}

/// Whether `text` stands for a number that is not known, so that it is not the text itself.
pub(crate) fn is_hidden(text: &str) -> bool {
    text.contains("$((") || text.contains("${#")
}
