//! The pause between two tries to reach a server.

use std::time::Duration;

/// How long nobody tries to reach a server after it could not be reached, at first and at most. Short enough that a
/// restart is over for us a moment after it is over for the server, long enough not to trouble it meanwhile.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);
