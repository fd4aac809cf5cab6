//! What a host told a hook, in one form for all hosts.

use pintle_domain::id::SessionId;
use pintle_domain::json::{MAX_DEPTH, MAX_VALUES, Object, Value};

use crate::tools::ToolClass;

/// What reached the hook of a host.
#[derive(Clone, Copy, Debug)]
pub struct HookInput<'a> {
    /// The event by its native name, where the installed entry says it (`--event E`).
    pub event: Option<&'a str>,
    /// The environment of the hook, as far as [`GuardHost::environment`](crate::GuardHost::environment) lets it pass.
    pub environment: &'a [(String, String)],
    /// The folder that the hook was started in.
    pub cwd: &'a str,
    /// The bytes of standard input.
    pub stdin: &'a [u8],
}

/// The longest input that is read: no payload seen came near a megabyte, and a whole file may stand in one.
pub const MAX_INPUT_BYTES: usize = 16 * 1024 * 1024;

/// Input that no event can be read from. The event is then denied by [`unread_deny`](crate::unread_deny).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// More than [`MAX_INPUT_BYTES`].
    #[error("the input is longer than {MAX_INPUT_BYTES} bytes")]
    TooLong(usize),
    /// Not UTF-8.
    #[error("the input is not UTF-8")]
    NotText,
    /// More than [`MAX_VALUES`].
    #[error("the input holds more than {MAX_VALUES} JSON values")]
    TooMany,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("the input is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Not one JSON object.
    #[error("the input is not one JSON object: {0}")]
    NotJson(String),
    /// A name that stands twice in one object.
    #[error("`{0}` stands twice in one object")]
    Twice(String),
    /// A member that the event cannot be without.
    #[error("`{0}` is missing or not of its type")]
    Member(&'static str),
    /// It says that it is another event than the one that the hook was started for.
    #[error("it is the event `{0}`, and the hook was started for another one")]
    OtherEvent(String),
    /// An event that a hook can stop, in a form that nobody knows.
    #[error("what the event `{0}` is about is not known")]
    Unknown(String),
}

/// One event of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostEvent {
    /// The host, by its id.
    pub host: &'static str,
    /// The event by its native name.
    pub event: String,
    /// The host's own id of the session; empty where it said none.
    pub session: String,
    /// The host's id of the prompt or turn, if it has one; else the door counts prompts.
    pub turn: Option<String>,
    /// The host's id of the call, if it has one; else the door makes one of session, tool and arguments, and counts.
    pub call: Option<String>,
    /// Who acts, where it is known to be a sub-agent.
    pub subagent: Option<Subagent>,
    /// The folder that the host works in.
    pub cwd: String,
    /// The file in which the host keeps the conversation, if it said so.
    pub transcript: Option<String>,
    /// Whether a person sits before the host, as far as it says.
    pub attended: Option<bool>,
    /// What happened.
    pub what: HostWhat,
    /// Members that have no place above, as they came; secrets left out.
    pub host_raw: Object,
}

/// The member in which hosts say where the conversation of a sub-agent is kept that has ended.
const AGENT_TRANSCRIPT: &str = "agent_transcript_path";

/// Whether the name of `file` has `id` in it.
fn is_named(file: &str, id: &str) -> bool {
    file.rsplit('/').next().is_some_and(|name| name.contains(id))
}

impl HostEvent {
    /// The session by the name under which Pintle keeps it.
    pub fn session_id(&self) -> SessionId {
        SessionId::new(format!("{}:{}", self.host, self.session))
    }

    /// The files in which the host keeps what is said in its session, each with the sub-agent that it is about: none for
    /// the session itself. Of a sub-agent some name its own file at every event, some its parent's, and its own at the end.
    pub fn transcripts(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let agent = self.subagent.as_ref().and_then(|agent| agent.id.as_deref()).filter(|id| !id.is_empty());
        let of = move |file| (file, agent.filter(|id| is_named(file, id)));
        let own = self.host_raw.get(AGENT_TRANSCRIPT).and_then(Value::as_str);
        self.transcript.as_deref().map(of).into_iter().chain(own.map(move |file| (file, agent)))
    }

    /// The tool call that the event is about, before or after it ran.
    pub fn tool(&self) -> Option<&HostCall> {
        match &self.what {
            HostWhat::Tool(tool) | HostWhat::ToolDone { tool, .. } | HostWhat::Permission { tool } => Some(tool),
            HostWhat::SessionStart
            | HostWhat::SessionEnd
            | HostWhat::Prompt { .. }
            | HostWhat::PromptSent { .. }
            | HostWhat::SubagentStart
            | HostWhat::SubagentStop { .. }
            | HostWhat::Stop { .. }
            | HostWhat::BeforeModel { .. }
            | HostWhat::AfterModel { .. }
            | HostWhat::ConfigChange { .. }
            | HostWhat::Other => None,
        }
    }
}

/// A sub-agent, as far as its host names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subagent {
    /// Its id.
    pub id: Option<String>,
    /// Its kind or name.
    pub kind: Option<String>,
    /// The id of the agent that started it.
    pub parent: Option<String>,
}

/// What happened at the host.
#[derive(Clone, Debug, PartialEq)]
pub enum HostWhat {
    /// A session began.
    SessionStart,
    /// A session ended.
    SessionEnd,
    /// A person, or the host in their name, says something to the model.
    Prompt {
        /// The text; parts are joined by line breaks.
        text: String,
    },
    /// A prompt with what the host put around it, the last moment before it is sent (Copilot).
    PromptSent {
        /// The text as it will be sent.
        text: String,
    },
    /// A tool is about to run.
    Tool(HostCall),
    /// The host is about to ask a person whether a tool may run.
    Permission {
        /// The call, which some hosts name differently here.
        tool: HostCall,
    },
    /// A tool has run.
    ToolDone {
        /// The call.
        tool: HostCall,
        /// What came of it, in the host's shape.
        result: Value,
        /// Whether the host calls it a failure.
        failed: bool,
    },
    /// A sub-agent begins.
    SubagentStart,
    /// A sub-agent is done.
    SubagentStop {
        /// Its last words, if the host says them.
        text: Option<String>,
        /// Whether it goes on only because a hook wanted it.
        again: bool,
    },
    /// The agent wants to end its turn.
    Stop {
        /// Its last words, if the host says them.
        text: Option<String>,
        /// Whether it goes on only because a hook wanted it.
        again: bool,
    },
    /// The model is about to be asked (Gemini).
    BeforeModel {
        /// The request.
        request: Value,
    },
    /// The model answers, or a part of its answer is there (Gemini).
    AfterModel {
        /// The request.
        request: Value,
        /// The answer.
        response: Value,
    },
    /// A file of the host's configuration changed.
    ConfigChange {
        /// Which layer it is.
        source: String,
        /// The file, if the host says it.
        path: Option<String>,
    },
    /// An event of no checkpoint; its members are all in `host_raw`.
    Other,
}

impl HostWhat {
    /// Whether an agent wants to end here.
    pub const fn is_stop(&self) -> bool {
        matches!(self, Self::Stop { .. } | Self::SubagentStop { .. })
    }

    /// Whether a tool has run.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::ToolDone { .. })
    }
}

/// One tool call of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCall {
    /// The name that the host has for it.
    pub native: String,
    /// Pintle's name for it, `mcp_SERVER_TOOL` for one of an MCP server, else the native one.
    pub canonical: String,
    /// What it can do.
    pub class: ToolClass,
    /// Its arguments, as the host has them.
    pub arguments: Object,
}
