//! The model door of the daemon: agents that have no hooks, but ask their model at an address that can be set.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::approval::{Approval, PersonAnswer};
use domain::id::TurnId;
use domain::identity::Identity;
use domain::tool::ToolCall;
use doors::{DoorHost, DoorVisit, ModelDoor, Vendor, VendorSettings};
use engine::{Approvals, Asker, Dispatcher};
use gateway::vendor_settings;
use guard::clients::{ClientKnowledge, client_of, client_protects};
use host::config::ModelDoorConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::folders::Folders;
use crate::error::CliError;

/// The door that events come in by, as their identity says it.
pub(super) const CHANNEL: &str = "door";

/// How long answers have that are under way when the daemon ends.
const DRAIN: Duration = Duration::from_secs(5);

/// The hooks of the folder that the daemon was started in, for clients of its model door.
pub(crate) struct GuardedDoor {
    folders: Arc<Folders>,
    folder: PathBuf,
    home: String,
}

/// An address that clients reach the door at.
pub(crate) struct OpenDoor {
    listener: TcpListener,
    door: Arc<ModelDoor>,
    host: Arc<GuardedDoor>,
    /// Where it is.
    pub(crate) address: SocketAddr,
}

impl OpenDoor {
    /// Listens at `address` with the hooks of `folder`.
    ///
    /// # Errors
    /// The address cannot be had, or the configuration does not load.
    pub(crate) async fn open(
        address: SocketAddr,
        folders: Arc<Folders>,
        (folder, home): (PathBuf, String),
    ) -> Result<Self, CliError> {
        let in_force = folders.of(&folder, false).await?;
        // Without its settings a prompt would go to another vendor than the one that was meant.
        let is_of_models = |path: &str| path == "doors" || path.starts_with("doors.model");
        if let Some((_, why)) = in_force.broken_doors.iter().find(|(path, _)| is_of_models(path)) {
            return Err(CliError::usage(format!("the model door cannot be opened: {why}")));
        }
        let settings = settings(&in_force.model_doors);
        let host = Arc::new(GuardedDoor { folders, folder, home });
        let door = ModelDoor::new(settings)
            .map_err(|error| CliError::failed(format!("the model door cannot be opened: {error}")))?;
        let failed = |error| CliError::failed(format!("the model door cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, door: Arc::new(door), host, address })
    }

    /// Answers until `stop`.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let router = doors::serve::local(self.door, self.host);
        let served = axum::serve(self.listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::select! {
            served = served => {
                if let Err(error) = served {
                    tracing::warn!("the model door is closed: {error}");
                }
            }
            () = late => tracing::warn!("answers of the model door were cut off"),
        }
    }
}

/// Whether only this machine reaches `address`.
///
/// # Errors
/// Others do.
pub(crate) fn check(address: SocketAddr) -> Result<(), CliError> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let message = format!("`--http {address}` is not an address of this machine alone");
    Err(CliError::usage(message).hint("clients send their keys: use 127.0.0.1"))
}

fn settings(doors: &BTreeMap<String, ModelDoorConfig>) -> BTreeMap<Vendor, VendorSettings> {
    let one = |(name, door): (&String, &ModelDoorConfig)| {
        // Clients of this machine bring their own keys.
        Some((Vendor::named(name)?, vendor_settings(door, None)))
    };
    doors.iter().filter_map(one).collect()
}

#[async_trait]
impl DoorHost for GuardedDoor {
    async fn hooks(&self, visit: &DoorVisit) -> Result<Dispatcher, String> {
        let in_force = self.folders.of(&self.folder, false).await.map_err(|error| {
            tracing::warn!("{}: {error}", self.folder.display());
            format!("the configuration of {} does not load: {}", self.folder.display(), error.message)
        })?;
        let who = Identity::top(&in_force.agent, &visit.session, TurnId::new(visit.turn.as_str()));
        let client = client_of(&visit.user_agent);
        let known = ClientKnowledge::new(client, self.folder.clone(), in_force.agent_uuid.clone());
        let approvals = Approvals::for_host(in_force.store.clone(), Some(Arc::new(Elsewhere)));
        let hooks = in_force
            .engine
            .dispatcher(who)
            .with_origin(CHANNEL, visit.wire.name(), "user")
            .with_known(Arc::new(known))
            .with_approvals(Some(Arc::new(approvals)))
            .asking_by_content();
        Ok(hooks)
    }

    async fn protects(&self, visit: &DoorVisit, call: &ToolCall) -> Option<String> {
        let Ok(in_force) = self.folders.of(&self.folder, false).await else {
            return Some("the configuration of the guard does not load".into());
        };
        client_protects(client_of(&visit.user_agent), call, (&self.folder, &self.home, &in_force.own))
    }

    fn guessed(&self, user_agent: &str) -> String {
        match client_of(user_agent) {
            Some(host) => host.name.to_owned(),
            None => "an unknown client".to_owned(),
        }
    }
}

/// A person who answers elsewhere: `pintle approvals`, the console.
struct Elsewhere;

#[async_trait]
impl Asker for Elsewhere {
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
        tracing::info!("approval {} waits for a person", approval.id);
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::config::MODEL_DOORS;

    #[test]
    fn every_vendor_can_be_configured() {
        assert_eq!(Vendor::ALL.map(Vendor::name), MODEL_DOORS);
    }
}
