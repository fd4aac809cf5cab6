//! The tables of the protocol: first, middle and last address of each range, and the addresses around them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Case;

/// First, middle, last.
const V4: &[[&str; 3]] = &[
    ["0.0.0.0", "0.1.2.3", "0.255.255.255"],
    ["10.0.0.0", "10.20.30.40", "10.255.255.255"],
    ["100.64.0.0", "100.100.100.200", "100.127.255.255"],
    ["127.0.0.0", "127.0.0.1", "127.255.255.255"],
    ["168.63.129.16", "168.63.129.16", "168.63.129.16"],
    ["169.254.0.0", "169.254.169.254", "169.254.255.255"],
    ["172.16.0.0", "172.20.10.2", "172.31.255.255"],
    ["192.0.0.0", "192.0.0.192", "192.0.0.255"],
    ["192.0.2.0", "192.0.2.77", "192.0.2.255"],
    ["192.88.99.0", "192.88.99.1", "192.88.99.255"],
    ["192.168.0.0", "192.168.178.1", "192.168.255.255"],
    ["198.18.0.0", "198.19.0.1", "198.19.255.255"],
    ["198.51.100.0", "198.51.100.99", "198.51.100.255"],
    ["203.0.113.0", "203.0.113.113", "203.0.113.255"],
    ["224.0.0.0", "232.1.2.3", "239.255.255.255"],
    ["240.0.0.0", "250.250.250.250", "255.255.255.255"],
];

/// The nearest public addresses before and behind the ranges.
const AROUND_V4: &[&str] = &[
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.1.255",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
];

const V6: &[[&str; 3]] = &[
    ["::", "::1", "::2"],
    ["::3", "::127.0.0.1", "::ffff:ffff"],
    ["::ffff:0:0:0", "::ffff:0:127.0.0.1", "::ffff:0:ffff:ffff"],
    ["64:ff9b::", "64:ff9b::7f00:1", "64:ff9b::ffff:ffff"],
    ["64:ff9b:1::", "64:ff9b:1:7f00:0:100::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
    ["100::", "100::1", "100::ffff:ffff:ffff:ffff"],
    ["1::", "1000::1", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["2001::", "2001::7f00:1", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["2001:2::", "2001:10::1", "2001:20::1"],
    ["2001:db8::", "2001:db8:1::1", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["2002::", "2002:7f00:1::1", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["3fff::", "3fff:800::1", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["4000::", "5000::1", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["5f00::", "5f00:1::1", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["8000::", "c000::1", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["fc00::", "fd00::2", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["fe00::", "fe40::1", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["fe80::", "fe80::a9fe:a9fe", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["fec0::", "fec0::1", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
];

const AROUND_V6: &[&str] = &[
    "2000::",
    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:200::",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
    "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2003::",
    "2606:4700:4700::1111",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
    "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];

pub(super) fn cases() -> Vec<Case> {
    let v4 = distinct(V4).flat_map(|ip| {
        let mapped = ip.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped();
        [
            Case::blocked(format!("http://{ip}:{{P}}/"), ip),
            Case::blocked(format!("https://[{mapped}]:{{P}}/"), &mapped.to_string()),
            named(ip),
            named(&mapped.to_string()),
        ]
    });
    let v6 = distinct(V6).flat_map(|ip| {
        let shown = ip.parse::<Ipv6Addr>().unwrap().to_string();
        [Case::blocked(format!("http://[{ip}]:{{P}}/"), &shown), named(&shown)]
    });
    let around = AROUND_V4.iter().chain(AROUND_V6).flat_map(|ip| {
        let ip: IpAddr = ip.parse().unwrap();
        let at = std::net::SocketAddr::new(ip, 8080);
        [
            Case::dials(format!("http://{at}/"), at.to_string()),
            Case::dials("http://near.example:8080/", at.to_string()).answering(&[&ip.to_string()]),
        ]
    });
    v4.chain(v6).chain(around).collect()
}

fn named(ip: &str) -> Case {
    Case::blocked_name("http://range.example:{P}/", &[ip], ("range.example", ip))
}

/// Each address once: a range may be a single one.
fn distinct(table: &'static [[&'static str; 3]]) -> impl Iterator<Item = &'static str> {
    table.iter().flat_map(|range| {
        let mut ips = range.to_vec();
        ips.dedup();
        ips
    })
}
