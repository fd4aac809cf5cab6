//! What `deploy/` holds, run: the unit as systemd reads it, the proxies in front of two nodes, the image without an engine.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::postgres;
use regex::Regex;
use serde_json::json;

use super::server::{Server, TOKEN};
use super::starting::certificate;
use crate::env::{PINTLE, TestEnv};
use crate::guard_door::door::wait_for;
use crate::run::MODEL;

/// How long a program may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most exposed that the unit may be, by `systemd-analyze security`.
const MOST_EXPOSED: f64 = 2.0;

fn deployed(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    fs::read_to_string(root.join(name)).unwrap()
}

#[test]
fn the_unit_is_one_that_systemd_takes_and_it_may_do_little() {
    let env = TestEnv::new();
    let unit = deployed("pintle.service");
    let exec = format!("ExecStart={PINTLE} serve");
    let here = unit.replace("ExecStart=/usr/bin/pintle serve", &exec);
    assert_ne!(here, unit);
    let file = env.write("pintle.service", &here);
    let analyze = |args: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        let output = TestEnv::output(command.args(args).arg(&file), "");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.success(), text)
    };
    let (good, said) = analyze(&["verify", "--man=no"]);
    let about_it: Vec<&str> = said.lines().filter(|line| line.contains("pintle.service")).collect();
    assert!(good && about_it.is_empty(), "{said}");
    let (_, said) = analyze(&["security", "--offline=true", "--no-pager"]);
    let level = Regex::new(r"exposure level for pintle.service: ([\d.]+)").unwrap();
    let level: f64 = level.captures(&said).unwrap_or_else(|| panic!("{said}"))[1].parse().unwrap();
    assert!(level <= MOST_EXPOSED, "{level}: {said}");
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Two nodes on one PostgreSQL.
struct Nodes {
    /// Dropped before its database.
    nodes: Vec<Server>,
    _database: postgres::Server,
    /// What both see of files.
    _shared: tempfile::TempDir,
}

