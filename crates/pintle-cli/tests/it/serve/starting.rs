//! How a server starts, what it says of itself, and how it changes while it runs.

use std::io::Read as _;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use serde_json::json;

use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::env::{PINTLE, TestEnv};
use crate::run::{DONE, GUARD, LISTS, MODEL, scripted};

/// How long a test waits for what it asked for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `there` is so.
fn until(what: &str, mut there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_start_says_what_is_served() {
    let mut server = Server::start(scripted(DONE, &format!("{WITH_TOKEN}{GUARD}")));
    let head = server.until("rules ");
    let file = server.env.path("data/pintle/pintle.db");
    let expected = format!("  edition  lite; tenants: default\n  agents   main\n  store    {}\n", file.display());
    assert!(head.starts_with(&expected), "{head}");
    assert!(head.contains("  hooks    ") && head.contains("  rules    0 in force"), "{head}");
}

#[test]
fn a_link_is_shown_on_a_terminal_and_nowhere_else() {
    let env = scripted(DONE, WITH_TOKEN);
    let mut command = env.command(PINTLE);
    command.args(["serve", "--open", "--listen", "127.0.0.1:0"]).env("PINTLE_TEST_TOKEN", TOKEN);
    let (mut server, before) = Server::launch(env, command, "--open prints its link");
    server.signal(Signal::SIGTERM);
    let after = server.ended().1;
    assert!(!before.contains("#code=") && !after.contains("#code="), "{before}\n{after}");
}

#[test]
fn a_service_manager_hears_that_it_serves_lives_and_ends() {
    let env = scripted(DONE, WITH_TOKEN);
    let path = env.path("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = || {
        let mut text = [0; 256];
        let length = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let vars = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    let mut server = Server::start_with(env, &vars);
    assert!(heard().starts_with("READY=1\nMAINPID="));
    assert_eq!([heard(), heard()], ["WATCHDOG=1", "WATCHDOG=1"]);
    server.signal(Signal::SIGTERM);
    until("it never said that it ends", || heard() == "STOPPING=1");
    assert_eq!(server.ended().0, Some(0));
}

/// A certificate for localhost and its key.
pub(super) fn certificate(env: &TestEnv) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    env.write("config/pintle/key.pem", &pem("PRIVATE KEY", &made.signing_key.serialize_der()));
    let cert = pem("CERTIFICATE", made.cert.der());
    env.write("config/pintle/cert.pem", &cert);
    cert
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(bytes))
}

