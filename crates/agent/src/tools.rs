//! The tools that are built in, and the registry of all tools an agent may call.
//!
//! Arguments are validated against the tool's own JSON Schema before anything runs, and a tool that panics answers
//! with an error like any other failed tool.

mod arguments;
mod delegate;
mod edit;
mod error;
mod exec;
mod fetch;
mod find;
mod list;
mod load_skill;
mod name;
mod protected;
mod read;
pub mod sandbox;
mod search;
mod send_file;
mod walk;
mod workspace;
mod write;

use std::ffi::OsString;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pintle_domain::json::Object;
use pintle_domain::llm::ToolDef;
use pintle_domain::shell::{ShellFacts, ShellText};
use pintle_domain::skill::scan::Scan;
use pintle_domain::tool::{CallPlace, ToolOutput};
use pintle_domain::tool_schema::{self, SchemaRefusal};
use pintle_egress::{Egress, EgressError};
use pintle_engine::permit::Permit;
use pintle_engine::tool::Tool;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use self::arguments::Validator;
pub use self::error::ToolError;
pub use self::exec::{ExecGuard, ExecShell, exec_helper_main};
pub use self::protected::{Guard, Protected};
use self::send_file::SentFile;
use self::workspace::Workspace;

/// The built-in tools that change nothing: what an agent gets when its configuration names none.
pub const READ_ONLY: [&str; 4] = ["read_file", "list_dir", "find_files", "search_text"];

/// A built-in tool: its name, and what makes it.
struct Row(&'static str, fn(&Place) -> Result<Arc<dyn Tool>, ToolsError>);

/// Where built-in tools are made.
struct Place {
    files: Arc<Workspace>,
    exec: exec::Exec,
    egress: Egress,
    agents: Vec<(String, String)>,
}

/// Every built-in tool, in the order in which they are offered. A new one is a row here and a file in `tools/`.
const ROWS: [Row; 11] = [
    Row(READ_FILE, |at| Ok(builtin(read::ReadFile(at.files.clone())))),
    Row("list_dir", |at| Ok(builtin(list::ListDir(at.files.clone())))),
    Row("find_files", |at| Ok(builtin(find::FindFiles(at.files.clone())))),
    Row("search_text", |at| Ok(builtin(search::SearchText(at.files.clone())))),
    Row("write_file", |at| Ok(builtin(write::WriteFile(at.files.clone())))),
    Row("edit_file", |at| Ok(builtin(edit::EditFile(at.files.clone())))),
    Row("exec", |at| Ok(builtin(at.exec.clone()))),
    Row("web_fetch", |at| Ok(builtin(fetch::WebFetch::new(&at.egress)?))),
    Row(SEND_FILE, |at| Ok(Arc::new(send_file::SendFile::new(&at.files)))),
    Row(DELEGATE, |at| Ok(Arc::new(delegate::Delegation::new(DELEGATE, &at.agents)))),
    Row(SPAWN, |at| Ok(Arc::new(delegate::Delegation::new(SPAWN, &at.agents)))),
];

/// The names of the built-in tools, in the order in which they are offered.
pub const BUILTIN: [&str; ROWS.len()] = {
    let mut names = [""; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        names[at] = ROWS[at].0;
        at += 1;
    }
    names
};

/// The tool that reads files, and pages through long results of the session.
pub const READ_FILE: &str = "read_file";

/// The tool that hands files over to the user.
pub const SEND_FILE: &str = "send_file";

/// The tool that gives a task to another agent and waits for it.
pub const DELEGATE: &str = "delegate";

/// The tool that gives a task to another agent, which works in the background.
pub const SPAWN: &str = "spawn";

/// The tool that reads what skills say. It counts for nothing where it is asked whether an agent has tools.
pub const LOAD_SKILL: &str = "load_skill";

/// The built-in tool that a model means by `asked`: its own spelling, another case, a known alias, or any of these
/// behind a prefix such as `functions.`.
pub fn canonical_builtin(asked: &str) -> Option<&'static str> {
    name::canonical(asked, || BUILTIN.into_iter())
}

