//! One request behind the guard, against a bare client that keeps its connection.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::{PreToolUse, Subject};
use pintle_domain::id::EventId;
use pintle_domain::json::json;
use pintle_domain::rule::HandlerType;
use pintle_egress::{Resolver, SystemResolver};
use pintle_rules::payload;

use crate::against::Target;
use crate::host::{Host, Plan};
use crate::report::{Report, shown};
use crate::rows::gate;
use crate::stage::{Stage, call, turn};

/// A check may cost so many bare exchanges.
const LIMIT: f64 = 1.5;
/// Exchanges in a round.
const TIMES: usize = 500;
/// Clearings in a round, each of which waits for its record.
const CLEARINGS: usize = 100;
/// A name that only [`Told`] knows.
const NAME: &str = "hooks.example";
const REPLY: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{\"decision\":\"allow\"}";

/// Answers at once, so that only the way there and back is measured.
struct Told;

impl Resolver for Told {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![[127, 0, 0, 1].into()]) })
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        SystemResolver.own_addresses()
    }
}

pub(crate) fn http(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let at = serve()?;
    let allow = |entry: &str| format!("[[agent_hooks.http.allow]]\n{entry}\nports = [{}]\n", at.port());
    let host = |to: &str, entry: &str, resolver, forgets| {
        let url = format!("http://{to}:{}/check", at.port());
        let rows = vec![gate("guard", HandlerType::Http, &json!({ "url": url }))];
        Host::open(&stage.runtime, Plan { rows, config: allow(entry), resolver, forgets })
    };
    let network = "cidr = \"127.0.0.1\"";
    let address = host("127.0.0.1", network, None, true)?;
    let keeping = host("127.0.0.1", network, None, false)?;
    let name = host(NAME, &format!("host = \"{NAME}\""), Some(Arc::new(Told) as Arc<dyn Resolver>), true)?;
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
    let mut to_address = |times| stage.check(&address, times);
    let mut to_name = |times| stage.check(&name, times);
    let mut bare = |times| stage.run(bare(client.clone(), at, times));
    let [to_address, to_name, bare] = report.medians(TIMES, [&mut to_address, &mut to_name, &mut bare])?;
    let mut handed_over = |times| stage.check(&keeping, times);
    let mut cleared = |times| stage.clear(&keeping, times);
    let [handed_over, cleared] = report.medians(CLEARINGS, [&mut handed_over, &mut cleared])?;
    report.against("one request, to an address: check", [to_address, bare], Target::RatioAtMost(LIMIT));
    report.against("one request, to a name: check", [to_name, bare], Target::RatioAtMost(LIMIT));
    report.noted("  to an address, its record handed to SQLite's writer", shown(handed_over));
    report.noted("  whole call, to an address, record committed: clear", shown(cleared));
    address.close(&stage.runtime);
    keeping.close(&stage.runtime);
    name.close(&stage.runtime);
    Ok(())
}

/// The floor: one client without a guard.
async fn bare(client: reqwest::Client, at: SocketAddr, times: usize) -> anyhow::Result<Duration> {
    let (subject, url) = (PreToolUse { call: call() }, format!("http://{at}/check"));
    let (who, now) = (turn(), jiff::Timestamp::now());
    let payload = payload::of_subject(&EventId::fresh(), &who, now, &Subject::PreToolUse(&subject));
    let payload = Bytes::from(payload.context("requests are sent before tools")?);
    let start = Instant::now();
    for _ in 0..times {
        let request = client.post(&url).header("content-type", "application/json");
        let response = request.timeout(Duration::from_secs(5)).body(payload.clone()).send().await?;
        ensure!(response.bytes().await?.len() == 20, "a short reply");
    }
    Ok(start.elapsed())
}

/// A server of threads, one a connection, that reads whole requests and answers each alike.
fn serve() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("loopback has a free port")?;
    let at = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away ends its thread.
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    Ok(at)
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..read]);
        if is_whole(&bytes) {
            bytes.clear();
            stream.write_all(REPLY)?;
        }
    }
}

/// Whether a request has come to its end, which its length says.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let length = std::str::from_utf8(&bytes[..head]).ok().and_then(|head| {
        let line = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok();
        head.lines().find_map(line)
    });
    length.is_some_and(|length| bytes.len() >= head + 4 + length)
}
