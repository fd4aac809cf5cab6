//! The record of a rule as people write it: over the API, on the command line, in files.
//!
//! A record goes through numbered rows, in order, and the first thing that is wrong is what its writer is told. Row 0
//! is `typed`: known members of the right types. The others are `rows`: 1 the event, 2 the `scope`, 3 the
//! `handler` with its `config`, 4 words and times, 5 defaults, 6 conditions and sizes. A change ([`patch`]) is laid
//! over the record that is there, and the whole goes the same way.

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId, agent_uuid};
use pintle_domain::json::{Object, Value};
use pintle_domain::rule::{Edition, Fallback, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::Tenant;

mod config;
mod draft;
mod file;
mod handler;
mod patch;
mod rows;
mod scope;
mod secret;
mod setting;
mod typed;
mod warning;

#[cfg(test)]
mod tests;

pub use config::{
    CommandConfig, DEFAULT_INVOCATIONS, DEFAULT_MODEL, HandlerConfig, HttpConfig, MAX_INVOCATIONS, OnInjection,
    PromptConfig, ScriptConfig,
};
pub use file::{FileRecordError, file, records};
pub use handler::{allowed, allowed_for};
pub use patch::patch;
pub use rows::room;
pub use secret::{MASK, SEALED, map_secrets, masked, secrets, shown, with_kept_secrets};
pub use setting::NO_MASTER;

use draft::Draft;
use secret::SealedInput;
use setting::Setting;

/// Longest name, in characters: the width of its column.
pub const MAX_NAME_CHARS: usize = 255;
/// Longest template of a prompt hook, in bytes: half of what its judge is shown of a call.
pub const MAX_TEMPLATE_BYTES: usize = 16 * 1024;
/// Longest command, in bytes: a quarter of the longest argument that Linux hands to a program.
pub const MAX_COMMAND_BYTES: usize = 32 * 1024;
/// Longest script, in bytes. Source: agent hooks, validation.
pub const MAX_SOURCE_BYTES: usize = 32 * 1024;
/// Most agents of one hook: a rule for more of them is one for the tenant.
pub const MAX_AGENTS: usize = 256;
/// Most hooks of one tenant: they are all compiled and in memory.
pub const MAX_HOOKS: usize = 1_000;
/// The words with which a hook is off that nobody switched off.
const OWN_REASONS: [&str; 4] = ["breaker", "config", "edition", "no_agents"];
/// Longest time that one call of a handler may take, in milliseconds: what a whole chain has.
pub const MAX_TIMEOUT_MS: u32 = 10_000;
/// That time unless the record says otherwise.
pub const DEFAULT_TIMEOUT_MS: u32 = 5_000;

/// What a record is read against.
#[derive(Clone, Copy)]
pub struct RecordContext<'a> {
    /// The tenant of whoever writes.
    pub tenant: &'a TenantId,
    /// Whether they may write what is about every tenant.
    pub is_master: bool,
    /// The kind of host.
    pub edition: Edition,
    /// The way by which the record comes.
    pub lang: Lang,
    /// The configured agents of every tenant.
    pub agents: &'a [ConfiguredAgent],
    /// All tenants; only files name them.
    pub tenants: &'a [Tenant],
    /// How many hooks a tenant has beside those that are read now.
    pub held: &'a dyn Fn(&TenantId) -> usize,
    /// What a new row begins with.
    pub new_row: &'a NewRow,
    /// What cannot be judged without the rest of the host.
    pub checks: Checks<'a>,
}

/// What a new row begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// Its id; a file's records have their own.
    pub id: HookId,
    /// The moment, RFC 3339, UTC.
    pub at: String,
    /// Who makes it.
    pub by: Option<String>,
}

/// What cannot be judged without the rest of the host. Each says what is wrong.
#[derive(Clone, Copy)]
pub struct Checks<'a> {
    /// Whether an http hook of this tenant may have this URL, by its text alone.
    pub url: &'a dyn Fn(&TenantId, &str) -> Result<(), String>,
    /// Whether an http hook may send this header.
    pub header: &'a dyn Fn(&str, &str) -> Result<(), String>,
    /// Whether this can sign requests.
    pub signing_secret: &'a dyn Fn(&str) -> Result<(), String>,
    /// Whether this script compiles.
    pub script: &'a dyn Fn(&str) -> Result<(), String>,
}

/// By which way a record comes, and so how it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// A request. Agents are UUIDs.
    Api,
    /// The command line. Agents may be keys.
    Cli,
    /// A file of rules. Agents may be keys, `name` is required, `tenant` names the owner.
    File,
    /// Rows taken over from another installation: what is encrypted stays so.
    Import,
}

