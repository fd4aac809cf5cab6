//! Events that cannot be read: they are refused, and the record says so of the session that they name.

use std::path::PathBuf;
use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::json::Object;
use pintle_guard::{AskWay, GuardHost, HostEvent, HostWhat, Malformed};
use pintle_hook::frame::Ruled;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Asked, Desk, FIRST_WORD, WorkedEvent};
use crate::guard::sessions::Place;

/// The session, or the turn, of an event that does not say its own.
const UNKNOWN: &str = "unknown";

/// An event that could not be read.
struct Unread<'a> {
    host: &'static GuardHost,
    event: &'a HostEvent,
    /// What the record says of it.
    text: &'a str,
    /// Whether the host could be told a refusal.
    is_refused: bool,
}

impl Desk {
    /// Refuses what no event of `host` can be read from, and keeps why.
    pub(super) async fn unread(&self, host: &'static GuardHost, why: &Malformed, asked: &Asked<'_>) -> Ruled {
        let question = asked.question;
        tracing::warn!("{} {}: not read: {why}", question.host, question.event);
        let stdout = pintle_guard::unread_deny(&question.host, &question.event, why);
        let event = HostEvent {
            host: host.id,
            event: question.event.clone(),
            session: pintle_guard::session_said(&question.payload).unwrap_or_else(|| UNKNOWN.to_owned()),
            turn: None,
            call: None,
            subagent: None,
            cwd: question.cwd.clone(),
            transcript: None,
            attended: None,
            what: HostWhat::Other,
            host_raw: Object::new(),
        };
        let text = format!("the guard could not read the event `{}`: {why}", question.event);
        let limit = FIRST_WORD.min(Duration::from_millis(question.deadline_ms) / 2);
        let unread = Unread { host, event: &event, text: &text, is_refused: !stdout.is_empty() };
        if timeout(limit, self.keep_unread(&unread, asked)).await.is_err() {
            tracing::warn!("{}: that it was not read could not be kept in time", question.event);
        }
        Ruled { exit: 0, stdout: stdout.into_bytes(), stderr: format!("pintle: refused: {why}\n").into_bytes() }
    }

    /// Keeps what is to be said of `unread`.
    async fn keep_unread(&self, unread: &Unread<'_>, asked: &Asked<'_>) {
        let Unread { host, event, text, is_refused } = *unread;
        let place = self.place_of_unread(event);
        let in_force = match self.folders.of(&place.workspace, false).await {
            Ok(in_force) => in_force,
            Err(error) => {
                tracing::warn!("{}: {error}", place.workspace.display());
                return;
            }
        };
        let (news, _nobody_rings) = mpsc::channel(1);
        let version = self.sessions.version(event.session_id().as_str());
        let cancel = asked.gone.child_token();
        let worked = WorkedEvent { desk: self, host, event, place: &place, cancel, version, way: AskWay::Hold };
        let hooks = worked.hooks(&in_force, news);
        if is_refused {
            hooks.refused(CheckpointKind::PreToolUse, text);
        } else {
            hooks.noted(CheckpointKind::PreToolUse, text);
        }
    }

    /// Where the record of an event stands that could not be read: it begins no session and no turn.
    fn place_of_unread(&self, event: &HostEvent) -> Place {
        let name = event.session_id().to_string();
        let session = self.sessions.of(&name);
        Place {
            turn: self.sessions.turn(&name).unwrap_or_else(|| format!("{name}:{UNKNOWN}")),
            call: None,
            workspace: session.map_or_else(|| PathBuf::from(&event.cwd), |session| session.folder),
            is_new: false,
            is_moved: false,
            is_new_turn: false,
            is_first_turn: false,
            goes_on: false,
            turn_took: Duration::ZERO,
        }
    }
}
