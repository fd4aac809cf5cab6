//! Texts in commands that are printed to be pasted.

/// `text` as one word of a shell, in quotes where a shell would read more into it.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_it_says_a_text_is_one_word() {
        for (text, expected) in [
            ("/a/b-c", "/a/b-c"),
            ("zoë@x.example", "zoë@x.example"),
            ("", "''"),
            ("/it's here", r"'/it'\''s here'"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
            ("a;b", "'a;b'"),
            ("a\nb", "'a\nb'"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }
}
