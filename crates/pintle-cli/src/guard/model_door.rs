//! The model door of the daemon: agents that have no hooks, but ask their model at an address that can be set.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::approval::{Approval, PersonAnswer};
use domain::checkpoint::AgentInfo;
use domain::id::{HookName, TurnId};
use domain::identity::Identity;
use domain::json::{Object, Value};
use domain::shell::ShellFacts;
use domain::tool::{CallPlace, ToolCall};
use doors::answer::DenyMode;
use doors::{DoorHost, DoorVisit, ModelDoor, Vendor, VendorSettings};
use engine::{Approvals, Asker, Dispatcher};
use guard::tools::{ToolClass, ToolRow, shell_texts};
use guard::{GuardHost, GuardedFiles, HOSTS, HostCall, HostEvent, HostWhat};
use host::config::ModelDoorConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::folders::Folders;
use super::known::facts_of;
use crate::error::CliError;

/// The door that events come in by, as their identity says it.
pub(super) const CHANNEL: &str = "door";

/// How clients call themselves, and which host that is. Source: what they were seen to send.
const AGENTS: [(&str, &str); 9] = [
    ("claude-cli", "claude"),
    ("codex", "codex"),
    ("geminicli", "gemini"),
    ("qwencode", "qwen"),
    ("copilot", "copilot"),
    ("kimi", "kimi"),
    ("cline", "cline"),
    ("opencode", "opencode"),
    ("pi/", "pi"),
];

/// How long answers have that are under way when the daemon ends.
const DRAIN: Duration = Duration::from_secs(5);

/// The member of arguments in which tools that nobody knows have a shell text.
pub(super) const COMMAND: &str = "command";

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
        let door = ModelDoor::new(host, settings)
            .map_err(|error| CliError::failed(format!("the model door cannot be opened: {error}")))?;
        let failed = |error| CliError::failed(format!("the model door cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, door: Arc::new(door), address })
    }

    /// Answers until `stop`.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let router = doors::serve::router(self.door);
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
        let settings = VendorSettings {
            base_url: door.base_url.clone(),
            deny: if door.deny_as_text { DenyMode::Text } else { DenyMode::Answer },
            hosted: door.hosted.iter().cloned().collect(),
        };
        Some((Vendor::named(name)?, settings))
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
        let known = DoorKnowledge {
            client: host_of(&visit.user_agent),
            folder: self.folder.clone(),
            agent_uuid: in_force.agent_uuid.clone(),
        };
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
        protects(host_of(&visit.user_agent), call, (&self.folder, &self.home, &in_force.own))
    }

    fn guessed(&self, user_agent: &str) -> String {
        match host_of(user_agent) {
            Some(host) => host.name.to_owned(),
            None => "an unknown client".to_owned(),
        }
    }
}

/// Why `call` of `client` in `folder` must not run, whatever hooks say: it is about what guards.
pub(super) fn protects(
    client: Option<&'static GuardHost>,
    call: &ToolCall,
    (folder, home, own): (&Path, &str, &[String]),
) -> Option<String> {
    let (host, row) = tool_of(client, &call.raw_tool, &call.arguments);
    let event = HostEvent {
        host: host.id,
        event: String::new(),
        session: String::new(),
        turn: None,
        call: None,
        subagent: None,
        cwd: folder.display().to_string(),
        transcript: None,
        attended: None,
        what: HostWhat::Tool(HostCall {
            native: row.map_or_else(|| call.raw_tool.clone(), |row| row.native.to_owned()),
            canonical: call.tool.clone(),
            class: row.map_or(ToolClass::Other, |row| row.class),
            arguments: call.arguments.clone(),
        }),
        host_raw: Object::new(),
    };
    guard::protects(&event, &GuardedFiles { home, own, lifted: false })
}

/// The host that calls itself `user_agent`, as far as that can be guessed.
fn host_of(user_agent: &str) -> Option<&'static GuardHost> {
    let said = user_agent.to_lowercase();
    let (_, id) = AGENTS.iter().find(|(mark, _)| said.starts_with(mark))?;
    guard::host(id)
}

