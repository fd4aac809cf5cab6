//! Canaries, doors, and a resolver that says what the case says.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_egress::{
    Allow, Client, Dial, Egress, EgressError, KeepAlive, Resolver, SystemDial, SystemResolver, Timeouts,
};
use pintle_engine::Deadlines;
use pintle_rules::http::HttpSender;
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Case, Want};
use crate::http_exchange::server::{Server, ok};
use crate::http_exchange::time::StillTime;
use crate::http_exchange::{fault, post};

/// Never reached, unless a door leaks: then the test ends instead of hanging.
const LEAK: Duration = Duration::from_secs(10);

/// Says what the case that runs says.
#[derive(Default)]
pub(super) struct World {
    answers: Mutex<VecDeque<Option<Vec<IpAddr>>>>,
    own: Mutex<VecDeque<Vec<IpAddr>>>,
}

/// The next, and the last for ever.
fn next<T: Clone>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    let mut queue = queue.lock().unwrap();
    if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() }
}

impl World {
    pub(super) fn of(answers: &[Option<Vec<IpAddr>>], own: &[Vec<IpAddr>]) -> Arc<Self> {
        let world = Arc::new(Self::default());
        world.set(answers, own);
        world
    }

    fn set(&self, answers: &[Option<Vec<IpAddr>>], own: &[Vec<IpAddr>]) {
        *self.answers.lock().unwrap() = answers.iter().cloned().collect();
        *self.own.lock().unwrap() = own.iter().cloned().collect();
    }
}

impl Resolver for World {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let next = next(&self.answers).flatten();
        Box::pin(async move { next.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        Ok(next(&self.own).unwrap_or_default())
    }
}

/// Leads every connection to one listener of ours, and remembers where it should have gone.
pub(super) struct Diversion {
    to: SocketAddr,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Dial for Diversion {
    fn dial(&self, at: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().unwrap().push(at);
        SystemDial.dial(self.to)
    }
}

/// A listener that must not be reached.
struct Canary {
    at: SocketAddr,
    hits: Arc<AtomicUsize>,
}

pub(super) struct Stage {
    canaries: Vec<Canary>,
    pub(super) port: u16,
    own: Vec<IpAddr>,
    diversion: Arc<Diversion>,
    outside: Server,
    /// The client of the web tools, which allows nothing, and its world.
    web: (Client, Arc<World>),
    _tasks: JoinSet<()>,
}

impl Stage {
    pub(super) async fn new() -> Self {
        let own = SystemResolver.own_addresses().unwrap();
        let v4 = own.iter().find(|ip| ip.is_ipv4() && !ip.is_loopback());
        let v6 = own.iter().find(|ip| matches!(ip, IpAddr::V6(ip) if !ip.is_loopback() && !ip.is_unicast_link_local()));
        let own: Vec<IpAddr> = v4.into_iter().chain(v6).copied().collect();
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        let (port, listeners) = listen(&[&loopback[..], &own].concat()).await;
        let mut tasks = JoinSet::new();
        let canaries = listeners.into_iter().map(|(at, listener)| {
            let hits = Arc::new(AtomicUsize::new(0));
            tasks.spawn(sing(listener, hits.clone()));
            Canary { at, hits }
        });
        let canaries = canaries.collect();
        let outside = Server::start(|_| ok("{}")).await;
        let diversion = Arc::new(Diversion { to: outside.at, dialled: Mutex::default() });
        let world = Arc::new(World::default());
        let egress = Egress::new(Vec::new()).with_resolver(world.clone());
        let web = (egress.client(Timeouts { connect: LEAK, total: LEAK }).unwrap(), world);
        Self { canaries, port, own, diversion, outside, web, _tasks: tasks }
    }

    /// This machine's own v4 address that is not loopback, if it has one.
    pub(super) fn own_v4(&self) -> Option<Ipv4Addr> {
        self.own.iter().find_map(|ip| match ip {
            IpAddr::V4(ip) => Some(*ip),
            IpAddr::V6(_) => None,
        })
    }

    /// All addresses at which a canary sits, as they stand in a URL with their port.
    pub(super) fn canaries(&self) -> Vec<SocketAddr> {
        self.canaries.iter().map(|canary| canary.at).collect()
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{P}", &self.port.to_string())
    }

    pub(super) fn exchange(&self, egress: Egress) -> HttpSender {
        let time = StillTime::new();
        HttpSender::new(KeepAlive::new(egress), Deadlines::default()).with_time(time.clone(), time)
    }

    pub(super) fn diverted(&self, egress: Egress) -> HttpSender {
        let time = StillTime::new();
        HttpSender::new(KeepAlive::new(egress).with_dial(self.diversion.clone()), Deadlines::default())
            .with_time(time.clone(), time)
    }

