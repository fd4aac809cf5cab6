//! What the journals of all sessions say about prompts, calls and who wrote.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::model::Answered;
use super::pair::Nodes;

/// The journals of all sessions.
pub(super) struct Journals(BTreeMap<String, Vec<Entry>>);

struct Entry {
    /// When it was made, in nanoseconds since 1970.
    at: i128,
    body: Value,
}

impl Entry {
    /// What `kind` of fact of a turn it is.
    fn fact(&self, kind: &str) -> Option<&Value> {
        self.body.get("turn")?.get(kind)
    }

    /// The text that the model said to the user, if it did.
    fn reply(&self) -> Option<&str> {
        let message = &self.fact("replied")?["message"]["message"];
        let text = message["content"].as_str().filter(|text| !text.is_empty())?;
        message["tool_calls"].as_array().is_none_or(Vec::is_empty).then_some(text)
    }
}

impl Journals {
    pub(super) fn read(nodes: &Nodes) -> Self {
        let rows = nodes.ask(
            "SELECT coalesce(json_agg(json_build_array(session_id, at, body::json) ORDER BY seq), '[]') \
             FROM journal JOIN sessions ON number = session",
        );
        let rows: Vec<(String, String, Value)> = serde_json::from_str(&rows).unwrap();
        let mut all = BTreeMap::<_, Vec<Entry>>::new();
        for (session, at, body) in rows {
            let at = at.parse::<jiff::Timestamp>().unwrap().as_nanosecond();
            all.entry(session).or_default().push(Entry { at, body });
        }
        Self(all)
    }

    fn of(&self, user: &str) -> &[Entry] {
        self.0.get(&format!("agent:main:ws:{user}:{user}")).map_or(&[], Vec::as_slice)
    }

    /// The journal of `user`, to be read by a person.
    pub(super) fn shown(&self, user: &str) -> String {
        let lines = self.of(user).iter().map(|entry| format!("{} {}", entry.at, entry.body));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What the model said to whoever sent `id`: the first answer after the message entered a turn, in that turn, if the
    /// request of that answer had the message, as the model kept it.
    pub(super) fn answer_to(&self, user: &str, id: &str, answered: &[Answered]) -> Option<String> {
        let mark = format!("{id} run: ");
        let has_it = |value: &Value| value.to_string().contains(&mark);
        let (mut waiting, mut is_in) = (Vec::new(), false);
        for entry in self.of(user) {
            if let Some(begun) = entry.fact("begun") {
                is_in = has_it(&begun["prompts"]);
            } else if let Some(queued) = entry.fact("queued") {
                waiting.push(has_it(queued));
            } else if let Some(injected) = entry.fact("injected") {
                let count = usize::try_from(injected["count"].as_u64().unwrap()).unwrap();
                is_in |= waiting.drain(..count).any(|it| it);
            } else if entry.fact("ended").is_some() {
                is_in = false;
            } else if let (true, Some(reply)) = (is_in, entry.reply()) {
                let is_asked = |it: &&Answered| it.text == reply && it.asked.iter().any(|text| text.contains(&mark));
                return answered.iter().find(is_asked).map(|it| it.text.clone());
            }
        }
        None
    }

    /// What only somebody can have written whose lease was another's by then: an opening of what is held, an end of what
    /// is over, a second use or answer of one call.
    pub(super) fn out_of_turn(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (session, entries) in &self.0 {
            let (mut held, mut open) = (false, false);
            let (mut used, mut done) = (BTreeSet::new(), BTreeSet::new());
            for entry in entries {
                let place = |fact: &Value| fact["place"].as_u64().unwrap();
                let good = if entry.body.get("opened").is_some() {
                    !std::mem::replace(&mut held, true)
                } else if entry.body.get("closed").is_some() {
                    std::mem::replace(&mut held, false)
                } else if entry.fact("begun").is_some() {
                    held && !std::mem::replace(&mut open, true)
                } else if entry.fact("ended").is_some() {
                    held && std::mem::replace(&mut open, false)
                } else if entry.fact("replied").is_some() {
                    (used, done) = Default::default();
                    held && open
                } else if let Some(fact) = entry.fact("used") {
                    held && open && used.insert(place(fact))
                } else if let Some(fact) = entry.fact("answered") {
                    held && open && done.insert(place(fact))
                } else {
                    held
                };
                if !good {
                    found.push(format!("{session}: {} {}", entry.at, entry.body));
                }
            }
        }
        found
    }

    /// The effects, each with its id and its moment, that came about after somebody else had taken the session of the
    /// turn that they belong to.
    pub(super) fn too_late<'a>(&self, effects: impl Iterator<Item = (&'a str, i128)>) -> Vec<String> {
        let mut found = Vec::new();
        for (id, at) in effects {
            let user = id.rsplit_once('-').unwrap().0;
            let mark = format!("echo {id} ");
            let asked = |entry: &Entry| {
                let reply = entry.fact("replied");
                reply.is_some_and(|it| it["message"]["message"]["tool_calls"].to_string().contains(&mark))
            };
            let mut rest =
                self.of(user).iter().skip_while(|entry| !asked(entry)).skip_while(|it| it.fact("used").is_none());
            let Some(used) = rest.next() else {
                found.push(format!("{id} at {at} was never permitted"));
                continue;
            };
            let taken = rest.take_while(|it| it.fact("answered").is_none()).find(|it| it.body.get("opened").is_some());
            if at < used.at || taken.is_some_and(|taken| at > taken.at) {
                found.push(format!("{id} at {at}, permitted at {}, taken at {:?}", used.at, taken.map(|it| it.at)));
            }
        }
        found
    }
}