/// The one of `names` that a model means by `asked`.
pub(crate) fn canonical_among<'a, I: Iterator<Item = &'a str>>(asked: &str, names: impl Fn() -> I) -> Option<&'a str> {
    name::canonical(asked, names)
}

/// The built-in tool that somebody probably means by `asked`: what a model would mean, or a name that looks like it.
pub fn nearest_builtin(asked: &str) -> Option<&'static str> {
    name::nearest(asked, &BUILTIN)
}

/// What the built-in tools work on.
pub struct ToolEnv {
    /// The folder that file tools stay in, and in which commands start.
    pub workspace: PathBuf,
    /// What no tool may change, and in part not even read.
    pub protected: Protected,
    /// The whole environment of commands; whoever fills it leaves the secrets out.
    pub exec_env: Vec<(OsString, OsString)>,
    /// The shell that runs commands.
    pub exec_shell: ExecShell,
    /// The helper that confines a command before it starts.
    pub exec_guard: Option<ExecGuard>,
    /// Whether commands run where nothing confines them: without a helper, or where the kernel has no Landlock. Else
    /// they are refused there.
    pub exec_unconfined: bool,
    /// What `web_fetch` may reach.
    pub egress: Egress,
    /// The agents that tasks can be given to, each with what it is for; may be empty.
    pub agents: Vec<(String, String)>,
}

/// Why a registry cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// A name that no tool has.
    #[error("unknown tool `{name}`{}", nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    UnknownTool {
        /// The name that was asked for.
        name: String,
        /// The tool whose name is most like it.
        nearest: Option<&'static str>,
    },
    /// A second tool of one name.
    #[error("there already is a tool `{0}`; give one of them another name")]
    Duplicate(String),
    /// A tool whose parameters are not a JSON Schema.
    #[error("the parameters of tool `{tool}` are not a JSON Schema: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// What the schema compiler says.
        reason: String,
    },
    /// A tool whose arguments would take too long to check.
    #[error("the parameters of tool `{tool}` cannot be checked: {source}")]
    TooMuchWork {
        /// The tool.
        tool: String,
        /// Why not.
        #[source]
        source: SchemaRefusal,
    },
    /// The workspace cannot be opened.
    #[error("workspace `{}` cannot be opened: {source}; it must be a folder that exists", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The client of `web_fetch` cannot be made.
    #[error("tool `web_fetch`: {0}")]
    Egress(#[from] EgressError),
}

/// The tools that one agent may call.
#[derive(Default)]
pub struct Tools {
    entries: Vec<Entry>,
    /// The workspace of the built-in tools.
    files: Option<Arc<Workspace>>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    validator: Validator,
    /// Whether its schema is ours, and quick to check.
    is_ours: bool,
}

impl Entry {
    fn name(&self) -> &str {
        &self.tool.definition().function.name
    }
}

impl Tools {
    /// The built-in tools of these names, in their own order whatever the order of `names`.
    ///
    /// # Errors
    /// When a name is unknown, or what a tool needs is not there.
    pub fn builtin(config: ToolEnv, names: &[String]) -> Result<Self, ToolsError> {
        if let Some(name) = names.iter().find(|name| !BUILTIN.contains(&name.as_str())) {
            return Err(ToolsError::UnknownTool { name: name.clone(), nearest: name::nearest(name, &BUILTIN) });
        }
        let workspace = Workspace::open(&config.workspace, &config.protected)
            .map_err(|source| ToolsError::Workspace { path: config.workspace.clone(), source })?;
        let workspace = Arc::new(workspace);
        let exec = exec::Exec {
            workspace: workspace.root().to_owned(),
            env: config.exec_env,
            guard: config.exec_guard,
            unconfined: config.exec_unconfined,
            protected: config.protected,
            shell: config.exec_shell,
        };
        let at = Place { files: workspace, exec, egress: config.egress, agents: config.agents };
        let mut tools = Self { entries: Vec::new(), files: Some(at.files.clone()) };
        for Row(name, make) in ROWS {
            if names.iter().any(|wanted| wanted == name) {
                tools.insert(make(&at)?, true)?;
            }
        }
        Ok(tools)
    }

