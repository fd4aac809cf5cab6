//! Names of people: what nobody can take for somebody else's.

use rules::admin::Caller;

use super::name;
use crate::error::ApiError;

/// Whoever owns the host where no file names them: what they did stands under this name.
const RESERVED: &str = "system";

/// A new name of a person, which looks like nobody else's as far as one can tell from it alone.
pub(super) fn person<'a>(what: &str, text: &'a str, by: &Caller) -> Result<&'a str, ApiError> {
    let text = name(what, text)?;
    if text.trim() != text {
        return Err(ApiError::invalid(format!("{what} begins or ends with a space")));
    }
    if let Some(unseen) = text.chars().find(|c| is_unseen(*c)) {
        return Err(ApiError::invalid(format!(
            "{what} has a character that is not seen or turns the direction of reading: U+{:04X}",
            u32::from(unseen)
        )));
    }
    let mut scripts = text.chars().filter_map(Script::of);
    let first = scripts.next();
    if let Some((first, other)) = first.and_then(|first| scripts.find(|it| *it != first).map(|other| (first, other))) {
        return Err(ApiError::invalid(format!(
            "{what} mixes {} and {} letters: it would look like another name",
            first.word(),
            other.word()
        )));
    }
    if text.eq_ignore_ascii_case(RESERVED) && by.name != text {
        return Err(ApiError::invalid(format!("{what} \"{RESERVED}\" is reserved for whoever owns the host")));
    }
    Ok(text)
}

/// Whether nothing is seen of `c`, or it changes how the letters beside it are read.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
    ) || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The scripts of which many letters look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
}

impl Script {
    /// That of `c`, if it is a letter of one of them.
    fn of(c: char) -> Option<Self> {
        let is_latin = matches!(c, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
            || matches!(c, '\u{2c60}'..='\u{2c7f}' | '\u{a722}'..='\u{a7ff}' | '\u{ff21}'..='\u{ff3a}')
            || matches!(c, '\u{ff41}'..='\u{ff5a}');
        let is_cyrillic = matches!(c, '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{2de0}'..='\u{2dff}')
            || matches!(c, '\u{a640}'..='\u{a69f}');
        match c {
            _ if is_latin => Some(Self::Latin),
            _ if is_cyrillic => Some(Self::Cyrillic),
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Some(Self::Greek),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Latin => "Latin",
            Self::Greek => "Greek",
            Self::Cyrillic => "Cyrillic",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, by: &str) -> Result<String, String> {
        let by = Caller { name: by.to_owned(), ..Caller::cli() };
        person("userId", text, &by).map(str::to_owned).map_err(|error| error.message)
    }

    #[test]
    fn no_new_name_looks_like_another_one() {
        let mixed = |other| Err(format!("userId mixes {other} letters: it would look like another name"));
        let unseen =
            |code| Err(format!("userId has a character that is not seen or turns the direction of reading: U+{code}"));
        let reserved = || Err("userId \"system\" is reserved for whoever owns the host".to_owned());
        let space = || Err("userId begins or ends with a space".to_owned());
        for (text, expected) in [
            ("anna", Ok("anna".to_owned())),
            ("Žofie O'Brien-Łuk 2", Ok("Žofie O'Brien-Łuk 2".to_owned())),
            ("анна", Ok("анна".to_owned())),
            ("Άννα", Ok("Άννα".to_owned())),
            ("王芳", Ok("王芳".to_owned())),
            ("ops@example.com", Ok("ops@example.com".to_owned())),
            (" adm", space()),
            ("adm\u{a0}", space()),
            ("adm\u{200b}", unseen("200B")),
            ("a\u{202e}b", unseen("202E")),
            ("a\u{e0041}b", unseen("E0041")),
            ("\u{430}dm", mixed("Cyrillic and Latin")),
            ("adm\u{3bf}", mixed("Latin and Greek")),
            ("system", reserved()),
            ("System", reserved()),
        ] {
            assert_eq!(said(text, "adm"), expected, "{}", text.escape_unicode());
        }
        assert_eq!(said("system", "system"), Ok("system".to_owned()), "it is themselves");
    }
}
