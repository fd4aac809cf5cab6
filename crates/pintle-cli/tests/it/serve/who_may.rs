//! Every method and every path, tried by everybody: the tables are made from the reference, so that what is new is in
//! them without a word here.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use pintle_gateway::openapi::RouteRow;
use serde_json::{Value, json};

use super::people::{People, signed_in};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, scripted};

/// The roles, the least first.
const ROLES: [&str; 4] = ["viewer", "operator", "admin", "owner"];

/// Every method with its least role, as the reference has them.
pub(super) fn methods() -> Vec<(String, String)> {
    let page = pintle_gateway::reference::page().unwrap();
    let table = page.split("## Methods").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let name = cells.next().unwrap().trim_matches(['|', ' ', '`']).to_owned();
        (name, cells.next().unwrap().trim().to_owned())
    })
    // The first request of a connection, which is anybody's.
    .filter(|(name, _)| name != "connect")
    .collect()
}

fn rank(role: &str) -> usize {
    ROLES.iter().position(|known| *known == role).unwrap_or_else(|| panic!("{role} is not a role"))
}

/// The code of what is answered to params that nobody may send: nothing is done, whoever asks.
fn said_to_nonsense(client: &mut Client, method: &str, params: Value) -> String {
    client.refused(method, params).0
}

#[test]
fn every_method_asks_who_may_before_it_reads_what_is_said() {
    let people = People::start(WITH_TOKEN);
    let methods = methods();
    assert!(methods.len() > 30, "the table of the reference was not read: {methods:?}");
    let mut wrong = Vec::new();
    for (role, client) in &mut people.by_role() {
        for (method, least) in &methods {
            let may = rank(role) >= rank(least);
            for params in [json!({ "no such member": 1 }), json!([]), json!("text"), json!(7)] {
                let code = said_to_nonsense(client, method, params.clone());
                let good = if may { code != "UNAUTHORIZED" && code != "INTERNAL" } else { code == "UNAUTHORIZED" };
                if !good {
                    wrong.push(format!("{method} with {params} by {role}: {code}"));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_key_may_what_its_scopes_say_and_no_more() {
    let people = People::start(WITH_TOKEN);
    let mut table = BTreeMap::new();
    let scopes = [
        "operator.read",
        "operator.write",
        "operator.approvals",
        "operator.pairing",
        "operator.guard",
        "operator.admin",
    ];
    for scope in scopes {
        let mut client = people.with_key(&[scope]);
        for (method, _) in methods() {
            let may = said_to_nonsense(&mut client, &method, json!({ "no such member": 1 })) != "UNAUTHORIZED";
            table.entry(method).or_insert_with(Vec::new).push(may);
        }
    }
    let mut wrong = Vec::new();
    for ((method, may), (name, least)) in table.iter().zip(sorted(methods())) {
        assert_eq!(*method, name);
        let [read, write, approvals, pairing, guard, admin] = may[..] else { panic!("{method}") };
        let approving = method.starts_with("approvals.");
        // Whoever signed in looks after their own sessions of the console.
        let own = method.starts_with("auth.sessions.");
        let expected = [
            own || (least == "viewer" && !approving),
            own || (rank(&least) <= rank("operator") && !approving),
            own || approving,
            own,
            own,
            least != "owner",
        ];
        if [read, write, approvals, pairing, guard, admin] != expected {
            wrong.push(format!("{method} ({least}): {may:?}, expected {expected:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

fn sorted(mut methods: Vec<(String, String)>) -> Vec<(String, String)> {
    methods.sort();
    methods
}

#[test]
fn whoever_did_not_say_who_they_are_may_look_and_talk() {
    let server = Server::start(scripted(DONE, "[gateway]\nrequests_per_minute = 100000\n"));
    let mut client = server.connected(json!({}));
    for (method, least) in methods() {
        let may = said_to_nonsense(&mut client, &method, json!({ "no such member": 1 })) != "UNAUTHORIZED";
        let closed = ["approvals.", "auth.sessions.", "hooks.test"].iter().any(|name| method.starts_with(name));
        assert_eq!(may, rank(&least) <= rank("operator") && !closed, "{method}");
    }
}

#[test]
fn what_is_in_no_table_is_nobodys() {
    let people = People::start(WITH_TOKEN);
    for (role, client) in &mut people.by_role() {
        for method in ["", "x", "hooks", "hooks.", "hooks.List", "api_keys", "keys.create", "connect ", "admin.eval"] {
            let (code, _) = client.refused(method, json!({}));
            assert_eq!(code, "INVALID_REQUEST", "{method} by {role}");
        }
    }
}

/// What somebody brings to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brings {
    Nothing,
    CookieAlone,
    SessionKeyAlone,
    CookieAndKey,
    ApiKey,
    ViewerKey,
    GuardKey,
    DoorKey,
    ViewerDoorKey,
    WrongDoorKey,
    Token,
    Wrong,
    NothingThrough(&'static str),
}

/// The headers that proxies add, each by itself.
const PROXIES: [&str; 5] = [
    "Via: 1.1 proxy",
    "Forwarded: for=203.0.113.1",
    "X-Forwarded-For: 203.0.113.1",
    "X-Forwarded-Proto: https",
    "X-Real-IP: 203.0.113.1",
];

fn brings() -> Vec<Brings> {
    let known = [
        Brings::Nothing,
        Brings::CookieAlone,
        Brings::SessionKeyAlone,
        Brings::CookieAndKey,
        Brings::ApiKey,
        Brings::ViewerKey,
        Brings::GuardKey,
        Brings::DoorKey,
        Brings::ViewerDoorKey,
        Brings::WrongDoorKey,
        Brings::Token,
        Brings::Wrong,
    ];
    known.into_iter().chain(PROXIES.map(Brings::NothingThrough)).collect()
}

/// Where a page is from that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    NoPage,
    OwnPage,
    AllowedPage,
    OtherPage,
    OtherSite,
    OtherHost,
    /// A person follows a link on a page of others.
    Link,
}

const FROM: [From; 7] =
    [From::NoPage, From::OwnPage, From::AllowedPage, From::OtherPage, From::OtherSite, From::OtherHost, From::Link];

/// What comes of a request that whoever sends it may send: what it says is wrong wherever that is possible, so that
/// nothing is done. A route that is not here fails.
fn well(route: &RouteRow, brings: Brings) -> u16 {
    match (route.verb, route.path) {
        (
            "GET",
            "/healthz" | "/readyz" | "/openapi.json" | "/favicon.ico" | "/metrics" | "/v1/models" | "/v1/models/{id}",
        ) => 200,
        // There is no such file.
        ("GET", "/v1/media/{id}" | "/assets/{*name}") => 404,
        // It asks for no other protocol.
        ("GET", "/ws") => 400,
        ("POST", "/v1/chat/completions" | "/v1/messages" | "/auth/exchange" | "/auth/sign-in") => 400,
        // It brings no nonce, or another member than records.
        ("GET", "/guard/v1/rules") | ("POST", "/guard/v1/records") => 400,
        // Of a type that is not taken.
        ("POST", "/v1/media") => 415,
        ("POST", "/auth/switch") => 400,
        // It names nothing that could be done with a model.
        ("POST", "/door/gemini/v1beta/models/{id}" | "/door/gemini/v1/models/{id}") => 404,
        ("POST", door) if door.starts_with("/door/") => 400,
        // The vendor is not there.
        ("GET", door) if door.starts_with("/door/") => 502,
        ("POST", "/auth/sign-out") if brings == Brings::CookieAndKey => 200,
        ("POST", "/auth/sign-out") => 400,
        ("GET", page) if route.least == "nobody" && is_page(page) => 200,
        _ => panic!("{} {} is served, and nobody says to whom", route.verb, route.path),
    }
}

fn is_page(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap();
    let pages = ["", "chat", "approvals", "hooks", "executions", "chain", "turns", "health", "settings"];
    pages.contains(&first)
}

/// The status that has to come.
fn expected(route: &RouteRow, brings: Brings, from: From, open: bool) -> u16 {
    match from {
        From::OtherHost | From::OtherPage | From::OtherSite => return 403,
        // A link opens a page, and nothing else.
        From::Link if route.least != "nobody" || !is_page(route.path) => return 403,
        From::AllowedPage if route.path.starts_with("/auth/") => return 403,
        From::NoPage | From::OwnPage | From::AllowedPage | From::Link => {}
    }
    if route.least == "nobody" {
        return well(route, brings);
    }
    if route.only_header.is_some() {
        let role = match brings {
            Brings::DoorKey => Some("admin"),
            Brings::ViewerDoorKey => Some("viewer"),
            Brings::Nothing
            | Brings::CookieAlone
            | Brings::SessionKeyAlone
            | Brings::CookieAndKey
            | Brings::ApiKey
            | Brings::ViewerKey
            | Brings::GuardKey
            | Brings::WrongDoorKey
            | Brings::Token
            | Brings::Wrong
            | Brings::NothingThrough(_) => None,
        };
        return match role.is_some_and(|role| rank(role) >= rank(route.least)) {
            // No page has a door, not even one of the console.
            true if from != From::NoPage => 403,
            true => well(route, brings),
            false => 401,
        };
    }
    // Who it is: their role, if they are known. A key for the door counts for nothing here.
    let keyless = [Brings::Nothing, Brings::CookieAlone, Brings::DoorKey, Brings::ViewerDoorKey, Brings::WrongDoorKey];
    let is_anonymous = keyless.contains(&brings);
    let role = match brings {
        Brings::Nothing | Brings::CookieAlone | Brings::DoorKey | Brings::ViewerDoorKey | Brings::WrongDoorKey => {
            open.then_some("operator")
        }
        Brings::CookieAndKey => (from != From::AllowedPage).then_some("admin"),
        Brings::ApiKey | Brings::Token => Some("admin"),
        Brings::ViewerKey | Brings::GuardKey => Some("viewer"),
        Brings::SessionKeyAlone | Brings::Wrong | Brings::NothingThrough(_) => None,
    };
    let has_scope = match brings {
        Brings::ViewerKey => route.scope == "operator.read",
        Brings::GuardKey => route.scope == "operator.guard",
        // Whoever else is known may all that their role may.
        Brings::CookieAndKey | Brings::ApiKey | Brings::Token => true,
        Brings::Nothing | Brings::CookieAlone => true,
        Brings::DoorKey | Brings::ViewerDoorKey | Brings::WrongDoorKey => true,
        Brings::SessionKeyAlone | Brings::Wrong | Brings::NothingThrough(_) => true,
    };
    let may = match (role, route.least) {
        (None, _) => false,
        // That it is none is said to whoever is known.
        (Some(_), "session") => true,
        (Some(role), least) => rank(role) >= rank(least) && has_scope && (route.open || !is_anonymous),
    };
    if may { well(route, brings) } else { 401 }
}

/// An address of the route.
fn address(route: &RouteRow) -> String {
    let filled = route.path.replace("/v1/models/{id}", "/v1/models/main");
    filled.replace("{id}", &"0".repeat(32)).replace("{*name}", "none.js").replace("{*rest}", "1")
}

/// Clients of this machine, each with an address of its own: who fails too often is kept waiting by theirs.
struct Crowd {
    runtime: tokio::runtime::Runtime,
    last: u16,
}

impl Crowd {
    fn new() -> Self {
        Self { runtime: tokio::runtime::Runtime::new().unwrap(), last: 0 }
    }

    /// The status of what is answered to the next of them.
    fn status(&mut self, server: &Server, request: &str) -> u16 {
        self.last += 1;
        let [high, low] = self.last.to_be_bytes();
        let (from, to): (SocketAddr, SocketAddr) = (([127, 1, high, low], 0).into(), server.address.parse().unwrap());
        let connected = self.runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.bind(from)?;
            socket.connect(to).await?.into_std()
        });
        let mut stream = connected.unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

fn every_route(open: bool) {
    let config = format!(
        "[gateway]\nallowed_origins = ['https://chat.example']\nrequests_per_minute = 100000\n{}",
        if open { "" } else { "token_env = 'PINTLE_TEST_TOKEN'\n" }
    );
    let doors = ["anthropic", "gemini", "openai"]
        .map(|vendor| format!("[doors.model.{vendor}]\nbase_url = 'http://127.0.0.1:9'\nkey_env = 'DOOR_KEY'\n"));
    let env = scripted(DONE, &format!("{config}{}", doors.concat()));
    let server = Server::start_with(env, &[("DOOR_KEY", "sk-of-the-operator")]);
    let key = People::key(&server, "anna", &["operator.admin"]);
    let viewer = People::key(&server, "ben", &["operator.read"]);
    let guard = People::key(&server, "laptops", &["operator.guard"]);
    let session = signed_in(&server, &key);
    let mut crowd = Crowd::new();
    let mut wrong = Vec::new();
    for route in pintle_gateway::openapi::rows() {
        for brings in brings() {
            for from in FROM {
                // Whoever signs out has a session to end.
                let own = (route.path == "/auth/sign-out").then(|| signed_in(&server, &key));
                let session = own.as_ref().unwrap_or(&session);
                let headers = match brings {
                    Brings::Nothing => String::new(),
                    Brings::CookieAlone => format!("Cookie: {}\n", session.cookie),
                    Brings::SessionKeyAlone => format!("X-Pintle: {}\n", session.key),
                    Brings::CookieAndKey => format!("Cookie: {}\nX-Pintle: {}\n", session.cookie, session.key),
                    Brings::ApiKey => format!("x-api-key: {key}\n"),
                    Brings::ViewerKey => format!("x-api-key: {viewer}\n"),
                    Brings::GuardKey => format!("x-api-key: {guard}\n"),
                    Brings::DoorKey => format!("X-Pintle-Key: {key}\n"),
                    Brings::ViewerDoorKey => format!("X-Pintle-Key: {viewer}\n"),
                    Brings::WrongDoorKey => format!("X-Pintle-Key: pintle_{}\n", uuid::Uuid::new_v4().simple()),
                    Brings::Token if open => continue,
                    Brings::Token => format!("Authorization: Bearer {TOKEN}\n"),
                    // Nobody guesses it, so nobody who tries it is kept waiting.
                    Brings::Wrong => format!("Authorization: Bearer pintle_{}\n", uuid::Uuid::new_v4().simple()),
                    Brings::NothingThrough(header) => format!("{header}\n"),
                };
                let (host, page) = match from {
                    From::NoPage => ("localhost", ""),
                    From::OwnPage => ("localhost", "Origin: http://localhost\n"),
                    From::AllowedPage => ("localhost", "Origin: https://chat.example\n"),
                    From::OtherPage => ("localhost", "Origin: http://evil.example\n"),
                    From::OtherSite => ("localhost", "Sec-Fetch-Site: cross-site\n"),
                    From::OtherHost => ("evil.example", ""),
                    From::Link => (
                        "localhost",
                        "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n",
                    ),
                };
                let body = if route.takes && route.path != "/auth/sign-out" { "{\"no such member\":1}" } else { "" };
                let kind = if route.path == "/v1/media" { "image/svg+xml" } else { "application/json" };
                let request = format!(
                    "{} {} HTTP/1.1\nHost: {host}\nConnection: close\nContent-Type: {kind}\n\
                     {headers}{page}Content-Length: {}\n\n{body}",
                    route.verb,
                    address(&route),
                    body.len()
                );
                let status = crowd.status(&server, &request);
                let expected = expected(&route, brings, from, open);
                if status != expected {
                    let (verb, path) = (route.verb, route.path);
                    wrong.push(format!("{verb} {path} with {brings:?} from {from:?}: {status}, expected {expected}"));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn every_route_lets_in_who_may_with_a_token() {
    every_route(false);
}

#[test]
fn every_route_lets_in_who_may_without_one() {
    every_route(true);
}

#[test]
fn what_is_in_no_table_is_not_served() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let token = format!("Authorization: Bearer {TOKEN}\n");
    let api = ["/v1", "/v1/", "/v1/embeddings", "/door", "/door/x", "/door/openai/v1/embeddings", "/auth", "/auth/x"];
    for path in api.into_iter().chain(["/x", "/hooks/", "/ws/x", "/debug", "/metrics/x"]) {
        assert_eq!(super::http_client::get(&server, path, &token).status, 404, "{path}");
    }
    // Nor by another method than the table has.
    let rows = pintle_gateway::openapi::rows();
    for route in &rows {
        let is_served = |verb: &str| rows.iter().any(|row| row.verb == verb && address(row) == address(route));
        for verb in ["GET", "POST", "PUT", "DELETE", "PATCH"].into_iter().filter(|verb| !is_served(verb)) {
            let line = format!("{verb} {}", address(route));
            let answer = super::http_client::send(&server, &line, &token, b"");
            assert_eq!(answer.status, 405, "{line}: {}", answer.text());
            assert_eq!(answer.refused().1, "method_not_allowed", "{line}");
            assert!(
                answer.header("allow").is_some_and(|all| all.contains(&route.verb.to_lowercase())),
                "{}",
                answer.head
            );
        }
    }
}
