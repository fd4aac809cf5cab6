//! Who may knock at all: what a request says of where it comes from, before anybody asks who it is. Pure.
//!
//! A browser sends requests for any page that a person has open, and a server on this machine is within its reach. So a
//! server that only this machine reaches answers only under a name of this machine, and no page of another origin gets
//! an answer.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderValue, Uri};
use ipnet::IpNet;
use url::{Host, Origin, Url};

/// The word for why a request of another origin is refused.
pub(crate) const FORBIDDEN_ORIGIN: &str = "forbidden_origin";

/// The `X-Request-Id` of a request.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The headers of a proxy. Whoever sends one is not alone on this machine.
const FORWARDED: [&str; 6] = ["forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip", "x-client-ip"];

/// The headers that say where a request goes, where it comes from and who sends it: two of one kind may be read in two
/// ways, by a proxy and here.
const ONCE: [&str; 10] = [
    "host",
    "origin",
    "sec-fetch-site",
    "sec-fetch-mode",
    "authorization",
    "x-api-key",
    "x-pintle",
    "x-pintle-key",
    "x-pintle-user",
    "x-pintle-tenant",
];

/// The beginning of the names of the others.
const X_FORWARDED: &str = "x-forwarded-";

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Over the network.
    Address {
        /// Of whoever connected.
        from: IpAddr,
        /// Whether only this machine reaches the address that it connected to.
        to_loopback: bool,
        /// Whether it is encrypted.
        encrypted: bool,
        /// Whether a program that an agent started may be at its other end.
        of_agent: bool,
        /// The process there.
        other_end: OtherEnd,
    },
    /// Over a socket in the file system.
    Unix {
        /// Whether it is of the user of this process.
        own: bool,
        /// Whether a program that an agent started may be at its other end.
        of_agent: bool,
        /// The process there.
        other_end: OtherEnd,
    },
}

/// The process at the other end of a connection, as far as it can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherEnd {
    /// It holds an end of a connection within this machine.
    Socket {
        /// Its end.
        theirs: SocketAddr,
        /// This server's.
        ours: SocketAddr,
    },
    /// Its id.
    Process(i32),
    /// It is on another machine, or nobody can tell.
    Unknown,
}

/// A request that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// The address that it comes from, past proxies that are trusted.
    pub(crate) from: Option<IpAddr>,
    /// Whether it comes from this machine, and from nobody else through it.
    pub(crate) is_local: bool,
    /// Whether a program that an agent started may have sent it.
    pub(crate) is_agents: bool,
    /// The process that sent it, or a proxy of this machine.
    pub(crate) other_end: OtherEnd,
    /// Whether no page sent it, or one of this server's own.
    pub(crate) is_own_page: bool,
    /// Whether nobody reads it on its way from the client.
    pub(crate) is_encrypted: bool,
}

/// Sees to it that a request says once to whom it goes: HTTP/2 says it in the address.
///
/// # Errors
/// It says something twice, or something else in its address.
pub(crate) fn one_host(uri: &Uri, headers: &mut HeaderMap) -> Result<(), String> {
    if let Some(name) = ONCE.iter().find(|name| headers.get_all(**name).iter().nth(1).is_some()) {
        return Err(format!("the header `{name}` stands there twice"));
    }
    let Some(authority) = uri.authority() else { return Ok(()) };
    let Some(host) = text(headers, "host") else {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| "the address names no host".to_owned())?;
        headers.insert(HOST, host);
        return Ok(());
    };
    match host == authority.as_str() {
        true => Ok(()),
        false => Err("the address and the header `Host` name different hosts".to_owned()),
    }
}

/// Why a request is turned away: the text of a 403.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnedAway(pub(crate) String);

/// Decides it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door {
    /// The origins of other pages that are let in.
    pub(crate) allowed: Vec<Url>,
    /// The address under which people know this server.
    pub(crate) public: Option<Url>,
    /// The proxies that are believed.
    pub(crate) proxies: Vec<IpNet>,
}

impl Door {
    /// Lets a request in, or turns it away.
    pub(crate) fn enter(&self, peer: Peer, headers: &HeaderMap) -> Result<Visit, TurnedAway> {
        self.let_in(peer, headers, false)
    }

    /// The same for a page of the console, which has no data in it: a person may follow a link to it from anywhere, such
    /// as a message in a chat. What the page asks for then comes from the page.
    pub(crate) fn open_page(&self, peer: Peer, headers: &HeaderMap) -> Result<Visit, TurnedAway> {
        self.let_in(peer, headers, follows_link(headers))
    }

