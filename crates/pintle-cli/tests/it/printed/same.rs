//! Whether a program prints what a page shows.

use std::sync::LazyLock;

use regex::Regex;

/// What differs from run to run, and what stands in its place.
static DIFFERS: LazyLock<[(Regex, &str); 7]> = LazyLock::new(|| {
    [
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "ID"),
        (r"(<|\b)\d+(\.\d+)? (µs|ms|s)\b", "TIME"),
        (r"\b\d{4}-\d{2}-\d{2} \d{2}:\d{2}(:\d{2})? UTC", "AT"),
        (r"\bsha256[: ][0-9a-f]+", "DIGEST"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]+)*(-…|\b)", "ID"),
        (r"\b\d{4}-\d{2}\b", "MONTH"),
        (r"[ \t]+", " "),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
});

/// A line without what differs.
fn same(line: &str) -> String {
    let line =
        DIFFERS.iter().fold(line.to_owned(), |line, (pattern, with)| pattern.replace_all(&line, *with).into_owned());
    line.trim().to_owned()
}

/// The first line that a page shows and a program does not print there: `printed` has to have all of them, in this order,
/// with whatever it likes between them. `…` stands for anything.
pub(crate) fn missing<'a>(shown: &[&'a str], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(same);
    shown.iter().copied().find(|line| {
        let parts: Vec<String> = same(line).split('…').map(regex::escape).collect();
        let is_anything = parts.iter().all(|part| part.trim().is_empty());
        let pattern = Regex::new(&format!("^{}$", parts.join(".*"))).unwrap();
        !is_anything && !printed.any(|line| pattern.is_match(&line))
    })
}
