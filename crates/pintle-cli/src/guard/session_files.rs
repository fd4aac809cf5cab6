//! The files in which the host of a session keeps what is said in it.

use std::path::{Path, PathBuf};

use pintle_guard::HostEvent;
use serde::{Deserialize, Serialize};

/// Most files that are known of one session: one for each of its sub-agents.
const MAX_TRANSCRIPTS: usize = 1000;

/// A file in which a host keeps a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostTranscript {
    /// The file.
    pub(crate) file: PathBuf,
    /// The sub-agent that wrote it, by the host's id; none where the session itself did.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// How it was when it was last read.
    #[serde(default)]
    pub(crate) read: Option<FileState>,
}

/// How a file is, as far as that shows whether somebody wrote to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    /// How long it is.
    pub(crate) bytes: u64,
    /// When it was written, in milliseconds since 1970.
    pub(crate) written_ms: i64,
}

/// The files of one session, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct HostTranscripts(Vec<HostTranscript>);

impl HostTranscripts {
    /// All of them, in the order in which they became known.
    pub(crate) fn all(&self) -> impl Iterator<Item = &HostTranscript> {
        self.0.iter()
    }

    /// How `file` was when it was last read.
    pub(crate) fn read(&self, file: &Path) -> Option<FileState> {
        self.0.iter().find(|known| known.file == file)?.read
    }

    /// Takes the files that `event` names.
    pub(super) fn hear(&mut self, event: &HostEvent) {
        for (file, agent) in event.transcripts() {
            let file = PathBuf::from(file);
            if file.is_absolute() {
                self.add(HostTranscript { file, agent: agent.map(str::to_owned), read: None });
            }
        }
    }

    /// Adds a file, or how it was read now.
    pub(super) fn add(&mut self, new: HostTranscript) {
        if let Some(known) = self.0.iter_mut().find(|known| known.file == new.file) {
            known.read = new.read.or(known.read);
        } else if self.0.len() < MAX_TRANSCRIPTS {
            self.0.push(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::json::{Value, json};
    use pintle_guard::HookInput;

    fn read(host: &str, payload: &Value) -> HostEvent {
        let stdin = payload.to_string();
        let input = HookInput { event: None, environment: &[], cwd: "/w", stdin: stdin.as_bytes() };
        pintle_guard::host(host).unwrap().read(&input).unwrap()
    }

    /// The files that are known after `payloads`, with who wrote them.
    fn check(host: &str, payloads: &[Value], expected: &[(&str, Option<&str>)]) {
        let mut files = HostTranscripts::default();
        payloads.iter().for_each(|payload| files.hear(&read(host, payload)));
        let files: Vec<_> = files.all().map(|it| (it.file.to_str().unwrap(), it.agent.as_deref())).collect();
        assert_eq!(files, expected, "{host}");
    }

    #[test]
    fn a_session_keeps_the_files_of_its_sub_agents_with_its_own() {
        let event = |name: &str, more: Value| {
            let mut event = json!({"session_id": "s", "cwd": "/w", "hook_event_name": name});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let tool = |more: Value| {
            let mut call = event("PreToolUse", more);
            call["tool_name"] = "Bash".into();
            call["tool_input"] = json!({"command": "ls"});
            call
        };
        // Codex names the file of whoever makes the call; at the end of a sub-agent, both.
        let (own, child) = ("/c/rollout-s.jsonl", "/c/rollout-a1.jsonl");
        let codex = [
            tool(json!({"transcript_path": own})),
            tool(json!({"transcript_path": child, "agent_id": "a1", "agent_type": "default"})),
            event("SubagentStop", json!({"transcript_path": own, "agent_transcript_path": child, "agent_id": "a1"})),
        ];
        check("codex", &codex, &[(own, None), (child, Some("a1"))]);
        check("codex", &codex[2..], &[(own, None), (child, Some("a1"))]);
        // Claude Code names its own at each call, also of a sub-agent.
        let (own, child) = ("/p/s.jsonl", "/p/s/subagents/agent-a1.jsonl");
        let claude = [
            tool(json!({"transcript_path": own, "agent_id": "a1"})),
            event("SubagentStop", json!({"transcript_path": own, "agent_transcript_path": child, "agent_id": "a1"})),
        ];
        check("claude", &claude, &[(own, None), (child, Some("a1"))]);
    }
}
