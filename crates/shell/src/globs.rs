//! What patterns stand for besides the files that they say.

/// Most patterns that one with brackets is told as.
const ALTERNATIVES: usize = 16;

/// What `pattern` stands for if it has brackets such as `@(a|b)`: each of what stands in them, and anything. Those of
/// zsh that end a pattern may let it stand for hidden files.
pub(crate) fn without_brackets(pattern: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut rest = pattern;
    let mut hidden = false;
    while let Some(at) = rest.find(['@', '+', '?', '*', '!']) {
        let Some(end) = rest[at + 1..].strip_prefix('(').and_then(|inside| inside.find(')')) else {
            all.iter_mut().for_each(|text| text.push_str(&rest[..=at]));
            rest = &rest[at + 1..];
            continue;
        };
        let inside = &rest[at + 2..at + 2 + end];
        hidden |= inside.contains('D') && inside.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let choices = inside.split('|').chain(["*"]);
        all = choices
            .flat_map(|choice| all.iter().map(move |text| (text, choice)).collect::<Vec<_>>())
            .take(ALTERNATIVES)
            .map(|(text, choice)| format!("{text}{}{choice}", &rest[..at]))
            .collect();
        rest = &rest[at + end + 3..];
    }
    all.iter_mut().for_each(|text| text.push_str(rest));
    if hidden {
        let last = pattern.rfind('/').map_or("", |at| &pattern[..=at]);
        all.push(format!("{last}.*"));
    }
    all.retain(|text| text != pattern);
    all
}

/// How a shell looks for the files of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Globs {
    /// Whether a leading `*`, `?` or `[…]` stands for a dot too.
    pub(crate) hidden: bool,
    /// Whether letters stand for their capitals too.
    pub(crate) caseless: bool,
}

impl Globs {
    /// These or `other`, whichever was chosen.
    pub(crate) fn or(self, other: Globs) -> Globs {
        Globs { hidden: self.hidden || other.hidden, caseless: self.caseless || other.caseless }
    }

    /// Sets what the option `name` of a shell stands for, as bash, zsh or tcsh write it.
    pub(crate) fn choose(&mut self, name: &str, on: bool) {
        let plain: String = name.chars().filter(|letter| !"_-".contains(*letter)).collect();
        let plain = plain.to_ascii_lowercase();
        match plain.as_str() {
            "dotglob" | "globdots" | "globdot" => self.hidden = on,
            "caseglob" => self.caseless = !on,
            "nodotglob" | "noglobdots" => self.hidden = !on,
            "nocaseglob" => self.caseless = on,
            _ => {}
        }
    }

    /// The patterns that `pattern` stands for besides itself.
    pub(crate) fn twins(self, pattern: &str) -> Vec<String> {
        let mut twins = Vec::new();
        if self.hidden {
            // Where a name of the path begins with a sign that stands for letters.
            let begins = pattern.match_indices(['*', '?', '[']).map(|(at, _)| at);
            let begins = begins.filter(|at| pattern[..*at].is_empty() || pattern[..*at].ends_with('/'));
            twins.extend(begins.map(|at| format!("{}.{}", &pattern[..at], &pattern[at..])));
        }
        if self.caseless {
            let lower: Vec<String> =
                [pattern].into_iter().chain(twins.iter().map(String::as_str)).map(str::to_ascii_lowercase).collect();
            twins.extend(lower.into_iter().filter(|twin| twin != pattern));
        }
        twins
    }
}
