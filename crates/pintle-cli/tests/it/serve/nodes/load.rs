//! Users who go on talking whatever becomes of the nodes, and what has to be so afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::journals::Journals;
use super::pair::{Client, Gone, Node, Nodes, until};

/// How many clients talk at once.
const CLIENTS: usize = 8;

/// What came of a prompt, as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Answered,
    /// `run.started` was heard, and no answer.
    Acknowledged,
    /// Nobody said anything of it.
    Unheard,
}

/// Users who talk, and what they were told.
#[derive(Default)]
pub(super) struct Load {
    addresses: Mutex<Vec<String>>,
    over: AtomicBool,
    turn: AtomicUsize,
    fates: Mutex<BTreeMap<String, Fate>>,
    /// How many prompts were answered at each address.
    answered: Mutex<BTreeMap<String, usize>>,
    /// The answers that refused a prompt for good.
    refused: Mutex<Vec<String>>,
}

impl Load {
    /// From now on they talk to these nodes.
    pub(super) fn turn_to<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) {
        *self.addresses.lock().unwrap() = nodes.into_iter().map(|node| node.address.clone()).collect();
    }

    /// Lets all of them talk for as long as `body` takes.
    pub(super) fn while_talking<T>(&self, body: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            for user in 0..CLIENTS {
                scope.spawn(move || self.talk(&format!("user{user}")));
            }
            let _over = Over(&self.over);
            body()
        })
    }

    /// Waits until so many `more` prompts were answered at `node`.
    #[track_caller]
    pub(super) fn until_answered(&self, node: &Node, more: usize) {
        let so_far = || self.answered.lock().unwrap().get(&node.address).copied().unwrap_or_default();
        let wanted = so_far() + more;
        until(&format!("{more} prompts are answered at {}", node.address), || (so_far() >= wanted).then_some(()));
    }

    /// The answers that refused a prompt and did not say that it may be sent again.
    pub(super) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap().clone()
    }

    fn address(&self, at: usize) -> String {
        let addresses = self.addresses.lock().unwrap();
        addresses[at % addresses.len()].clone()
    }

    /// One user who goes on talking, at whichever node answers.
    fn talk(&self, name: &str) {
        let mut at = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut number = 0;
        while !self.over.load(Ordering::Relaxed) {
            // Nobody may send more than twenty messages a minute.
            let user = &format!("{name}-{}", number / 10);
            let address = self.address(at);
            let Ok(mut client) = Client::connect(&address, user) else {
                at += 1;
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            while !self.over.load(Ordering::Relaxed) {
                number += 1;
                let id = format!("{user}-{number}");
                let fate = self.prompt(&mut client, user, &id);
                let gone = fate != Fate::Answered;
                self.fates.lock().unwrap().insert(id, fate);
                if gone {
                    break;
                }
                *self.answered.lock().unwrap().entry(address.clone()).or_default() += 1;
                // Any node is as good.
                if number % 2 == 0 {
                    break;
                }
            }
            at += 1;
        }
    }

    fn prompt(&self, client: &mut Client, user: &str, id: &str) -> Fate {
        client.heard.clear();
        let message = format!("{id} run: echo {id} $(date +%s%N) >>effects");
        let answer = client.call("chat.send", json!({ "sessionKey": key(user), "message": message }));
        if let Ok(answer) = &answer
            && answer["ok"] == false
            && answer["error"]["retryable"] != true
        {
            self.refused.lock().unwrap().push(format!("{id}: {answer}"));
        }
        let started = client.heard.iter().any(|it| {
            it["event"] == "agent"
                && it["payload"]["type"] == "run.started"
                && it["payload"]["payload"]["message"] == json!(message)
        });
        match answer {
            Ok(answer) if answer["ok"] == true && answer["payload"]["content"].as_str().is_some() => {
                let content = answer["payload"]["content"].as_str().unwrap();
                // What was left for a node that is gone may have joined it: then the model read both as one.
                assert!(content.contains(&message), "{id}: {answer}");
                Fate::Answered
            }
            // It steered what was still worked of the one before: the turn has it.
            Ok(answer) if answer["payload"]["injected"] == true => Fate::Unheard,
            Ok(_) | Err(Gone) if started => Fate::Acknowledged,
            Ok(_) | Err(Gone) => Fate::Unheard,
        }
    }
}

