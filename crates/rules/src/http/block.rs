//! What the log says of a URL that may not be reached.

use pintle_domain::shown_url::shown_url;
use pintle_egress::EgressError;

/// One line for those who watch for attacks.
pub(super) fn log(url: &str, reason: &EgressError) {
    tracing::warn!(url = %shown_url(url), reason = %reason, "security.hook.ssrf_block");
}