    fn let_in(&self, peer: Peer, headers: &HeaderMap, from_anywhere: bool) -> Result<Visit, TurnedAway> {
        let host = text(headers, "host");
        if let Peer::Address { to_loopback: true, .. } = peer
            && !host.is_some_and(is_local_name)
        {
            let why = match host {
                Some(host) => format!("`Host: {host}` is not a loopback name"),
                None => "the request has no `Host`".to_owned(),
            };
            return Err(TurnedAway(format!("this server listens on loopback only, and {why}; use localhost")));
        }
        let is_own_page = if from_anywhere { false } else { self.check_origin(peer, headers, host)? };
        let through =
            headers.keys().any(|name| FORWARDED.contains(&name.as_str()) || name.as_str().starts_with(X_FORWARDED));
        let is_local = !through
            && match peer {
                Peer::Address { from, to_loopback, .. } => to_loopback && from.is_loopback(),
                Peer::Unix { own, .. } => own,
            };
        let (Peer::Address { of_agent, other_end, .. } | Peer::Unix { of_agent, other_end, .. }) = peer;
        Ok(Visit {
            is_agents: of_agent,
            other_end,
            from: self.address(peer, headers),
            is_local,
            is_own_page,
            is_encrypted: self.is_encrypted(peer, headers),
        })
    }

    /// Whether it came encrypted, to this server or to a proxy that is trusted.
    fn is_encrypted(&self, peer: Peer, headers: &HeaderMap) -> bool {
        let Peer::Address { from, encrypted, .. } = peer else { return false };
        let is_proxy = self.proxies.iter().any(|net| net.contains(&from));
        encrypted || (is_proxy && text(headers, "x-forwarded-proto") == Some("https"))
    }

    /// Turns away what a page of another origin sent. Whether no other page sent it than one of this server's.
    fn check_origin(&self, peer: Peer, headers: &HeaderMap, host: Option<&str>) -> Result<bool, TurnedAway> {
        match text(headers, "origin") {
            Some(origin) => {
                let Some(given) = Url::parse(origin).ok().map(|url| url.origin()).filter(Origin::is_tuple) else {
                    return Err(TurnedAway(format!("the origin `{origin}` is not this server's")));
                };
                if self.is_own((peer, headers), &given, host) {
                    return Ok(true);
                }
                if self.allowed.iter().any(|url| url.origin() == given) {
                    return Ok(false);
                }
                Err(TurnedAway(format!(
                    "the origin `{origin}` is not this server's; `gateway.allowed_origins` lets others in"
                )))
            }
            None => match text(headers, "sec-fetch-site") {
                None | Some("same-origin" | "none") => Ok(true),
                Some(site) => Err(TurnedAway(format!("cross-origin request (`Sec-Fetch-Site: {site}`)"))),
            },
        }
    }

    /// Whether a page of `given` is one of this server's.
    fn is_own(&self, (peer, headers): (Peer, &HeaderMap), given: &Origin, host: Option<&str>) -> bool {
        if self.public.as_ref().is_some_and(|public| public.origin() == *given) {
            return true;
        }
        // Under a public address only that one counts, but for whoever sits at this machine.
        let to_loopback = matches!(peer, Peer::Address { to_loopback: true, .. });
        if self.public.is_some() && !to_loopback {
            return false;
        }
        let scheme = if self.is_encrypted(peer, headers) { "https" } else { "http" };
        let own = host.and_then(|host| Url::parse(&format!("{scheme}://{host}")).ok());
        own.is_some_and(|own| own.origin() == *given)
    }

    /// The address of whoever asks: the last one in `X-Forwarded-For` that is no trusted proxy, if one of these brings it.
    fn address(&self, peer: Peer, headers: &HeaderMap) -> Option<IpAddr> {
        let Peer::Address { from, .. } = peer else { return None };
        let trusted = |address: &IpAddr| self.proxies.iter().any(|net| net.contains(address));
        if !trusted(&from) {
            return Some(from);
        }
        let hops = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let hops: Vec<&str> = hops.flat_map(|value| value.split(',')).map(str::trim).collect();
        let mut known = from;
        for hop in hops.into_iter().rev() {
            let Ok(address) = hop.parse() else { break };
            known = address;
            if !trusted(&address) {
                break;
            }
        }
        Some(known)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("what is not text"))
}

/// Whether a browser opens it in a window of its own, and no page reads the answer. A page that sends something, such as
/// a form, says its origin.
fn follows_link(headers: &HeaderMap) -> bool {
    text(headers, "origin").is_none()
        && text(headers, "sec-fetch-mode") == Some("navigate")
        && text(headers, "sec-fetch-dest") == Some("document")
}

