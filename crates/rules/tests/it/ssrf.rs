//! What an http hook can reach and what it cannot: hostile URLs, names and servers, against real sockets.
//!
//! Canaries listen at every address of this machine and count connections. A URL that must not be reached goes
//! through three doors: the exchange of http hooks, the same with all its connections diverted to a listener of ours,
//! which sees attempts that would have left the machine, and the client of the web tools.

use std::net::IpAddr;

use pintle_egress::Allow;

use self::stage::Stage;

mod allowed;
mod ranges;
mod redirects;
mod sources;
mod spellings;
mod stage;
mod turning;
mod urls;

/// The least number of cases of a run.
const CASES: usize = 400;

/// What has to come of a URL.
#[derive(Clone, Debug, PartialEq)]
enum Want {
    /// This text, and no connection.
    Refused(String),
    /// A connection to exactly this address and port.
    Dials(String),
}

/// One URL, with the world around it. Texts may name the canaries' port as `{P}` and this machine's own addresses as
/// `{OWN4}` and `{OWN6}`.
#[derive(Clone, Debug)]
struct Case {
    url: String,
    /// What every name resolves to; `None`: it cannot be resolved.
    answers: Option<Vec<IpAddr>>,
    /// This host's own addresses at each look; the last for ever.
    own: Vec<Vec<IpAddr>>,
    allow: Vec<Allow>,
    tenant: Option<&'static str>,
    want: Want,
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

impl Case {
    /// No name resolves, nothing is allowed.
    fn refused(url: impl Into<String>, text: impl Into<String>) -> Self {
        let want = Want::Refused(format!("ssrf: {}", text.into()));
        Self { url: url.into(), answers: None, own: vec![Vec::new()], allow: Vec::new(), tenant: None, want }
    }

    /// A literal address that is blocked; `shown` is how the refusal spells it.
    fn blocked(url: impl Into<String>, shown: &str) -> Self {
        Self::refused(url, format!("IP {shown} is in a blocked range"))
    }

    /// A name whose answers hold a blocked one.
    fn blocked_name(url: impl Into<String>, answers: &[&str], (host, ip): (&str, &str)) -> Self {
        Self::refused(url, format!("\"{host}\" resolved to blocked IP {ip}")).answering(answers)
    }

    fn dials(url: impl Into<String>, at: impl Into<String>) -> Self {
        Self { want: Want::Dials(at.into()), ..Self::refused(url, "") }
    }

    fn answering(self, answers: &[&str]) -> Self {
        Self { answers: Some(ips(answers)), ..self }
    }

    fn with(self, allow: &[Allow]) -> Self {
        Self { allow: allow.to_vec(), ..self }
    }

    fn owning(self, own: &[&[&str]]) -> Self {
        Self { own: own.iter().map(|own| ips(own)).collect(), ..self }
    }

    fn of_tenant(self, tenant: &'static str) -> Self {
        Self { tenant: Some(tenant), ..self }
    }
}

#[tokio::test]
async fn nothing_leaves_the_allowed_set() {
    let stage = Stage::new().await;
    let mut ran = 0;
    let mut wrong = Vec::new();
    for (family, cases) in [
        ("ranges", ranges::cases()),
        ("spellings", spellings::cases(&stage)),
        ("urls", urls::cases()),
        ("answers", sources::cases()),
        ("allow-list", allowed::cases()),
    ] {
        for case in &cases {
            if let Err(came) = stage.run(case).await {
                wrong.push(format!("{family}: {case:?}: {came}"));
            }
        }
        println!("{family}: {} cases", cases.len());
        ran += cases.len();
    }
    let redirected = redirects::run(&stage).await;
    let turned = turning::run(&stage).await;
    println!("redirects: {redirected} cases\nanswers that change: {turned} cases");
    ran += redirected + turned;
    assert!(wrong.is_empty(), "{} of {ran} went wrong:\n{}", wrong.len(), wrong.join("\n"));
    stage.nothing_was_reached();
    stage.controls().await;
    println!("{ran} cases, 0 connections outside the allowed set");
    assert!(ran >= CASES, "{ran} cases");
}