/// The certificate that a server shows.
fn shown(server: &Server) -> String {
    let script = "import ssl, sys; print(ssl.get_server_certificate(('127.0.0.1', int(sys.argv[1]))))";
    let port = server.address.rsplit(':').next().unwrap();
    let output = TestEnv::output(server.env.command("python3").args(["-c", script, port]), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_renewed_certificate_needs_no_restart() {
    let plain = |pem: &str| pem.split_whitespace().collect::<String>();
    let env = scripted(DONE, &format!("{WITH_TOKEN}tls = {{ cert = 'cert.pem', key = 'key.pem' }}\n"));
    let first = certificate(&env);
    let server = Server::start(env);
    assert_eq!(plain(&shown(&server)), plain(&first));
    // One that is none changes nothing.
    server.env.write("config/pintle/cert.pem", "nothing");
    let second = certificate(&server.env);
    until("the renewed certificate is not shown", || plain(&shown(&server)) == plain(&second));
}

#[test]
fn a_check_reads_the_certificate_that_a_start_needs() {
    let env = scripted(DONE, "[gateway]\ntls = { cert = 'cert.pem', key = 'key.pem' }\n");
    let check = |what: &str| {
        let (checked, started) = (env.pintle(&["serve", "--check"]), env.pintle(&["serve", "--listen", "127.0.0.1:0"]));
        assert_eq!((checked.code, started.code), (Some(2), Some(2)), "{what}: {checked} {started}");
        assert!(checked.err.contains(&format!("{what}:")) && checked.err.contains("gateway.tls: "), "{checked}");
        assert!(checked.err.contains("a chain of certificates in PEM"), "{checked}");
    };
    check("cert.pem");
    certificate(&env);
    env.write("config/pintle/cert.pem", "nothing");
    check("cert.pem");
    certificate(&env);
    std::fs::remove_file(env.path("config/pintle/key.pem")).unwrap();
    check("key.pem");
    // A key that belongs to another certificate.
    certificate(&env);
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    env.write("config/pintle/key.pem", &pem("PRIVATE KEY", &other.signing_key.serialize_der()));
    check("cert.pem");
    certificate(&env);
    assert_eq!(env.pintle(&["serve", "--check"]).code, Some(0));
}

#[test]
fn while_new_children_shake_hands_turns_go_on_under_the_old_configuration() {
    let replies = [DONE, LISTS, DONE].join(",");
    let mut server = Server::start(scripted(&replies, WITH_TOKEN));
    let mut anna = server.admin("anna");
    let (begun, go) = (server.env.path("begun"), server.env.path("go"));
    let slow = format!(
        "touch '{}'\nwhile [ ! -e '{}' ]; do sleep 0.05; done\nexec sh refuses.sh\n",
        begun.display(),
        go.display()
    );
    server.env.write("config/pintle/slow.sh", &slow);
    let guard =
        GUARD.replace("refuses.sh", "slow.sh").replace("pair = false\n", "pair = false\nstart_timeout_ms = 60000\n");
    server.env.user_config(&format!("{MODEL}{WITH_TOKEN}{guard}"));
    server.signal(Signal::SIGHUP);
    until("the new child never started", || begun.exists());
    let said = anna.done("chat.send", json!({ "message": "one" }));
    assert_eq!(said["content"], "All done.");
    assert!(anna.done("agents.list", json!({}))["agents"].is_array());
    std::fs::write(go, "").unwrap();
    server.until("the new configuration is in force");
    // The script of the model begins anew under the new configuration.
    anna.done("chat.send", json!({ "message": "two" }));
    anna.done("chat.send", json!({ "message": "three" }));
    assert!(anna.kinds().contains(&"hook.blocked"), "{:?}", anna.kinds());
}

#[test]
fn what_a_reload_cannot_change_waits_for_a_restart_and_is_named() {
    let mut server = Server::start(scripted(DONE, WITH_TOKEN));
    server.env.user_config(&format!("{MODEL}system = 'be brief'\n{WITH_TOKEN}listen = ['127.0.0.1:1']\n"));
    server.signal(Signal::SIGHUP);
    let told = server.until("waits for a restart");
    assert!(told.contains("the new configuration is in force"), "{told}");
    assert!(told.contains("waits for a restart: gateway"), "{told}");
    assert_eq!(server.get("/healthz").0, 200, "it answers where it did");
}

#[test]
fn a_signal_does_not_wait_for_a_reload() {
    let mut server = Server::start(scripted(DONE, WITH_TOKEN));
    let begun = server.env.path("begun");
    server.env.write("config/pintle/slow.sh", &format!("touch '{}'\nexec sleep 60\n", begun.display()));
    let guard =
        GUARD.replace("refuses.sh", "slow.sh").replace("pair = false\n", "pair = false\nstart_timeout_ms = 60000\n");
    server.env.user_config(&format!("{MODEL}{WITH_TOKEN}{guard}"));
    server.signal(Signal::SIGHUP);
    until("the new child never started", || begun.exists());
    server.signal(Signal::SIGTERM);
    let (code, last) = server.ended();
    assert_eq!(code, Some(0), "{last}");
}

#[test]
fn nobody_holds_a_connection_without_saying_who_they_are() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let began = Instant::now();
    let mut silent = server.client();
    // What is no connect is answered, and buys no time.
    let refused = silent.call("hooks.list", json!({}));
    assert_eq!(refused["error"]["message"], "first request must be 'connect'");
    assert_eq!(silent.text(), None);
    let held = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(20)).contains(&held), "{held:?}");
    // The same of a connection that never asks for anything.
    let mut open = TcpStream::connect(&server.address).unwrap();
    open.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut nothing = Vec::new();
    open.read_to_end(&mut nothing).unwrap();
    assert!(server.connected(json!({ "token": TOKEN })).done("agents.list", json!({}))["agents"].is_array());
}