    /// Adds a tool of an embedder.
    ///
    /// # Errors
    /// When the name is taken or the parameters are not a JSON Schema that can be checked in time.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolsError> {
        self.insert(tool, false)
    }

    fn insert(&mut self, tool: Arc<dyn Tool>, is_ours: bool) -> Result<(), ToolsError> {
        let function = &tool.definition().function;
        if self.get(&function.name).is_some() {
            return Err(ToolsError::Duplicate(function.name.clone()));
        }
        let comes_to = tool_schema::expanded(&function.parameters)
            .map_err(|source| ToolsError::TooMuchWork { tool: function.name.clone(), source })?;
        let validator = Validator::new(&function.parameters, comes_to)
            .map_err(|reason| ToolsError::Schema { tool: function.name.clone(), reason })?;
        self.entries.push(Entry { tool, validator, is_ours });
        Ok(())
    }

    /// Adds [`LOAD_SKILL`] for the skills of `scan` that the model is told of; nothing if there are none. It reads
    /// nothing that is `protected` from reading.
    ///
    /// # Errors
    /// When there is a tool of this name already.
    pub fn add_skills(&mut self, scan: &Scan, protected: &Protected) -> Result<(), ToolsError> {
        let tool = load_skill::LoadSkill::new(scan, Guard::new(protected));
        tool.map_or(Ok(()), |tool| self.insert(Arc::new(tool), true))
    }

    /// The tool of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// What a model is offered: built-in tools first, then added ones in the order of their adding.
    pub fn definitions(&self) -> Vec<&ToolDef> {
        self.entries.iter().map(|entry| entry.tool.definition()).collect()
    }

    /// The name of the tool that a model means by `name`: its own spelling, another case, a known alias
    /// (`bash`, `Read`, `grep`…), or any of these behind a prefix such as `functions.`.
    pub fn canonical(&self, name: &str) -> Option<&str> {
        name::canonical(name, || self.entries.iter().map(Entry::name))
    }

    /// Validates the final arguments of the permitted call and runs it. Every failure is a result for the model.
    pub async fn run(&self, permit: Permit, cancel: &CancellationToken) -> ToolOutput {
        let name = permit.call().tool.clone();
        match self.checked_in_time(&permit, cancel).await {
            Ok(entry) => contain(&name, entry.tool.run(permit, cancel)).await,
            Err(reason) => ToolOutput::error(reason),
        }
    }

    /// Validates the final arguments of the permitted call, for a tool that its host runs by other means.
    ///
    /// # Errors
    /// What is wrong with them, in words for the model.
    pub fn check(&self, permit: &Permit) -> Result<(), String> {
        self.checked(permit).map(|_| ())
    }

    fn checked(&self, permit: &Permit) -> Result<&Entry, String> {
        let entry = self.called(permit)?;
        entry.validator.check(&permit.call().tool, &permit.call().arguments)?;
        Ok(entry)
    }

    async fn checked_in_time(&self, permit: &Permit, cancel: &CancellationToken) -> Result<&Entry, String> {
        let entry = self.called(permit)?;
        let call = permit.call();
        match entry.is_ours {
            true => entry.validator.check(&call.tool, &call.arguments)?,
            false => entry.validator.check_in_time(&call.tool, &call.arguments, cancel).await?,
        }
        Ok(entry)
    }

    fn called(&self, permit: &Permit) -> Result<&Entry, String> {
        let name = &permit.call().tool;
        self.entry(name).ok_or_else(|| format!("tool \"{name}\" not found"))
    }

    /// The file that `send_file` sends for `path`, which a hook `named` or not.
    pub(crate) fn file_to_send(&self, path: &str, named: bool) -> Result<SentFile, ToolError> {
        match &self.files {
            Some(workspace) => send_file::read(workspace, path, named),
            None => Err(ToolError::Argument("there is no workspace to send files from".into())),
        }
    }

    /// What says which files belong to the host; nothing where no workspace is known.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.files.as_deref().map(Workspace::guard)
    }

    /// What is known of the shell text that a call of `name` with `arguments` would run; nothing if it runs none.
    pub(crate) fn shell_facts(&self, name: &str, arguments: &Object) -> Option<ShellFacts> {
        let text = self.get(name)?.shell_text(arguments)?;
        Some(pintle_shell::facts(text))
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name() == name)
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries.iter().map(Entry::name)).finish()
    }
}

