//! Which messages of a request a hook left as they were.

use std::collections::HashMap;

use crate::json::Rendered;
use crate::message::Message;

/// The messages that a hook was given. Each can be taken back once.
pub(super) struct Originals<'a> {
    all: &'a [Rendered<Message>],
    taken: Vec<bool>,
    /// Places by where the shared value lies: a hook of this process mostly hands back what it got.
    by_address: HashMap<usize, usize>,
    /// Places by text; made only for a hook that built messages of its own.
    by_text: Option<HashMap<&'a str, Vec<usize>>>,
}

impl<'a> Originals<'a> {
    pub(super) fn new(all: &'a [Rendered<Message>]) -> Self {
        let by_address = all.iter().enumerate().map(|(at, message)| (address(message), at)).collect();
        Self { all, taken: vec![false; all.len()], by_address, by_text: None }
    }

    /// Takes the original that `message` is, or says the same as: then with what only the host knows of it.
    pub(super) fn take(&mut self, message: &Rendered<Message>) -> Option<Rendered<Message>> {
        let very = self.by_address.get(&address(message)).copied().filter(|at| !self.taken[*at]);
        let at = very.or_else(|| self.alike(message))?;
        self.taken[at] = true;
        Some(self.all[at].clone())
    }

    fn alike(&mut self, message: &Rendered<Message>) -> Option<usize> {
        let all = self.all;
        let by_text = self.by_text.get_or_insert_with(|| {
            let mut by_text: HashMap<&str, Vec<usize>> = HashMap::with_capacity(all.len());
            for (at, original) in all.iter().enumerate() {
                by_text.entry(original.get().content.as_str()).or_default().push(at);
            }
            by_text
        });
        let candidates = by_text.get(message.get().content.as_str())?;
        let is = |at: &usize| !self.taken[*at] && all[*at].json() == message.json();
        candidates.iter().copied().find(is)
    }
}

fn address(message: &Rendered<Message>) -> usize {
    std::ptr::from_ref(message.get()).addr()
}
