//! Nodes that are killed, or stand still for longer than their leases last, while others talk to them.
//!
//! `PINTLE_NODE_ROUNDS=20 cargo nextest run -p pintle-cli nodes::dying` plays twenty of each, with a node that stands
//! still for half a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::journals::Journals;
use super::pair::{Client, Gone, Node, Nodes, until};

/// How many clients talk at once.
const CLIENTS: usize = 8;

/// How often a node is killed or stopped in the suite.
const ROUNDS: usize = 1;

/// How long a node stands still in the suite: longer than a lease lasts, and than it takes to find out.
const STILL: Duration = Duration::from_secs(14);

/// The same where more rounds are asked for.
const LONG_STILL: Duration = Duration::from_secs(30);

fn rounds() -> Option<usize> {
    std::env::var("PINTLE_NODE_ROUNDS").ok().and_then(|text| text.parse().ok())
}

/// What came of a prompt, as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Answered,
    /// `run.started` was heard, and no answer.
    Acknowledged,
    /// Nobody said anything of it.
    Unheard,
}

#[derive(Default)]
struct Load {
    addresses: Mutex<Vec<String>>,
    over: AtomicBool,
    turn: AtomicUsize,
    fates: Mutex<BTreeMap<String, Fate>>,
}

impl Load {
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
            let Ok(mut client) = Client::connect(&self.address(at), user) else {
                at += 1;
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            while !self.over.load(Ordering::Relaxed) {
                number += 1;
                let id = format!("{user}-{number}");
                let fate = prompt(&mut client, user, &id);
                let gone = fate != Fate::Answered;
                self.fates.lock().unwrap().insert(id, fate);
                if gone {
                    break;
                }
                // Any node is as good.
                if number % 2 == 0 {
                    break;
                }
            }
            at += 1;
        }
    }
}

fn key(user: &str) -> String {
    format!("agent:main:ws:direct:{user}")
}

fn prompt(client: &mut Client, user: &str, id: &str) -> Fate {
    client.heard.clear();
    let message = format!("{id} run: echo {id} $(date +%s%N) >>effects");
    let answer = client.call("chat.send", json!({ "sessionKey": key(user), "message": message }));
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

/// Lets clients talk while `each` hurts one of two nodes again and again; then looks at what they were told.
fn play(rounds: usize, mut each: impl FnMut(&Nodes, &mut Vec<Node>, usize)) {
    let nodes = Nodes::new();
    let mut pair = vec![nodes.start("a"), nodes.start("b")];
    let load = Load::default();
    let addresses = |pair: &[Node]| pair.iter().map(|node| node.address.clone()).collect::<Vec<_>>();
    *load.addresses.lock().unwrap() = addresses(&pair);
    let users: Vec<String> = (0..CLIENTS).map(|n| format!("user{n}")).collect();
    let began = Instant::now();
    thread::scope(|scope| {
        for user in &users {
            let load = &load;
            scope.spawn(move || load.talk(user));
        }
        let _over = Over(&load.over);
        for round in 0..rounds {
            thread::sleep(Duration::from_millis(1500 + 137 * (round as u64 % 7)));
            each(&nodes, &mut pair, round);
            *load.addresses.lock().unwrap() = addresses(&pair);
        }
        thread::sleep(Duration::from_secs(2));
    });
    let took = began.elapsed();
    settled(&nodes, &pair, &load);
    println!("{rounds} rounds in {took:?}");
}

fn settled(nodes: &Nodes, pair: &[Node], load: &Load) {
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
        let mut client = Client::connect(&pair[0].address, user).unwrap();
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
    let verified =
        nodes.env.pintle(&["-c", &nodes.env.path("config/pintle/a.toml").display().to_string(), "audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// The prompt and the moment of a line of `effects`.
fn effect(line: &str) -> (&str, i128) {
    let (id, at) = line.split_once(' ').unwrap();
    (id, at.parse().unwrap())
}

#[test]
fn a_node_that_is_killed_leaves_nothing_undone_and_nothing_done_twice() {
    let times = rounds().unwrap_or(ROUNDS);
    play(times, |nodes, pair, round| {
        let victim = round % 2;
        let name = ["a", "b"][victim];
        pair[victim].signal(Signal::SIGKILL);
        // The other one works alone for a while, longer than it takes to find out.
        thread::sleep(Duration::from_secs(14));
        pair[victim] = nodes.start(name);
    });
}

#[test]
fn a_node_that_stands_still_does_nothing_under_a_lease_that_it_lost() {
    let (times, still) = rounds().map_or((ROUNDS, STILL), |times| (times, LONG_STILL));
    play(times, |nodes, pair, round| {
        let victim = round % 2;
        pair[victim].signal(Signal::SIGSTOP);
        let stopped = nodes.ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint");
        thread::sleep(still);
        let before = nodes.ask("SELECT count(*) FROM leases WHERE owner IS NOT NULL");
        pair[victim].signal(Signal::SIGCONT);
        println!("stood still at {stopped}; {before} leases were others' when it went on");
    });
}
