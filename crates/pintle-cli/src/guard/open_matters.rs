//! What is open in the sessions of hosts between two of their events: calls that were cleared and have not run, and what
//! hooks made of a prompt that is yet to be sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pintle_domain::json::Object;
use pintle_guard::tools::{paths_in, texts_in};
use pintle_guard::{GuardHost, HostCall};

/// Most sessions whose open matters are known at once; of more, the one that was silent for longest is forgotten. Its next
/// question is then a new one.
const MAX_SESSIONS: usize = 500;

/// Most calls of one session that are open at once.
const MAX_CALLS: usize = 100;

/// How a call stands that was cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallStanding {
    /// Nothing is said against it: the host's own permissions decide.
    Cleared,
    /// A person said yes to it.
    Approved,
    /// The host was told to ask its person, in the name of this approval.
    Asked(String),
    /// It was refused.
    Refused(String),
}

/// A call that was cleared.
#[derive(Clone, Debug)]
pub(crate) struct ClearedCall {
    /// Its id.
    pub(crate) id: String,
    /// The call as it was asked about.
    pub(crate) tool: HostCall,
    /// Its arguments as hooks left them, where they changed them.
    pub(crate) changed: Option<Object>,
    /// How it stands.
    pub(crate) standing: CallStanding,
}

/// What hooks made of a prompt that the host will say once more before it sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpenPrompt {
    /// Another text in the place of `before`.
    Changed {
        /// What the person said.
        before: String,
        /// What is to be sent.
        text: String,
    },
    /// A text beside it.
    Added(String),
}

impl OpenPrompt {
    /// What is sent in the place of `whole`, which has the prompt in it and what the host put around.
    pub(crate) fn sent(self, whole: &str) -> String {
        match self {
            Self::Changed { before, text } if !before.is_empty() && whole.contains(&before) => {
                whole.replace(&before, &text)
            }
            // Where what was said cannot be found, nothing of it leaves.
            Self::Changed { text, .. } => text,
            Self::Added(text) => format!("{whole}\n\n{text}"),
        }
    }
}

#[derive(Debug)]
struct OpenSession {
    calls: VecDeque<ClearedCall>,
    prompt: Option<OpenPrompt>,
    /// What the model has said so far in the answer that is coming in.
    answer: String,
    used: Instant,
}

/// What is open, by session.
#[derive(Debug, Default)]
pub(crate) struct OpenMatters(Mutex<BTreeMap<String, OpenSession>>);

impl OpenMatters {
    fn with<T>(&self, session: &str, work: impl FnOnce(&mut OpenSession) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SESSIONS && !all.contains_key(session) {
            let oldest = all.iter().min_by_key(|(_, it)| it.used).map(|(name, _)| name.clone());
            oldest.map(|oldest| all.remove(&oldest));
        }
        let fresh =
            || OpenSession { calls: VecDeque::new(), prompt: None, answer: String::new(), used: Instant::now() };
        let it = all.entry(session.to_owned()).or_insert_with(fresh);
        it.used = Instant::now();
        work(it)
    }

    /// Takes notice of a call that was cleared.
    pub(crate) fn cleared(&self, session: &str, call: ClearedCall) {
        self.with(session, |it| {
            if it.calls.len() >= MAX_CALLS {
                it.calls.pop_front();
            }
            it.calls.push_back(call);
        });
    }

    /// How the newest call stands that `tool` of `host` may be; nothing where none was cleared. Some hosts name a call
    /// otherwise when they are about to ask: such a one is known by its class and its commands or paths, and then only a
    /// no counts for it as it is.
    pub(crate) fn standing(&self, session: &str, host: &GuardHost, tool: &HostCall) -> Option<CallStanding> {
        self.with(session, |it| {
            let newest = |is_it: &dyn Fn(&ClearedCall) -> bool| it.calls.iter().rev().find(|call| is_it(call));
            if let Some(call) = newest(&|call| is_same(call, tool)) {
                return Some(call.standing.clone());
            }
            let standing = newest(&|call| is_alike(host, call, tool))?.standing.clone();
            Some(match standing {
                CallStanding::Approved => CallStanding::Cleared,
                CallStanding::Cleared | CallStanding::Asked(_) | CallStanding::Refused(_) => standing,
            })
        })
    }

    /// How the call `id` stood, which has run: it is open no longer.
    pub(crate) fn done(&self, session: &str, id: &str) -> Option<CallStanding> {
        self.with(session, |it| {
            let at = it.calls.iter().rposition(|call| call.id == id)?;
            it.calls.remove(at).map(|call| call.standing)
        })
    }

    /// Keeps what hooks made of the newest prompt, until it is sent; nothing where they left it.
    pub(crate) fn keep_prompt(&self, session: &str, prompt: Option<OpenPrompt>) {
        self.with(session, |it| it.prompt = prompt);
    }

    /// What hooks made of the prompt that is being sent.
    pub(crate) fn take_prompt(&self, session: &str) -> Option<OpenPrompt> {
        self.with(session, |it| it.prompt.take())
    }

