//! Secrets: how they are made, and how they are told from other texts.

use pintle_domain::hex::hex;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::{ApiError, ErrorCode};

/// How keys begin that are made here.
const KEY_PREFIX: &str = "pintle_";

/// How keys begin: those that came from elsewhere, too.
const KEY_PREFIXES: [&str; 2] = [KEY_PREFIX, "goclaw_"];

/// Digits of a secret: 128 bits, which nobody finds by trying.
const DIGITS: usize = 32;

/// The digits of a key that people are shown, beside how it begins.
const SHOWN_DIGITS: usize = 8;

/// A fresh secret of 32 hex digits.
pub(crate) fn fresh() -> Result<String, ApiError> {
    let mut bytes = [0; DIGITS / 2];
    let made = SystemRandom::new().fill(&mut bytes);
    made.map_err(|_| ApiError::new(ErrorCode::Internal, "the system gives no random numbers"))?;
    Ok(hex(&bytes))
}

/// A fresh API key.
pub(crate) fn fresh_key() -> Result<String, ApiError> {
    Ok(format!("{KEY_PREFIX}{}", fresh()?))
}

/// What people are shown of a key, to tell it from others.
pub(crate) fn shown(key: &str) -> String {
    let prefix = KEY_PREFIXES.into_iter().find(|prefix| key.starts_with(prefix)).unwrap_or_default();
    key.chars().take(prefix.len() + SHOWN_DIGITS).collect()
}

/// Whether a text has the form of an API key: then nobody gets it by trying, and it is looked up.
pub(crate) fn is_key(text: &str) -> bool {
    KEY_PREFIXES.into_iter().any(|prefix| text.strip_prefix(prefix).is_some_and(is_random))
}

/// Whether a text is meant as an API key, if a mistyped one.
pub(crate) fn is_like_key(text: &str) -> bool {
    KEY_PREFIXES.into_iter().any(|prefix| text.starts_with(prefix))
}

/// Whether a text has the form of [`fresh`].
pub(crate) fn is_random(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_form() {
        let key = fresh_key().unwrap();
        assert!(is_key(&key) && key != fresh_key().unwrap());
        assert_eq!(shown(&key).len(), "pintle_".len() + 8);
        let digits = "0123456789abcdef0123456789abcdef";
        for (text, good) in [
            (format!("goclaw_{digits}"), true),
            (format!("pintle_{digits}0"), false),
            (format!("pintle_{}", &digits[1..]), false),
            (format!("other_{digits}"), false),
            (format!("pintle_{}", digits.replace('a', "g")), false),
            (digits.to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_key(&text), good, "{text}");
        }
    }
}
