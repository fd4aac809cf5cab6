//! Names of people: what nobody can take for somebody else's.

use std::fmt;

use crate::caller_role::CallerRole;
use crate::unseen::is_unseen;

/// Whoever owns the host where no file names them: what they did stands under this name.
const OWNER: &str = "system";

/// The people who own a host: those whom its configuration names, or one whom it does not.
#[derive(Clone, Debug)]
pub struct HostOwners(Vec<String>);

impl Default for HostOwners {
    fn default() -> Self {
        Self::named(Vec::new())
    }
}

impl HostOwners {
    /// Those that a configuration names.
    pub fn named(names: Vec<String>) -> Self {
        Self(if names.is_empty() { vec![OWNER.to_owned()] } else { names })
    }

    /// The first one.
    pub fn first(&self) -> &str {
        self.0.first().map_or(OWNER, String::as_str)
    }

    /// Whether `user` is one of them.
    pub fn has(&self, user: &str) -> bool {
        self.0.iter().any(|owner| owner == user)
    }

    /// The reserved name that `name` is, in whatever case, for somebody with `role` who gives it: that of an owner whom
    /// no file names is nobody's to give, the other owners' are given by owners only.
    pub fn reserved(&self, name: &str, role: CallerRole) -> Option<&str> {
        let name = name.to_lowercase();
        let named = self.0.iter().map(String::as_str).filter(|_| role < CallerRole::Owner);
        std::iter::once(OWNER).chain(named).find(|owner| owner.to_lowercase() == name)
    }
}

/// Why a name looks like another one, or may: behind what the name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonNameFlaw {
    /// It begins or ends with a space.
    Space,
    /// It has this character, of which nothing is seen or that turns the direction of reading.
    Unseen(char),
    /// It mixes letters of these two scripts.
    Mixed(&'static str, &'static str),
}

impl fmt::Display for PersonNameFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Space => f.write_str("begins or ends with a space"),
            Self::Unseen(c) => {
                let code = u32::from(*c);
                write!(f, "has a character that is not seen or turns the direction of reading: U+{code:04X}")
            }
            Self::Mixed(first, other) => {
                write!(f, "mixes {first} and {other} letters: it would look like another name")
            }
        }
    }
}

/// What `name`, of a person or of anything else, has in it that nobody sees.
pub fn unseen_flaw(name: &str) -> Option<PersonNameFlaw> {
    name.chars().find(|c| is_unseen(*c)).map(PersonNameFlaw::Unseen)
}

/// Why `name` may look like another one, as far as one can tell from it alone.
pub fn flaw(name: &str) -> Option<PersonNameFlaw> {
    if name.trim() != name {
        return Some(PersonNameFlaw::Space);
    }
    if let Some(unseen) = unseen_flaw(name) {
        return Some(unseen);
    }
    let mut scripts = name.chars().filter_map(Script::of);
    let first = scripts.next()?;
    let other = scripts.find(|it| *it != first)?;
    Some(PersonNameFlaw::Mixed(first.word(), other.word()))
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

    #[test]
    fn no_new_name_looks_like_another_one() {
        let mixed = |other| Some(format!("mixes {other} letters: it would look like another name"));
        let unseen =
            |code| Some(format!("has a character that is not seen or turns the direction of reading: U+{code}"));
        let space = || Some("begins or ends with a space".to_owned());
        for (name, expected) in [
            ("anna", None),
            ("Žofie O'Brien-Łuk 2", None),
            ("анна", None),
            ("Άννα", None),
            ("王芳", None),
            ("ops@example.com", None),
            (" adm", space()),
            ("adm\u{a0}", space()),
            ("adm\u{200b}", unseen("200B")),
            ("a\u{202e}b", unseen("202E")),
            ("a\u{2800}b", unseen("2800")),
            ("a\u{fe0f}b", unseen("FE0F")),
            ("a\u{1d173}b", unseen("1D173")),
            ("a\u{e0041}b", unseen("E0041")),
            ("\u{430}dm", mixed("Cyrillic and Latin")),
            ("adm\u{3bf}", mixed("Latin and Greek")),
        ] {
            assert_eq!(flaw(name).map(|flaw| flaw.to_string()), expected, "{}", name.escape_unicode());
        }
    }

    #[test]
    fn the_names_of_owners_are_given_by_owners_only() {
        let (unnamed, named) = (HostOwners::default(), HostOwners::named(vec!["Anna".into(), "Åsa".into()]));
        assert_eq!((unnamed.first(), unnamed.has("system"), unnamed.has("System")), ("system", true, false));
        assert_eq!((named.first(), named.has("Åsa"), named.has("system")), ("Anna", true, false));
        for (owners, name, by_admin, by_owner) in [
            (&unnamed, "system", Some("system"), Some("system")),
            (&unnamed, "System", Some("system"), Some("system")),
            (&unnamed, "anna", None, None),
            (&named, "system", Some("system"), Some("system")),
            (&named, "anna", Some("Anna"), None),
            (&named, "åsa", Some("Åsa"), None),
            (&named, "ben", None, None),
        ] {
            let reserved = [CallerRole::Admin, CallerRole::Owner].map(|role| owners.reserved(name, role));
            assert_eq!(reserved, [by_admin, by_owner], "{name}");
        }
    }
}
