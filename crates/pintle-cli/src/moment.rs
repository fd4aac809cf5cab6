//! Points in time, as people read them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::error::CliError;

/// To the minute: enough to know which day and which part of it.
pub fn moment(at: Timestamp) -> String {
    at.strftime("%F %R UTC").to_string()
}

/// A moment that is kept as a text; one that is not a time stays what it is.
pub fn moment_of(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), moment)
}

/// A point in time: as it is, the beginning of a day, or so long before `now`.
///
/// # Errors
/// It is none; `flag` is what it was given to.
pub(crate) fn when(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(day) = text.parse::<Date>()
        && let Ok(begin) = day.to_zoned(TimeZone::UTC)
    {
        return Ok(begin.timestamp());
    }
    let ago = text.parse::<Span>().ok().filter(|span| !span.is_negative());
    let before = ago.and_then(|ago| now.to_zoned(TimeZone::UTC).checked_sub(ago).ok());
    before.map(|at| at.timestamp()).ok_or_else(|| {
        CliError::usage(format!("{flag}: \"{text}\" is not a time"))
            .hint("write 2026-11-22T06:44:00Z, 2026-11-22, or how long ago, such as 2h or 3d")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_three_ways() {
        let now: Timestamp = "2026-11-22T06:44:00Z".parse().unwrap();
        let check = |text: &str, expected: &str| assert_eq!(when("--since", text, now).unwrap().to_string(), expected);
        check("2026-11-20T01:02:03Z", "2026-11-20T01:02:03Z");
        check("2026-11-20T01:02:03+01:00", "2026-11-20T00:02:03Z");
        check("2026-11-20", "2026-11-20T00:00:00Z");
        check("90m", "2026-11-22T05:14:00Z");
        check("3d", "2026-11-19T06:44:00Z");
        for text in ["", "yesterday", "-2h", "99999999999y"] {
            assert_eq!(when("--since", text, now).unwrap_err().message, format!("--since: \"{text}\" is not a time"));
        }
    }

    #[test]
    fn moments_are_shown_to_the_minute() {
        assert_eq!(moment_of("2026-11-22T06:44:53.341430046Z"), "2026-11-22 06:44 UTC");
        assert_eq!(moment_of("yesterday"), "yesterday");
        assert_eq!(moment_of(""), "");
    }
}
