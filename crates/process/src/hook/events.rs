//! The queue of notifications of one hook. Pure: `now` is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use pintle_domain::checkpoint::RuntimeKind;
use tokio::time::Instant;

/// Most notifications that wait: several busy turns' worth.
const PLACES: usize = 1024;
/// Most bytes that wait: notifications are small, so this only meets those that carry whole answers.
const BYTES: usize = 8 << 20;
/// Places that only the last words of turns and errors may take, so that a burst of others cannot hide an end.
const RESERVED_PLACES: usize = 64;
/// The share of [`BYTES`] that goes with the reserved places.
const RESERVED_BYTES: usize = BYTES / PLACES * RESERVED_PLACES;

/// Notifications that wait to be written, oldest first.
#[derive(Debug)]
pub(super) struct EventQueue {
    waiting: VecDeque<Event>,
    bytes: usize,
    head_since: Option<Instant>,
    patience: Duration,
    dropped: BTreeMap<RuntimeKind, u64>,
    seq: u64,
}

/// One rendered notification.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: RuntimeKind,
    pub(super) frame: Vec<u8>,
}

impl EventQueue {
    /// An empty queue whose head waits at most `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, head_since: None, patience, dropped: BTreeMap::new(), seq: 0 }
    }

    /// The number of the next matching notification, from 1. Dropped ones have numbers too: a gap is a loss.
    pub(super) fn number(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Whether a notification of this kind could find a place at all.
    pub(super) fn has_place(&self, kind: RuntimeKind) -> bool {
        self.waiting.len() < if is_last_word(kind) { PLACES } else { PLACES - RESERVED_PLACES }
    }

    /// Queues `event`, or counts it as dropped and answers `false`.
    pub(super) fn push(&mut self, event: Event, now: Instant) -> bool {
        let room = if is_last_word(event.kind) { BYTES } else { BYTES - RESERVED_BYTES };
        if !self.has_place(event.kind) || self.bytes + event.frame.len() > room {
            self.count_dropped(event.kind);
            return false;
        }
        self.bytes += event.frame.len();
        self.waiting.push_back(event);
        self.head_since.get_or_insert(now);
        true
    }

    /// Takes the oldest notification that did not wait at the head for too long.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Event> {
        self.expire(now);
        self.take(now)
    }

    /// Drops every head that waited for too long, one after the other.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(end) = self.head_expires().filter(|end| *end <= now) {
            if let Some(event) = self.take(end) {
                self.count_dropped(event.kind);
            }
        }
    }

    /// When the present head will have waited for too long.
    pub(super) fn head_expires(&self) -> Option<Instant> {
        self.head_since.map(|since| since + self.patience)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Counts a notification that never got as far as the queue.
    pub(super) fn count_dropped(&mut self, kind: RuntimeKind) {
        *self.dropped.entry(kind).or_default() += 1;
    }

    /// How many were dropped, by kind.
    pub(super) fn dropped(&self) -> &BTreeMap<RuntimeKind, u64> {
        &self.dropped
    }

    fn take(&mut self, now: Instant) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        self.bytes -= event.frame.len();
        self.head_since = (!self.waiting.is_empty()).then_some(now);
        Some(event)
    }
}

/// Whether the reserved places are for this kind.
fn is_last_word(kind: RuntimeKind) -> bool {
    matches!(kind, RuntimeKind::TurnEnd | RuntimeKind::SubturnEnd | RuntimeKind::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: RuntimeKind, len: usize) -> Event {
        Event { kind, frame: vec![b'x'; len] }
    }

    fn pushed(queue: &mut EventQueue, kind: RuntimeKind, len: usize, times: usize) -> usize {
        let now = Instant::now();
        (0..times).filter(|_| queue.push(event(kind, len), now)).count()
    }

    #[test]
    fn the_last_places_are_kept_for_ends_and_errors() {
        let mut queue = EventQueue::new(Duration::from_secs(1));
        assert_eq!(pushed(&mut queue, RuntimeKind::LlmDelta, 10, 2000), 960);
        assert_eq!(pushed(&mut queue, RuntimeKind::TurnEnd, 10, 30), 30);
        assert_eq!(pushed(&mut queue, RuntimeKind::Error, 10, 2000), 34);
        assert_eq!(*queue.dropped(), BTreeMap::from([(RuntimeKind::LlmDelta, 1040), (RuntimeKind::Error, 1966)]));
    }

    #[test]
    fn bytes_are_bounded_and_a_share_of_them_is_kept_too() {
        let mut queue = EventQueue::new(Duration::from_secs(1));
        assert_eq!(pushed(&mut queue, RuntimeKind::TurnStart, 1 << 20, 10), 7);
        assert_eq!(pushed(&mut queue, RuntimeKind::TurnEnd, 1 << 20, 3), 1);
        assert_eq!(queue.dropped().values().sum::<u64>(), 5);
        let now = Instant::now();
        while queue.pop(now).is_some() {}
        assert_eq!((queue.bytes, queue.head_since), (0, None));
    }

    #[test]
    fn a_head_that_waits_too_long_is_dropped_and_the_next_one_begins_to_wait() {
        let ms = Duration::from_millis;
        let mut queue = EventQueue::new(ms(500));
        let start = Instant::now();
        for kind in [RuntimeKind::TurnStart, RuntimeKind::LlmRequest, RuntimeKind::TurnEnd] {
            assert!(queue.push(event(kind, 1), start));
        }
        assert_eq!(queue.head_expires(), Some(start + ms(500)));
        queue.expire(start + ms(499));
        assert!(queue.dropped().is_empty());
        // Two heads have had their 500 ms each; the third is half way through its own.
        assert_eq!(queue.pop(start + ms(1250)).map(|event| event.kind), Some(RuntimeKind::TurnEnd));
        assert_eq!(*queue.dropped(), BTreeMap::from([(RuntimeKind::TurnStart, 1), (RuntimeKind::LlmRequest, 1)]));
        assert!(queue.is_empty());
    }

    #[test]
    fn dropped_notifications_have_numbers_too() {
        let mut queue = EventQueue::new(Duration::from_secs(1));
        assert_eq!([queue.number(), queue.number(), queue.number()], [1, 2, 3]);
    }
}
