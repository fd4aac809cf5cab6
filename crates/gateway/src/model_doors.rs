//! The model door of a gateway: agents of others ask their models here, each with the hooks, the record and the bounds of
//! whoever's key comes with the request. What passes is the business of the crate `doors`, and who comes in that of
//! `guests`; here is which doors are open, and in `prices` what their prices say of the calls of agents.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use pintle_doors::answer::DenyMode;
use pintle_doors::spending::{Limit, Price, SpendingBudget};
use pintle_doors::{ModelDoor, Vendor, VendorKey, VendorSettings};
use pintle_host::Host;
use pintle_host::config::{DoorBudget, DoorLimit, DoorPrice, ModelDoorConfig};

mod guests;
mod prices;
mod settlements;
mod spending;

pub(crate) use guests::talk;
pub(crate) use prices::{ModelPrices, usd};
pub(crate) use settlements::HELD;
use settlements::Settlements;

/// Whom the entry of a vendor lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Open {
        /// Those with a key of ours.
        with_key: bool,
        /// Those of this machine, for this tenant.
        passing: Option<String>,
    },
    /// Nobody: something is wrong with it, which the log says.
    Closed,
}

#[derive(Default)]
struct Opened {
    entries: BTreeMap<Vendor, Entry>,
    door: Option<ModelDoorParts>,
}

struct ModelDoorParts {
    door: Arc<ModelDoor>,
    router: Router,
}

/// The doors that are open.
#[derive(Default)]
pub(crate) struct ModelDoors {
    open: RwLock<Arc<Opened>>,
    settlements: Settlements,
}

/// The settings of a vendor for a door, with `key` if the door has one.
pub fn vendor_settings(config: &ModelDoorConfig, key: Option<VendorKey>) -> VendorSettings {
    VendorSettings {
        base_url: config.base_url.clone(),
        deny: if config.deny_as_text { DenyMode::Text } else { DenyMode::Answer },
        hosted: config.hosted.iter().cloned().collect(),
        key,
        budget: budget(&config.budget),
    }
}

fn budget(config: &DoorBudget) -> SpendingBudget {
    let limit = |limit: DoorLimit| Limit { tokens: limit.tokens, milli_dollars: limit.milli_dollars };
    let price = |(name, price): (&String, &DoorPrice)| {
        let DoorPrice { input_milli, cached_milli, output_milli } = *price;
        (name.clone(), Price { read_milli: input_milli, cached_milli, written_milli: output_milli })
    };
    SpendingBudget {
        session: limit(config.session),
        day: limit(config.day),
        prices: config.prices.iter().map(price).collect(),
    }
}

impl ModelDoors {
    /// Takes over what `host` has in force. What is kept of sessions stays, and an answer under way goes on as it began.
    pub(crate) fn follow(&self, host: &Host) {
        let mut entries = BTreeMap::new();
        let mut settings = BTreeMap::new();
        for vendor in Vendor::ALL {
            match entry(host, vendor) {
                Ok(None) => {}
                Ok(Some((entry, own))) => {
                    entries.insert(vendor, entry);
                    settings.insert(vendor, own);
                }
                Err(why) => {
                    tracing::warn!("the door to {} is closed: {why}", vendor.name());
                    entries.insert(vendor, Entry::Closed);
                }
            }
        }
        let before = self.opened();
        let door = match &before.door {
            _ if settings.is_empty() => None,
            Some(before) => Some(before.door.with(settings)),
            None => Some(ModelDoor::new(settings)),
        };
        let door = match door.transpose() {
            Ok(door) => door.map(|door| {
                let door = Arc::new(door);
                ModelDoorParts { router: pintle_doors::serve::router(door.clone()), door }
            }),
            Err(error) => {
                tracing::warn!("the model door is closed: {error}");
                entries.values_mut().for_each(|entry| *entry = Entry::Closed);
                None
            }
        };
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Opened { entries, door });
    }

    fn opened(&self) -> Arc<Opened> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why doors of `host` let nobody in, as far as the configuration says it, and for which tenants others let in whoever
/// sits at this machine, each by its name in the configuration.
pub(crate) fn examined(host: &Host) -> (Vec<String>, Vec<(&'static str, String)>) {
    let (mut faults, mut tenants) = (Vec::new(), Vec::new());
    for vendor in Vendor::ALL {
        let name = vendor.name();
        match entry(host, vendor) {
            Ok(Some((Entry::Open { passing: Some(tenant), .. }, _))) => tenants.push((name, tenant)),
            Ok(Some((Entry::Open { with_key: false, passing: None }, _))) => faults.push(format!(
                "the door to {name} lets nobody in: `doors.model.{name}` has neither `key_env` nor `tenant`"
            )),
            Ok(Some((Entry::Open { .. } | Entry::Closed, _)) | None) => {}
            Err(why) => faults.push(format!("the door to {name} is closed: {why}")),
        }
    }
    (faults, tenants)
}

/// The entry of a vendor, if there is one.
fn entry(host: &Host, vendor: Vendor) -> Result<Option<(Entry, VendorSettings)>, String> {
    let (config, path) = (&host.loaded.config, format!("doors.model.{}", vendor.name()));
    if let Some(why) = ["doors", "doors.model", &path].iter().find_map(|path| config.broken.get(*path)) {
        return Err(why.clone());
    }
    let Some(door) = config.model_doors.get(vendor.name()) else { return Ok(None) };
    let key = match &door.key_env {
        None => None,
        Some(name) => {
            let key = host.env().text(name).and_then(|key| VendorKey::new(vendor, key));
            Some(key.ok_or_else(|| format!("`{name}`, which `{path}.key_env` names, is not set to a key"))?)
        }
    };
    let entry = Entry::Open { with_key: key.is_some(), passing: door.tenant.clone() };
    Ok(Some((entry, vendor_settings(door, key))))
}
