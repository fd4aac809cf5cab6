//! URLs that are not what they seem: schemes, ports, users, names in other scripts, and what is not a URL at all.

use super::Case;

const SCHEMES: &[&str] = &[
    "about",
    "blob",
    "chrome",
    "dict",
    "ftp",
    "ftps",
    "git",
    "gopher",
    "http+unix",
    "httpx",
    "https+unix",
    "imap",
    "jar",
    "javascript",
    "ldap",
    "ldaps",
    "mailto",
    "netdoc",
    "nfs",
    "phar",
    "php",
    "pop3",
    "redis",
    "rtsp",
    "sftp",
    "smb",
    "ssh",
    "svn",
    "telnet",
    "tftp",
    "unix",
    "view-source",
    "ws",
    "wss",
    "x-http",
];

/// Below 1024, and those from 1024 up that the Fetch standard calls bad.
const CLOSED_PORTS: &[u16] = &[
    0, 1, 7, 19, 20, 21, 22, 23, 25, 37, 53, 69, 79, 81, 87, 110, 111, 119, 135, 139, 143, 389, 442, 444, 465, 512,
    514, 587, 631, 636, 993, 995, 1023, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666,
    6667, 6668, 6669, 6679, 6697, 10080,
];

const OPEN_PORTS: &[u16] = &[80, 443, 1024, 1718, 1721, 2048, 3000, 4046, 5432, 6001, 6670, 8080, 8443, 10081, 65535];

/// What is not a URL, or names no host that can be.
const UNREADABLE: &[&str] = &[
    "",
    " ",
    "http",
    "example.org",
    "//127.0.0.1:{P}/",
    "/127.0.0.1",
    "127.0.0.1:{P}",
    "http://%/",
    "http://%00/",
    "http://a%2fb/",
    "http://a%00.example/",
    "http://a b/",
    "http://a<b/",
    "http://a^b/",
    "http://a|b/",
    "http://[/",
    "http://[]/",
    "http://[::1/",
    "http://[::1]x/",
    "http://[::g]/",
    "http://[1::2::3]/",
    "http://[1:2:3:4:5:6:7:8:9]/",
    "http://[127.0.0.1]/",
    "http://[::127.0.0.1.2]/",
    "http://[::ffff:0x7f.1]/",
    "http://[::ffff:127.1]/",
    "http://[::ffff:127.0.0.01]/",
    "http://256.0.0.1/",
    "http://1.2.3.256/",
    "http://127.0.0.0x100/",
    "http://0x100000000/",
    "http://4294967296/",
    "http://1.2.3.4.5/",
    "http://127.0.0.1.1/",
    "http://1..2/",
    "http://.1/",
    "http://08.0.0.1/",
    "http://127.0.0.09/",
    "http://x.0x7g.1.9/",
    "http://foo.0x4/",
    "http://example.org:65536/",
    "http://example.org:99999999999/",
    "http://example.org:-1/",
    "http://example.org:80a/",
    "http://example.org: 80/",
    "http://example.org:\u{ff18}\u{ff10}/",
    "http://[fe80::1%25eth0]:{P}/",
    "http://[fe80::1%eth0]:{P}/",
    "http://[fe80::1%251]/",
    "http://[::1%25lo]:{P}/",
    "http://[::1%lo]:{P}/",
    "http://[::1%25]:{P}/",
    "http://[::ffff:127.0.0.1%25lo]:{P}/",
    "http://\u{2100}.example/",
    "http://example.org\u{ff0f}127.0.0.1/",
    "http://example.org\u{ff20}127.0.0.1/",
    "http://example.org%40127.0.0.1/",
    "http://example.org\u{ff1a}80/",
    "http://example.org\u{ff03}.example/",
    "http://xn--a/",
    "http://xn--0/",
    "http://\u{fffd}/",
    "http://a\u{0}b/",
];

