//! The doors through which agents of others come, and what is demanded of those agents.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Doors through which agents of others come.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawDoors {
    /// The vendors of models behind `pintle guard serve --http`, by name: `anthropic`, `gemini` or `openai`.
    pub model: Option<BTreeMap<String, RawModelDoor>>,
    /// The MCP servers behind `pintle mcp proxy`, by the name that `--name` gives them.
    pub tool: Option<BTreeMap<String, RawToolDoor>>,
}

/// An MCP server behind the tool door.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawToolDoor {
    /// The tools that clients see and may call, by the server's own names: globs. Default: all.
    pub tools: Option<Vec<String>>,
    /// Tools of those that clients neither see nor call all the same: globs. Default: none.
    pub hide: Option<Vec<String>>,
    /// What becomes of a tool whose description or schema changed since it was first used: `ask` (default): it is withheld
    /// until a person accepts it with `pintle mcp accept`; `allow`: the change is recorded, and the tool stays.
    pub on_change: Option<String>,
    /// How long a call waits for a person, in milliseconds; default 600000, at most a day.
    pub ask_timeout_ms: Option<u64>,
}

/// A vendor of models behind the model door.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawModelDoor {
    /// Where it is reached, as its own libraries write it. Default: the vendor's own address.
    pub base_url: Option<String>,
    /// How a refused call is told: `answer` (default): the door answers the model; `text`: a sentence in its place.
    pub deny: Option<String>,
    /// The tools that may run at the vendor, where no hook sees their calls, such as `web_search`. Default: none.
    pub hosted: Option<Vec<String>>,
}

/// What `pintle guard` demands of coding agents.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawGuard {
    /// The classes of tools that an agent must let be held, such as `["shell", "file_write"]`: an agent that does not is
    /// refused every prompt and call. `shell`, `file_write`, `file_read`, `web`, `mcp`, `subagent` or `other`. Default:
    /// none.
    pub require: Option<Vec<String>>,
    /// What differs for single agents, by the name that `pintle guard --host` gives them.
    pub hosts: Option<BTreeMap<String, RawGuardedHost>>,
}

/// What differs for one coding agent under guard.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawGuardedHost {
    /// The agent of this configuration that it stands for: its hooks, its `ask` and its approvers count. Default: the one
    /// that is used where none is named.
    pub agent: Option<String>,
    /// How long it waits for a ruling at most, a person's answer included: `500ms`, `8s` or `5m`, at most what its own
    /// settings give a hook. Default: that.
    pub deadline: Option<String>,
    /// What becomes of a call that needs a person: `host`: the agent asks the one who sits before it, where it can; `hold`:
    /// the call waits for an answer from elsewhere; `deny`: it is refused at once in the name of its approval. Default:
    /// `host` where the agent says that somebody is there, else `hold`.
    pub ask: Option<String>,
    /// The same where nobody sits before it: `hold` (default) or `deny`.
    pub headless_ask: Option<String>,
    /// What its hooks say when no daemon can be reached or started: `deny` (default), or `allow`, which lets everything
    /// run unguarded and unrecorded then. It counts from the next `pintle guard install` on.
    pub on_daemon_away: Option<String>,
}
