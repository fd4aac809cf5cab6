//! The tool door: the hooks of a folder before the calls of an MCP client.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_domain::approval::{Approval, PersonAnswer};
use pintle_domain::hex::hex;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, canonical, json};
use pintle_domain::shown_url::shown_url;
use pintle_domain::tool::{ServerEntry, ToolCall};
use pintle_doors::mcp::proxy::ProxyRules;
use pintle_doors::mcp::stdio::ServerWay;
use pintle_doors::mcp::{
    OnChange, PersonAsked, PinFinding, ToolDefinition, ToolDoor, ToolDoorHost, ToolFilter, ToolVisit,
};
use pintle_engine::{Approvals, Asker, Dispatcher};
use pintle_guard::clients::{ClientKnowledge, client_event};
use pintle_host::config::{Env, ToolDoorConfig};
use pintle_process::child::Launch;
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use super::folders::Folders;
use super::links::KeptFiles;
use super::model_door::CHANNEL;
use super::places::GuardPlaces;
use super::tool_pins::PinFile;
use crate::clean::clean;
use crate::error::CliError;

/// Longest name of a server: with it and the server's own, tools have names that providers take.
const MAX_NAME: usize = 32;

/// Checks the name of a server, as those of a configuration are.
///
/// # Errors
/// It is none.
pub(crate) fn check_name(name: &str) -> Result<(), CliError> {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_good) {
        return Ok(());
    }
    let message = format!("`{name}` is not a name for a server");
    Err(CliError::usage(message).hint(format!("expected 1 to {MAX_NAME} letters a to z, digits, `_` and `-`")))
}

/// The hooks of the folder that the proxy was started in.
pub(crate) struct GuardedTools {
    folders: Arc<Folders>,
    folder: PathBuf,
    home: String,
    pins: PinFile,
    on_change: OnChange,
}

impl GuardedTools {
    /// The door before the server `name` that is reached by `way`, with the hooks that are found from `env`.
    ///
    /// # Errors
    /// The configuration does not load, or there is no home folder.
    pub(crate) async fn open(
        (name, way): (&str, &ServerWay),
        folders: &Arc<Folders>,
        (env, home): (&Env, Option<&std::path::Path>),
    ) -> Result<ToolDoor, CliError> {
        let in_force = folders.of(&env.cwd, false).await?;
        // Without its bounds it would show what is hidden.
        let own = format!("doors.tool.{name}");
        if let Some(why) = [&*own, "doors.tool", "doors"].iter().find_map(|path| in_force.broken_doors.get(*path)) {
            return Err(CliError::usage(format!("the tool door `{name}` cannot be opened: {why}")));
        }
        let settings = in_force.tool_doors.get(name).cloned().unwrap_or_default();
        let places = GuardPlaces::of(env, home, None)?;
        let on_change = if settings.allows_change { OnChange::Allow } else { OnChange::Ask };
        let host = Arc::new(Self {
            folders: folders.clone(),
            folder: env.cwd.clone(),
            home: env.text("HOME").unwrap_or("/").to_owned(),
            pins: PinFile::of(&places, name),
            on_change,
        });
        let (hold, asks_client) = (settings.ask_timeout, settings.asks_client);
        let rules = ProxyRules { server: name.to_owned(), filter: filter(settings), accept: accept_line(name, home) };
        Ok(ToolDoor { host, rules, entry: entry(name, way), hold, asks_client })
    }
}

fn filter(settings: ToolDoorConfig) -> ToolFilter {
    ToolFilter::new(move |tool| settings.shows(tool))
}

/// What a person types to accept what changed.
fn accept_line(name: &str, home: Option<&std::path::Path>) -> String {
    let home = home.map(|home| format!(" --home {}", home.display())).unwrap_or_default();
    format!("pintle mcp accept {name}{home}")
}

/// Where the calls run: an approval of one is for exactly this.
fn entry(name: &str, way: &ServerWay) -> ServerEntry {
    let (runs, says) = match way {
        ServerWay::Command(launch) => {
            let argv: Vec<_> = launch.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (shown_command(&argv), json!([name, "command", argv]))
        }
        ServerWay::Url(url) => (shown_url(url.as_str()), json!([name, "url", url.as_str()])),
    };
    ServerEntry { name: name.to_owned(), runs, digest: hex(&Sha256::digest(canonical(&says).as_bytes())) }
}

/// A command without what may be a secret in it: the record is read by more people than the client's file.
fn shown_command(argv: &[String]) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut is_value = false;
    for (at, word) in argv.iter().enumerate() {
        shown.push(match at {
            0 => word.clone(),
            _ if is_value => "…".to_owned(),
            _ => shown_word(word),
        });
        is_value = at > 0 && word.starts_with('-') && !word.contains('=') && (is_secret(word) || word == "-H");
    }
    shown.join(" ")
}

fn shown_word(word: &str) -> String {
    if word.contains(char::is_whitespace) && is_secret(word) {
        return "…".to_owned();
    }
    // `--token=x`, `API_KEY=x`, `X-Key:x`; the colon of an address stands behind its scheme.
    let named = word.find(['=', ':']).map(|at| word.split_at(at + 1));
    match named {
        Some((name, _)) if is_secret(name) => format!("{name}…"),
        Some((name, value)) if name.ends_with('=') && value.contains("://") => format!("{name}{}", shown_url(value)),
        Some(_) if word.contains("://") => shown_url(word),
        Some(_) | None => word.to_owned(),
    }
}

/// Whether what has this name is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["token", "key", "secret", "password", "header", "auth"].iter().any(|word| name.contains(word))
}