/// The configuration that is shipped for two nodes, with what is here in the place of what is there.
fn shipped(url: &str, work: &Path) -> String {
    let here = [
        ("postgres://pintle:change-me@store/pintle", url),
        ("[gateway]\ntoken_env = \"PINTLE_TOKEN\"", "[gateway]\ntoken_env = 'PINTLE_TEST_TOKEN'\ndrain_delay_s = 0"),
        (r#"["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]"#, "['127.0.0.1']"),
        (
            "kind = \"openai\"\nbase_url = \"http://models.internal:8000/v1\"",
            "kind = 'scripted'\nscript = 'replies.json'",
        ),
        ("\"/work\"", &format!("'{}'", work.display())),
    ];
    here.iter().fold(deployed("pintle.toml"), |text, (there, here)| {
        assert!(text.contains(there), "{there}");
        text.replace(there, here)
    })
}

impl Nodes {
    fn start() -> Self {
        let database = postgres::Server::start();
        let url = database.fresh_database();
        let reply = r#"{"delay_ms": 150, "text": ["one ", "two ", "three ", "four"], "repeat": true}"#;
        let shared = tempfile::tempdir().unwrap();
        let config = shipped(&url, shared.path());
        let node = || {
            let env = TestEnv::new();
            env.write("config/pintle/replies.json", &format!("{{\"replies\": [{reply}]}}"));
            env.user_config(&config);
            let key = "5f0c1e2d3b4a59687786958493a2b1c0dfeeedfc0b1a29384756657483920a1b";
            Server::start_with(env, &[("PINTLE_ENCRYPTION_KEY", key)])
        };
        Self { nodes: vec![node(), node()], _database: database, _shared: shared }
    }

    /// What stands in `deploy/` for two nodes, with the addresses of these.
    fn named_in(&self, text: &str) -> String {
        let text = text.replace("one:18790", &self.nodes[0].address);
        text.replace("two:18790", &self.nodes[1].address)
    }
}

/// What a client behind a proxy sees. Arguments: the port, the token. Prints a line for each thing that went well.
const CLIENT: &str = r#"
import base64, json, os, socket, ssl, struct, sys, time
port, token = int(sys.argv[1]), sys.argv[2]
tls = ssl.create_default_context()
tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE

# Nobody may send more than twenty messages a minute.
user = os.urandom(8).hex()

def opened():
    return tls.wrap_socket(socket.create_connection(('127.0.0.1', port), 20), server_hostname='localhost')

def ask(method, path, body=b'', more=''):
    link = opened()
    head = f'{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nX-Pintle-User: {user}\r\n'
    link.sendall(f'{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n'.encode() + body)
    pieces = []
    while piece := link.recv(65536):
        pieces.append((time.monotonic(), piece))
    return pieces

status = lambda pieces: int(b''.join(piece for _, piece in pieces).split()[1])
until = time.monotonic() + 25
while True:
    try:
        if status(ask('GET', '/readyz')) == 200:
            break
    except OSError:
        pass
    assert time.monotonic() < until, 'it never answers'
    time.sleep(0.1)
print('it answers')

body = json.dumps({'model': 'main', 'stream': True, 'messages': [{'role': 'user', 'content': 'go'}]}).encode()
pieces = ask('POST', '/v1/chat/completions', body)
times = [at for at, piece in pieces if b'"content"' in piece]
assert times[-1] - times[0] > 0.2, f'it came at once: {pieces}'
print('it streams')

# Neither node is the one of the conversation: balancers send each message wherever they like.
kept = json.dumps({'model': 'main', 'messages': [{'role': 'user', 'content': 'go'}]}).encode()
for _ in range(4):
    pieces = ask('POST', '/v1/chat/completions', kept, 'X-Pintle-Session: kept\r\n')
    assert status(pieces) == 200, pieces
print('it keeps a conversation')

link = opened()
key = base64.b64encode(os.urandom(16)).decode()
link.sendall(f'GET /ws HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: https://pintle.example.org\r\nUpgrade: websocket\r\n'
             f'Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n'.encode())
head = b''
while b'\r\n\r\n' not in head:
    head += link.recv(1)
assert b' 101 ' in head, head
frame = json.dumps({'type': 'req', 'id': '1', 'method': 'connect', 'params': {'token': token}}).encode()
mask = os.urandom(4)
link.sendall(bytes([0x81, 0xfe]) + struct.pack('>H', len(frame)) + mask
             + bytes(byte ^ mask[at % 4] for at, byte in enumerate(frame)))
said = b''
while b'"is_owner"' not in said:
    said += link.recv(4096)
print('it upgrades')
"#;

/// What a client sees behind a proxy at `port`.
fn seen_behind(port: u16) -> String {
    let mut client = Command::new("python3");
    let output = TestEnv::output(client.args(["-c", CLIENT, &port.to_string(), TOKEN]), "");
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
}

/// Nodes behind a proxy at `port` are one server, and one of them is enough once the proxy `knows` of an address that
/// nobody answers there.
fn nodes_are_one_server(mut nodes: Nodes, port: u16, knows: impl Fn(&str) -> bool) {
    let all = "it answers\nit streams\nit keeps a conversation\nit upgrades\n";
    assert_eq!(seen_behind(port), all);
    let gone = nodes.nodes.remove(0).address.clone();
    wait_for(|| knows(&gone).then_some(()));
    for _ in 0..3 {
        assert_eq!(seen_behind(port), all, "with one node");
    }
}

#[test]
fn nginx_makes_one_server_of_two_nodes() {
    let (nodes, env, port) = (Nodes::start(), TestEnv::new(), free_port());
    certificate(&env);
    let site = nodes.named_in(&deployed("nginx.conf"));
    let site = site.replace("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl"));
    let site = site.replace("/etc/nginx/pintle", env.path("config/pintle").to_str().unwrap());
    let root = env.path("");
    let root = root.display();
    let config = format!(
        "daemon off;\npid {root}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n\
         client_body_temp_path {root}/body;\nproxy_temp_path {root}/proxy;\nfastcgi_temp_path {root}/fastcgi;\n\
         uwsgi_temp_path {root}/uwsgi;\nscgi_temp_path {root}/scgi;\n{site}\n}}\n"
    );
    let file = env.write("nginx.conf", &config);
    let mut nginx = Command::new("nginx");
    nginx.arg("-c").arg(&file).arg("-p").arg(env.path("")).stderr(Stdio::null());
    let _nginx = Running(nginx.spawn().unwrap());
    // It asks the next one.
    nodes_are_one_server(nodes, port, |_| true);
}

#[test]
fn caddy_makes_one_server_of_two_nodes() {
    let (nodes, env, port) = (Nodes::start(), TestEnv::new(), free_port());
    let site = nodes.named_in(&deployed("Caddyfile"));
    // A certificate of its own, in the place of one that only the owner of the name gets.
    let own = format!("https://localhost:{port} {{\n\ttls internal\n");
    let site = site.replace("pintle.example.org {\n", &own);
    let globals = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n";
    let file = env.write("Caddyfile", &format!("{globals}{site}"));
    let mut caddy = env.command("caddy");
    let log = env.path("caddy.log");
    caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file).stdout(Stdio::null());
    caddy.stderr(fs::File::create(&log).unwrap());
    let _caddy = Running(caddy.spawn().unwrap());
    // Up to 2.11 it answers 502 to a request with a body that it first sends to a node which is gone.
    let failed = |address: &str| format!("\"msg\":\"HTTP request failed\",\"host\":\"{address}\"");
    nodes_are_one_server(nodes, port, |address| fs::read_to_string(&log).unwrap().contains(&failed(address)));
}

