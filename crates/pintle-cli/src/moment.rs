//! Points in time, as people read them.

use jiff::Timestamp;

/// To the minute: enough to know which day and which part of it.
pub fn moment(at: Timestamp) -> String {
    at.strftime("%F %R UTC").to_string()
}

/// A moment that is kept as a text; one that is no time stays what it is.
pub fn moment_of(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_to_the_minute() {
        assert_eq!(moment_of("2026-11-22T06:44:53.341430046Z"), "2026-11-22 06:44 UTC");
        assert_eq!(moment_of("yesterday"), "yesterday");
        assert_eq!(moment_of(""), "");
    }
}