/// How a server is started: with all that the client gave, but for what is Pintle's own secret.
pub(crate) fn launch(command: &[OsString]) -> Launch {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let env = pintle_process::child_environment(std::env::vars_os(), &Default::default(), &names, &Default::default());
    Launch { argv: command.to_vec(), dir: None, vars: env.vars }
}

#[async_trait]
impl ToolDoorHost for GuardedTools {
    async fn hooks(&self, visit: &ToolVisit) -> Result<Dispatcher, String> {
        let in_force = self.folders.of(&self.folder, false).await.map_err(|error| {
            tracing::warn!("{}: {error}", self.folder.display());
            format!("the configuration of {} does not load: {}", self.folder.display(), error.message)
        })?;
        let who = Identity::top(&in_force.agent, &visit.session, TurnId::new(visit.turn.as_str()));
        let known = ClientKnowledge::new(None, Some(self.folder.clone()), in_force.agent_uuid.clone());
        let approvals = Approvals::for_host(in_force.store.clone(), Some(Arc::new(Bell(visit.asked.clone()))));
        let hooks = in_force
            .engine
            .dispatcher(who)
            .with_origin(CHANNEL, &visit.server, "user")
            .with_known(Arc::new(known))
            .with_approvals(Some(Arc::new(approvals)))
            .asking_by_content();
        Ok(hooks)
    }

    async fn protects(&self, call: &ToolCall) -> Option<String> {
        let Ok(in_force) = self.folders.of(&self.folder, false).await else {
            return Some("the configuration of the guard does not load".into());
        };
        let kept = KeptFiles::of_door(&self.home, &in_force);
        // A server's tool is not that of a host which has the same name: what it does is not known.
        let named = ToolCall { raw_tool: call.tool.clone(), ..call.clone() };
        kept.held(&client_event(None, &named, &self.folder)).await
    }

    async fn pin(&self, _server: &str, definitions: Vec<ToolDefinition>) -> Result<Vec<PinFinding>, String> {
        let (pins, on_change) = (self.pins.clone(), self.on_change);
        let compared = tokio::task::spawn_blocking(move || pins.change(|pins| pins.see(&definitions, on_change)));
        let failed = |why: String| format!("what the tools of the server were before cannot be known: {why}");
        compared.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}

/// Longest question that a client is to show, in bytes: of what is longer a person would not see all, and answers elsewhere.
const MAX_QUESTION_BYTES: usize = 4096;

/// Who answered, for the record, where the client asked its person.
const BY_CLIENT: &str = "the dialogue of the client";

/// What a person is asked who sits before the client: exactly what would run.
fn question(approval: &Approval) -> Option<String> {
    let arguments = Value::from(approval.arguments.clone());
    let Approval { id, tool, by, reason, .. } = approval;
    let text = format!("May {tool} run with {arguments}? {by} wants a person to say: {reason} (approval {id})");
    let text = clean(&text);
    (text.len() <= MAX_QUESTION_BYTES).then_some(text)
}

/// A person who answers elsewhere, and is told of to the client, which may ask them itself.
struct Bell(mpsc::Sender<PersonAsked>);

#[async_trait]
impl Asker for Bell {
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
        tracing::info!("approval {} waits for a person", approval.id);
        let (answer, said) = oneshot::channel();
        let asked = PersonAsked { approval: approval.id.clone(), question: question(approval), answer };
        self.0.send(asked).await.ok();
        match said.await {
            Ok(approve) => Some(PersonAnswer { approve, by: BY_CLIENT.to_owned(), note: String::new() }),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_command_is_shown() {
        let rows: [(&[&str], &str); 10] = [
            (&["uvx", "mcp-server-time", "--local-timezone", "UTC"], "uvx mcp-server-time --local-timezone UTC"),
            (&["npx", "x", "--api-key", "hunter2", "--verbose"], "npx x --api-key … --verbose"),
            (&["x", "--auth", "--token", "hunter2"], "x --auth … …"),
            (&["x", "--Token=hunter2", "API_KEY=hunter2"], "x --Token=… API_KEY=…"),
            (&["x", "--header", "Authorization: Bearer hunter2"], "x --header …"),
            (&["x", "-H", "hunter2", "Authorization: hunter2"], "x -H … …"),
            (&["x", "https://u:hunter2@h:1/p?q=hunter2"], "x https://h:1/p"),
            (&["x", "--db=postgres://u:hunter2@h/p?q=hunter2"], "x --db=postgres://h/p"),
            (&["sh", "-c", "srv --password hunter2"], "sh -c …"),
            (&["/keys/srv", "C:/x", "a=b"], "/keys/srv C:/x a=b"),
        ];
        for (command, shown) in rows {
            let argv: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(shown_command(&argv), shown);
        }
    }

    #[test]
    fn the_digest_stays_over_everything() {
        let of = |key: &str| {
            let argv = ["x", "--key", key].map(OsString::from).to_vec();
            entry("n", &ServerWay::Command(Launch { argv, dir: None, vars: Vec::new() }))
        };
        let (one, other) = (of("a"), of("b"));
        assert!(one.runs == other.runs && one.digest != other.digest);
    }

    #[test]
    fn a_name_is_one_that_tools_can_have() {
        for (name, is_good) in [("time", true), ("a-b_2", true), ("", false), ("Time", false), ("a/b", false)] {
            assert_eq!(check_name(name).is_ok(), is_good, "{name}");
        }
        assert!(check_name(&"a".repeat(33)).is_err());
    }
}
