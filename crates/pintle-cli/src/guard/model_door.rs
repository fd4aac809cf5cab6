//! The model door of the daemon: agents that have no hooks, but ask their model at an address that can be set.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use pintle_domain::approval::{Approval, PersonAnswer};
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::tool::ToolCall;
use pintle_doors::reply::{turned_away, with_request_id};
use pintle_doors::{DoorHost, DoorVisit, ModelDoor, Vendor, VendorSettings};
use pintle_engine::{Approvals, Asker, Dispatcher};
use pintle_gateway::vendor_settings;
use pintle_guard::clients::{ClientKnowledge, client_event, client_of};
use pintle_guard::shell_tools::{known_as, told_as};
use pintle_host::config::ModelDoorConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::folders::{Folders, InForce};
use super::links::KeptFiles;
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
    door: Arc<FollowedDoor>,
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
        let said = SaidOfDoors::of(&in_force);
        if let Some(why) = &said.broken {
            return Err(CliError::usage(format!("the model door cannot be opened: {why}")));
        }
        let host = Arc::new(GuardedDoor { folders, folder, home });
        let door = ModelDoor::new(settings(&said.doors))
            .map_err(|error| CliError::failed(format!("the model door cannot be opened: {error}")))?;
        let door = Arc::new(FollowedDoor::new(host, (said, door)));
        let failed = |error| CliError::failed(format!("the model door cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, door, address })
    }

    /// Answers until `stop`.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let router: Router = Router::new().fallback(answer).with_state(self.door.clone());
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
            () = self.door.follow() => {}
        }
    }
}

/// What a configuration says of the model door.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SaidOfDoors {
    doors: BTreeMap<String, ModelDoorConfig>,
    /// What is wrong with it.
    broken: Option<String>,
}

impl SaidOfDoors {
    fn of(in_force: &InForce) -> Self {
        // Without its settings a prompt would go to another vendor than the one that was meant.
        let is_of_models = |path: &str| path == "doors" || path.starts_with("doors.model");
        let broken = in_force.broken_doors.iter().find(|(path, _)| is_of_models(path));
        Self { doors: in_force.model_doors.clone(), broken: broken.map(|(_, why)| why.clone()) }
    }
}

/// The door with the settings that are in force in its folder.
struct FollowedDoor {
    host: Arc<GuardedDoor>,
    now: RwLock<DoorNow>,
}

/// A door and the settings that it was made of.
struct DoorNow {
    said: SaidOfDoors,
    /// The one that was open last: what is kept of sessions stays in it.
    door: Arc<ModelDoor>,
    /// Nothing where the settings open no door.
    router: Option<Router>,
}

impl FollowedDoor {
    fn new(host: Arc<GuardedDoor>, (said, door): (SaidOfDoors, ModelDoor)) -> Self {
        let door = Arc::new(door);
        let router = Some(pintle_doors::serve::local(door.clone(), host.clone()));
        Self { host, now: RwLock::new(DoorNow { said, door, router }) }
    }

    /// The door as the settings have it that are in force; nothing where these open none.
    async fn router(&self) -> Option<Router> {
        match self.host.folders.of(&self.host.folder, false).await {
            Ok(in_force) => self.take(SaidOfDoors::of(&in_force)),
            // Whoever asks is told by the hooks, which are not there either.
            Err(_) => self.now.read().unwrap_or_else(PoisonError::into_inner).router.clone(),
        }
    }

    /// Takes over what is `said`, if it is new. An answer under way goes on as it began.
    fn take(&self, said: SaidOfDoors) -> Option<Router> {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.said == said {
            return now.router.clone();
        }
        let made = match &said.broken {
            Some(why) => Err(why.clone()),
            None => now.door.with(settings(&said.doors)).map_err(|error| error.to_string()),
        };
        now.said = said;
        let router = match made {
            Ok(door) => {
                // Whoever changes what may pass sees at the usual level of the log that it counts.
                tracing::warn!("changed settings of `[doors.model]` are in force");
                now.door = Arc::new(door);
                Some(pintle_doors::serve::local(now.door.clone(), self.host.clone()))
            }
            Err(why) => {
                tracing::warn!("the model door is closed: {why}");
                None
            }
        };
        now.router.clone_from(&router);
        router
    }

    /// Takes over each change, also while nobody asks.
    async fn follow(&self) {
        loop {
            self.host.folders.changed().await;
            self.router().await;
        }
    }
}

async fn answer(State(door): State<Arc<FollowedDoor>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let Some(mut router) = door.router().await else {
        let why = "the model door is closed: the log of `pintle guard serve` says why";
        return with_request_id(&path, turned_away(&path, StatusCode::SERVICE_UNAVAILABLE, why));
    };
    let answered: Result<Response, Infallible> = router.call(request).await;
    let Ok(answer) = answered;
    with_request_id(&path, answer)
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
        let known = ClientKnowledge::new(client, Some(self.folder.clone()), in_force.agent_uuid.clone());
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
        let event = client_event(client_of(&visit.user_agent), call, &self.folder);
        KeptFiles::of_door(&self.home, &in_force).held(&event).await
    }

    fn known_as(&self, native: &str, arguments: &Object) -> Option<(String, Object)> {
        known_as(native, arguments)
    }

    fn told_as(&self, native: &str, arguments: &Object, changed: Object) -> Option<Object> {
        told_as(native, arguments, changed)
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
    use pintle_host::config::MODEL_DOORS;

    #[test]
    fn every_vendor_can_be_configured() {
        assert_eq!(Vendor::ALL.map(Vendor::name), MODEL_DOORS);
    }
}
