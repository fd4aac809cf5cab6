//! Who is let in, and what is said to whoever is not.

use serde_json::json;

use super::http_client::{CHAT, says, send};
use super::people::{People, operator, post};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, scripted};

#[test]
fn it_says_that_it_lives_and_whether_it_is_ready() {
    let server = Server::start(scripted(DONE, ""));
    assert_eq!(server.get("/healthz"), (200, json!({ "status": "ok" })));
    assert_eq!(server.get("/readyz"), (200, json!({ "store": "ok", "serving": "ok" })));
    assert_eq!(server.get("/nothing").0, 404);
    let head = server.http("GET /healthz HTTP/1.1\nHost: localhost\nConnection: close\n\n").to_lowercase();
    assert!(head.contains("x-request-id: ") && head.contains("x-content-type-options: nosniff"), "{head}");
}

#[test]
fn another_name_and_another_origin_are_turned_away() {
    let server = Server::start(scripted(DONE, ""));
    let status = |request: &str| server.http(request).split(' ').nth(1).unwrap().to_owned();
    assert_eq!(status("GET /healthz HTTP/1.1\nHost: evil.example\nConnection: close\n\n"), "403");
    assert_eq!(
        status("GET /healthz HTTP/1.1\nHost: localhost\nOrigin: http://evil.example\nConnection: close\n\n"),
        "403"
    );
    assert_eq!(server.client_with(&[("origin", "http://localhost:3000")]).err(), Some(403));
    let own = format!("http://{}", server.address);
    assert!(server.client_with(&[("origin", &own)]).is_ok());
}

#[test]
fn whoever_says_nothing_is_an_operator_on_their_own_machine() {
    let server = Server::start(scripted(DONE, ""));
    let mut client = server.client();
    let welcome = client.done("connect", json!({ "token": "", "user_id": "" }));
    assert_eq!(
        welcome,
        json!({
            "protocol": 3, "role": "operator", "user_id": "local", "tenant_id": "0193a5b0-7000-7000-8000-000000000002",
            "is_owner": false, "is_master_scope": false, "edition": "lite",
            "server": { "name": "pintle", "version": env!("CARGO_PKG_VERSION") },
            "tenant_name": "Default", "tenant_slug": "default", "scopes": ["operator.read", "operator.write"]
        })
    );
    assert_eq!(client.refused("hooks.create", json!({})).0, "UNAUTHORIZED");
    assert_eq!(client.refused("hooks.test", json!({})).0, "UNAUTHORIZED");
    assert_eq!(client.refused("approvals.list", json!({})).0, "UNAUTHORIZED");
    assert!(client.done("hooks.list", json!({}))["hooks"].is_array());
    // Somebody else brings it.
    let mut brought = server.client_with(&[("x-forwarded-for", "203.0.113.1")]).unwrap();
    assert_eq!(brought.refused("connect", json!({})).0, "UNAUTHORIZED");
}

#[test]
fn with_a_token_nobody_is_anonymous() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.client();
    assert_eq!(client.refused("connect", json!({})).0, "UNAUTHORIZED");
    assert_eq!(
        client.refused("hooks.list", json!({})),
        ("UNAUTHORIZED".into(), "first request must be 'connect'".into())
    );
    assert_eq!(client.refused("connect", json!({ "token": "wrong" })).0, "UNAUTHORIZED");
    let welcome = client.done("connect", json!({ "token": TOKEN, "user_id": "system" }));
    assert_eq!((&welcome["role"], &welcome["is_owner"]), (&json!("owner"), &json!(true)));
    assert_eq!(client.refused("connect", json!({ "token": TOKEN })).0, "FAILED_PRECONDITION");
}

