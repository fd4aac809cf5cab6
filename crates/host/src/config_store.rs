//! The store that a configuration names.

use std::sync::Arc;

use domain::store::StoreError;
use store::{Store, StoreKeys};

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
    store::open_with(url, &config.home, config.durability, sealing).map_err(|error| match error {
        store::StoreOpenError::Url(_) | store::StoreOpenError::Schema { .. } => {
            HostError::usage(format!("store.url: {error}"))
        }
        store::StoreOpenError::Store(StoreError::Unavailable(_)) if url.starts_with("sqlite:") => {
            HostError::failed(error.to_string()).hint("name a folder that you can write with --home DIR")
        }
        store::StoreOpenError::Store(StoreError::Corrupt(why)) => {
            let lost = store::AnchorFile::beside(&config.home, url).lost();
            HostError::failed(lost.map_or(why.clone(), |lost| format!("{why}; {lost}")))
        }
        store::StoreOpenError::Store(
            StoreError::Unavailable(_) | StoreError::NotFound(_) | StoreError::Conflict(_),
        ) => HostError::failed(error.to_string()),
    })
}
