//! Spellings, ranges, redirects and resolvers that lie, against real sockets.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Method;

use super::*;

/// Long enough to never matter; a test that waits for it hangs and is seen.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(20), total: Duration::from_secs(20) };

/// Answers each resolution with the next list; remembers how often it was asked.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
    own: Vec<IpAddr>,
    blind: bool,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        Self { answers: Mutex::new(answers), ..Self::default() }
    }
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(host.into());
        let next = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { next.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        if self.blind { Err(io::Error::other("no interfaces")) } else { Ok(self.own.clone()) }
    }
}

fn guard(allow: Vec<Allow>) -> Egress {
    Egress::new(allow).with_resolver(Arc::new(Scripted::default()))
}

/// A server on loopback that gives one fixed answer per connection and returns what it was sent.
fn serve(answers: Vec<String>) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        answers
            .into_iter()
            .map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                    request.extend(byte);
                }
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8(request).unwrap()
            })
            .collect()
    });
    (at, thread)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// `None` passes, else the text of the refusal.
fn check(guard: &Egress, url: &str) -> Option<String> {
    guard.check_url(url).err().map(|e| e.to_string())
}

#[test]
fn urls_that_break_a_rule_are_refused_with_the_text_of_the_protocol() {
    let guard = guard(vec![]);
    for (url, text) in [
        ("::", "ssrf: parse url"),
        ("http://a b/", "ssrf: parse url"),
        ("http://[fe80::1%25eth0]/", "ssrf: parse url"),
        ("http://1.2.3.4.5/", "ssrf: parse url"),
        ("ftp://example.org/", r#"ssrf: scheme "ftp" not allowed (only http/https)"#),
        ("file:///etc/passwd", r#"ssrf: scheme "file" not allowed (only http/https)"#),
        ("gopher://example.org:70/_x", r#"ssrf: scheme "gopher" not allowed (only http/https)"#),
        ("http://", "ssrf: empty host"),
        ("http://user@example.org/", "ssrf: credentials in url"),
        ("http://:secret@example.org/", "ssrf: credentials in url"),
        ("http://example.org@127.0.0.1/", "ssrf: credentials in url"),
        ("http://example.org:22/", "ssrf: port 22 not allowed"),
        ("http://example.org:0/", "ssrf: port 0 not allowed"),
        ("http://example.org:1023/", "ssrf: port 1023 not allowed"),
        ("http://example.org:6667/", "ssrf: port 6667 not allowed"),
        ("http://example.org:10080/", "ssrf: port 10080 not allowed"),
        ("https://127.0.0.1/", "ssrf: IP 127.0.0.1 is in a blocked range"),
    ] {
        assert_eq!(check(&guard, url).as_deref(), Some(text), "{url}");
    }
    for url in [
        "http://example.org/",
        "https://example.org",
        "HTTPS://EXAMPLE.ORG:443/",
        "http://example.org:443",
        "http://example.org:8080",
        "http://example.org:65535",
        "http://1.1.1.1/",
        "http://[2606:4700::1]/",
        "http://b\u{fc}cher.example/",
    ] {
        assert_eq!(check(&guard, url), None, "{url}");
    }
}

#[test]
fn every_spelling_of_an_address_is_that_address() {
    let guard = guard(vec![]);
    for (host, ip) in [
        ("0x7f.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0x7F000001", "127.0.0.1"),
        ("%31%32%37.0.0.1", "127.0.0.1"),
        ("\u{ff11}\u{ff12}\u{ff17}.0.0.1", "127.0.0.1"),
        ("127\u{3002}0\u{3002}0\u{3002}1", "127.0.0.1"),
        ("\u{2460}27.0.0.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("[0:0:0:0:0:ffff:7f00:1]", "::ffff:127.0.0.1"),
        ("[::1]", "::1"),
        ("[::]", "::"),
    ] {
        let text = format!("ssrf: IP {ip} is in a blocked range");
        assert_eq!(check(&guard, &format!("http://{host}/")), Some(text), "{host}");
    }
}

fn check_ranges(ranges: &[(&str, Reach)]) {
    for (ip, reach) in ranges {
        assert_eq!(classify(ip.parse().unwrap()), *reach, "{ip}");
    }
}

#[test]
fn the_v4_ranges_hold_at_both_ends() {
    use Reach::{Private, Public, Special};
    check_ranges(&[
        ("0.0.0.0", Special),
        ("0.255.255.255", Special),
        ("1.0.0.0", Public),
        ("9.255.255.255", Public),
        ("10.0.0.0", Private),
        ("10.255.255.255", Private),
        ("11.0.0.0", Public),
        ("100.63.255.255", Public),
        ("100.64.0.0", Private),
        ("100.127.255.255", Private),
        ("100.128.0.0", Public),
        ("126.255.255.255", Public),
        ("127.0.0.0", Private),
        ("127.255.255.255", Private),
        ("128.0.0.0", Public),
        ("168.63.129.15", Public),
        ("168.63.129.16", Special),
        ("168.63.129.17", Public),
        ("169.253.255.255", Public),
        ("169.254.0.0", Special),
        ("169.254.169.254", Special),
        ("169.255.0.0", Public),
        ("172.15.255.255", Public),
        ("172.16.0.0", Private),
        ("172.31.255.255", Private),
        ("172.32.0.0", Public),
        ("192.0.0.0", Special),
        ("192.0.0.255", Special),
        ("192.0.1.0", Public),
        ("192.0.2.1", Special),
        ("192.0.3.0", Public),
        ("192.88.98.255", Public),
        ("192.88.99.1", Special),
        ("192.167.255.255", Public),
        ("192.168.0.0", Private),
        ("192.168.255.255", Private),
        ("192.169.0.0", Public),
        ("198.17.255.255", Public),
        ("198.18.0.0", Special),
        ("198.19.255.255", Special),
        ("198.20.0.0", Public),
        ("198.51.100.1", Special),
        ("203.0.113.1", Special),
        ("223.255.255.255", Public),
        ("224.0.0.0", Special),
        ("239.255.255.255", Special),
        ("240.0.0.0", Special),
        ("255.255.255.255", Special),
    ]);
}

#[test]
fn the_v6_ranges_hold_at_both_ends() {
    use Reach::{Private, Public, Special};
    check_ranges(&[
        ("::", Special),
        ("::1", Private),
        ("::7f00:1", Special),
        ("::ffff:10.0.0.1", Private),
        ("::ffff:169.254.169.254", Special),
        ("::ffff:8.8.8.8", Public),
        ("64:ff9b::8.8.8.8", Special),
        ("64:ff9b:1::1", Special),
        ("100::1", Special),
        ("1fff:ffff::1", Special),
        ("2000::1", Public),
        ("2001::1", Special),
        ("2001:1ff:ffff::1", Special),
        ("2001:200::1", Public),
        ("2001:db8::1", Special),
        ("2001:db9::1", Public),
        ("2002:808:808::1", Special),
        ("2003::1", Public),
        ("3fff::1", Special),
        ("3fff:fff::1", Special),
        ("3fff:1000::1", Public),
        ("4000::1", Special),
        ("5f00::1", Special),
        ("fc00::1", Private),
        ("fdff::1", Private),
        ("fe80::1", Special),
        ("fec0::1", Special),
        ("ff02::1", Special),
    ]);
}

#[test]
fn a_network_entry_opens_its_addresses_on_its_ports_only() {
    let guard = guard(vec![
        Allow::cidr("169.254.169.254", vec![80]).unwrap(),
        Allow::cidr("10.1.0.0/16", vec![81, 9000]).unwrap(),
        Allow::cidr("64:ff9b::/96", vec![]).unwrap(),
        Allow::cidr("::1/128", vec![]).unwrap(),
    ]);
    for url in [
        "http://169.254.169.254/",
        "http://10.1.2.3:81/",
        "http://10.1.2.3:9000/",
        "http://[::ffff:10.1.2.3]:81/",
        "http://[64:ff9b::8.8.8.8]/",
        // The translator would lead to an address that is open on this port.
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[::1]:8080/",
    ] {
        assert_eq!(check(&guard, url), None, "{url}");
    }
    for (url, text) in [
        ("http://169.254.169.254:8080/", "ssrf: IP 169.254.169.254 is in a blocked range"),
        ("http://10.1.2.3/", "ssrf: IP 10.1.2.3 is in a blocked range"),
        ("http://10.2.0.1:9000/", "ssrf: IP 10.2.0.1 is in a blocked range"),
        ("http://10.2.0.1:81/", "ssrf: port 81 not allowed"),
        ("http://8.8.8.8:81/", "ssrf: port 81 not allowed"),
        ("http://[::1]:25/", "ssrf: port 25 not allowed"),
        ("http://[64:ff9b::10.0.0.1]/", "ssrf: IP 64:ff9b::a00:1 is in a blocked range"),
        ("http://[64:ff9b::a9fe:a9fe]:8080/", "ssrf: IP 64:ff9b::a9fe:a9fe is in a blocked range"),
    ] {
        assert_eq!(check(&guard, url).as_deref(), Some(text), "{url}");
    }
}

#[test]
fn this_hosts_own_addresses_are_blocked_even_when_public() {
    let own = Scripted { own: vec!["1.2.3.4".parse().unwrap()], ..Scripted::default() };
    let closed = Egress::new(vec![]).with_resolver(Arc::new(own));
    assert_eq!(check(&closed, "http://1.2.3.4/").as_deref(), Some("ssrf: IP 1.2.3.4 is in a blocked range"));
    assert_eq!(
        check(&closed, "http://[::ffff:1.2.3.4]/").as_deref(),
        Some("ssrf: IP ::ffff:1.2.3.4 is in a blocked range")
    );
    let open = Egress::new(vec![Allow::host("1.2.3.4", vec![]).unwrap()]).with_resolver(closed.resolver);
    assert_eq!(check(&open, "http://1.2.3.4/"), None);
    let blind = Egress::new(vec![]).with_resolver(Arc::new(Scripted { blind: true, ..Scripted::default() }));
    assert_eq!(check(&blind, "http://1.1.1.1/").as_deref(), Some(r#"ssrf: resolve "1.1.1.1""#));
}

#[test]
fn the_system_knows_its_loopback_address() {
    let own = SystemResolver.own_addresses().unwrap();
    assert!(own.contains(&"127.0.0.1".parse().unwrap()), "{own:?}");
}

#[test]
fn entries_are_read_as_urls_are() {
    assert_eq!(Allow::host("EXAMPLE.org.", vec![]).unwrap(), Allow::host("example.org", vec![]).unwrap());
    assert_eq!(
        Allow::host("b\u{fc}cher.example", vec![]).unwrap(),
        Allow::host("xn--bcher-kva.example", vec![]).unwrap()
    );
    assert_eq!(Allow::host("[::1]", vec![]).unwrap(), Allow::host("::1", vec![]).unwrap());
    for host in ["", "a b", "http://x", "x/y", "x:80"] {
        let text = Allow::host(host, vec![]).unwrap_err().to_string();
        assert!(text.starts_with(&format!("`{host}` is not a host name")), "{text}");
    }
    for cidr in ["", "10.0.0.0/33", "example.org", "10/8"] {
        let text = Allow::cidr(cidr, vec![]).unwrap_err().to_string();
        assert!(text.starts_with(&format!("`{cidr}` is not a network")), "{text}");
    }
}

#[test]
fn a_list_of_tenants_names_somebody() {
    let with = |slugs: &[&str]| {
        let slugs: Vec<String> = slugs.iter().map(|slug| (*slug).to_owned()).collect();
        Allow::host("a.example", vec![]).unwrap().for_tenants(&slugs).map(drop).map_err(|error| error.to_string())
    };
    for good in [&["*"][..], &["acme"], &["acme", "default"]] {
        assert_eq!(with(good), Ok(()), "{good:?}");
    }
    let rest = "write slugs, or `[\"*\"]` for everyone, or leave it out for global hooks and `default`";
    for (bad, text) in [
        (&[][..], "is empty, which opens nothing"),
        (&["*", "acme"], "has `*` beside other tenants"),
        (&["acme", ""], "has an empty slug"),
    ] {
        assert_eq!(with(bad), Err(format!("`tenants` {text}; {rest}")), "{bad:?}");
    }
}

async fn refusal(client: &Client, url: &str) -> String {
    let error = client.request(Method::GET, url).unwrap().send().await.unwrap_err();
    EgressError::of(&error).unwrap_or_else(|| panic!("not ours: {error:?}")).to_string()
}

#[tokio::test]
async fn every_answer_must_pass() {
    let resolver = Arc::new(Scripted::new(&[
        &["8.8.8.8", "127.0.0.1"],
        &["127.0.0.1"],
        &["8.8.8.8", "::ffff:169.254.169.254"],
        &["2001:200::1", "fe80::1"],
        &[],
    ]));
    let client = Egress::new(vec![]).with_resolver(resolver.clone()).client(TIMEOUTS).unwrap();
    for text in [
        r#"ssrf: "mixed.example" resolved to blocked IP 127.0.0.1"#,
        r#"ssrf: "mixed.example" resolved to blocked IP 127.0.0.1"#,
        r#"ssrf: "mixed.example" resolved to blocked IP ::ffff:169.254.169.254"#,
        r#"ssrf: "mixed.example" resolved to blocked IP fe80::1"#,
        r#"ssrf: "mixed.example" resolved to no addresses"#,
        r#"ssrf: resolve "mixed.example""#,
    ] {
        assert_eq!(refusal(&client, "http://mixed.example:8080/").await, text);
    }
}

#[tokio::test]
async fn one_resolution_a_request_and_it_is_what_is_connected_to() {
    let (at, server) = serve(vec![ok("first"), ok("second")]);
    // A name that turns to the metadata address as soon as it was checked.
    let resolver = Arc::new(Scripted::new(&[&["127.0.0.1"], &["127.0.0.1"], &["169.254.169.254"]]));
    let allow = vec![Allow::host("safety.internal", vec![at.port()]).unwrap()];
    let client = Egress::new(allow).with_resolver(resolver.clone()).client(TIMEOUTS).unwrap();
    let url = format!("http://SAFETY.internal:{}/check", at.port());
    for body in ["first", "second"] {
        let reply = client.request(Method::GET, &url).unwrap().send().await.unwrap();
        assert_eq!(reply.text().await.unwrap(), body);
    }
    // A kept connection would have answered this one.
    assert_eq!(refusal(&client, &url).await, r#"ssrf: "safety.internal" resolved to blocked IP 169.254.169.254"#);
    assert_eq!(*resolver.asked.lock().unwrap(), ["safety.internal"; 3]);
    let requests = server.join().unwrap();
    assert!(requests[0].starts_with("GET /check HTTP/1.1\r\n"), "{requests:?}");
    assert!(requests[0].contains(&format!("host: safety.internal:{}\r\n", at.port())), "{requests:?}");
}

#[tokio::test]
async fn a_host_entry_counts_for_its_ports_and_its_name_only() {
    let resolver = Arc::new(Scripted::new(&[&["127.0.0.1"], &["10.0.0.1"], &["8.8.8.8"]]));
    let allow = vec![Allow::host("a.example", vec![9001]).unwrap(), Allow::cidr("10.0.0.0/8", vec![81]).unwrap()];
    let client = Egress::new(allow).with_resolver(resolver).client(TIMEOUTS).unwrap();
    assert_eq!(
        refusal(&client, "http://a.example:9002/").await,
        r#"ssrf: "a.example" resolved to blocked IP 127.0.0.1"#
    );
    assert_eq!(
        refusal(&client, "http://b.example:9001/").await,
        r#"ssrf: "b.example" resolved to blocked IP 10.0.0.1"#
    );
    // Port 81 is open for the network, not for any other address a name may have.
    assert_eq!(refusal(&client, "http://b.example:81/").await, r#"ssrf: "b.example" resolved to blocked IP 8.8.8.8"#);
}

#[tokio::test]
async fn a_redirect_is_handed_back_and_its_target_is_refused() {
    let (at, server) = serve(vec![
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest/meta-data/\r\ncontent-length: 0\r\n\r\n".into(),
    ]);
    let allow = vec![Allow::cidr("127.0.0.1", vec![at.port()]).unwrap()];
    let client = Egress::new(allow).client(TIMEOUTS).unwrap();
    let reply = client.request(Method::GET, &format!("http://{at}/")).unwrap().send().await.unwrap();
    assert_eq!(reply.status(), 302);
    let target = reply.headers()["location"].to_str().unwrap();
    let text = client.request(Method::GET, target).unwrap_err().to_string();
    assert_eq!(text, "ssrf: IP 169.254.169.254 is in a blocked range");
    assert_eq!(server.join().unwrap().len(), 1);
}
