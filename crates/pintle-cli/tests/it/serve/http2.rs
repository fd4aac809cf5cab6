//! HTTP/2 as a client of its own speaks it: several requests at once on one connection, with and without TLS.

use std::process::Command;

use serde_json::{Value, json};

use super::server::{Server, TOKEN, WITH_TOKEN};
use super::starting::certificate;
use crate::env::TestEnv;
use crate::run::scripted;

/// What a client does. Arguments: where the server is, the token, and the file with its certificate, if it has one.
/// Prints what came of each request.
const CLIENT: &str = r"
const http2 = require('node:http2');
const [address, token, certificate] = process.argv.slice(1);
const ca = certificate && require('node:fs').readFileSync(certificate);
const session = http2.connect(address, ca ? { ca, servername: 'localhost' } : {});
session.on('error', (error) => { console.error(error); process.exit(1); });

function ask(key, path, body) {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const head = { ':method': method, ':path': path, authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const stream = session.request(head, { endStream: body === undefined });
    const pieces = [];
    let answer;
    stream.on('response', (headers) => { answer = headers; });
    stream.on('data', (piece) => pieces.push(piece));
    stream.on('error', reject);
    stream.on('end', () => {
      const text = Buffer.concat(pieces).toString();
      resolve({ status: answer[':status'], type: answer['content-type'], id: answer['x-request-id'], text });
    });
    if (body !== undefined) stream.end(JSON.stringify(body));
  });
}

const says = { model: 'main', messages: [{ role: 'user', content: 'go' }] };
const chat = '/v1/chat/completions';
Promise.all([
  ask(token, chat, says),
  ask(token, chat, { ...says, stream: true }),
  ask('wrong', chat, says),
  ask(token, '/v1/models'),
]).then((answers) => {
  console.log(JSON.stringify({ protocol: session.alpnProtocol, answers }));
  session.close();
});
";

/// What came of each request to `server`, over TLS if it has a certificate.
#[track_caller]
fn seen(server: &Server, scheme: &str) -> Value {
    let mut node = Command::new("node");
    node.args(["-e", CLIENT, "--", &format!("{scheme}://{}", server.address), TOKEN]);
    if scheme == "https" {
        node.arg(server.env.path("config/pintle/cert.pem"));
    }
    let output = TestEnv::output(&mut node, "");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn check(tls: &str, scheme: &str, protocol: &str) {
    let env = scripted(r#"{"text": ["All ", "done."], "repeat": true}"#, &format!("{WITH_TOKEN}{tls}"));
    certificate(&env);
    let server = Server::start(env);
    let seen = seen(&server, scheme);
    assert_eq!(seen["protocol"], protocol, "{seen}");
    let [whole, streamed, refused, models] = seen["answers"].as_array().unwrap().as_slice() else { panic!("{seen}") };
    let body = |answer: &Value| serde_json::from_str::<Value>(answer["text"].as_str().unwrap()).unwrap();
    assert_eq!((&whole["status"], &streamed["status"]), (&json!(200), &json!(200)), "{seen}");
    assert_eq!(body(whole)["choices"][0]["message"]["content"], "All done.");
    assert_eq!(streamed["type"], "text/event-stream");
    let lines: Vec<&str> =
        streamed["text"].as_str().unwrap().lines().filter(|line| line.starts_with("data: ")).collect();
    assert_eq!(lines.last(), Some(&"data: [DONE]"), "{streamed}");
    let parts = lines.iter().filter_map(|line| serde_json::from_str::<Value>(&line["data: ".len()..]).ok());
    let said = |chunk: Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    assert_eq!(parts.filter_map(said).collect::<String>(), "All done.");
    assert_eq!(
        (&refused["status"], &body(refused)["error"]["code"]),
        (&json!(401), &json!("unauthorized")),
        "{refused}"
    );
    assert_eq!((&models["status"], &body(models)["data"][0]["id"]), (&json!(200), &json!("main")), "{models}");
    assert!(seen["answers"].as_array().unwrap().iter().all(|answer| answer["id"].is_string()), "{seen}");
}

#[test]
fn a_client_of_http_2_chats_and_streams_at_once_over_tls() {
    check("tls = { cert = 'cert.pem', key = 'key.pem' }\n", "https", "h2");
}

#[test]
fn a_client_that_knows_of_http_2_speaks_it_in_clear_text_from_the_start() {
    check("", "http", "h2c");
}