impl Lang {
    /// Whether agents may be named by their keys.
    fn takes_keys(self) -> bool {
        match self {
            Self::Cli | Self::File => true,
            Self::Api | Self::Import => false,
        }
    }
}

/// A configured agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredAgent {
    /// Whose.
    pub tenant: TenantId,
    /// Its name in the configuration.
    pub key: String,
    /// Its id in records.
    pub uuid: String,
}

impl ConfiguredAgent {
    /// The agent `key` of `tenant`.
    pub fn new(tenant: &TenantId, key: &str) -> Self {
        Self { tenant: tenant.clone(), key: key.to_owned(), uuid: agent_uuid(tenant, key) }
    }
}

/// A record that is in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidRecord {
    /// Its row. Secrets are as they were written.
    pub hook: Rule,
    /// Settings that are allowed and probably not meant, one sentence each.
    pub warnings: Vec<String>,
}

/// Why a record is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecordError {
    /// The kind, for programs.
    pub code: RecordErrorCode,
    /// The whole text, for people.
    pub message: String,
}

impl RecordError {
    fn new(code: RecordErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Something is wrong in rows 1 to 6.
    fn hook(message: impl std::fmt::Display) -> Self {
        Self::new(RecordErrorCode::InvalidRequest, format!("hook: {message}"))
    }

    /// A member is unknown or of another type.
    fn config(message: impl std::fmt::Display) -> Self {
        Self::new(RecordErrorCode::InvalidRequest, format!("invalid request: invalid config: {message}"))
    }
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordErrorCode {
    /// The record is wrong.
    InvalidRequest,
    /// The writer may not.
    Unauthorized,
    /// What it names is not there, or not theirs.
    NotFound,
    /// This host does not do it as it is set up.
    FailedPrecondition,
}

impl RecordErrorCode {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::NotFound => "NOT_FOUND",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
        }
    }
}

/// Reads one record: a new hook.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read(value: &Value, record_context: &RecordContext<'_>) -> Result<ValidRecord, RecordError> {
    let missing = || RecordError::new(RecordErrorCode::InvalidRequest, "invalid request: missing config payload");
    let draft = Draft::of_record(value.as_object().ok_or_else(missing)?, record_context.lang)?;
    let sealed = match record_context.lang {
        Lang::Import => SealedInput::Taken,
        Lang::Api | Lang::Cli | Lang::File => SealedInput::Refused,
    };
    let setting =
        Setting { record_context, tenant: record_context.tenant, is_master: record_context.is_master, sealed };
    let read = rows::validate(&draft, &setting, blank(record_context.new_row))?;
    room((record_context.held)(&read.hook.tenant_id))?;
    Ok(read)
}

/// Whether `reason` is a word with which Pintle itself says why a hook is off.
pub fn is_own_reason(reason: &str) -> bool {
    OWN_REASONS.contains(&reason)
}

/// Looks at a row once more, before it is switched on. Whoever does that need not have the right to write it: switching
/// on what an owner wrote is theirs who may switch.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check(hook: &Rule, record_context: &RecordContext<'_>) -> Result<Vec<String>, RecordError> {
    let draft = Draft::of_row(hook)?;
    let record_context = &RecordContext { lang: Lang::Api, ..*record_context };
    let setting = Setting { record_context, tenant: &hook.tenant_id, is_master: true, sealed: SealedInput::Taken };
    Ok(rows::validate(&draft, &setting, hook.clone())?.warnings)
}

/// The source that `word` names in rows; older ones have other words for people.
pub fn source(word: &str) -> Option<Source> {
    match word {
        "ui" | "api" | "seed" => Some(Source::User),
        _ => Source::named(word),
    }
}

/// A row without content.
fn blank(new_row: &NewRow) -> Rule {
    Rule {
        id: new_row.id.clone(),
        tenant_id: TenantId::default_tenant(),
        agent_ids: Vec::new(),
        event: CheckpointKind::PreToolUse,
        handler_type: HandlerType::Script,
        scope: HookScope::Tenant,
        name: String::new(),
        config: Object::new(),
        matcher: String::new(),
        if_expr: String::new(),
        timeout_ms: DEFAULT_TIMEOUT_MS,
        on_timeout: Fallback::Block,
        priority: 0,
        enabled: true,
        version: 1,
        source: Source::User,
        may_rewrite: false,
        breaker: BreakerPolicy::default(),
        on_trip: Fallback::Block,
        tripped_at: None,
        disabled_reason: String::new(),
        metadata: Object::new(),
        created_by: new_row.by.clone(),
        created_at: new_row.at.clone(),
        updated_at: new_row.at.clone(),
    }
}

/// A text in quotes, on one line. One that is too long is only begun.
fn quoted(text: &str) -> String {
    /// More than any name or word that is meant.
    const MAX_SHOWN_CHARS: usize = 256;
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}
