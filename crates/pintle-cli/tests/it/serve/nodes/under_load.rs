//! Many turns at once on two nodes: one chain of evidence, and an end that nobody behind a balancer notices.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use super::pair::{Client, Node, Nodes, until};

/// Tenants whose turns run at once, over both nodes: one alone may have fifty.
const TENANTS: usize = 4;

/// How many turns of each.
const TURNS: usize = 50;

/// Turns that one user begins: more at once are too many messages.
const OF_ONE: usize = 5;

/// How many turns run on the node that ends.
const RUNNING: usize = 50;

const PARKED: usize = 3;

fn key(name: &str) -> String {
    format!("agent:main:ws:direct:{name}")
}

#[test]
fn the_chain_of_a_tenant_has_one_order_however_many_nodes_write_it() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    for tenant in 0..TENANTS {
        a.tenant(&format!("tenant{tenant}"), (0..TURNS / OF_ONE).map(|user| format!("user{user}")));
    }
    let turns = TENANTS * TURNS;
    let began = Instant::now();
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..turns {
            let (node, answered) = ([&a, &b][number % 2], &answered);
            scope.spawn(move || {
                let (tenant, user) = (number % TENANTS, number / TENANTS / OF_ONE);
                let mut client = node.client_in(&format!("tenant{tenant}"), &format!("user{user}"));
                client.patience(Duration::from_secs(150));
                let message = format!("{number} run: echo {number} >>effects");
                let session = key(&format!("load{number}"));
                let said = client.done("chat.send", json!({ "sessionKey": session, "message": message }));
                assert_eq!(said["content"], json!(format!("answer {message}")));
                answered.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    let took = began.elapsed();
    let config = nodes.env.path("config/pintle/a.toml").display().to_string();
    let verified = nodes.env.pintle(&["-c", &config, "audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let chains = "SELECT slug, count(*), max(seq), count(DISTINCT seq) FROM audit_log JOIN tenants ON \
                  tenants.id = audit_log.tenant_id WHERE slug LIKE 'tenant%' GROUP BY slug ORDER BY slug";
    let chains = nodes.ask(chains);
    println!("{turns} turns at once on two nodes took {took:?}; chains (tenant|entries|last|numbers):\n{chains}");
    assert_eq!((answered.into_inner(), chains.lines().count()), (turns, TENANTS));
    for chain in chains.lines() {
        let numbers: Vec<usize> = chain.split('|').skip(1).map(|number| number.parse().unwrap()).collect();
        assert!(numbers[0] >= TURNS && numbers.iter().all(|it| *it == numbers[0]), "left out or given twice: {chain}");
    }
}

#[test]
fn a_node_that_ends_is_noticed_by_nobody_behind_a_balancer() {
    let nodes = Nodes::new();
    let asks = "[agents.asks]\nmodel = 'model/m'\ntools = ['exec']\nworkspace_shared = true\nask = ['exec']";
    let (mut a, b) = (nodes.start_at("a", asks, &nodes.url), nodes.start_at("b", asks, &nodes.url));
    // Of one tenant fifty turns may be in flight, parked ones included.
    a.tenant("busy", (0..RUNNING).map(|number| format!("running{number}")));
    let ready = Mutex::new(vec![a.address.clone(), b.address.clone()]);
    let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut running: Vec<(Client, String)> = (0..RUNNING).map(|number| begun(&a, number)).collect();
    let mut parked: Vec<(Client, String)> = (0..PARKED)
        .map(|number| {
            let mut client = a.client(&format!("parked{number}"));
            let params = json!({ "sessionKey": "agent:asks:ws:direct:x", "message": "run: echo parked" });
            let id = client.ask("chat.send", params).unwrap();
            client.event("approvals.created", |_| true);
            (client, id)
        })
        .collect();
    let ended = thread::scope(|scope| {
        // The balancer: who is not ready gets no new request.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let good = [&a.address, &b.address].into_iter().filter(|address| status(address) == Some(200));
                *ready.lock().unwrap() = good.cloned().collect();
                thread::sleep(Duration::from_millis(100));
            }
        });
        for user in 0..4 {
            let (ready, over, sent) = (&ready, &over, &sent);
            scope.spawn(move || go_on_asking(user, (ready, over, sent)));
        }
        thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        a.signal(Signal::SIGTERM);
        until("the node ends", || (status(&a.address).is_none()).then_some(()));
        thread::sleep(Duration::from_secs(1));
        over.store(true, Ordering::Relaxed);
        began.elapsed()
    });
    let (code, shown) = a.ended();
    let (mut done, mut cut) = (0, 0);
    for (client, id) in &mut running {
        match client.answer(id) {
            Ok(answer) if answer["payload"]["content"].is_string() => done += 1,
            Ok(answer) => {
                assert_eq!(answer["payload"], json!({ "cancelled": true }), "{answer}");
                cut += 1;
            }
            Err(gone) => panic!("a running turn was not answered: {gone:?}"),
        }
    }
    let left = parked.iter_mut().map(|(client, id)| client.answer(id).unwrap()["payload"]["parked"] == true);
    let left = left.filter(|parked| *parked).count();
    println!(
        "a node with {RUNNING} turns and {PARKED} parked ended in {ended:?}: {done} ended, {cut} were cut, {left} stayed \
         parked; {} requests through the balancer meanwhile, none failed",
        sent.load(Ordering::Relaxed)
    );
    assert_eq!((code, done + cut, left), (Some(0), RUNNING, PARKED), "{shown}");
    let open = nodes.ask("SELECT count(*) FROM sessions WHERE open_turn IS NOT NULL");
    assert_eq!(open, PARKED.to_string(), "only what waits for a person is open");
    // What was cut is said at the next start of that node.
    if cut > 0 {
        let mut again = nodes.start_at("a", asks, &nodes.url);
        again.until("cut when the server ended: ");
    }
}

/// A client whose turn runs on `node`, and the id of its request.
fn begun(node: &Node, number: usize) -> (Client, String) {
    let mut client = node.client_in("busy", &format!("running{number}"));
    // A few outlive the time that they are given.
    let millis = if number < 5 { 60_000 } else { 3_000 };
    let message = format!("slow: {millis}");
    let id = client.ask("chat.send", json!({ "sessionKey": key("long"), "message": message })).unwrap();
    client.event("agent", |it| it["type"] == "run.started");
    (client, id)
}

/// A client behind the balancer, to whom every request is answered.
fn go_on_asking(user: usize, (ready, over, sent): (&Mutex<Vec<String>>, &AtomicBool, &AtomicUsize)) {
    let mut number = user;
    while !over.load(Ordering::Relaxed) {
        let all = ready.lock().unwrap().clone();
        let mut client =
            Client::connect(&all[number % all.len()], &format!("steady{user}-{number}")).expect("it is ready");
        let params = json!({ "sessionKey": key("steady"), "message": format!("hello {number}") });
        let said = client.done("chat.send", params);
        assert_eq!(said["content"], json!(format!("answer hello {number}")));
        sent.fetch_add(1, Ordering::Relaxed);
        number += 1;
    }
}

fn status(address: &str) -> Option<u16> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}