const EMPTY_HOST: &[&str] = &["http:", "http://", "http:///", "https://?x", "http://#x", "http://:80/", "http://\\"];

/// With a user or a password, whatever the host.
const CREDENTIALS: &[&str] = &[
    "http://user@127.0.0.1:{P}/",
    "http://user:secret@127.0.0.1:{P}/",
    "http://:secret@127.0.0.1:{P}/",
    "http://user@example.org/",
    "http://example.org@127.0.0.1:{P}/",
    "http://127.0.0.1@example.org/",
    "http://example.org:80@127.0.0.1:{P}/",
    "http://a@b@127.0.0.1:{P}/",
    "http://example.org;@127.0.0.1:{P}/",
    "http://127.0.0.1%23@example.org/",
    "http://example.org%2f@127.0.0.1:{P}/",
    "http://user%3asecret@[::1]:{P}/",
    "https://example.org%00@127.0.0.1:{P}/",
    "http:user@127.0.0.1:{P}/",
    "http://\u{ff20}@127.0.0.1:{P}/",
    "http://%20@127.0.0.1:{P}/",
];

/// URLs whose host looks like another: all of them lead to a name that resolves to loopback.
const NAMES: &[(&str, &str)] = &[
    ("http://localhost:{P}/", "localhost"),
    ("http://LOCALHOST:{P}/", "localhost"),
    ("http://localhost.:{P}/", "localhost."),
    ("http://localhost.localdomain:{P}/", "localhost.localdomain"),
    ("http://ip6-localhost:{P}/", "ip6-localhost"),
    ("http://x.localhost:{P}/", "x.localhost"),
    ("http://l%6fcalhost:{P}/", "localhost"),
    ("http://\u{24db}\u{24de}\u{24d2}\u{24d0}\u{24db}\u{24d7}\u{24de}\u{24e2}\u{24e3}:{P}/", "localhost"),
    ("http://\u{ff4c}\u{ff4f}\u{ff43}\u{ff41}\u{ff4c}\u{ff48}\u{ff4f}\u{ff53}\u{ff54}:{P}/", "localhost"),
    ("http://\u{2113}ocalhost:{P}/", "localhost"),
    ("http://\u{217c}ocalhost:{P}/", "localhost"),
    ("http://loc\u{ad}alhost:{P}/", "localhost"),
    ("http://local\u{200b}host:{P}/", "localhost"),
    ("http://lo\tcal\nhost:{P}/", "localhost"),
    ("http://localho\u{17f}t:{P}/", "localhost"),
    ("http://localhost\u{3002}:{P}/", "localhost."),
    ("http://example\u{3002}org:{P}/", "example.org"),
    ("http://example\u{ff0e}org:{P}/", "example.org"),
    ("http://example\u{ff61}org:{P}/", "example.org"),
    ("http://\u{430}pple.example:{P}/", "xn--pple-43d.example"),
    ("http://b\u{fc}cher.example:{P}/", "xn--bcher-kva.example"),
    ("http://bu\u{308}cher.example:{P}/", "xn--bcher-kva.example"),
    ("http://xn--bcher-kva.example:{P}/", "xn--bcher-kva.example"),
    ("http://XN--BCHER-KVA.example:{P}/", "xn--bcher-kva.example"),
    ("http://fa\u{df}.example:{P}/", "xn--fa-hia.example"),
    ("http://127.0.0.1.nip.io:{P}/", "127.0.0.1.nip.io"),
    ("http://7f000001.rbndr.us:{P}/", "7f000001.rbndr.us"),
    ("http://metadata.google.internal:{P}/", "metadata.google.internal"),
    ("http://example.org:{P}#@127.0.0.1/", "example.org"),
    ("http://example.org:{P}\\@127.0.0.1/", "example.org"),
    ("http://example.org:{P}/@127.0.0.1/", "example.org"),
    ("http://example.org:{P}?@127.0.0.1/", "example.org"),
    ("http://example.org:{P}/../../127.0.0.1", "example.org"),
    ("http://_.example:{P}/", "_.example"),
    ("http://-.example:{P}/", "-.example"),
    ("http://a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p:{P}/", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p"),
];

/// The other way round: what looks like a name behind it is none.
const BEHIND: &[&str] = &[
    "http://127.0.0.1:{P}\\@example.org/",
    "http://127.0.0.1:{P}?@example.org/",
    "http://127.0.0.1:{P}#@example.org/",
    "http://127.0.0.1:{P}/@example.org/",
    "http://127.0.0.1:{P}\\.example.org/",
    "http://127.0.0.1:{P}#.example.org/",
    "http://127.0.0.1\t:{P}/",
    "http://127.0.0.1:{P}/%00",
    "http://127.0.0.1:{P}/\u{0}.example.org",
];

pub(super) fn cases() -> Vec<Case> {
    let schemes = SCHEMES.iter().map(|scheme| {
        let text = format!("scheme \"{scheme}\" not allowed (only http/https)");
        Case::refused(format!("{scheme}://127.0.0.1:{{P}}/"), text)
    });
    let closed = CLOSED_PORTS.iter().flat_map(|port| {
        let text = format!("port {port} not allowed");
        let named = Case::refused(format!("http://out.example:{port}/"), text.clone()).answering(&["8.8.8.8"]);
        [named, Case::refused(format!("https://127.0.0.1:{port}/"), text)]
    });
    let open = OPEN_PORTS.iter().map(|port| {
        Case::dials(format!("http://out.example:{port}/"), format!("8.8.8.8:{port}")).answering(&["8.8.8.8"])
    });
    let texts = |urls: &'static [&str], text: &'static str| urls.iter().map(move |url| Case::refused(*url, text));
    let names = NAMES.iter().map(|(url, host)| Case::blocked_name(*url, &["127.0.0.1"], (host, "127.0.0.1")));
    let behind = BEHIND.iter().map(|url| Case::blocked(*url, "127.0.0.1"));
    let mut cases: Vec<Case> = schemes.chain(closed).chain(open).chain(names).chain(behind).collect();
    cases.extend(texts(UNREADABLE, "parse url"));
    cases.extend(texts(EMPTY_HOST, "empty host"));
    cases.extend(texts(CREDENTIALS, "credentials in url"));
    cases.push(Case::refused("file:///etc/passwd", "scheme \"file\" not allowed (only http/https)"));
    cases.push(Case::refused("data:text/html,x", "scheme \"data\" not allowed (only http/https)"));
    cases.extend(huge());
    cases
}

fn huge() -> Vec<Case> {
    let long = "a".repeat(100_000);
    let name = "a".repeat(10_000);
    let labels = "a.".repeat(20_000);
    vec![
        Case::blocked_name(format!("http://{name}:{{P}}/"), &["127.0.0.1"], (&name, "127.0.0.1")),
        Case::blocked_name(format!("http://{labels}b:{{P}}/"), &["127.0.0.1"], (&format!("{labels}b"), "127.0.0.1")),
        Case::blocked(format!("http://127.0.0.1:{{P}}/{long}?{long}#{long}"), "127.0.0.1"),
        Case::blocked(format!("http:{}127.0.0.1:{{P}}/", "/".repeat(100_000)), "127.0.0.1"),
        Case::blocked(format!("http://{}127.0.0.1:{{P}}/", "\u{ad}".repeat(10_000)), "127.0.0.1"),
        Case::refused(format!("http://{long}@127.0.0.1:{{P}}/"), "credentials in url"),
        Case::refused(format!("{long}://127.0.0.1/"), format!("scheme \"{long}\" not allowed (only http/https)")),
        Case::refused("x".repeat(1 << 20), "parse url"),
        Case::refused(format!("http://[{}]/", ":".repeat(100_000)), "parse url"),
    ]
}
