//! The agent of a session, ready to work.

use std::sync::Arc;

use pintle_domain::store::SessionKey;
use pintle_host::config::Config;
use pintle_host::ready_agent::ReadyAgent;

use crate::Shared;
use crate::agents::{named, repeated};
use crate::error::ApiError;

impl Shared {
    /// The agent of the session `key`, ready to work: with `model` if one is said, else with that of the session.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        key: &SessionKey,
        agent: &str,
        model: Option<&str>,
    ) -> Result<Arc<ReadyAgent>, ApiError> {
        let of_session = match model {
            Some(model) => Some(model.to_owned()),
            None => {
                let key = key.clone();
                let found = self.blocking(move |shared| Ok(shared.sessions.session_settings(&key)?)).await?;
                found.and_then(|settings| settings.model().map(str::to_owned))
            }
        };
        let host = self.host.read().await;
        let config = &host.loaded.config;
        let name = named(config, Some(agent))?.name.clone();
        if let Some(model) = model {
            check_model(config, "modelOverride", model)?;
        }
        self.agents.ready(&host, &name, of_session.as_deref())
    }
}

/// Refuses a model, named in the member `member`, that the configuration does not have.
pub(crate) fn check_model(config: &Config, member: &str, model: &str) -> Result<(), ApiError> {
    config.look_up(model).map(drop).map_err(|why| {
        let near = why.nearest.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        ApiError::invalid(format!("invalid request: {member}: {}{near}", repeated(&why.message)))
    })
}
