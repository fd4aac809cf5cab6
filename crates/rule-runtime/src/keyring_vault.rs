//! The vault of the secrets of rows: a keyring.

use std::sync::Arc;

use pintle_domain::id::{HookId, TenantId};
use pintle_rules::admin::SealingVault;
use pintle_rules::handler::Vault;
use pintle_store::keyring::{Form, Keyring, SealedPlace};

/// Opens and seals the secrets of rows.
pub struct KeyringVault(pub Arc<Keyring>);

impl KeyringVault {
    /// The value at `path` of the row `hook`, encrypted.
    ///
    /// # Errors
    /// There is no key, or none that can.
    pub fn seal_value(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        let place = SealedPlace::new(TABLE, hook.as_str(), tenant.as_str(), path);
        self.0.seal(&place, plain.as_bytes()).map_err(|error| error.to_string())
    }
}

impl SealingVault for KeyringVault {
    fn seal(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        self.seal_value(hook, tenant, path, plain)
    }
}

/// The table that rows stand in, as their secrets are bound to it.
pub const TABLE: &str = "agent_hooks";

impl Vault for KeyringVault {
    fn open(&self, hook: &HookId, tenant: &TenantId, path: &str, text: &str) -> Result<String, String> {
        let place = SealedPlace::new(TABLE, hook.as_str(), tenant.as_str(), path);
        let opened = self.0.open_value(&place, text).map_err(|error| error.to_string())?;
        if opened.form == Form::Unsealed {
            tracing::warn!(hook_id = %hook, path, "crypto.unencrypted_value_read");
        }
        opened.plain.as_str().map(str::to_owned).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use pintle_store::keyring::KeySource;
    use pintle_testkit::log::Log;

    use super::*;

    #[test]
    fn a_secret_that_stands_in_the_clear_is_used_and_logged() {
        let home = tempfile::tempdir().unwrap();
        let source = KeySource::new(|_| None, Some(home.path().join("key")));
        let sealed = KeyringVault(Arc::new(Keyring::open(&source).unwrap()));
        let (hook, tenant) = (HookId::from("0193a5b0-7000-7000-8000-0000000000aa"), TenantId::default_tenant());
        let path = "config.headers.authorization";
        let (log, _listening) = Log::begin();
        let text = sealed.seal_value(&hook, &tenant, path, "Bearer secret").unwrap();
        assert_eq!(sealed.open(&hook, &tenant, path, &text), Ok("Bearer secret".to_owned()));
        assert_eq!(log.lines(), [""; 0]);
        assert_eq!(sealed.open(&hook, &tenant, path, "Bearer secret"), Ok("Bearer secret".to_owned()));
        let line = format!("WARN crypto.unencrypted_value_read hook_id={hook} path=\"{path}\"");
        assert_eq!(log.lines(), [line]);
    }
}
