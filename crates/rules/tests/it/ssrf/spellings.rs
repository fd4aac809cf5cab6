//! The many spellings of one address.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Case;
use super::stage::Stage;

/// Addresses that somebody would like to reach; the canaries' own come on top.
const TARGETS: [Ipv4Addr; 7] = [
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::new(127, 0, 0, 53),
    Ipv4Addr::UNSPECIFIED,
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(100, 100, 100, 200),
];

pub(super) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases = Vec::new();
    for ip in TARGETS.into_iter().chain(stage.own_v4()) {
        let v4 = numbers(ip).into_iter().chain(signs(ip));
        cases.extend(v4.map(|host| Case::blocked(format!("http://{host}:{{P}}/"), &ip.to_string())));
        cases.extend(in_v6(ip).map(|host| {
            let shown: Ipv6Addr = host.parse().unwrap();
            Case::blocked(format!("http://[{host}]:{{P}}/"), &shown.to_string())
        }));
        cases.extend(urls(ip).map(|url| Case::blocked(url, &ip.to_string())));
    }
    for host in ["::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::0001", "0::1", "::0:1"] {
        cases.push(Case::blocked(format!("http://[{host}]:{{P}}/"), "::1"));
    }
    for host in ["::", "0::0", "0:0:0:0:0:0:0:0", "::0.0.0.0"] {
        cases.push(Case::blocked(format!("http://[{host}]:{{P}}/"), "::"));
    }
    for own in stage.canaries() {
        cases.push(Case::blocked(format!("http://{own}/"), &own.ip().to_string()));
    }
    for host in ["0x", "0X", "00", "0.0", "0x.0x.0x.0x", "0000.0.0.0"] {
        cases.push(Case::blocked(format!("http://{host}:{{P}}/"), "0.0.0.0"));
    }
    cases
}

/// Other bases, other numbers of parts.
fn numbers(ip: Ipv4Addr) -> Vec<String> {
    let n = ip.to_bits();
    let [a, b, c, d] = ip.octets();
    let (last_3, last_2) = (n & 0xff_ffff, n & 0xffff);
    vec![
        format!("{ip}"),
        format!("{ip}."),
        format!("{n}"),
        format!("{n}."),
        format!("{n:#x}"),
        format!("0X{n:X}"),
        format!("0x00000000000{n:x}"),
        format!("0{n:o}"),
        format!("0000000{n:o}"),
        format!("{a}.{last_3}"),
        format!("{a}.{b}.{last_2}"),
        format!("{a:#x}.{last_3:#x}"),
        format!("0{a:o}.{b:#x}.{last_2}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.000{b:o}.000{c:o}.000{d:o}"),
        format!("0x{a:04x}.0{b:o}.{c}.{d:#x}"),
    ]
}

/// Other signs for the same digits and dots, and signs that count for nothing.
fn signs(ip: Ipv4Addr) -> Vec<String> {
    let text = ip.to_string();
    let digits = |zero: char| {
        let sign = |c: char| match c.to_digit(10) {
            Some(digit) => char::from_u32(zero as u32 + digit).unwrap(),
            None => c,
        };
        text.chars().map(sign).collect::<String>()
    };
    let circled = text.chars().map(|c| match c.to_digit(10) {
        Some(0) => '\u{24ea}',
        Some(digit) => char::from_u32(0x245f + digit).unwrap(),
        None => c,
    });
    let percent: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let (head, tail) = text.split_at(1);
    let mut spelled = vec![
        digits('\u{ff10}'),
        digits('\u{1d7ce}'),
        digits('\u{1d7f6}'),
        circled.collect(),
        percent.clone(),
        percent.to_uppercase(),
        format!("{head}%{:02X}{}", tail.as_bytes()[0], &tail[1..]),
    ];
    let dots = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];
    spelled.extend(dots.iter().map(|dot| text.replace('.', &dot.to_string())));
    let nothing = ['\u{ad}', '\u{200b}', '\u{2060}', '\u{feff}', '\u{fe0f}', '\t', '\n', '\r'];
    spelled.extend(nothing.iter().map(|sign| format!("{head}{sign}{tail}")));
    spelled
}

/// The address inside a v6 one.
fn in_v6(ip: Ipv4Addr) -> impl Iterator<Item = String> {
    let [a, b, c, d] = ip.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    [
        format!("::ffff:{ip}"),
        format!("::FFFF:{high:X}:{low:X}"),
        format!("0:0:0:0:0:ffff:{high:x}:{low:04x}"),
        format!("0000:0000:0000:0000:0000:ffff:{high:04x}:{low:04x}"),
        format!("::0:ffff:{ip}"),
        format!("::{ip}"),
        format!("::ffff:0:{ip}"),
        format!("64:ff9b::{ip}"),
        format!("64:ff9b:1::{ip}"),
        format!("64:ff9b:1:{high:x}:{:x}:{:x}::", u16::from(c), u16::from_be_bytes([d, 0])),
        format!("2002:{high:x}:{low:x}::1"),
        format!("2001::{high:x}:{low:x}"),
        format!("fe80::5efe:{ip}"),
    ]
    .into_iter()
}

/// Other ways to begin, and to end.
fn urls(ip: Ipv4Addr) -> impl Iterator<Item = String> {
    [
        format!("http:{ip}:{{P}}"),
        format!("http:/{ip}:{{P}}/"),
        format!("http:///{ip}:{{P}}/"),
        format!("http:////////{ip}:{{P}}/"),
        format!("http:\\\\{ip}:{{P}}\\"),
        format!("HtTp://{ip}:{{P}}"),
        format!("https://{ip}:{{P}}/"),
        format!(" \u{1}http://{ip}:{{P}}/ \u{1f}"),
        format!("h\tt\nt\rp://{ip}:{{P}}/"),
        format!("http://{ip}:00000{{P}}/"),
        format!("http://{ip}"),
        format!("https://{ip}?x=http://example.org/"),
        format!("http://@{ip}:{{P}}/"),
        format!("http://:@{ip}:{{P}}/"),
    ]
    .into_iter()
}