/// Whether a `Host` names this machine and no other.
fn is_local_name(host: &str) -> bool {
    // As a browser would read it, so that nothing else is let in than what it would reach.
    let Ok(url) = Url::parse(&format!("http://{host}/")) else { return false };
    if !url.username().is_empty() || url.password().is_some() || url.path() != "/" {
        return false;
    }
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::http::HeaderName;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn local() -> Peer {
        Peer::Address {
            from: Ipv4Addr::LOCALHOST.into(),
            to_loopback: true,
            encrypted: false,
            of_agent: false,
            other_end: OtherEnd::Unknown,
        }
    }

    fn remote() -> Peer {
        Peer::Address {
            from: Ipv4Addr::new(203, 0, 113, 9).into(),
            to_loopback: false,
            encrypted: true,
            of_agent: false,
            other_end: OtherEnd::Unknown,
        }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_server_of_this_machine_answers_only_under_a_name_of_it() {
        let door = Door::default();
        let enters = |host: &str| door.enter(local(), &headers(&[("host", host)])).is_ok();
        for host in ["localhost", "localhost:18790", "127.0.0.1:1", "[::1]:18790", "127.9.9.9", "pintle.localhost:1"] {
            assert!(enters(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "a@localhost/x",
            "localhost@evil.example",
            "",
            "notlocalhost",
        ] {
            assert!(!enters(host), "{host}");
        }
        let why = "this server listens on loopback only, and the request has no `Host`; use localhost";
        assert_eq!(door.enter(local(), &HeaderMap::new()).unwrap_err(), TurnedAway(why.into()));
    }

    #[test]
    fn no_page_of_another_origin_gets_in() {
        let door = Door { allowed: vec![url("https://chat.example")], ..Door::default() };
        let enters = |lines: &[(&'static str, &str)]| {
            let lines: Vec<_> = [("host", "localhost:18790")].into_iter().chain(lines.iter().copied()).collect();
            door.enter(local(), &headers(&lines)).is_ok()
        };
        assert!(enters(&[]));
        assert!(enters(&[("origin", "http://localhost:18790")]));
        assert!(enters(&[("origin", "https://chat.example")]));
        assert!(enters(&[("sec-fetch-site", "same-origin")]));
        assert!(enters(&[("sec-fetch-site", "none")]));
        assert!(enters(&[("origin", "https://chat.example"), ("sec-fetch-site", "cross-site")]));
        for origin in [
            "http://localhost:3000",
            "https://localhost:18790",
            "http://evil.example",
            "null",
            "",
            "file://",
            "http://localhost:18790.evil.example",
        ] {
            assert!(!enters(&[("origin", origin)]), "{origin}");
        }
        assert!(!enters(&[("sec-fetch-site", "same-site")]));
        assert!(!enters(&[("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn a_link_from_elsewhere_opens_a_page_and_nothing_else() {
        let door = Door::default();
        let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let opens = |host: &str, lines: &[(&'static str, &str)]| {
            let lines: Vec<_> = [("host", host)].into_iter().chain(lines.iter().copied()).collect();
            door.open_page(local(), &headers(&lines)).map(|visit| visit.is_own_page)
        };
        assert_eq!(opens("localhost:18790", &link), Ok(false));
        assert!(opens("evil.example", &link).is_err(), "another name is another server");
        let but =
            |name: &'static str, value: &'static str| link.map(|it| if it.0 == name { (name, value) } else { it });
        for (name, value) in [
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-dest", "iframe"),
            ("sec-fetch-dest", "empty"),
            ("sec-fetch-dest", "script"),
        ] {
            assert!(opens("localhost:18790", &but(name, value)).is_err(), "{name}: {value}");
        }
        let form = link.into_iter().chain([("origin", "http://evil.example")]).collect::<Vec<_>>();
        assert!(opens("localhost:18790", &form).is_err());
        let lines: Vec<_> = [("host", "localhost:18790")].into_iter().chain(link).collect();
        assert!(door.enter(local(), &headers(&lines)).is_err(), "what has data in it");
    }

    #[test]
    fn whose_page_sent_it_and_how_it_came_is_known() {
        let door = Door {
            allowed: vec![url("https://chat.example")],
            proxies: vec!["203.0.113.0/24".parse().unwrap()],
            ..Door::default()
        };
        let visit = |peer: Peer, lines: &[(&'static str, &str)]| {
            let lines: Vec<_> = [("host", "localhost:18790")].into_iter().chain(lines.iter().copied()).collect();
            door.enter(peer, &headers(&lines)).unwrap()
        };
        assert!(visit(local(), &[]).is_own_page);
        assert!(visit(local(), &[("origin", "http://localhost:18790")]).is_own_page);
        assert!(!visit(local(), &[("origin", "https://chat.example")]).is_own_page);
        assert!(visit(remote(), &[]).is_encrypted && !visit(local(), &[]).is_encrypted);
        assert!(!visit(local(), &[("x-forwarded-proto", "https")]).is_encrypted, "a proxy that nobody trusts");
        let from = Ipv4Addr::new(203, 0, 113, 9).into();
        let proxy =
            Peer::Address { from, to_loopback: false, encrypted: false, of_agent: false, other_end: OtherEnd::Unknown };
        assert!(visit(proxy, &[("x-forwarded-proto", "https")]).is_encrypted);
        assert!(!visit(proxy, &[("x-forwarded-proto", "http")]).is_encrypted);
    }

    #[test]
    fn under_a_public_address_only_that_one_counts() {
        let door = Door { public: Some(url("https://pintle.example/")), ..Door::default() };
        let enters =
            |origin: &str| door.enter(remote(), &headers(&[("host", "other.example"), ("origin", origin)])).is_ok();
        assert!(enters("https://pintle.example"));
        assert!(!enters("https://other.example"));
        let unnamed = Door::default();
        let lines = headers(&[("host", "other.example"), ("origin", "https://other.example")]);
        assert!(unnamed.enter(remote(), &lines).is_ok());
    }

    #[test]
    fn behind_a_proxy_that_is_trusted_its_own_pages_are_those_that_people_see() {
        let enters = |proxies: &[&str], proto: &str, origin: &str| {
            let proxies = proxies.iter().map(|net| net.parse().unwrap()).collect();
            let from = Ipv4Addr::new(203, 0, 113, 9).into();
            let proxy = Peer::Address {
                from,
                to_loopback: false,
                encrypted: false,
                of_agent: false,
                other_end: OtherEnd::Unknown,
            };
            let lines = headers(&[("host", "pintle.example"), ("x-forwarded-proto", proto), ("origin", origin)]);
            Door { proxies, ..Door::default() }.enter(proxy, &lines).is_ok()
        };
        assert!(enters(&["203.0.113.0/24"], "https", "https://pintle.example"));
        assert!(enters(&["203.0.113.0/24"], "http", "http://pintle.example"));
        assert!(!enters(&["203.0.113.0/24"], "https", "http://pintle.example"));
        assert!(!enters(&["203.0.113.0/24"], "https", "https://evil.example"));
        assert!(!enters(&[], "https", "https://pintle.example"), "a proxy that nobody trusts");
    }

    #[test]
    fn what_a_proxy_brings_is_nobodys_own() {
        let door = Door::default();
        let is_local = |name: &'static str| {
            door.enter(local(), &headers(&[("host", "localhost"), (name, "203.0.113.1")])).unwrap().is_local
        };
        assert!(is_local("accept"));
        for name in ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-anything"] {
            assert!(!is_local(name), "{name}");
        }
        assert!(!door.enter(remote(), &headers(&[("host", "localhost")])).unwrap().is_local);
        for own in [true, false] {
            assert_eq!(
                door.enter(Peer::Unix { own, of_agent: false, other_end: OtherEnd::Unknown }, &HeaderMap::new())
                    .unwrap()
                    .is_local,
                own
            );
        }
    }

    #[test]
    fn an_address_is_taken_only_from_a_proxy_that_is_trusted() {
        let door = Door { proxies: vec!["203.0.113.0/24".parse().unwrap()], ..Door::default() };
        let seen = |door: &Door, hops: &str| {
            let lines = headers(&[("host", "x.example"), ("x-forwarded-for", hops)]);
            door.enter(remote(), &lines).unwrap().from.unwrap().to_string()
        };
        assert_eq!(seen(&Door::default(), "198.51.100.7"), "203.0.113.9");
        assert_eq!(seen(&door, "198.51.100.7"), "198.51.100.7");
        assert_eq!(seen(&door, "6.6.6.6, 198.51.100.7, 203.0.113.4"), "198.51.100.7");
        assert_eq!(seen(&door, "what is none"), "203.0.113.9");
    }

    #[test]
    fn a_request_says_once_where_it_goes() {
        let of = |address: &str, lines: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            one_host(&address.parse().unwrap(), &mut headers).map(|()| text(&headers, "host").map(str::to_owned))
        };
        let host = |host: &str| Ok(Some(host.to_owned()));
        assert_eq!(of("/v1/models", &[("host", "localhost")]), host("localhost"));
        // As HTTP/2 says it.
        assert_eq!(of("http://localhost:18790/v1/models", &[]), host("localhost:18790"));
        assert_eq!(of("http://localhost/v1/models", &[("host", "localhost")]), host("localhost"));
        assert!(of("http://evil.example/v1/models", &[("host", "localhost")]).is_err());
        for name in ONCE {
            let why = of("/", &[("host", "localhost"), (name, "a"), (name, "b")]).unwrap_err();
            let wanted = if name == "host" { "host" } else { name };
            assert_eq!(why, format!("the header `{wanted}` stands there twice"));
        }
        assert_eq!(of("/", &[("cookie", "a=1"), ("cookie", "b=2")]), Ok(None));
    }
}
