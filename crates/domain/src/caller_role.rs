//! What somebody who asks may do, in one word.

use std::fmt;
use std::str::FromStr;

/// The role of a caller: what they may do; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallerRole {
    /// Look.
    Viewer,
    /// Work.
    Operator,
    /// Change what is one tenant's.
    Admin,
    /// Change everything.
    Owner,
}

impl CallerRole {
    /// All roles, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Admin, Self::Owner];

    /// The word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for CallerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for CallerRole {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| {
            format!("unknown role \"{}\"; expected viewer, operator, admin or owner", word.escape_debug())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_comes_back_from_its_word_and_each_includes_those_before_it() {
        for role in CallerRole::ALL {
            assert_eq!(role.word().parse(), Ok(role));
        }
        assert!(CallerRole::ALL.is_sorted());
        assert!("root".parse::<CallerRole>().unwrap_err().starts_with("unknown role \"root\"; expected viewer"));
    }
}
