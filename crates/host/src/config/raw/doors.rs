//! The doors through which agents of others come, and what is demanded of those agents.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Doors through which agents of others come.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawDoors {
    /// The vendors of models behind `pintle guard serve --http` and `pintle serve`, by name: `anthropic`, `gemini` or
    /// `openai`.
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
    /// Where a call that needs a person is asked about: `hold` (default): by `pintle approvals` or the console, while the
    /// client waits; `client`: by the client's own dialogue as well, if it has elicitation.
    pub ask: Option<String>,
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
    /// The variable with the key that `pintle serve` tells the vendor, for clients that say who they are in
    /// `X-Pintle-Key`. Without it they have no door.
    pub key_env: Option<String>,
    /// The tenant whose hooks `pintle serve` asks for clients of its own machine that bring a key of the vendor's, by its
    /// slug. Without it they have no door.
    pub tenant: Option<String>,
    /// How much may be spent here. Requests beyond it are refused before they leave; those under way go on.
    pub budget: Option<RawDoorBudget>,
    /// What models cost, by their name, or by how it begins where a `*` ends it: `"gpt-5*"`. Needed where the budget is in
    /// dollars.
    pub prices: Option<BTreeMap<String, RawDoorPrice>>,
}

/// How much may be spent at a vendor. Default: as much as anybody likes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawDoorBudget {
    /// Tokens that one session may read and write.
    pub session_tokens: Option<u64>,
    /// Dollars that one session may cost.
    pub session_usd: Option<f64>,
    /// Tokens that one key may read and write in a day of UTC.
    pub day_tokens: Option<u64>,
    /// Dollars that one key may cost in a day of UTC.
    pub day_usd: Option<f64>,
}

/// What a million tokens of a model cost, in dollars.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawDoorPrice {
    /// Those that it reads.
    pub input_usd: f64,
    /// Those of them that it has read before. Default: as the others.
    pub cached_usd: Option<f64>,
    /// Those that it writes.
    pub output_usd: f64,
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
    /// The gateway whose rules hold here beside those of this machine, which cannot weaken them.
    pub rules_from: Option<RawRulesFrom>,
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

/// The gateway of a team.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawRulesFrom {
    /// Where it is reached, such as `https://pintle.example.org`; `http` only on this machine.
    pub url: Option<String>,
    /// The variable that holds an API key of the gateway with the scope `operator.guard`. A daemon that a hook starts has
    /// no such variable.
    pub key_env: Option<String>,
    /// A file with that key, which only its owner may read, in place of `key_env`.
    pub key_file: Option<String>,
    /// The public key that the gateway signs with, `ed25519:ID:BASE64`. Default: the key of the first rules that come is
    /// kept, and no other counts from then on.
    pub signer: Option<String>,
}