    /// Where diverted connections should have gone since the last look.
    pub(super) fn dialled(&self) -> Vec<String> {
        self.diversion.dialled.lock().unwrap().drain(..).map(|at| at.to_string()).collect()
    }

    /// Leads a URL through its doors; what came instead of what had to come.
    pub(super) async fn run(&self, case: &Case) -> Result<(), String> {
        let url = self.fill(&case.url);
        let answers = [case.answers.clone()];
        let egress = || {
            let world = World::of(&answers, &case.own);
            Egress::new(case.allow.clone()).with_resolver(world).for_tenant(case.tenant)
        };
        let posted = post(&self.diverted(egress()), &url).await;
        let dialled = self.dialled();
        let want = match &case.want {
            Want::Dials(at) if posted.is_ok() && dialled == [self.fill(at)] => return Ok(()),
            Want::Dials(_) => return Err(format!("{} {dialled:?}", fault(posted))),
            Want::Refused(text) => self.fill(text),
        };
        let diverted = format!("{} {dialled:?}", fault(posted));
        let direct = fault(post(&self.exchange(egress()), &url).await);
        // The web tools look at the interfaces once, and their client knows no tenants.
        let web = if case.allow.is_empty() && case.own.len() == 1 {
            let (client, world) = &self.web;
            world.set(&answers, &case.own);
            web(client, &url).await
        } else {
            want.clone()
        };
        let came = [diverted, direct, web];
        if came == [format!("{want} []"), want.clone(), want] { Ok(()) } else { Err(format!("{came:?}")) }
    }

    /// No canary was reached, whatever was tried.
    pub(super) fn nothing_was_reached(&self) {
        for canary in &self.canaries {
            assert_eq!(canary.hits.load(Ordering::SeqCst), 0, "{}", canary.at);
        }
    }

    /// The canaries would have noticed: the operator opens each of them, and one connection arrives.
    ///
    /// Connections are accepted in their order, so none from before can still be waiting behind these.
    pub(super) async fn controls(&self) {
        for canary in &self.canaries {
            let allow = vec![Allow::cidr(&canary.at.ip().to_string(), vec![self.port]).unwrap()];
            let exchange = self.exchange(Egress::new(allow.clone()));
            assert_eq!(&post(&exchange, &format!("http://{}/", canary.at)).await.unwrap().body[..], b"sung");
            assert_eq!(canary.hits.load(Ordering::SeqCst), 1, "{}", canary.at);
            let client = Egress::new(allow).client(Timeouts { connect: LEAK, total: LEAK }).unwrap();
            assert_eq!(web(&client, &format!("http://{}/", canary.at)).await, "reached: 200");
            assert_eq!(canary.hits.load(Ordering::SeqCst), 2, "{}", canary.at);
        }
        let before = self.outside.log().seen.len();
        let world = World::of(&[None], &[Vec::new()]);
        let exchange = self.diverted(Egress::new(Vec::new()).with_resolver(world));
        post(&exchange, "http://8.8.8.8/").await.unwrap();
        assert_eq!((self.dialled(), self.outside.log().seen.len()), (vec!["8.8.8.8:80".into()], before + 1));
    }
}

/// The refusal of the client of the web tools.
async fn web(client: &Client, url: &str) -> String {
    let request = match client.request(Method::POST, url) {
        Ok(request) => request,
        Err(error) => return error.to_string(),
    };
    match request.send().await {
        Ok(response) => format!("reached: {}", response.status().as_u16()),
        Err(error) => EgressError::of(&error).map_or_else(|| format!("not refused: {error:?}"), ToString::to_string),
    }
}

/// Listens at all these addresses, at one port.
async fn listen(ips: &[IpAddr]) -> (u16, Vec<(SocketAddr, TcpListener)>) {
    // A port that is free here may be taken there; it is not for long.
    'port: loop {
        let first = TcpListener::bind((ips[0], 0)).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let mut listeners = vec![(SocketAddr::new(ips[0], port), first)];
        for &ip in &ips[1..] {
            match TcpListener::bind((ip, port)).await {
                Ok(listener) => listeners.push((SocketAddr::new(ip, port), listener)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue 'port,
                Err(error) => panic!("no canary at {ip}: {error}"),
            }
        }
        return (port, listeners);
    }
}

/// Counts whoever comes, and answers.
async fn sing(listener: TcpListener, hits: Arc<AtomicUsize>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        hits.fetch_add(1, Ordering::SeqCst);
        let mut bytes = vec![0; 64 << 10];
        let answer = b"HTTP/1.1 200 x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nsung";
        // Whoever hangs up has been counted.
        drop(stream.read(&mut bytes).await);
        drop(stream.write_all(answer).await);
    }
}
