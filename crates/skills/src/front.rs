//! The head of a `SKILL.md`: what stands between two lines `---`, in YAML. Source: the published format of skills.

use serde::Deserialize;

/// Longest head, in bytes: a name, a description and some keys that we do not read.
const MAX_FRONT_BYTES: usize = 16 << 10;

/// The line before and behind the head.
const FENCE: &str = "---";

/// What the head says, as far as it is read: other keys belong to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct FrontMatter {
    /// How the skill calls itself.
    pub(crate) name: Option<String>,
    /// What it is for.
    pub(crate) description: Option<String>,
}

/// Why a head cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrontError {
    /// The line in the file, from 1.
    pub(crate) line: usize,
    /// The column, from 1.
    pub(crate) column: usize,
    /// What is wrong.
    pub(crate) message: String,
}

/// The head and the body of a `SKILL.md`. A file without a head is all body.
///
/// # Errors
/// The head does not end, is too long, or is not YAML of this form.
pub(crate) fn read(text: &str) -> Result<(FrontMatter, &str), FrontError> {
    let (Some(head), body) = split(text)? else { return Ok((FrontMatter::default(), text.trim())) };
    if head.trim().is_empty() {
        return Ok((FrontMatter::default(), body));
    }
    match serde_saphyr::from_str::<FrontMatter>(head) {
        Ok(front) => Ok((front, body)),
        Err(why) => {
            // Other hosts read what is not quite YAML, such as a description with `: ` in it.
            let lenient = plain(head);
            if lenient.description.is_some() {
                return Ok((lenient, body));
            }
            let why = why.without_snippet();
            let at = why.location().map_or((1, 1), |at| (at.line() as usize, at.column() as usize));
            // Below the first fence.
            let said = why.to_string();
            let line = said.lines().next().unwrap_or("not YAML");
            // Its place is counted from the fence; the one that is told is not.
            let message = line.split(" at line ").next().unwrap_or(line).to_owned();
            Err(FrontError { line: at.0 + 1, column: at.1, message })
        }
    }
}

/// Whether the head has hooks of another program in it.
pub(crate) fn has_hooks(text: &str) -> bool {
    let head = split(text).ok().and_then(|(head, _)| head).unwrap_or_default();
    head.lines().any(|line| entry(line, "hooks").is_some())
}

/// The body of a `SKILL.md`, whatever its head is like.
pub(crate) fn body(text: &str) -> &str {
    split(text).map_or(text, |(_, body)| body).trim()
}

/// What the lines of a head say that is no YAML: each key that is read, with the rest of its line and the lines below
/// that are indented. What begins like a list, a table or anything else but a text is nothing.
fn plain(head: &str) -> FrontMatter {
    let value = |key: &str| {
        let mut lines = head.lines().skip_while(|line| entry(line, key).is_none());
        let first = entry(lines.next()?, key)?;
        let block = ['>', '|'].iter().any(|mark| first.starts_with(*mark) && first.len() <= 2);
        let below = lines.take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t']));
        let words = std::iter::once(if block { "" } else { first }).chain(below.map(str::trim));
        let text = words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ");
        unquoted(&text).map(str::to_owned)
    };
    FrontMatter { name: value("name"), description: value("description") }
}

/// What stands behind `key` in a line that is about it.
fn entry<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

/// A text without the quotes around it; nothing of what is not text.
fn unquoted(text: &str) -> Option<&str> {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.strip_suffix(quote);
        }
    }
    let is_text = |first: char| !matches!(first, '[' | '{' | '*' | '&' | '!' | '%' | '@' | '`');
    text.chars().next().is_some_and(is_text).then_some(text)
}

