//! One clock for all processes of a soak: the one of the machine since it started.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time since the machine started, of any process.
pub(crate) fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).expect("every Linux has this clock")
}

/// A moment as a piece of an answer carries it.
pub(crate) fn stamp() -> String {
    format!("@{} ", now().as_nanos())
}

/// The moment that a text carries first.
pub(crate) fn read(text: &str) -> Option<Duration> {
    let digits = text.split_once('@')?.1;
    let end = digits.find(|it: char| !it.is_ascii_digit())?;
    digits.get(..end)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_was_written() {
        let before = now();
        let read_back = read(&format!("{{\"content\":\"{}\"}}", stamp())).unwrap();
        assert!(before <= read_back && read_back <= now());
        assert_eq!((read("nothing"), read("@"), read("@12")), (None, None, None));
    }
}