/// The session of `user`.
pub(super) fn key(user: &str) -> String {
    format!("agent:main:ws:direct:{user}")
}

/// The texts of all that was said in the session of `user`.
fn history(client: &mut Client, user: &str) -> Vec<Value> {
    let history = client.call("chat.history", json!({ "sessionKey": key(user) })).unwrap();
    // A session that nothing came of is none.
    history["payload"]["messages"].as_array().cloned().unwrap_or_default()
}

fn how_often(messages: &[Value], role: &str, text: &str) -> usize {
    messages
        .iter()
        .filter(|it| it["role"] == role && it["content"].as_str().is_some_and(|it| it.contains(text)))
        .count()
}

/// Ends the load when it is dropped: a test that fails does not leave its clients talking for good.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Looks at what the users were told once every turn is over, asking the node `at` for what was said.
pub(super) fn settled(nodes: &Nodes, at: &Node, load: &Load) {
    until("every turn is over", || {
        (nodes.ask("SELECT count(*) FROM sessions WHERE open_turn IS NOT NULL") == "0").then_some(())
    });
    let fates = load.fates.lock().unwrap();
    let effects = std::fs::read_to_string(nodes.env.path("here/effects")).unwrap_or_default();
    let mut ran = BTreeMap::<&str, usize>::new();
    effects.lines().for_each(|line| *ran.entry(effect(line).0).or_default() += 1);
    let (journals, answered) = (Journals::read(nodes), nodes.model.answered());
    let (mut twice, mut lost, mut repeated, mut joined) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let all = fates.keys().map(|id| id.rsplit_once('-').unwrap().0);
    for user in all.collect::<BTreeSet<_>>() {
        let mut client = Client::connect(&at.address, user).unwrap();
        let messages = history(&mut client, user);
        for (id, fate) in fates.iter().filter(|(id, _)| id.rsplit_once('-').unwrap().0 == user) {
            match (fate, how_often(&messages, "assistant", &format!("{id} run:"))) {
                (_, 2..) => twice.push(id.clone()),
                // The next prompt came in before it was answered: the model read both, and repeats the last one only.
                (Fate::Acknowledged, 0) if journals.answer_to(user, id, &answered).is_some() => {
                    println!("{id} was answered with the next one; the journal:\n{}", journals.shown(user));
                    joined += 1;
                }
                (Fate::Answered | Fate::Acknowledged, 0) => {
                    println!("{id} ({fate:?}) is lost; the journal:\n{}", journals.shown(user));
                    lost.push(id.clone());
                }
                (Fate::Answered | Fate::Acknowledged | Fate::Unheard, _) => {}
            }
            if ran.get(id.as_str()).is_some_and(|times| *times > 1) {
                repeated.push(id.clone());
            }
        }
    }
    let (out_of_turn, too_late) = (journals.out_of_turn(), journals.too_late(effects.lines().map(effect)));
    let of = |wanted: Fate| fates.values().filter(|fate| **fate == wanted).count();
    println!(
        "{} prompts: {} answered, {} acknowledged and then answered by another node ({joined} of them in one request with \
         the next prompt), {} never acknowledged; {} answered twice, {} lost, {} effects repeated, {} entries of an old \
         fence, {} of {} effects after a lost lease",
        fates.len(),
        of(Fate::Answered),
        of(Fate::Acknowledged),
        of(Fate::Unheard),
        twice.len(),
        lost.len(),
        repeated.len(),
        out_of_turn.len(),
        too_late.len(),
        effects.lines().count()
    );
    assert!(twice.is_empty() && lost.is_empty() && repeated.is_empty(), "{twice:?} {lost:?} {repeated:?}");
    assert!(out_of_turn.is_empty() && too_late.is_empty(), "{out_of_turn:#?} {too_late:#?}");
}

/// The prompt and the moment of a line of `effects`.
fn effect(line: &str) -> (&str, i128) {
    let (id, at) = line.split_once(' ').unwrap();
    (id, at.parse().unwrap())
}
