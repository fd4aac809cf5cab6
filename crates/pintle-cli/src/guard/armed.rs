//! Whether an agent lets be held here what has to be.

use pintle_guard::GuardHost;
use pintle_guard::measured::lacks;
use pintle_guard::tools::ToolClass;
use pintle_host::config::Env;

use super::installs::switched_off;
use super::places::GuardPlaces;
use super::proofs::KnownHere;
use super::versions::judge;

/// Why `host`, which runs in `version` in the folder of `env`, does not let calls of the classes `required` be held; none
/// where it does.
pub(super) async fn lacks_here(
    (host, version): (&'static GuardHost, Option<String>),
    (env, places): (Env, GuardPlaces),
    required: Vec<ToolClass>,
) -> Option<String> {
    // Its settings are files.
    let looking = tokio::task::spawn_blocking(move || {
        let known = KnownHere::of(host, version.map(|version| judge(&version, host.versions)), &places);
        let off = switched_off(host, &env, &places);
        lacks(host, &known.facts(off.as_deref()), &required)
    });
    looking.await.unwrap_or_else(|error| Some(format!("whether it may be held cannot be looked at: {error}")))
}
