//! An answer that is told as it comes, in the events of its wire.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use pintle_domain::json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::Wire;
use super::answering::{Next, Talk, TalkEnd, mark, paragraph, revoked};
use crate::heard::Heard;
use crate::wire::{anthropic, openai};

/// How often a quiet stream says that it is alive. Source: the page of the gateway.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

impl Talk {
    /// The answer as it comes.
    pub(super) fn stream(self) -> Response {
        let run = self.run.clone();
        let mut response = Sse::new(events(self)).into_response();
        response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
        mark(&run, &mut response);
        response
    }
}

fn events(talk: Talk) -> impl Stream<Item = Result<Event, Infallible>> {
    let head = talk.head(talk.id());
    let first: Vec<Event> = match talk.wire {
        Wire::OpenAi => vec![
            chunk(&head.piece(json!({ "role": "assistant", "content": "" }), None)),
            chunk(&head.aside(json!({ "user": talk.user }))),
        ],
        Wire::Anthropic => {
            let mut begin = anthropic::begin(&head.id, &head.model);
            begin[0]["pintle"] = json!({ "user": talk.user });
            begin.iter().map(named_event).collect()
        }
    };
    let state = Streaming { talk, head, told: 0, queued: first.into(), over: false };
    futures_util::stream::unfold(state, |mut state| async move {
        loop {
            if let Some(event) = state.queued.pop_front() {
                return Some((Ok(event), state));
            }
            if state.over {
                return None;
            }
            state.more().await;
        }
    })
}

/// A stream that is under way.
struct Streaming {
    talk: Talk,
    head: openai::Head,
    /// How much was told, in UTF-16 units.
    told: usize,
    queued: VecDeque<Event>,
    over: bool,
}

impl Streaming {
    /// Takes the next thing that happened, or says that nothing did.
    async fn more(&mut self) {
        let heard = match timeout_at(Instant::now() + KEEP_ALIVE, self.talk.next()).await {
            Ok(Next::Heard(heard)) => heard,
            Ok(Next::Over) => return self.last().await,
            // Their turn goes with them, where nobody keeps it.
            Ok(Next::Revoked) => {
                let error = self.error(&self.talk.wire.error(&revoked().into()));
                self.over = true;
                return self.queued.push_back(error);
            }
            Ok(Next::TooLong) => {
                let refused = self.talk.left().await;
                return self.ends(vec![self.error(&self.talk.wire.error(&refused))]);
            }
            Err(_quiet) => return self.queued.push_back(self.alive()),
        };
        let event = match heard {
            Heard::Text(text) => {
                self.told += text.encode_utf16().count();
                self.piece(&text)
            }
            Heard::Hook(mut hook) => {
                hook.insert("at".to_owned(), json!(self.told));
                self.aside(json!({ "hooks": [Value::Object(hook)] }))
            }
            Heard::Waits(Some(_)) => self.alive(),
            Heard::Waits(None) | Heard::Started { .. } => return,
        };
        self.queued.push_back(event);
    }

    /// A comment, which clients read over; while a call waits for an approval it names that.
    fn alive(&self) -> Event {
        match self.talk.run.waits() {
            Some(id) => Event::default().comment(format!("waiting for approval {id}")),
            None => Event::default().comment("alive"),
        }
    }

    /// The turn is over.
    async fn last(&mut self) {
        self.talk.told().await;
        let ended = self.talk.end().await;
        let TalkEnd { reason, usage, stopped, media } = match ended {
            Ok(ended) => ended,
            Err(refused) => return self.ends(vec![self.error(&self.talk.wire.error(&refused))]),
        };
        let why = stopped.map(|why| self.piece(&paragraph(self.told > 0, &why)));
        let files = (!media.is_empty()).then(|| self.aside(json!({ "media": media })));
        let mut events: Vec<Event> = why.into_iter().chain(files).collect();
        match self.talk.wire {
            Wire::OpenAi => {
                let cost = self.talk.usage_in_stream.then(|| chunk(&self.head.cost(usage)));
                events.push(chunk(&self.head.piece(json!({}), Some(reason))));
                events.extend(cost.into_iter().chain([Event::default().data("[DONE]")]));
            }
            Wire::Anthropic => events.extend(anthropic::end(reason, usage).iter().map(named_event)),
        }
        self.ends(events);
    }

    /// A piece of the answer.
    fn piece(&self, text: &str) -> Event {
        match self.talk.wire {
            Wire::OpenAi => chunk(&self.head.piece(json!({ "content": text }), None)),
            Wire::Anthropic => named_event(&anthropic::piece(text)),
        }
    }

    /// What only Pintle's clients read.
    fn aside(&self, pintle: Value) -> Event {
        match self.talk.wire {
            Wire::OpenAi => chunk(&self.head.aside(pintle)),
            Wire::Anthropic => named_event(&anthropic::aside(pintle)),
        }
    }

    fn ends(&mut self, events: Vec<Event>) {
        self.over = true;
        self.talk.guard.run = None;
        self.queued.extend(events);
    }

    fn error(&self, error: &Value) -> Event {
        match self.talk.wire {
            Wire::OpenAi => chunk(error),
            Wire::Anthropic => named_event(error),
        }
    }
}

fn chunk(value: &Value) -> Event {
    Event::default().data(value.to_string())
}

/// An event whose name is its type.
fn named_event(value: &Value) -> Event {
    let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
    Event::default().event(name).data(value.to_string())
}