/// What stands between the fences, if there is a first one, and what stands behind them.
fn split(text: &str) -> Result<(Option<&str>, &str), FrontError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == FENCE) else { return Ok((None, text)) };
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == FENCE {
            return Ok((Some(&text[first.len()..end]), text[end + line.len()..].trim()));
        }
        end += line.len();
        if end > MAX_FRONT_BYTES {
            let message = format!("the front matter is longer than {MAX_FRONT_BYTES} bytes, or its `---` is missing");
            return Err(FrontError { line: 1, column: 1, message });
        }
    }
    Err(FrontError { line: 1, column: 1, message: "the front matter has no `---` at its end".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Option<String>, Option<String>, String) {
        let (front, body) = read(text).unwrap();
        (front.name, front.description, body.to_owned())
    }

    #[test]
    fn a_head_names_and_describes_and_the_rest_is_the_body() {
        let some = |text: &str| Some(text.to_owned());
        let all = "---\nname: cite\ndescription: >\n  Cites\n  sources.\nlicense: MIT\nmetadata:\n  a: [1, 2]\n---\n\n# Body\n---\nx\n";
        assert_eq!(check(all), (some("cite"), some("Cites sources.\n"), "# Body\n---\nx".into()));
        let windows = "\u{feff}---\r\nname: 'a: b'\r\n---\r\nbody";
        assert_eq!(check(windows), (some("a: b"), None, "body".into()));
        assert_eq!(check("no head\n---\n"), (None, None, "no head\n---".into()));
        assert_eq!(check("---\n---\nbody"), (None, None, "body".into()));
        assert_eq!(check(""), (None, None, String::new()));
        assert_eq!(body("---\nname: [\n---\nbody"), "body");
        assert_eq!(body("---\nunended"), "---\nunended");
    }

    #[test]
    fn a_head_that_is_not_quite_yaml_is_read_as_other_hosts_do() {
        let described = |head: &str| check(&format!("---\nname: x\n{head}\n---\nbody")).1.unwrap();
        let plain = "description: Use this when: the user asks. Triggers: a, b";
        assert_eq!(described(plain), "Use this when: the user asks. Triggers: a, b");
        assert_eq!(described("description: Reads #1: {x}\nmetadata: {a: b: c}"), "Reads #1: {x}");
        assert_eq!(described("description: one: two\n  three: four\nlicense: MIT"), "one: two three: four");
        assert_eq!(described("description: >-\n  a\n\n  b: c\nlicense: a: b"), "a b: c");
        assert_eq!(described("description: \"say: \\x\"\nbad: a: b"), "say: \\x");
        assert_eq!(described("description: 'it's: fine'"), "it's: fine");
        assert_eq!(described("description: 42"), "42");
        assert_eq!(described("\tallowed-tools: x\ndescription: tabs above"), "tabs above");
        assert_eq!(check("---\nname: own: name\ndescription: d\n---\n").0.unwrap(), "own: name");
    }

    #[test]
    fn a_head_that_cannot_be_read_says_where() {
        let check = |text: &str| {
            let FrontError { line, column, message } = read(text).unwrap_err();
            assert!(!message.contains('\n'), "{message}");
            (line, column)
        };
        assert_eq!(check("---\nname: x\n").0, 1);
        assert_eq!(check("---\nname: ok\ndescription: [a, b]\n---\n").0, 3);
        assert_eq!(check("---\nname: \"open\n---\n").0, 2);
        assert_eq!(check("---\n- a\n---\n").0, 2);
        assert_eq!(check(&format!("---\n{}", "x: 1\n".repeat(100_000))), (1, 1));
    }

    #[test]
    fn a_head_that_wants_to_grow_does_not() {
        let mut text = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let of = format!("*a{}, ", i - 1).repeat(10);
            text.push_str(&format!("a{i}: &a{i} [{}]\n", of.trim_end_matches(", ")));
        }
        text.push_str("description: *a11\n---\nbody");
        assert!(read(&text).is_err());
        let deep = format!("---\ndescription: {}{}\n---\n", "[".repeat(5000), "]".repeat(5000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn hooks_of_another_program_are_seen() {
        for (text, found) in [
            ("---\nname: a\nhooks:\n  PreToolUse: []\n---\nbody", true),
            ("---\nname: a\ndescription: about hooks\n---\nhooks: here", false),
            ("hooks: here", false),
            ("---\nnested:\n  hooks: x\n---\n", false),
        ] {
            assert_eq!(has_hooks(text), found, "{text}");
        }
    }
}
