//! The secrets of rows.

use std::sync::Arc;

use domain::id::{HookId, TenantId};
use rules::admin::SealingVault;
use rules::handler::Vault;
use store::keyring::{Form, Keyring, Place};

/// Opens and seals the secrets of rows.
pub struct Sealed(pub Arc<Keyring>);

impl Sealed {
    /// The value at `path` of the row `hook`, encrypted.
    ///
    /// # Errors
    /// There is no key, or none that can.
    pub fn seal_value(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        let place = Place::new(TABLE, hook.as_str(), tenant.as_str(), path);
        self.0.seal(&place, plain.as_bytes()).map_err(|error| error.to_string())
    }
}

impl SealingVault for Sealed {
    fn seal(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        self.seal_value(hook, tenant, path, plain)
    }
}

/// The table that rows stand in, as their secrets are bound to it.
pub const TABLE: &str = "agent_hooks";

impl Vault for Sealed {
    fn open(&self, hook: &HookId, tenant: &TenantId, path: &str, text: &str) -> Result<String, String> {
        let place = Place::new(TABLE, hook.as_str(), tenant.as_str(), path);
        let opened = self.0.open_value(&place, text).map_err(|error| error.to_string())?;
        if opened.form == Form::Unsealed {
            tracing::warn!(hook_id = %hook, path, "crypto.unencrypted_value_read");
        }
        opened.plain.as_str().map(str::to_owned).map_err(|error| error.to_string())
    }
}
