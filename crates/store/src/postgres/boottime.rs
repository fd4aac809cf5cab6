//! A clock that counts while the machine, or this process, stands still.

use std::time::Duration;

use nix::time::ClockId;

/// The time since the machine started, suspension included.
pub(super) fn boottime() -> Duration {
    // Linux has had it since 2.6.39; without it, nobody would be sure of anything, and so nothing stands.
    ClockId::CLOCK_BOOTTIME.now().map_or(Duration::MAX / 2, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let before = boottime();
        assert!(before > Duration::ZERO && boottime() >= before && before < Duration::MAX / 4);
    }
}