/// What the image is made of is there, and nothing of it is left out on the way to the one who makes it.
#[test]
fn the_image_is_made_of_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dockerfile = deployed("Dockerfile");
    let stage = dockerfile.split("FROM ").find(|stage| stage.contains("AS console")).unwrap();
    let copied: Vec<&str> = stage.lines().filter_map(|line| line.strip_prefix("COPY ")?.split(' ').next()).collect();
    assert_eq!(copied, ["clients", "console"]);
    assert!(copied.iter().all(|path| root.join(path).is_dir()));
    assert!(dockerfile.contains("COPY --from=console /src/console/dist console/dist\nRUN cargo build"));
    let ignored = fs::read_to_string(root.join(".dockerignore")).unwrap();
    assert_eq!(ignored, ".cache\n.git\n**/dist\n**/node_modules\ntarget\n");
}

/// The libraries that the program loads, and what loads them.
fn libraries() -> Vec<PathBuf> {
    let output = TestEnv::output(Command::new("ldd").arg(PINTLE), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

/// The words of an instruction of the Dockerfile that is a list.
fn list_of(dockerfile: &str, instruction: &str) -> Vec<String> {
    let line = dockerfile.lines().rev().find_map(|line| line.strip_prefix(instruction)).unwrap();
    serde_json::from_str(line.trim()).unwrap()
}

#[test]
fn the_image_runs_without_root_on_a_file_system_that_is_only_read() {
    let dockerfile = deployed("Dockerfile");
    let user = dockerfile.lines().find_map(|line| line.strip_prefix("USER ")).unwrap().to_owned();
    let (uid, gid) = user.split_once(':').unwrap();
    let env = TestEnv::new();
    env.write("replies.json", r#"{"replies": [{"text": "here", "repeat": true}]}"#);
    env.write("pintle.toml", &format!("{}[gateway]\ntoken_env = 'PINTLE_TOKEN'\n", MODEL));
    env.write("resolv.conf", "");
    let mut bwrap = Command::new("bwrap");
    bwrap.args([
        "--die-with-parent",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--uid",
        uid,
        "--gid",
        gid,
        "--clearenv",
    ]);
    bwrap.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/lib/pintle"]);
    // What the image has: the program, its libraries, the configuration.
    bwrap.arg("--ro-bind").arg(PINTLE).arg("/usr/bin/pintle");
    for library in libraries() {
        bwrap.arg("--ro-bind").arg(library.canonicalize().unwrap()).arg(&library);
    }
    for name in ["pintle.toml", "replies.json"] {
        bwrap.arg("--ro-bind").arg(env.path(name)).arg(format!("/etc/pintle/{name}"));
    }
    for pair in dockerfile.lines().filter_map(|line| line.strip_prefix("ENV ")).flat_map(str::split_whitespace) {
        let (name, value) = pair.split_once('=').unwrap();
        bwrap.args(["--setenv", name, value]);
    }
    bwrap.args(["--setenv", "PINTLE_TOKEN", TOKEN, "--chdir", "/var/lib/pintle", "--remount-ro", "/", "--"]);
    bwrap.args(list_of(&dockerfile, "ENTRYPOINT"));
    let command = list_of(&dockerfile, "CMD");
    bwrap.args(command.iter().map(|word| if word == "0.0.0.0:18790" { "0.0.0.0:0" } else { word }));
    let shown = env.path("shown");
    bwrap.stdout(Stdio::null()).stderr(fs::File::create(&shown).unwrap());
    let _image = Running(bwrap.spawn().unwrap());
    let listening = Regex::new(r"listening at http://0\.0\.0\.0:(\d+)").unwrap();
    let began = Instant::now();
    let port = loop {
        let text = fs::read_to_string(&shown).unwrap();
        if let Some(found) = listening.captures(&text) {
            break found[1].to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let body = json!({ "model": "main", "messages": [{ "role": "user", "content": "where are you?" }] }).to_string();
    let script = "import json, sys, urllib.request as r
request = r.Request(sys.argv[1], sys.argv[3].encode(), {'Content-Type': 'application/json', 'Authorization': 'Bearer ' + sys.argv[2]})
print(json.load(r.urlopen(request))['choices'][0]['message']['content'])";
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    let mut client = Command::new("python3");
    let output = TestEnv::output(client.args(["-c", script, &url, TOKEN, &body]), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "here\n", "{}", fs::read_to_string(&shown).unwrap());
}
