//! Keys that never show up in a log or a message.

use std::fmt;

/// The text that stands in place of a key wherever one would be printed.
const MASK: &str = "***";

/// Shortest key that is looked for in texts. A shorter one would tear holes into ordinary words and guards nothing.
const MIN_REDACTED: usize = 4;

/// A key. Printing it shows `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `key` without the blanks and line ends around it, which files and shells like to add.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// The key itself, for the wire.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every copy of the key masked.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.len() < MIN_REDACTED { text.to_owned() } else { text.replace(&self.0, MASK) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_masked_wherever_it_is_printed() {
        let key = Secret::new(" sk-12345\n");
        assert_eq!(key.expose(), "sk-12345");
        assert_eq!(format!("{key:?} {:?}", Some(&key)), "*** Some(***)");
        assert_eq!(key.redact("no sk-12345, no sk-12345x"), "no ***, no ***x");
        assert_eq!(Secret::new("k").redact("a kind word"), "a kind word");
    }
}