/// What is known of the shell text that a call of the built-in tool `name` would let `shell` run in `workspace`;
/// nothing if it runs none. For whoever has no agent at hand.
pub fn shell_facts(name: &str, arguments: &Object, workspace: &Path, shell: &ExecShell) -> Option<ShellFacts> {
    if canonical_builtin(name).unwrap_or(name) != exec::NAME {
        return None;
    }
    let text = exec::shell_text(arguments, workspace, shell.kind())?;
    Some(pintle_shell::facts(text))
}

/// Runs a tool so that its panic is an error result, not the end of the turn.
async fn contain(name: &str, running: impl Future<Output = ToolOutput>) -> ToolOutput {
    match AssertUnwindSafe(running).catch_unwind().await {
        Ok(output) => output,
        Err(_) => ToolOutput::error(format!(
            "tool \"{name}\" failed inside: it panicked, which is a defect of the tool and not of its arguments"
        )),
    }
}

/// One built-in tool: typed arguments in, a result out.
trait BuiltinTool: Send + Sync + 'static {
    /// The arguments, as its schema describes them.
    type Args: DeserializeOwned + Send;
    /// Whether running it changes nothing.
    const READ_ONLY: bool;

    fn definition(&self) -> ToolDef;

    /// Where its calls run.
    fn place(&self) -> CallPlace {
        CallPlace::default()
    }

    /// The text that a shell would run.
    fn shell_text<'a>(&'a self, _arguments: &'a Object) -> Option<ShellText<'a>> {
        None
    }

    fn run(&self, args: Self::Args, cancel: &CancellationToken) -> impl Future<Output = ToolOutput> + Send;
}

/// The bridge from [`BuiltinTool`] to what the engine runs.
struct Permitted<T> {
    definition: ToolDef,
    tool: T,
}

fn builtin<T: BuiltinTool>(tool: T) -> Arc<dyn Tool> {
    Arc::new(Permitted { definition: tool.definition(), tool })
}

impl<T: BuiltinTool> Tool for Permitted<T> {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    fn read_only(&self) -> bool {
        T::READ_ONLY
    }

    fn shell_text<'a>(&'a self, arguments: &'a Object) -> Option<ShellText<'a>> {
        self.tool.shell_text(arguments)
    }

    fn place(&self) -> CallPlace {
        self.tool.place()
    }

    fn run<'a>(&'a self, permit: Permit, cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let call = permit.call();
            match typed(&call.tool, call.arguments.clone()) {
                Ok(args) => self.tool.run(args, cancel).await,
                Err(reason) => ToolOutput::error(reason),
            }
        })
    }
}

/// The arguments as a type. The schema has passed already, so this only refuses what it cannot say, such as `1e400`.
fn typed<A: DeserializeOwned>(tool: &str, arguments: Object) -> Result<A, String> {
    pintle_domain::json::from_value(arguments.into()).map_err(|e| format!("invalid arguments of `{tool}`: {e}"))
}

/// Runs file work on a thread that may block. It is told to stop when the call is cancelled or no longer waited for.
async fn blocking(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<ToolOutput, ToolError> + Send + 'static,
) -> ToolOutput {
    let stop = cancel.child_token();
    let _stop_when_dropped = stop.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&stop)).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => ToolOutput::error(error.to_string()),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => ToolOutput::error(ToolError::Cancelled.to_string()),
        },
    }
}

#[cfg(test)]
mod tests;
