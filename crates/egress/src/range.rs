//! The ranges of addresses and ports that are closed unless the operator opens them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// How far an address is from the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Open to everyone, and to us.
    Public,
    /// Loopback and private networks: blocked, a host entry of the allow-list opens them.
    Private,
    /// Link-local, multicast, unspecified, metadata, documentation and the like: blocked, only a CIDR entry opens them.
    Special,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// Source: RFC 1918, RFC 6598 (shared space of carriers) and loopback.
const PRIVATE_V4: [Ipv4Net; 5] =
    [v4(10, 0, 0, 0, 8), v4(100, 64, 0, 0, 10), v4(127, 0, 0, 0, 8), v4(172, 16, 0, 0, 12), v4(192, 168, 0, 0, 16)];

/// Source: the IANA IPv4 special-purpose registry, and the address of one cloud's host agent.
const SPECIAL_V4: [Ipv4Net; 11] = [
    v4(0, 0, 0, 0, 8),
    v4(168, 63, 129, 16, 32),
    v4(169, 254, 0, 0, 16),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

/// Unique local addresses, RFC 4193.
const UNIQUE_LOCAL_V6: Ipv6Net = v6(0xfc00, 0, 0, 7);

/// All that is handed out as global unicast; whatever lies outside is special.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Source: the IANA IPv6 special-purpose registry, as far as it lies within [`GLOBAL_V6`]:
/// Teredo, benchmarking and ORCHID; documentation; 6to4; documentation again.
const SPECIAL_V6: [Ipv6Net; 4] = [v6(0x2001, 0, 0, 23), v6(0x2001, 0xdb8, 0, 32), SIX_TO_FOUR, v6(0x3fff, 0, 0, 20)];

/// RFC 3056.
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);

/// RFC 6052: the v4 address stands in the last four octets.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// RFC 8215: the part for local use. Operators divide it as they like, so a v4 address may stand at any of the
/// places of [`LOCAL_NAT64_PLACES`].
const LOCAL_NAT64: Ipv6Net = v6(0x64, 0xff9b, 1, 48);

/// Source: RFC 6052, section 2.2, prefixes of 48, 56 and 64 bits; octet 8 is skipped.
const LOCAL_NAT64_PLACES: [[usize; 4]; 3] = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]];

/// Where `ip` lies. A v4-mapped v6 address lies where its v4 address does.
pub fn classify(ip: IpAddr) -> Reach {
    match ip.to_canonical() {
        IpAddr::V4(ip) if PRIVATE_V4.iter().any(|net| net.contains(&ip)) => Reach::Private,
        IpAddr::V4(ip) if SPECIAL_V4.iter().any(|net| net.contains(&ip)) => Reach::Special,
        IpAddr::V6(ip) if ip.is_loopback() || UNIQUE_LOCAL_V6.contains(&ip) => Reach::Private,
        IpAddr::V6(ip) if !GLOBAL_V6.contains(&ip) || SPECIAL_V6.iter().any(|net| net.contains(&ip)) => Reach::Special,
        IpAddr::V4(_) | IpAddr::V6(_) => Reach::Public,
    }
}

/// The v4 addresses to which a translator or a tunnel could take a NAT64 or 6to4 address.
///
/// In the local part of NAT64 the last octets always count; the other places only when something stands there:
/// the zeros of another division are not an address.
pub(super) fn embedded_v4(ip: IpAddr) -> impl Iterator<Item = Ipv4Addr> {
    let octets = match ip {
        IpAddr::V4(_) => [0; 16],
        IpAddr::V6(ip) => ip.octets(),
    };
    let ip = Ipv6Addr::from(octets);
    let at = move |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    let is_local = LOCAL_NAT64.contains(&ip);
    let last = (is_local || NAT64.contains(&ip)).then(|| at([12, 13, 14, 15]));
    let tunnel = SIX_TO_FOUR.contains(&ip).then(|| at([2, 3, 4, 5]));
    let divided = LOCAL_NAT64_PLACES.into_iter().filter(move |_| is_local).map(at).filter(|v4| v4.octets()[0] != 0);
    last.into_iter().chain(tunnel).chain(divided)
}

/// Ports from 1024 up that speak something else and can be fooled by HTTP.
/// Source: the Fetch standard, "bad port".
const BAD_PORTS: [u16; 19] =
    [1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080];

/// Whether a port is open without an entry of the allow-list: 80, 443 and 1024 up, less the bad ones.
pub(super) fn usual_port(port: u16) -> bool {
    matches!(port, 80 | 443) || (port >= 1024 && !BAD_PORTS.contains(&port))
}
