//! What whoever waits for the answer of a run hears of it: as it happens, and again for whoever comes later. Pure.

use pintle_domain::json::Object;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// One thing that is heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Heard {
    /// The gates let the prompt pass, and the session has it.
    Started {
        /// What they left of it.
        content: String,
        /// The host's signature on that.
        sig: String,
    },
    /// A piece of an answer.
    Text(String),
    /// The text of a hook that stays.
    Hook(Object),
    /// A call waits for the approval of this id, or for none any more.
    Waits(Option<String>),
}

/// Everything that was heard of a run, and those who hear it.
#[derive(Debug, Default)]
pub(crate) struct HeardLog {
    past: Vec<Heard>,
    listeners: Vec<UnboundedSender<Heard>>,
    over: bool,
}

impl HeardLog {
    /// What was heard of a run that is over.
    pub(crate) fn over(past: Vec<Heard>) -> Self {
        Self { past, listeners: Vec::new(), over: true }
    }

    /// Something happened.
    pub(crate) fn push(&mut self, heard: Heard) {
        // Whoever listened may be gone.
        self.listeners.retain(|listener| listener.send(heard.clone()).is_ok());
        match (self.past.last_mut(), heard) {
            // Pieces that stand together are one for whoever comes later.
            (Some(Heard::Text(before)), Heard::Text(more)) => before.push_str(&more),
            (Some(last @ Heard::Waits(_)), now @ Heard::Waits(_)) => *last = now,
            (_, heard) => self.past.push(heard),
        }
    }

    /// Hears everything from the beginning on, and its end.
    pub(crate) fn listen(&mut self) -> UnboundedReceiver<Heard> {
        let (sender, receiver) = unbounded_channel();
        for heard in &self.past {
            // The receiver stands on this screen.
            drop(sender.send(heard.clone()));
        }
        if !self.over {
            self.listeners.push(sender);
        }
        receiver
    }

    /// Whether the prompt passed its gates.
    pub(crate) fn has_started(&self) -> bool {
        self.past.iter().any(|heard| matches!(heard, Heard::Started { .. }))
    }

    /// Whether anybody listens.
    pub(crate) fn has_listeners(&self) -> bool {
        self.listeners.iter().any(|listener| !listener.is_closed())
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.listeners.clear();
    }

    /// What is kept of it: everything but the waiting.
    pub(crate) fn kept(&self) -> Vec<Heard> {
        self.past.iter().filter(|heard| !matches!(heard, Heard::Waits(_))).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(heard: &mut UnboundedReceiver<Heard>) -> Vec<Heard> {
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    fn text(text: &str) -> Heard {
        Heard::Text(text.into())
    }

    #[test]
    fn whoever_comes_late_hears_the_same() {
        let mut log = HeardLog::default();
        let mut first = log.listen();
        let started = Heard::Started { content: "hi".into(), sig: "s".into() };
        for heard in [started.clone(), text("a"), text("b"), Heard::Waits(Some("1".into())), Heard::Waits(None)] {
            log.push(heard);
        }
        assert_eq!(all(&mut first).len(), 5);
        let mut second = log.listen();
        log.push(text("c"));
        assert_eq!(all(&mut first), [text("c")]);
        assert_eq!(all(&mut second), [started.clone(), text("ab"), Heard::Waits(None), text("c")]);
        drop(first);
        assert!(log.has_listeners());
        drop(second);
        assert!(!log.has_listeners());
        log.end();
        assert_eq!(log.kept(), [started, text("ab"), text("c")]);
        assert_eq!(all(&mut log.listen()).len(), 4);
    }
}
