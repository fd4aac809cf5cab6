//! How often one user may ask.

use std::num::NonZeroU32;
use std::time::Duration;

use domain::id::TenantId;
use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::error::ApiError;
use crate::principal::Principal;

/// Messages to agents a minute and user, and how many of them at once. Source: the published protocol.
const SENDS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(20).expect("it is not zero");
const SENDS_AT_ONCE: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");

/// Failed sign-ins a minute and address: enough for typing errors, too few to try words.
const SIGN_INS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(10).expect("it is not zero");

type Keyed<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// What users did lately.
pub(crate) struct Rates {
    sends: Keyed<(TenantId, String)>,
    failed_sign_ins: Keyed<String>,
}

impl Default for Rates {
    fn default() -> Self {
        let sends = Quota::per_minute(SENDS_PER_MINUTE).allow_burst(SENDS_AT_ONCE);
        Self {
            sends: RateLimiter::hashmap(sends),
            failed_sign_ins: RateLimiter::hashmap(Quota::per_minute(SIGN_INS_PER_MINUTE)),
        }
    }
}

impl Rates {
    /// Somebody sends a message to an agent.
    pub(crate) fn check(&self, who: &Principal) -> Result<(), ApiError> {
        let key = (who.tenant.clone(), who.user.clone());
        self.sends.check_key(&key).map_err(|wait| {
            let wait = wait.wait_time_from(DefaultClock::default().now());
            ApiError::exhausted(format!("too many messages: {SENDS_PER_MINUTE} a minute"), millis(wait))
        })
    }

    /// Somebody could not say who they are.
    pub(crate) fn sign_in_failed(&self, from: &str) -> Result<(), ApiError> {
        self.failed_sign_ins.check_key(&from.to_owned()).map_err(|wait| {
            let wait = wait.wait_time_from(DefaultClock::default().now());
            ApiError::exhausted("too many failed sign-ins", millis(wait))
        })
    }

    /// Forgets those who did nothing for long.
    pub(crate) fn sweep(&self) {
        self.sends.retain_recent();
        self.failed_sign_ins.retain_recent();
    }
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1)
}
