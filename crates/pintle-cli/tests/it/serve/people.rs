//! Those who ask, for tests: of every role, with every kind of credential.

use serde_json::{Value, json};

use super::server::{Client, Server, TOKEN};
use crate::env::TestEnv;
use crate::run::{DONE, scripted};

/// The tenant beside the default one.
pub(super) const ACME: &str = "acme";

/// A server with two tenants, and members in both.
pub(super) struct People {
    pub(super) server: Server,
}

/// A session of the console.
pub(super) struct Session {
    pub(super) key: String,
    pub(super) cookie: String,
}

/// A command of an operator on a terminal; what it showed.
#[track_caller]
pub(super) fn operator(env: &TestEnv, args: &[&str]) -> String {
    let seen = env.on_terminal("", args);
    assert_eq!(seen.code, Some(0), "{args:?}: {seen:?}");
    seen.out
}

/// The first word of `text` that begins so.
pub(super) fn word<'a>(text: &'a str, begins: &str) -> &'a str {
    text.split_whitespace().find(|word| word.starts_with(begins)).unwrap_or_else(|| panic!("no {begins} in {text}"))
}

impl People {
    /// Edition standard, with `gateway`, the section of the gateway.
    pub(super) fn start(gateway: &str) -> Self {
        Self::start_with(&[DONE].repeat(64).join(","), gateway)
    }

    /// The same, with these replies of the model.
    pub(super) fn start_with(replies: &str, gateway: &str) -> Self {
        Self::start_where(replies, gateway, "", &[])
    }

    /// The same, with `more` of the agent and further sections, and with further variables.
    pub(super) fn start_where(replies: &str, gateway: &str, more: &str, vars: &[(&str, &str)]) -> Self {
        let config = format!("{more}{gateway}edition = 'standard'\nrequests_per_minute = 100000\n");
        let server = Server::start_with(scripted(replies, &config), vars);
        let mut owner = server.admin("system");
        owner.done("tenants.create", json!({ "slug": ACME, "name": "Acme" }));
        let mut there = server.connected(json!({ "token": TOKEN, "user_id": "system", "tenant_hint": ACME }));
        for client in [&mut owner, &mut there] {
            for role in ["viewer", "operator", "admin"] {
                client.done("members.add", json!({ "userId": format!("a-{role}"), "role": role }));
            }
        }
        Self { server }
    }

    /// Somebody of each role, in the other tenant.
    pub(super) fn by_role(&self) -> Vec<(&'static str, Client)> {
        let somebody = |role: &'static str| {
            let user = if role == "owner" { "system".to_owned() } else { format!("a-{role}") };
            (role, self.server.connected(json!({ "token": TOKEN, "user_id": user, "tenant_hint": ACME })))
        };
        ["viewer", "operator", "admin", "owner"].map(somebody).into()
    }

    /// An administrator of `tenant`.
    pub(super) fn admin_of(&self, tenant: &str) -> Client {
        self.server.connected(json!({ "token": TOKEN, "user_id": "a-admin", "tenant_hint": tenant }))
    }

    /// Somebody with a fresh key that has these scopes.
    pub(super) fn with_key(&self, scopes: &[&str]) -> Client {
        let mut admin = self.admin_of(ACME);
        let made = admin.done("api_keys.create", json!({ "name": "ci", "owner": "a-admin", "scopes": scopes }));
        self.server.connected(json!({ "token": made["key"] }))
    }

    /// A fresh key of the default tenant, made in a terminal.
    pub(super) fn key(server: &Server, owner: &str, scopes: &[&str]) -> String {
        let mut args = vec!["keys", "create", "ci", "--owner", owner];
        scopes.iter().for_each(|scope| args.extend(["--scope", scope]));
        word(&operator(&server.env, &args), "pintle_").to_owned()
    }
}

/// The status, head and body of a post of JSON.
pub(super) fn post(server: &Server, path: &str, headers: &str, body: &Value) -> (u16, String, Value) {
    let body = body.to_string();
    let answer = server.http(&format!(
        "POST {path} HTTP/1.1\nHost: localhost\nConnection: close\nContent-Type: application/json\n{headers}\
         Content-Length: {}\n\n{body}",
        body.len()
    ));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body)
}

/// The session that an answer begins.
pub(super) fn session_of((status, head, body): (u16, String, Value)) -> Session {
    assert_eq!(status, 200, "{body}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    Session {
        key: body["sessionKey"].as_str().unwrap().to_owned(),
        cookie: cookie.split(';').next().unwrap().to_owned(),
    }
}

/// A session of the console for whoever has `token`.
pub(super) fn signed_in(server: &Server, token: &str) -> Session {
    session_of(post(server, "/auth/sign-in", "", &json!({ "token": token })))
}
