//! The streams of one client, and which of them a message goes to.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::mcp::message::RequestKey;
use crate::mcp::proxy::ClientBound;

/// Most messages that are kept for a client which listens to none.
pub(super) const MAX_KEPT: usize = 256;

/// Where messages for a client go.
#[derive(Default)]
pub(super) struct Streams {
    /// The streams of requests that are open.
    pub(super) of: BTreeMap<RequestKey, mpsc::Sender<ClientBound>>,
    /// The one that belongs to no request.
    pub(super) own: Option<mpsc::Sender<ClientBound>>,
    pub(super) kept: VecDeque<ClientBound>,
    /// Whether they are of several clients: what belongs to no request is nobody's then.
    pub(super) is_shared: bool,
}

impl Streams {
    /// Takes the stream of a request; not where another one has its id.
    pub(super) fn begin(&mut self, key: RequestKey, to: mpsc::Sender<ClientBound>) -> bool {
        match self.of.entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(to);
                true
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.of.is_empty() || self.own.as_ref().is_some_and(|own| !own.is_closed())
    }

    /// The stream that `message` goes to, with it; none where it is kept, or nobody wants it.
    pub(super) fn route(&mut self, message: ClientBound) -> Option<(mpsc::Sender<ClientBound>, ClientBound)> {
        if let Some(stream) = message.about.as_ref().and_then(|key| self.of.get(key)).cloned() {
            if let Some(key) = message.about.as_ref().filter(|_| message.is_answer) {
                self.of.remove(key);
            }
            return Some((stream, message));
        }
        // Who asked does not listen any more.
        if message.is_answer || self.is_shared {
            return None;
        }
        self.own.take_if(|own| own.is_closed());
        let stream = self.own.as_ref().or_else(|| self.of.values().next()).cloned();
        match stream {
            Some(stream) => return Some((stream, message)),
            None if self.kept.len() < MAX_KEPT => self.kept.push_back(message),
            None => tracing::warn!("a client listens to nothing, and a message for it was dropped"),
        }
        None
    }
}

/// Hands `message` to the stream that it belongs to. Of several clients none that does not read holds the others up.
pub(super) async fn hand_over(streams: &Mutex<Streams>, message: ClientBound) {
    let (routed, is_shared) = {
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        (streams.route(message), streams.is_shared)
    };
    let Some((stream, message)) = routed else { return };
    let is_taken = match is_shared {
        true => stream.try_send(message).is_ok(),
        false => stream.send(message).await.is_ok(),
    };
    if !is_taken {
        tracing::debug!("a client left or does not read, and a message for it was dropped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_in_use_keeps_its_stream() {
        let key = || RequestKey::of(&1.into()).unwrap();
        let ((to, mut from), (other, _)) = (mpsc::channel(1), mpsc::channel(1));
        let mut streams = Streams::default();
        assert!(streams.begin(key(), to) && !streams.begin(key(), other));
        let message = ClientBound { text: "a".into(), about: Some(key()), is_answer: true, wants: None };
        let (stream, message) = streams.route(message).unwrap();
        stream.try_send(message).unwrap();
        assert_eq!(from.try_recv().unwrap().text, "a");
        assert!(!streams.is_open());
    }

    #[test]
    fn what_belongs_to_no_request_goes_to_no_one_of_several_clients() {
        let (to, _from) = mpsc::channel(1);
        let mut streams = Streams { is_shared: true, ..Streams::default() };
        assert!(streams.begin(RequestKey::of(&1.into()).unwrap(), to));
        let told = || ClientBound { text: "a".into(), about: None, is_answer: false, wants: None };
        assert!(streams.route(told()).is_none() && streams.kept.is_empty());
        streams.is_shared = false;
        assert!(streams.route(told()).is_some());
    }
}