#[test]
fn words_are_not_tried_for_long() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut tried = 0;
    let refused = 'tries: loop {
        let mut client = server.client();
        for _ in 0..5 {
            tried += 1;
            let answer = client.call("connect", json!({ "token": format!("guess-{tried}") }));
            if answer["error"]["code"] == "RESOURCE_EXHAUSTED" {
                break 'tries answer;
            }
        }
        assert_eq!(client.text(), None);
    };
    assert_eq!(tried, 11);
    assert!(refused["error"]["retryAfterMs"].as_u64().unwrap() > 0, "{refused}");
    // Not even the right one is looked at then; a key, which nobody guesses, is.
    let right = server.client().call("connect", json!({ "token": TOKEN }));
    assert_eq!(right["error"]["code"], "RESOURCE_EXHAUSTED", "{right}");
    let key = People::key(&server, "anna", &["operator.read"]);
    assert!(server.connected(json!({ "token": key })).done("hooks.list", json!({}))["hooks"].is_array());
}

#[test]
fn what_is_no_frame_is_refused_in_the_words_of_the_protocol() {
    let server = Server::start(scripted(DONE, ""));
    let mut client = server.connected(json!({}));
    let mut check = |text: &str, message: &str| {
        client.send(text);
        let answer = client.frame();
        assert_eq!(answer["error"]["code"], "INVALID_REQUEST", "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(message), "{answer}");
    };
    check("{", "malformed request: ");
    check("[]", "invalid frame: ");
    check(r#"{"type":"res","id":"7"}"#, "unexpected frame type: res");
    check(r#"{"type":"req","id":"7","method":"x.y"}"#, "unknown method: x.y");
    check(&format!("{}1{}", "[".repeat(600), "]".repeat(600)), "malformed request: ");
    client.send(&"x".repeat((512 << 10) + 1));
    assert_eq!(client.text(), None);
}

#[test]
fn a_door_to_a_model_that_lets_nobody_in_is_told_of_before_it_opens() {
    for (door, wanted) in [
        ("tenant = 'acme'", "there is no tenant `acme`"),
        ("key_env = 'NOBODY_SETS_THIS'", "`NOBODY_SETS_THIS`, which"),
        ("hosted = []", "neither `key_env` nor `tenant`"),
    ] {
        let more = format!("[doors.model.openai]\n{door}\n");
        let seen = scripted(DONE, &more).pintle(&["serve", "--check"]);
        assert!(seen.code == Some(5) && seen.err.contains(wanted), "{door}: {seen}");
    }
    let seen = scripted(DONE, "[doors.model.openai]\ntenant = 'default'\n").pintle(&["serve", "--check"]);
    assert_eq!(seen.code, Some(0), "{seen}");
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let env = scripted(DONE, "");
    let seen = env.pintle(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(seen.code, Some(2));
    assert!(
        seen.err.contains("0.0.0.0:0 is reachable from other machines, and nothing authenticates callers"),
        "{}",
        seen.err
    );
    let seen = scripted(DONE, WITH_TOKEN).pintle(&["serve", "--check"]);
    assert_eq!(seen.code, Some(2));
    assert!(seen.err.contains("`PINTLE_TEST_TOKEN`, which `gateway.token_env` names, is not set"), "{}", seen.err);
    assert_eq!(scripted(DONE, "").pintle(&["serve", "--check"]).code, Some(0));
}

#[test]
fn a_link_in_a_chat_opens_a_page_and_nothing_else() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let link = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n";
    let status = |verb: &str, path: &str, headers: &str| {
        let request = format!("{verb} {path} HTTP/1.1\nHost: localhost\nConnection: close\n{headers}\n");
        server.http(&request).split(' ').nth(1).unwrap().to_owned()
    };
    for page in ["/", "/approvals/0193a5b0-7000-7000-8000-00000000beef", "/chat/x", "/hooks", "/chain"] {
        assert_eq!(status("GET", page, link), "200", "{page}");
    }
    for path in ["/v1/models", "/metrics", "/openapi.json", "/assets/x.js", "/healthz", "/ws"] {
        assert_eq!(status("GET", path, link), "403", "{path}");
    }
    assert_eq!(status("POST", "/auth/sign-in", link), "403");
    assert_eq!(status("POST", "/approvals/1", link), "403");
    for other in [
        "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: document\n",
        "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: iframe\n",
        "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\nSec-Fetch-Dest: empty\n",
        "Sec-Fetch-Site: same-site\n",
        &format!("Origin: http://evil.example\n{link}"),
    ] {
        assert_eq!(status("GET", "/approvals/1", other), "403", "{other}");
    }
}

#[test]
fn signing_in_from_a_page_of_others_says_what_is_wrong() {
    let other = format!("{WITH_TOKEN}allowed_origins = ['https://chat.example']\n");
    let server = Server::start(scripted(DONE, &other));
    for path in ["/auth/sign-in", "/auth/exchange", "/auth/sign-out"] {
        let (status, _, body) = post(&server, path, "Origin: https://chat.example\n", &json!({ "token": TOKEN }));
        assert_eq!((status, &body["error"]["code"]), (403, &json!("forbidden_origin")), "{path}: {body}");
        assert!(body["error"]["message"].as_str().unwrap().contains("only on this server's own pages"), "{body}");
    }
}

#[test]
fn a_page_of_others_that_is_let_in_may_ask_and_read() {
    let other = format!("{WITH_TOKEN}allowed_origins = ['https://chat.example']\n");
    let server = Server::start(scripted(DONE, &other));
    let first = |path: &str, origin: &str| {
        let asked = "Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: authorization,content-type\n";
        send(&server, &format!("OPTIONS {path}"), &format!("Origin: {origin}\n{asked}"), b"")
    };
    // What a browser asks before it sends the request of such a page.
    let told = first(CHAT, "https://chat.example");
    assert_eq!(told.status, 204, "{}", told.head);
    for (name, value) in [
        ("access-control-allow-origin", Some("https://chat.example")),
        ("access-control-allow-methods", Some("get, post")),
        ("access-control-allow-headers", Some("authorization,content-type")),
        ("access-control-allow-credentials", None),
        ("vary", Some("origin")),
    ] {
        assert_eq!(told.header(name), value, "{}", told.head);
    }
    // The request itself says who it is; the page reads refusals as well.
    let page = "Content-Type: application/json\nOrigin: https://chat.example\n";
    let asks =
        |who: &str| send(&server, &format!("POST {CHAT}"), &format!("{page}{who}"), says("hi").to_string().as_bytes());
    let (nobody, known) = (asks(""), asks(&format!("Authorization: Bearer {TOKEN}\n")));
    assert_eq!((nobody.status, known.status), (401, 200), "{}", known.text());
    for answer in [nobody, known] {
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://chat.example"), "{}", answer.head);
        assert!(answer.header("access-control-expose-headers").is_some_and(|all| all.contains("x-pintle-turn")));
    }
    // No other page learns anything, and the server's own need none of it.
    for (origin, status) in [("https://evil.example", 403), ("http://localhost", 405)] {
        let told = first(CHAT, origin);
        assert_eq!(
            (told.status, told.header("access-control-allow-origin")),
            (status, None),
            "{origin}: {}",
            told.head
        );
    }
}

#[test]
fn a_token_that_others_may_guess_is_refused_where_they_can_try() {
    let env = scripted(DONE, &format!("{WITH_TOKEN}listen = ['0.0.0.0:0']\n"));
    let with = |token: &str, args: &[&str]| {
        env.run(env.command(crate::env::PINTLE).args(args).env("PINTLE_TEST_TOKEN", token), "")
    };
    let short = "`PINTLE_TEST_TOKEN` has 5 bytes, and 0.0.0.0:0 is reachable from other machines";
    let seen = with("short", &["serve", "--check"]);
    assert!(seen.code == Some(2) && seen.err.contains(short) && seen.err.contains("openssl rand"), "{seen}");
    let seen = with("short", &["doctor"]);
    assert!(seen.code != Some(0) && seen.out.contains(short), "{seen}");
    assert_eq!(with("short", &["serve", "--check", "--listen", "127.0.0.1:0"]).code, Some(0));
    assert_eq!(with("0123456789abcdef", &["serve", "--check"]).code, Some(0));
}

#[test]
fn what_anybody_can_read_on_its_way_is_warned_of_at_each_start() {
    let check = |more: &str| {
        let env = scripted(DONE, &format!("{WITH_TOKEN}{more}"));
        let mut command = env.command(crate::env::PINTLE);
        command.args(["serve", "--check", "--listen", "0.0.0.0:0"]).env("PINTLE_TEST_TOKEN", TOKEN);
        let seen = env.run(&mut command, "");
        assert_eq!(seen.code, Some(0), "{seen}");
        seen.err.contains("others reach it without encryption")
    };
    assert!(check(""));
    assert!(!check("trusted_proxies = ['10.0.0.0/8']\n"));
}

#[test]
fn what_an_agent_starts_is_not_taken_for_the_person_of_this_machine() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "bash ask.sh"}}]}"#;
    let env = scripted(&[call, DONE].join(","), "tools = ['exec']\n");
    // From the command itself, and from a program that it leaves to itself.
    let asks = "exec 3<>/dev/tcp/127.0.0.1/$(cat port)\n\
                printf 'GET /v1/models HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3\ncat <&3\n";
    env.write("here/ask.bash", asks);
    env.write("here/ask.sh", "bash ask.bash >own.txt\n(setsid bash ask.bash >left.txt; touch over) &\nuntil test -e over; do sleep 0.01; done\n");
    let server = Server::start(env);
    server.env.write("here/port", server.address.rsplit(':').next().unwrap());
    assert_eq!(server.get("/v1/models").0, 200);
    assert_eq!(
        post(
            &server,
            "/v1/chat/completions",
            "",
            &json!({
                "model": "main", "messages": [{ "role": "user", "content": "go" }],
            })
        )
        .0,
        200
    );
    for told in ["own.txt", "left.txt"] {
        let answer = std::fs::read_to_string(server.env.path("here").join(told)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("a program that an agent started needs a key of its own"), "{answer}");
    }
}

