//! Files whose text is shown: hidden ones among them, and those whose names the text computes.

use std::borrow::Cow;

use crate::read::{List, Reading};
use crate::state::{Field, State, Value};

/// Whether the program `name` shows what it reads, whole or in large parts.
pub(crate) fn shows(name: &str) -> bool {
    matches!(
        name,
        "cat"
            | "tac"
            | "head"
            | "tail"
            | "less"
            | "more"
            | "most"
            | "pg"
            | "nl"
            | "rev"
            | "strings"
            | "base64"
            | "base32"
            | "xxd"
            | "od"
            | "hexdump"
            | "hd"
            | "bat"
            | "batcat"
            | "sed"
            | "gsed"
            | "awk"
            | "gawk"
            | "mawk"
            | "nawk"
            | "cut"
            | "paste"
            | "fold"
            | "fmt"
            | "pr"
            | "column"
            | "expand"
            | "unexpand"
            | "sort"
            | "uniq"
            | "iconv"
            | "zcat"
            | "bzcat"
            | "xzcat"
            | "zless"
            | "zmore"
    )
}

impl Reading<'_> {
    /// Notes that `who` shows the text of `field`, which it reads: of a folder, what a search found there.
    pub(crate) fn shown(&mut self, field: &Field, who: &str, state: &State) {
        if !field.is_known() {
            if is_computed(field, state) {
                self.unknown(format!("which file `{who}` shows cannot be known"));
            }
            return;
        }
        let folder = field.text.strip_suffix("/**/*").unwrap_or(&field.text);
        for path in state.place.cwd.resolve(if folder.is_empty() { "/" } else { folder }) {
            let whole = self.holds_workspace(&path) || (path.starts_with('~') && !path.contains('/'));
            if let Some(folder) = self.archived_in(&path).or(whole.then_some(path)) {
                self.hidden_below(&folder);
            }
        }
    }

    /// Notes that `archive` holds `sources`, with what is hidden below.
    pub(crate) fn packs(&mut self, archive: Option<&Field>, sources: &[Field], (there, state): (&State, &State)) {
        let known = sources.iter().filter(|source| source.is_known());
        let found = known.flat_map(|source| there.place.cwd.resolve(&source.text));
        let whole: Vec<String> = found.filter(|path| self.holds_workspace(path)).collect();
        for folder in whole {
            let Some(archive) = archive else {
                // It goes to whoever reads the output.
                self.hidden_below(&folder);
                continue;
            };
            for archive in state.place.cwd.resolve(&archive.text) {
                self.archived(archive, folder.clone());
            }
        }
    }

    /// Notes that the hidden files below the folder of the command are read.
    pub(crate) fn hidden_here(&mut self, state: &State) {
        for folder in state.place.cwd.iter().map(str::to_owned).collect::<Vec<_>>() {
            self.hidden_below(&folder);
        }
    }

    /// Notes that the hidden files below `folder` are read.
    pub(crate) fn hidden_below(&mut self, folder: &str) {
        let folder = folder.trim_end_matches('/');
        self.note(List::Reads, &format!("{folder}/**/.*"));
    }
}

/// The name of `field`, with `*` for what of it cannot be known; nothing if nothing is left.
pub(super) fn guessed(field: &Field) -> Option<Cow<'_, str>> {
    if field.is_known() || !field.text.contains(['$', '`', '…']) {
        return Some(Cow::Borrowed(&field.text));
    }
    let pattern = starred(&field.text);
    pattern.contains(|letter: char| letter.is_ascii_alphanumeric()).then_some(Cow::Owned(pattern))
}

/// Whether the text itself computed the name of `field`, and nothing of its last part is written.
fn is_computed(field: &Field, state: &State) -> bool {
    let starred = starred(&field.text);
    if !starred.rsplit('/').next().is_some_and(|last| last.contains('*') && last.bytes().all(|byte| byte == b'*')) {
        return false;
    }
    let last = field.text.rsplit('/').next().unwrap_or_default();
    field.text.contains("$(") || last.contains(['`', '…']) || {
        let mut names = last.split('$').skip(1).map(|rest| {
            let rest = rest.trim_start_matches('{');
            let end = rest.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
            &rest[..end.unwrap_or(rest.len())]
        });
        names.any(|name| state.variables.get(name) == Some(&Value::Unknown))
    }
}

/// `text` with `*` in the place of each expansion.
fn starred(text: &str) -> String {
    let mut pattern = String::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        let end = match (sign, rest.chars().next()) {
            ('$', Some('(')) => closing(rest, '(', ')'),
            ('$', Some('{')) => closing(rest, '{', '}'),
            ('$', Some(first)) if first == '_' || first.is_ascii_alphabetic() => {
                rest.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).unwrap_or(rest.len())
            }
            ('$', Some(first)) => first.len_utf8(),
            ('`', _) => rest.find('`').map_or(rest.len(), |end| end + 1),
            ('…', _) => 0,
            (_, _) => {
                pattern.push(sign);
                continue;
            }
        };
        rest = &rest[end..];
        pattern.push('*');
    }
    pattern
}

/// Where the bracket ends with which `text` begins.
fn closing(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        depth += usize::from(letter == open);
        depth = depth.saturating_sub(usize::from(letter == close));
        if depth == 0 {
            return at + letter.len_utf8();
        }
    }
    text.len()
}