    /// Whether a prompt that hooks changed was never sent as they left it.
    pub(crate) fn has_lost_prompt(&self, session: &str) -> bool {
        self.with(session, |it| matches!(it.prompt, Some(OpenPrompt::Changed { .. })))
    }

    /// Adds a part to the answer that is coming in; all of it, where this is `last`.
    pub(crate) fn answered(&self, session: &str, part: &str, last: bool) -> Option<String> {
        self.with(session, |it| {
            it.answer.push_str(part);
            last.then(|| std::mem::take(&mut it.answer))
        })
    }

    /// Forgets a session that ended, or an answer that never came to its end.
    pub(crate) fn ended(&self, session: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// Forgets what is there of an answer: another one begins.
    pub(crate) fn asks_model(&self, session: &str) {
        self.with(session, |it| it.answer.clear());
    }
}

fn is_same(call: &ClearedCall, tool: &HostCall) -> bool {
    let arguments = [Some(&call.tool.arguments), call.changed.as_ref()];
    call.tool.canonical == tool.canonical && arguments.contains(&Some(&tool.arguments))
}

/// Whether `tool` does something of the same class with the same commands or files as `call`.
fn is_alike(host: &GuardHost, call: &ClearedCall, tool: &HostCall) -> bool {
    let holds = |native: &str| host.tool(native).map(|row| row.holds).unwrap_or_default();
    let about = |native: &str, arguments: &Object| -> Vec<String> {
        let holds = holds(native);
        let texts = texts_in(holds, arguments).into_iter().chain(paths_in(holds, arguments));
        texts.map(str::to_owned).collect()
    };
    let wanted = about(&tool.native, &tool.arguments);
    let is_about = |arguments: &Object| {
        let there = about(&call.tool.native, arguments);
        wanted.iter().all(|text| there.contains(text))
    };
    call.tool.class == tool.class
        && !wanted.is_empty()
        && (is_about(&call.tool.arguments) || call.changed.as_ref().is_some_and(is_about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::json::json;
    use pintle_guard::tools::ToolClass;

    fn tool(native: &str, canonical: &str, arguments: &pintle_domain::json::Value) -> HostCall {
        let class = if canonical == "exec" { ToolClass::Shell } else { ToolClass::FileWrite };
        let arguments = arguments.as_object().unwrap().clone();
        HostCall { native: native.into(), canonical: canonical.into(), class, arguments }
    }

    #[test]
    fn a_question_of_the_host_is_about_the_newest_call_like_it() {
        let (open, host) = (OpenMatters::default(), pintle_guard::host("copilot").unwrap());
        let cleared = |id: &str, tool: HostCall, standing: CallStanding| {
            open.cleared("s", ClearedCall { id: id.into(), tool, changed: None, standing });
        };
        let make = |more: &str| tool("bash", "exec", &json!({"command": "make", "description": more}));
        let write = |path: &str| tool("create", "write_file", &json!({"path": path, "file_text": "x"}));
        let asked = |path: &str| tool("edit", "edit_file", &json!({"file_path": path, "diff": "+x"}));
        cleared("1", make("x"), CallStanding::Approved);
        cleared("2", write("/a"), CallStanding::Approved);
        cleared("3", write("/b"), CallStanding::Refused("no".into()));
        cleared("4", write("/c"), CallStanding::Asked("7".into()));
        for (tool, standing) in [
            (make("x"), Some(CallStanding::Approved)),
            (make("y"), Some(CallStanding::Cleared)),
            (asked("/a"), Some(CallStanding::Cleared)),
            (asked("/b"), Some(CallStanding::Refused("no".into()))),
            (asked("/c"), Some(CallStanding::Asked("7".into()))),
            (asked("/d"), None),
            (tool("bash", "exec", &json!({"command": "make install"})), None),
            (tool("other", "other", &json!({})), None),
        ] {
            assert_eq!(open.standing("s", host, &tool), standing, "{tool:?}");
        }
        assert_eq!(open.standing("t", host, &make("x")), None, "another session");
        assert_eq!(open.done("s", "1"), Some(CallStanding::Approved));
        assert_eq!((open.done("s", "1"), open.standing("s", host, &make("x"))), (None, None));
    }

    #[test]
    fn a_changed_prompt_is_sent_changed_or_not_at_all() {
        let changed = |before: &str| OpenPrompt::Changed { before: before.into(), text: "bye".into() };
        assert_eq!(changed("hello").sent("<now>\n\nhello"), "<now>\n\nbye");
        assert_eq!(changed("hello").sent("<now>\n\nhel lo"), "bye");
        assert_eq!(changed("").sent("<now>"), "bye");
        assert_eq!(OpenPrompt::Added("more".into()).sent("hello"), "hello\n\nmore");
    }

    #[test]
    fn an_answer_is_judged_as_a_whole() {
        let open = OpenMatters::default();
        assert_eq!(open.answered("s", "a", false), None);
        assert_eq!(open.answered("s", "b", true).as_deref(), Some("ab"));
        assert_eq!(open.answered("s", "c", false), None);
        open.asks_model("s");
        assert_eq!(open.answered("s", "d", true).as_deref(), Some("d"));
    }
}