#[test]
fn what_agents_reach_in_spite_of_the_gateway_is_said_at_the_start() {
    let env = scripted(DONE, "tools = ['exec']\n[gateway]\nedition = 'standard'\n");
    let root = "Pintle runs as root, so commands of `exec` (agents: main) can read in /proc";
    let shared = "the tenants share the workspaces of the agents main: ";
    let seen = env.pintle(&["serve", "--check"]);
    assert_eq!(seen.err.contains(root), nix::unistd::geteuid().is_root(), "{seen}");
    assert!(!seen.err.contains(shared), "{seen}");
    operator(&env, &["tenants", "create", "acme"]);
    let seen = env.pintle(&["serve", "--check"]);
    assert!(seen.err.contains(shared), "{seen}");
    let seen = env.pintle(&["doctor"]);
    assert!(seen.out.contains(shared), "{seen}");
}

#[test]
fn an_agent_that_guesses_shuts_nobody_else_out() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "bash guess.sh"}}]}"#;
    let env = scripted(&[call, DONE].join(","), &format!("tools = ['exec']\n{WITH_TOKEN}"));
    let guesses = "for number in 1 2 3 4 5 6 7 8 9 10 11 12; do\nexec 3<>/dev/tcp/127.0.0.1/$(cat port)\n\
                   printf 'GET /v1/models HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer wrong\\r\\nConnection: close\\r\\n\\r\\n' >&3\n\
                   cat <&3 >>said.txt\ndone\n";
    env.write("here/guess.sh", guesses);
    let server = Server::start(env);
    server.env.write("here/port", server.address.rsplit(':').next().unwrap());
    let bearer = format!("Authorization: Bearer {TOKEN}\n");
    let go = json!({ "model": "main", "messages": [{ "role": "user", "content": "go" }] });
    assert_eq!(post(&server, "/v1/chat/completions", &bearer, &go).0, 200);
    let said = std::fs::read_to_string(server.env.path("here/said.txt")).unwrap();
    let count = |status: u16| said.matches(&format!("HTTP/1.1 {status} ")).count();
    assert_eq!((count(401), count(429)), (10, 2), "{said}");
    let models = format!("GET /v1/models HTTP/1.1\nHost: localhost\nConnection: close\n{bearer}\n");
    let answer = server.http(&models);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
