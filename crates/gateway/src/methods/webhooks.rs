//! `webhooks.*`: who is told what happens, and what they were not told yet.

use std::sync::Arc;

use pintle_domain::json::{Value, json};

use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::params::Params;
use crate::webhooks::{webhook_list, webhook_retry};

impl Shared {
    pub(super) async fn webhooks_list(self: &Arc<Self>, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let config = self.host.read().await.loaded.config.gateway.clone();
        self.blocking(move |shared| Ok(webhook_list(&config, &*shared.store)?)).await
    }

    pub(super) async fn webhooks_retry(self: &Arc<Self>, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["id"])?;
        let id = params.needed("id")?.to_lowercase();
        let missing = ApiError::new(ErrorCode::NotFound, format!("no delivery and no endpoint: {id}"));
        let retried = self.blocking(move |shared| Ok(webhook_retry(&*shared.store, &id)?)).await?;
        self.desk.webhooks.ring();
        retried.map(|retried| json!({ "retried": retried })).ok_or(missing)
    }
}
