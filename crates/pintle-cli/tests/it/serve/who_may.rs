//! Every method and every path, tried by everybody: the tables are made from the reference, so that what is new is in
//! them without a word here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::people::{People, signed_in};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, scripted};

/// The roles, the least first.
const ROLES: [&str; 4] = ["viewer", "operator", "admin", "owner"];

/// Every method with its least role, as the reference has them.
pub(super) fn methods() -> Vec<(String, String)> {
    let page = gateway::reference::page().unwrap();
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
    Token,
    Wrong,
    NothingThroughAProxy,
}

const BRINGS: [Brings; 8] = [
    Brings::Nothing,
    Brings::CookieAlone,
    Brings::SessionKeyAlone,
    Brings::CookieAndKey,
    Brings::ApiKey,
    Brings::Token,
    Brings::Wrong,
    Brings::NothingThroughAProxy,
];

/// Where a page is from that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    NoPage,
    OwnPage,
    AllowedPage,
    OtherPage,
    OtherSite,
    OtherHost,
}

const FROM: [From; 6] =
    [From::NoPage, From::OwnPage, From::AllowedPage, From::OtherPage, From::OtherSite, From::OtherHost];

/// The paths that ask who it is, with a body that is none of theirs.
const PATHS: [(&str, &str); 11] = [
    ("GET", "/v1/models"),
    ("GET", "/v1/models/main"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/guard/v1/rules"),
    ("POST", "/guard/v1/records"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages"),
    ("POST", "/auth/sign-out"),
    ("POST", "/auth/switch"),
    ("GET", "/healthz"),
];

/// The status that has to come.
fn expected(path: &str, brings: Brings, from: From, open: bool) -> u16 {
    match from {
        From::OtherPage | From::OtherSite | From::OtherHost => return 403,
        From::AllowedPage if path.starts_with("/auth/") => return 403,
        From::NoPage | From::OwnPage | From::AllowedPage => {}
    }
    if path == "/healthz" || path == "/openapi.json" {
        return 200;
    }
    let known = match brings {
        Brings::Nothing | Brings::CookieAlone => open,
        Brings::CookieAndKey => from != From::AllowedPage,
        Brings::ApiKey | Brings::Token => true,
        Brings::SessionKeyAlone | Brings::Wrong | Brings::NothingThroughAProxy => false,
    };
    match (known, path) {
        (false, _) => 401,
        (true, "/metrics" | "/guard/v1/rules" | "/guard/v1/records")
            if matches!(brings, Brings::Nothing | Brings::CookieAlone) =>
        {
            401
        }
        (true, "/v1/models" | "/v1/models/main" | "/metrics") => 200,
        // No key makes an owner.
        (true, "/auth/switch") => 401,
        (true, "/auth/sign-out") if brings == Brings::CookieAndKey => 200,
        // What is said is wrong, and only whoever is known learns of it.
        (true, _) => 400,
    }
}

fn every_path(open: bool) {
    let config = format!(
        "[gateway]\nallowed_origins = ['https://chat.example']\nrequests_per_minute = 100000\n{}",
        if open { "" } else { "token_env = 'PINTLE_TEST_TOKEN'\n" }
    );
    let server = Server::start(scripted(DONE, &config));
    let key = People::key(&server, "anna", &["operator.admin"]);
    let mut wrong = Vec::new();
    for (method, path) in PATHS {
        for brings in BRINGS {
            for from in FROM {
                let session = signed_in(&server, &key);
                let headers = match brings {
                    Brings::Nothing => String::new(),
                    Brings::CookieAlone => format!("Cookie: {}\n", session.cookie),
                    Brings::SessionKeyAlone => format!("X-Pintle: {}\n", session.key),
                    Brings::CookieAndKey => format!("Cookie: {}\nX-Pintle: {}\n", session.cookie, session.key),
                    Brings::ApiKey => format!("x-api-key: {key}\n"),
                    Brings::Token if open => continue,
                    Brings::Token => format!("Authorization: Bearer {TOKEN}\n"),
                    Brings::Wrong => format!("Authorization: Bearer pintle_{}\n", "0".repeat(32)),
                    Brings::NothingThroughAProxy => "Via: 1.1 proxy\n".to_owned(),
                };
                let (host, page) = match from {
                    From::NoPage => ("localhost", String::new()),
                    From::OwnPage => ("localhost", "Origin: http://localhost\n".to_owned()),
                    From::AllowedPage => ("localhost", "Origin: https://chat.example\n".to_owned()),
                    From::OtherPage => ("localhost", "Origin: http://evil.example\n".to_owned()),
                    From::OtherSite => ("localhost", "Sec-Fetch-Site: cross-site\n".to_owned()),
                    From::OtherHost => ("evil.example", String::new()),
                };
                let body = if method == "POST" && path != "/auth/sign-out" { "{\"no such member\":1}" } else { "" };
                let request = format!(
                    "{method} {path} HTTP/1.1\nHost: {host}\nConnection: close\nContent-Type: application/json\n\
                     {headers}{page}Content-Length: {}\n\n{body}",
                    body.len()
                );
                let status: u16 = server.http(&request).split(' ').nth(1).unwrap().parse().unwrap();
                let expected = expected(path, brings, from, open);
                // Whoever fails too often is told so.
                let is_it = status == expected || (status, expected) == (429, 401);
                if !is_it {
                    wrong.push(format!("{method} {path} with {brings:?} from {from:?}: {status}, expected {expected}"));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn every_path_lets_in_who_may_with_a_token() {
    every_path(false);
}

#[test]
fn every_path_lets_in_who_may_without_one() {
    every_path(true);
}
