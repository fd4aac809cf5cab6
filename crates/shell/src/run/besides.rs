//! Programs of which no table tells, and which write what some of their words name.

use crate::paths;
use crate::read::Reading;
use crate::run::Run;
use crate::state::{Field, State};

/// Options of `uv venv` whose values are no paths that it writes.
const OF_UV: &[&str] =
    &["-p", "--python", "--prompt", "-i", "--index-url", "--default-index", "--index-strategy", "--link-mode"];

/// Options of `setfattr` that take the next word.
const OF_SETFATTR: &[&str] = &["-n", "--name", "-v", "--value", "-x", "--remove"];

impl Reading<'_> {
    /// Notes what `run` writes, if it is one of these programs.
    pub(super) fn written_besides(&mut self, run: &Run<'_>, state: &State) {
        let words = &run.argv[1..];
        let has = |list: &[&str]| words.iter().any(|field| list.contains(&field.text.as_str()));
        match run.name {
            "rename" | "prename" | "file-rename" | "perl-rename" => self.renamed(words, run, state),
            "setfattr" => operands(words, OF_SETFATTR).for_each(|field| self.touches(field, run.name, state)),
            "dpkg" | "dpkg-deb"
                if has(&["-x", "-X", "--extract", "--vextract", "-R", "--raw-extract", "-e", "--control"]) =>
            {
                operands(words, &[]).skip(1).for_each(|field| self.touches(field, run.name, state));
            }
            "uv" if words.first().is_some_and(|verb| verb.text == "venv") => {
                operands(&words[1..], OF_UV).for_each(|field| self.touches(field, run.name, state));
            }
            "jar" => self.jar(words, run, state),
            _ => {}
        }
    }

    /// `rename from to FILES` of util-linux, `rename s/from/to/ FILES` of Perl.
    fn renamed(&mut self, words: &[Field], run: &Run<'_>, state: &State) {
        let words: Vec<&Field> = words.iter().filter(|field| !field.text.starts_with('-')).collect();
        let Some((first, rest)) = words.split_first() else { return };
        if is_code(&first.text) {
            self.unknown(format!("the Perl code that `{}` runs is not read", run.name));
        }
        let told = changed(&first.text).map(|(from, to, _)| (from, to, rest));
        let plain = || rest.split_first().map(|(to, files)| (first.text.as_str(), to.text.as_str(), files));
        let Some((from, to, files)) = told.or_else(plain) else { return };
        for file in files {
            self.deletes(file, run.name, state);
            let folder = file.text.strip_suffix(paths::base_name(&file.text)).unwrap_or_default();
            let text = if from.is_empty() || !file.text.contains(from) {
                // What a pattern of Perl takes for this is not looked at.
                format!("{folder}{to}")
            } else {
                file.text.replacen(from, to, 1)
            };
            let certainty = first.certainty.max(file.certainty);
            self.touches(&Field { text, certainty }, run.name, state);
        }
    }

    /// `jar`: letters say what it does.
    fn jar(&mut self, words: &[Field], run: &Run<'_>, state: &State) {
        let Some(letters) = words.first().map(|field| field.text.trim_start_matches('-')) else { return };
        let takes = letters.starts_with("extract") || (!words[0].text.starts_with("--") && letters.contains('x'));
        if takes {
            let told = super::option_values(words, "-C --dir");
            let folder = told.first().cloned().unwrap_or_else(|| Field::known("."));
            self.touches(&folder, run.name, state);
        } else if letters.contains(['c', 'u'])
            && letters.contains('f')
            && let Some(archive) = words.get(1)
        {
            self.touches(archive, run.name, state);
        }
    }
}

/// The words that are no options, and no values of the options `valued`.
fn operands<'a>(words: &'a [Field], valued: &'static [&'static str]) -> impl Iterator<Item = &'a Field> {
    let is_value = move |at: usize| at > 0 && valued.contains(&words[at - 1].text.as_str());
    let operands = words.iter().enumerate().filter(move |(at, field)| !field.text.starts_with('-') && !is_value(*at));
    operands.map(|(_, field)| field)
}

/// What the plain command `s/from/to/` or `y/from/to/` of Perl puts in whose place, and what follows it.
fn changed(text: &str) -> Option<(&str, &str, &str)> {
    let rest = text.strip_prefix(['s', 'y'])?;
    let mark = rest.chars().next().filter(char::is_ascii_punctuation)?;
    let mut parts = rest[mark.len_utf8()..].splitn(3, mark);
    Some((parts.next()?, parts.next()?, parts.next().unwrap_or_default()))
}

/// Whether `text` is code of Perl that may do more than [`changed`] knows.
fn is_code(text: &str) -> bool {
    let has_code = ["(?{", "(??{", "@{", "${"].iter().any(|begin| text.contains(begin));
    let in_brackets = text.strip_prefix(['s', 'y']).is_some_and(|rest| rest.starts_with(['(', '[', '{', '<']));
    let is_more = match changed(text) {
        Some((_, _, flags)) => !flags.chars().all(|flag| flag.is_ascii_alphabetic() && flag != 'e'),
        None => text.contains(['$', ';', '(', '{', '`']),
    };
    has_code || in_brackets || is_more
}
