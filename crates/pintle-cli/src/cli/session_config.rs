//! Going on with a session under the configuration that it had: with its guards, or by the word of a person.

use pintle_agent::Conversation;
use pintle_domain::id::{SessionId, TenantId};
use pintle_domain::session::{ConfigDrift, Session, WorkedUnder};
use pintle_domain::store::{SessionKey, SessionStore};
use pintle_host::Host;
use pintle_host::config::Loaded;
use pintle_host::session_config::worked_under;

use super::command_line::again;
use super::session::{flags, tenant, word};
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::CliError;

/// `conversation`, to be worked under the configuration of `host`, which its journal keeps. A line says where that was
/// edited since.
///
/// # Errors
/// Other files count than before, or a guard is gone, and nobody said that this is meant.
pub(super) fn continued(
    host: &Host,
    conversation: Conversation,
    config_changed: bool,
) -> Result<Conversation, CliError> {
    let now = worked_under(&host.loaded);
    let drift = conversation.worked_under().map_or(ConfigDrift::None, |before| now.drift(before));
    match (drift, conversation.worked_under()) {
        (ConfigDrift::Another { files, gone }, Some(before)) if !config_changed => {
            return Err(refused(conversation.key.as_str(), (before, &now), (files, &gone)));
        }
        (ConfigDrift::Edited, _) => terminal::note("the configuration was edited since this session last ran"),
        (ConfigDrift::None | ConfigDrift::Another { .. }, _) => {}
    }
    Ok(conversation.under(now))
}

/// The refusal to go on with what was begun behind other guards.
fn refused(key: &str, (before, now): (&WorkedUnder, &WorkedUnder), (files, gone): (bool, &[String])) -> CliError {
    let mut parts = Vec::new();
    if files {
        parts.push(format!("ran under {}, and this is {}", clean(&before.files()), clean(&now.files())));
    }
    if !gone.is_empty() {
        let names: Vec<String> = gone.iter().map(|name| format!("\"{}\"", clean(name))).collect();
        let (what, are) = if gone.len() == 1 { ("guard", "is") } else { ("guards", "are") };
        parts.push(format!("had the {what} {}, which {are} gone", names.join(", ")));
    }
    let error = CliError::failed(format!("session \"{}\" {}", clean(key), parts.join("; it ")));
    let error = match before.config.as_slice() {
        [one] if files => error.hint(format!("to go on as before: `{}`", again(&[("-c", Some(one))]))),
        _ => error,
    };
    error.hint(format!(
        "to go on as it is now, which the session's journal says: `{}`",
        again(&[("--config-changed", None)])
    ))
}

/// Whether other files counted before than those of `loaded`. Of a session that a server worked only names are known.
fn is_of_other_files(loaded: &Loaded, before: &WorkedUnder) -> bool {
    matches!(worked_under(loaded).drift(before), ConfigDrift::Another { files: true, .. })
}

/// Whether several machines may work the session: a server that runs goes on with it by itself.
pub(super) fn is_of_server(sessions: &dyn SessionStore, tenant: &TenantId, session: &SessionId) -> bool {
    let key = SessionKey { tenant: tenant.clone(), session: session.clone() };
    let journal = sessions.journal(&key).unwrap_or_default();
    Session::fold(journal).worked_under().is_some_and(|under| under.config.iter().any(|file| !file.contains('/')))
}

/// The command that goes on with the session `key` under the configuration that it had, wherever it is pasted.
pub(super) fn resume_line(global: &Global, loaded: &Loaded, sessions: &dyn SessionStore, key: &SessionId) -> String {
    let resume = format!("pintle sessions resume {}", word(key.as_str()));
    let full = SessionKey { tenant: tenant(), session: key.clone() };
    // A session that cannot be read has nothing more to say here; going on with it says why.
    let session = Session::fold(sessions.journal(&full).unwrap_or_default());
    let before = match session.worked_under() {
        Some(before) if is_of_other_files(loaded, before) => before.config.clone(),
        Some(_) | None => return format!("{resume}{}", flags(global)),
    };
    let home = flags(&Global { config: None, ..global.clone() });
    match before.as_slice() {
        [one] => format!("{resume} -c {}{home}", word(one)),
        [.., found] => {
            let folder = std::path::Path::new(found).parent().map(|folder| folder.display().to_string());
            format!("cd {} && {resume}{home}", word(&folder.unwrap_or_default()))
        }
        [] => resume,
    }
}
