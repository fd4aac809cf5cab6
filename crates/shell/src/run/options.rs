//! Options and operands of a command.

use crate::run::Run;
use crate::state::Field;

/// The arguments of a command, sorted.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) options: Vec<Opt>,
    pub(super) operands: Vec<Field>,
}

/// One option: `-x`, `-x value`, `-xvalue`, `--name`, `--name value`, `--name=value`.
#[derive(Debug)]
pub(super) struct Opt {
    pub(super) name: String,
    pub(super) value: Option<Field>,
}

impl Arguments {
    /// The value of the last option that has one of `names`.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Field> {
        self.options
            .iter()
            .rev()
            .find(|option| names.contains(&option.name.as_str()))
            .and_then(|option| option.value.as_ref())
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.name.as_str()))
    }

    /// Whether something among them cannot be known.
    pub(super) fn is_unsure(&self) -> bool {
        self.operands.iter().any(|field| !field.is_known())
            || self.options.iter().any(|option| option.value.as_ref().is_some_and(|value| !value.is_known()))
    }
}

impl Run<'_> {
    /// All arguments, options among operands included.
    pub(super) fn arguments(&self) -> Arguments {
        self.sorted(&self.argv[1..], false).0
    }

    /// The options up to the first operand, and how many words they are.
    pub(super) fn leading(&self, argv: &[Field]) -> (Arguments, usize) {
        self.sorted(argv, true)
    }

    fn takes_value(&self, option: &str) -> bool {
        self.valued.split(' ').any(|valued| valued == option)
    }

    fn sorted(&self, argv: &[Field], leading: bool) -> (Arguments, usize) {
        let mut sorted = Arguments::default();
        let mut at = 0;
        while let Some(field) = argv.get(at) {
            let text = field.text.as_str();
            if text == "--" {
                at += 1;
                if !leading {
                    sorted.operands.extend_from_slice(&argv[at..]);
                }
                return (sorted, at);
            }
            if !text.starts_with('-') || text == "-" {
                if leading {
                    return (sorted, at);
                }
                sorted.operands.push(field.clone());
                at += 1;
                continue;
            }
            at += 1;
            let next = argv.get(at);
            // The value of the last word may be missing.
            if self.option(field, next, &mut sorted.options) && next.is_some() {
                at += 1;
            }
        }
        (sorted, at)
    }

    /// Sorts one word of options; whether it takes the `next` word too.
    fn option(&self, field: &Field, next: Option<&Field>, into: &mut Vec<Opt>) -> bool {
        let text = field.text.as_str();
        let whole = |value: &str| Field { text: value.to_owned(), certainty: field.certainty };
        if text.starts_with("--") {
            let own = self.takes_value(text.split('=').next().unwrap_or_default());
            for meant in self.valued.split(' ').filter(|option| !own && shortened(text, option).is_some()) {
                let value = text.split_once('=').map(|(_, value)| whole(value)).or_else(|| next.cloned());
                into.push(Opt { name: meant.to_owned(), value });
            }
            if let Some((name, value)) = text.split_once('=') {
                into.push(Opt { name: name.to_owned(), value: Some(whole(value)) });
                return false;
            }
            let takes = self.takes_value(text);
            into.push(Opt { name: text.to_owned(), value: next.filter(|_| takes).cloned() });
            return takes;
        }
        if self.takes_value(text) {
            into.push(Opt { name: text.to_owned(), value: next.cloned() });
            return true;
        }
        for (index, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            if self.takes_value(&name) {
                let rest = &text[index + letter.len_utf8()..];
                let value = if rest.is_empty() { next.cloned() } else { Some(whole(rest)) };
                into.push(Opt { name, value });
                return rest.is_empty();
            }
            into.push(Opt { name, value: None });
        }
        false
    }
}

/// What follows the name in `text`, if that is the beginning of the long `option`, which most programs take for it.
pub(super) fn shortened<'t>(text: &'t str, option: &str) -> Option<&'t str> {
    let name = text.split('=').next().unwrap_or_default();
    // Shorter ones stand for something else as often as not.
    let begins = name.len() > 4 && name.len() < option.len() && option.starts_with("--") && option.starts_with(name);
    begins.then(|| &text[name.len()..])
}

/// What stands behind one of the short options `letters` in `text`, if that is a row of short options with it, such as
/// the text in `-qctext`; `valued` are those that take what stands behind them as their own.
pub(super) fn bundled<'t>(text: &'t str, letters: &str, valued: &str) -> Option<&'t str> {
    let row = text.strip_prefix('-').filter(|row| !row.starts_with('-'))?;
    for (at, own) in row.char_indices() {
        if letters.contains(own) {
            return Some(&row[at + own.len_utf8()..]);
        }
        if valued.contains(own) || !own.is_ascii_alphanumeric() {
            return None;
        }
    }
    None
}

/// The value of `word` if it is one of the long `options`, or any beginning of one;
/// empty where the value is the next word.
pub(super) fn begun<'t>(word: &'t str, options: &[&str]) -> Option<&'t str> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    (name.len() > 2 && options.iter().any(|option| option.starts_with(name))).then_some(value)
}
