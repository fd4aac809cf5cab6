//! The store that a configuration names.

use std::sync::Arc;

use pintle_domain::store::StoreError;
use pintle_store::{Store, StoreKeys};

use crate::config::Config;
use crate::error::HostError;

/// Opens the store of `config`.
///
/// # Errors
/// It cannot be opened.
pub fn open_store(config: &Config) -> Result<Arc<dyn Store>, HostError> {
    open_store_with(config, StoreKeys::default())
}

/// Opens the store of `config` with the keys of `sealing`.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn open_store_with(config: &Config, sealing: StoreKeys) -> Result<Arc<dyn Store>, HostError> {
    open_at(&config.store_url, config, sealing)
}

/// Opens the store at `url` as `config` has it, with the keys of `sealing`.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn open_at(url: &str, config: &Config, sealing: StoreKeys) -> Result<Arc<dyn Store>, HostError> {
    if let Some(why) = config.bad_store() {
        return Err(HostError::usage(format!("there is no store: {why}")));
    }
    pintle_store::open_with(url, &config.home, config.durability, sealing).map_err(|error| match error {
        pintle_store::StoreOpenError::Url(_) | pintle_store::StoreOpenError::Schema { .. } => {
            HostError::usage(format!("store.url: {error}"))
        }
        pintle_store::StoreOpenError::Store(StoreError::Unavailable(_)) if url.starts_with("sqlite:") => {
            HostError::failed(error.to_string()).hint("name a folder that you can write with --home DIR")
        }
        pintle_store::StoreOpenError::Store(StoreError::Corrupt(why)) => {
            let lost = pintle_store::AnchorFile::beside(&config.home, url).lost();
            HostError::failed(lost.map_or(why.clone(), |lost| format!("{why}; {lost}")))
        }
        pintle_store::StoreOpenError::Store(
            StoreError::Unavailable(_) | StoreError::NotFound(_) | StoreError::Conflict(_),
        ) => HostError::failed(error.to_string()),
    })
}