/// The host and the row of a tool: of the client that is guessed, else of the first host that has a tool of this name.
/// One that nobody has, with a command in its arguments, is taken for a shell.
fn tool_of(
    client: Option<&'static GuardHost>,
    native: &str,
    arguments: &Object,
) -> (&'static GuardHost, Option<&'static ToolRow>) {
    let hosts = client.into_iter().chain(HOSTS.iter().copied());
    if let Some(found) = hosts.into_iter().find_map(|host| Some((host, host.tool(native)?))) {
        return (found.0, Some(found.1));
    }
    let has_command = arguments.get(COMMAND).is_some_and(Value::is_string);
    let shell = HOSTS.iter().copied().find_map(|host| {
        let row = host.tools.iter().find(|row| row.class == ToolClass::Shell && takes_command(row))?;
        Some((host, row))
    });
    match (has_command, shell) {
        (true, Some((host, row))) => (host, Some(row)),
        (true | false, _) => (client.unwrap_or(HOSTS[0]), None),
    }
}

fn takes_command(row: &ToolRow) -> bool {
    row.holds == [guard::tools::Holds::Shell(COMMAND)]
}

/// What hooks may know of calls of a client: its tools, as far as it is known, and the folder of the daemon.
pub(super) struct DoorKnowledge {
    client: Option<&'static GuardHost>,
    folder: PathBuf,
    agent_uuid: String,
}

impl DoorKnowledge {
    /// The same where nobody knows the client.
    pub(super) fn of_nobody(folder: PathBuf, agent_uuid: String) -> Self {
        Self { client: None, folder, agent_uuid }
    }

    /// The rows of tools that rules know as `name`.
    fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'static ToolRow> + 'a {
        let hosts = self.client.into_iter().chain(HOSTS.iter().copied());
        hosts.flat_map(|host| host.tools.iter()).filter(move |row| row.canonical == name)
    }
}

impl AgentInfo for DoorKnowledge {
    fn tool(&self, name: &str) -> Option<String> {
        let hosts = self.client.into_iter().chain(HOSTS.iter().copied());
        if let Some(row) = hosts.into_iter().find_map(|host| host.tool(name)) {
            return Some(row.canonical.to_owned());
        }
        Some(guard::mcp_name(name).unwrap_or_else(|| name.to_owned()))
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        let known = self.rows(name).find_map(|row| Some(shell_texts(row, arguments)).filter(|texts| !texts.is_empty()));
        let texts = known.or_else(|| Some(vec![arguments.get(COMMAND)?.as_str()?])).unwrap_or_default();
        facts_of(&texts, (&self.folder, &self.folder))
    }

    fn place(&self, _name: &str) -> CallPlace {
        CallPlace::in_folder(self.folder.display())
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
    use domain::json::json;
    use host::config::MODEL_DOORS;

    #[test]
    fn every_vendor_can_be_configured() {
        assert_eq!(Vendor::ALL.map(Vendor::name), MODEL_DOORS);
    }

    #[test]
    fn tools_are_known_by_the_names_that_rules_have() {
        let known =
            |agent: &str| DoorKnowledge { client: host_of(agent), folder: "/w".into(), agent_uuid: String::new() };
        for (agent, native, canonical) in [
            ("claude-cli/2.1.330 (external, cli)", "Bash", "exec"),
            ("python-requests/2", "Bash", "exec"),
            ("", "mcp__box__touch", "mcp_box_touch"),
            ("", "lookup_order", "lookup_order"),
        ] {
            assert_eq!(known(agent).tool(native).as_deref(), Some(canonical), "{agent} {native}");
        }
        let facts = |name: &str, arguments: Value| known("").shell(name, arguments.as_object().unwrap());
        assert_eq!(facts("exec", json!({"command": "git push"})).commands.len(), 1);
        assert_eq!(facts("run_it", json!({"command": "git push"})).commands.len(), 1);
        assert_eq!(*facts("lookup_order", json!({"order": "1"})), ShellFacts::default());
    }

    #[test]
    fn a_tool_that_nobody_knows_is_a_shell_if_it_has_a_command() {
        let class = |native: &str, arguments: Value| {
            tool_of(None, native, arguments.as_object().unwrap()).1.map(|row| row.class)
        };
        assert_eq!(class("run_it", json!({"command": "x"})), Some(ToolClass::Shell));
        assert_eq!(class("run_it", json!({"order": "x"})), None);
        assert_eq!(class("Write", json!({"file_path": "x"})), Some(ToolClass::FileWrite));
    }
}
