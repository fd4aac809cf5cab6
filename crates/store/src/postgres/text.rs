//! Texts that PostgreSQL can keep: all but those with U+0000.
//!
//! The sign that is missing is written as two others, so that every text comes back as it was, and texts that begin
//! alike still do.

use std::borrow::Cow;

/// Stands before [`NUL`] and [`SELF`]. It is no character and nobody's text has it, but if it does, it comes back too.
const ESCAPE: char = '\u{fdd0}';

/// After [`ESCAPE`]: U+0000.
const NUL: char = '0';

/// After [`ESCAPE`]: the sign itself.
const SELF: char = '1';

/// `text` as it is kept.
pub(super) fn kept(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        match sign {
            '\0' => kept.extend([ESCAPE, NUL]),
            ESCAPE => kept.extend([ESCAPE, SELF]),
            other => kept.push(other),
        }
    }
    kept.into()
}

/// The text that was kept as `kept`. What nobody wrote here stays as it is.
pub(super) fn read(kept: &str) -> Cow<'_, str> {
    if !kept.contains(ESCAPE) {
        return kept.into();
    }
    let mut text = String::with_capacity(kept.len());
    let mut signs = kept.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            (ESCAPE, Some(&NUL)) => text.push('\0'),
            (ESCAPE, Some(&SELF)) => text.push(ESCAPE),
            (other, _) => {
                text.push(other);
                continue;
            }
        }
        signs.next();
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back(text in "[\u{0}\u{fdd0}01a\u{10ffff}]{0,12}", more in "[\u{0}\u{fdd0}01]{0,3}") {
            let as_kept = kept(&text);
            prop_assert!(!as_kept.contains('\0'));
            prop_assert_eq!(read(&as_kept), text.as_str());
            let whole = format!("{text}{more}");
            prop_assert!(kept(&whole).starts_with(as_kept.as_ref()), "what begins alike is kept alike");
        }
    }
}
