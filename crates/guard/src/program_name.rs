//! What programs are called in texts that are not read as those of a shell are, or by a pattern.

use crate::path_pattern::{is_loose, pattern_means};

/// Whether the file `name`, which may be a pattern of the shell, may be the program `program`. A pattern that stands for any
/// name does not count.
pub(crate) fn may_be(name: &str, program: &str) -> bool {
    let is_pattern = || name.contains(['*', '?', '[']) && !name.contains(['$', '`']) && !is_loose(name);
    name == program || (is_pattern() && pattern_means(name, program))
}

/// What in `text` may be a word of a command, whatever language that is of.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let ends = |letter: char| letter.is_whitespace() || "'\"`\\;|&(){}[],<>".contains(letter);
    text.split(ends).filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_each_program_that_it_may_stand_for() {
        for (name, is_it) in [
            ("pintle", true),
            ("pintl[e]", true),
            ("p*e", true),
            ("?intle", true),
            ("*", false),
            ("[", false),
            ("*.sh", false),
            ("$PROGRAM", false),
            ("pintle-hook", false),
        ] {
            assert_eq!(may_be(name, "pintle"), is_it, "{name}");
        }
    }

    #[test]
    fn words_are_found_in_any_language() {
        for text in ["spawn pintle guard", "run([\"pintle\", 'guard'])", "(pintle\\guard);"] {
            let found: Vec<&str> = pieces(text).filter(|piece| !["spawn", "run"].contains(piece)).collect();
            assert_eq!(found, ["pintle", "guard"], "{text}");
        }
    }
}
