//! A text that cannot be known in all parts, by the names that stand in it. Pure.

use crate::path_pattern::{goes_on, mark};

/// What a shell text says without the signs that part it.
pub(super) struct PlainText {
    /// Without quotes and backslashes, in small letters.
    pub(super) text: String,
    /// The places in it before which one of those stood, in their order.
    parted: Vec<usize>,
}

impl PlainText {
    pub(super) fn of(text: &str) -> Self {
        let mut plain = Self { text: String::new(), parted: Vec::new() };
        for letter in text.chars() {
            if matches!(letter, '\'' | '"' | '\\') {
                plain.parted.push(plain.text.len());
            } else {
                plain.text.extend(letter.to_lowercase());
            }
        }
        plain
    }

    /// What follows wherever the name of `pattern` stands, as a whole part of a path.
    pub(super) fn named(&self, pattern: &str) -> impl Iterator<Item = &str> {
        let name = mark(pattern);
        let is_whole = !goes_on(pattern);
        self.text.match_indices(name).filter_map(move |(at, _)| {
            let end = at + name.len();
            let is_named = !(name.starts_with('.') && self.is_inside(at) || is_whole && self.is_continued(end));
            is_named.then(|| &self.text[end..])
        })
    }

    fn is_parted(&self, at: usize) -> bool {
        self.parted.binary_search(&at).is_ok()
    }

    /// Whether a name has begun before `at`, for which no variable, format, escape, option or word of `xargs` stands.
    fn is_inside(&self, at: usize) -> bool {
        let is_put =
            self.text.contains("xargs") && [" -i", "--replace"].iter().any(|option| self.text.contains(option));
        let before = &self.text[..at];
        let begin = before.trim_end_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        let is_option =
            begin.strip_suffix('-').is_some_and(|rest| rest.is_empty() || rest.ends_with(char::is_whitespace));
        let is_told = is_put || is_option || begin.ends_with(['$', '%']) || self.is_parted(begin.len());
        begin.len() < at && !is_told && !self.is_parted(at)
    }

    /// Whether a name goes on at `at`.
    fn is_continued(&self, at: usize) -> bool {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        let rest = &self.text[at..];
        let behind_dot = rest.strip_prefix('.').filter(|_| !self.is_parted(at + 1));
        !self.is_parted(at)
            && (rest.starts_with(is_letter) || behind_dot.is_some_and(|rest| rest.starts_with(is_letter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_by_a_whole_part_of_a_path() {
        for (text, pattern, is_named) in [
            ("kill $(cat app.pid)", "~/.pi/**", false),
            ("mv $f .pixi", "~/.pi/**", false),
            ("mv $f azure.pipelines.yml", "~/.pi/**", false),
            ("cat $x README.claude.md", "~/.claude/**", false),
            ("cat $x .github/copilot-instructions.md", "**/.github/copilot/**", false),
            ("cat $x .codex.md", "**/.codex/**", false),
            ("cat $x/.pi/x", "~/.pi/**", true),
            ("cat $x .pi", "~/.pi/**", true),
            ("cat $x '.p'i", "~/.pi/**", true),
            ("cat .pi$x", "~/.pi/**", true),
            ("cat .pi\\ts", "~/.pi/**", true),
            ("cat a=.pi,b", "~/.pi/**", true),
            ("cat $x.pi/y", "~/.pi/**", true),
            ("cat $x.claude/y", "~/.claude/**", true),
            ("cp -vt.claude $x", "~/.claude/**", true),
            ("$y | xargs -I X cp f X.claude/y", "~/.claude/**", true),
            ("cat ${x}.pi", "~/.pi/**", true),
            ("cat $(x).pi", "~/.pi/**", true),
            ("printf 'a\\n.pi/y' | $x", "~/.pi/**", true),
            ("printf '%s.pi/y' $x", "~/.pi/**", true),
            ("sed 's/x/\\1.pi/' $x", "~/.pi/**", true),
            ("node -e 'return\".pi/y\"' $x", "~/.pi/**", true),
            ("cat ~/.claude-work/settings.json $x", "~/.claude*/settings*.json", true),
            ("cat .Claude/settings.local.json $x", "**/.claude/settings*.json", true),
            ("cat /etc/codexx $x", "/etc/codex/**", false),
            ("cat x=/etc/codex/y $x", "/etc/codex/**", true),
        ] {
            assert_eq!(PlainText::of(text).named(pattern).next().is_some(), is_named, "{text}");
        }
    }
}
