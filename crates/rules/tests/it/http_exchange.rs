//! The exchange of http hooks with real servers on loopback.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pintle_egress::{Allow, Egress, KeepAlive, Resolver};
use pintle_engine::Deadlines;
use pintle_rules::http::{Delivery, HttpFault, HttpSender, HttpSpec, Response};

use self::server::Server;
use self::time::StillTime;

mod connections;
mod log;
mod requests;
mod replies;
mod retries;
pub(crate) mod server;
pub(crate) mod time;
mod tls;

/// Gives each resolution the next list of addresses, and the last one for ever.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn of(answers: &[&[&str]]) -> Arc<Self> {
        let answers = answers.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(host.into());
        let mut answers = self.answers.lock().unwrap();
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move { next.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        Ok(Vec::new())
    }
}

/// An exchange that may reach loopback on the port of `server`, and its time.
fn exchange(server: &Server) -> (HttpSender, Arc<StillTime>) {
    named(server, Names::of(&[&["127.0.0.1"]]))
}

/// The same with names.
fn named(server: &Server, names: Arc<Names>) -> (HttpSender, Arc<StillTime>) {
    let allow = vec![Allow::cidr("127.0.0.0/8", vec![server.at.port()]).unwrap()];
    of(KeepAlive::new(Egress::new(allow).with_resolver(names)))
}

fn of(client: KeepAlive) -> (HttpSender, Arc<StillTime>) {
    let time = StillTime::new();
    (HttpSender::new(client, Deadlines::default()).with_time(time.clone(), time.clone()), time)
}

fn spec(url: impl Into<String>) -> HttpSpec {
    HttpSpec { url: url.into(), headers: Vec::new(), signing_secret: None, strict: false }
}

fn delivery(body: &str) -> Delivery<'static> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Delivery { body, dedup_key: "hook:event", timeout: Duration::from_secs(5), is_test: false }
}

pub(crate) async fn post(exchange: &HttpSender, url: &str) -> Result<Response, HttpFault> {
    exchange.post(&spec(url), delivery("{}")).await
}

/// The text of the fault, or what came instead.
pub(crate) fn fault(answered: Result<Response, HttpFault>) -> String {
    match answered {
        Ok(response) => format!("{response:?}"),
        Err(fault) => fault.to_string(),
    }
}
