//! What the guard costs an http hook: the exchange against a bare client that keeps its connection.
//!
//! `cargo bench -p pintle-rules --bench http` measures, anything else runs each case once. All talk to the same server
//! on loopback, which runs on a thread of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use pintle_egress::{Allow, Egress, KeepAlive, Resolver, SystemResolver};
use pintle_engine::Deadlines;
use pintle_rules::http::{Delivery, HttpSender, HttpSpec};
use report::{Report, Side, shown};
use tokio::runtime::Runtime;

use against::Target;

#[expect(dead_code, reason = "it is shared, and throughputs are for others")]
#[path = "../../process/benches/hooks/against.rs"]
mod against;
#[expect(dead_code, reason = "it is shared, and absolute figures are for others")]
#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// Exchanges of one round: enough to outlast the jitter of a busy machine.
const TIMES: usize = 2000;
/// An http hook with the guard on may cost so many bare exchanges.
const TARGET: f64 = 1.5;
/// A payload of common size.
const PAYLOAD_BYTES: usize = 1024;
const REPLY: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{\"decision\":\"allow\"}";

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("http: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Answers at once, so that only the way there and back is measured.
#[derive(Default)]
struct Told;

impl Resolver for Told {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![[127, 0, 0, 1].into()]) })
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        SystemResolver.own_addresses()
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if !report.wants("http") {
        return report.print();
    }
    let at = serve()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let bare = Bare::new(at)?;
    let named = Egress::new(vec![allow(at)?]).with_resolver(Arc::new(Told));
    let [to_address, to_told, to_system] = [
        Guarded::new(format!("http://{at}/check"), Egress::new(vec![allow(at)?])),
        Guarded::new(format!("http://hooks.example:{}/check", at.port()), named),
        Guarded::new(format!("http://localhost:{}/check", at.port()), Egress::new(vec![allow(at)?, v6(at)?])),
    ];
    let sides: [Side<'_>; 5] = [
        &mut |times| bare.run(&runtime, times),
        &mut |times| to_address.run(&runtime, times),
        &mut |times| to_told.run(&runtime, times),
        &mut |times| to_system.run(&runtime, times),
        &mut |times| lookups(&runtime, times),
    ];
    let [bare, address, told, system, lookup] = report.medians(TIMES, sides)?;
    report.against("http exchange behind the guard, to an address", [address, bare], Target::RatioAtMost(TARGET));
    report.against("http exchange behind the guard, to a name", [told, bare], Target::RatioAtMost(TARGET));
    // Bare clients do not resolve again while they keep a connection; hooks must.
    report.noted("  to a name that the system resolves", shown(system));
    report.noted("  of which the system's resolver", shown(lookup));
    report.print()
}

/// What the system takes to resolve a name of its own.
fn lookups(runtime: &Runtime, times: usize) -> anyhow::Result<Duration> {
    runtime.block_on(async {
        let start = Instant::now();
        for _ in 0..times {
            SystemResolver.resolve("localhost").await.context("the system knows `localhost`")?;
        }
        Ok(start.elapsed())
    })
}

fn allow(at: SocketAddr) -> anyhow::Result<Allow> {
    Ok(Allow::cidr("127.0.0.1", vec![at.port()])?)
}

/// `localhost` may have both addresses.
fn v6(at: SocketAddr) -> anyhow::Result<Allow> {
    Ok(Allow::cidr("::1", vec![at.port()])?)
}

fn payload() -> Bytes {
    Bytes::from(format!("{{\"x\":\"{}\"}}", "y".repeat(PAYLOAD_BYTES)))
}

/// The floor: one client without a guard.
struct Bare {
    client: reqwest::Client,
    url: String,
}

impl Bare {
    fn new(at: SocketAddr) -> anyhow::Result<Self> {
        // Any provider will do: nothing here is encrypted.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        Ok(Self { client, url: format!("http://{at}/check") })
    }

    fn run(&self, runtime: &Runtime, times: usize) -> anyhow::Result<Duration> {
        let body = payload();
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                let request = self.client.post(&self.url).header("content-type", "application/json");
                let response = request.timeout(Duration::from_secs(5)).body(body.clone()).send().await?;
                anyhow::ensure!(response.bytes().await?.len() == 20, "a short reply");
            }
            Ok(start.elapsed())
        })
    }
}

/// An http hook's exchange.
struct Guarded {
    exchange: HttpSender,
    spec: HttpSpec,
}

impl Guarded {
    fn new(url: String, egress: Egress) -> Self {
        let headers = vec![("Authorization".to_owned(), "Bearer x".to_owned())];
        let spec = HttpSpec { url, headers, signing_secret: None, strict: false };
        Self { exchange: HttpSender::new(KeepAlive::new(egress), Deadlines::default()), spec }
    }

    fn run(&self, runtime: &Runtime, times: usize) -> anyhow::Result<Duration> {
        let body = payload();
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                let timeout = Duration::from_secs(5);
                let delivery = Delivery { body: body.clone(), dedup_key: "hook:event", timeout, is_test: false };
                let response = self.exchange.post(&self.spec, delivery).await?;
                anyhow::ensure!(response.body.len() == 20, "a short reply");
            }
            Ok(start.elapsed())
        })
    }
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
        // The payload is the only thing that ends so.
        if bytes.ends_with(b"y\"}") {
            bytes.clear();
            stream.write_all(REPLY)?;
        }
    }
}
