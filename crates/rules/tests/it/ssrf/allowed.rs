//! What the operator's entries open, and what they leave closed.

use pintle_egress::Allow;

use super::Case;

fn host(host: &str, ports: &[u16]) -> Allow {
    Allow::host(host, ports.to_vec()).unwrap()
}

fn cidr(cidr: &str, ports: &[u16]) -> Allow {
    Allow::cidr(cidr, ports.to_vec()).unwrap()
}

fn tenants(entry: Allow, tenants: &[&str]) -> Allow {
    entry.for_tenants(&tenants.iter().map(|slug| (*slug).to_owned()).collect::<Vec<_>>()).unwrap()
}

pub(super) fn cases() -> Vec<Case> {
    [by_host(), by_network(), by_port(), translated(), by_tenant()].concat()
}

/// `safety.internal` is opened; it resolves to this.
fn safety(answer: &str) -> Case {
    Case::dials("http://safety.internal/check", format!("{answer}:80")).answering(&[answer])
}

fn by_host() -> Vec<Case> {
    let entry = [host("safety.internal", &[])];
    let mut cases = Vec::new();
    for answer in ["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "8.8.8.8"] {
        cases.push(safety(answer).with(&entry));
        // Another name for the same address, and the address itself.
        for other in ["unsafety.internal", "a.safety.internal", "safety.internal.example", "internal"] {
            if answer != "8.8.8.8" {
                let url = format!("http://{other}/check");
                cases.push(Case::blocked_name(url, &[answer], (other, answer)).with(&entry));
            }
        }
    }
    cases.push(Case::blocked("http://127.0.0.1/", "127.0.0.1").with(&entry));
    for (answer, at) in [("::1", "[::1]:80"), ("fd00::2", "[fd00::2]:80"), ("::ffff:10.0.0.1", "[::ffff:10.0.0.1]:80")]
    {
        cases.push(Case::dials("http://safety.internal/", at).answering(&[answer]).with(&entry));
    }
    for url in ["http://SAFETY.internal/", "http://safety.internal./", "http://s\u{ad}afety\u{3002}internal/"] {
        cases.push(Case::dials(url, "10.0.0.1:80").answering(&["10.0.0.1"]).with(&entry));
    }
    for special in [
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "192.0.2.1",
        "fe80::1",
        "::",
        "ff02::1",
    ] {
        let case = Case::blocked_name("http://safety.internal/", &[special], ("safety.internal", special));
        cases.push(case.with(&entry));
        let mixed = Case::blocked_name("http://safety.internal/", &["10.0.0.1", special], ("safety.internal", special));
        cases.push(mixed.with(&entry));
    }
    let literal = [host("127.0.0.1", &[]), host("::1", &[]), host("203.0.114.5", &[])];
    cases.push(Case::dials("http://127.0.0.1/", "127.0.0.1:80").with(&literal));
    cases.push(Case::dials("http://0x7f.1/", "127.0.0.1:80").with(&literal));
    cases.push(Case::dials("http://[0::1]/", "[::1]:80").with(&literal));
    cases.push(Case::dials("http://203.0.114.5/", "203.0.114.5:80").with(&literal).owning(&[&["203.0.114.5"]]));
    cases.push(Case::blocked("http://127.0.0.2/", "127.0.0.2").with(&literal));
    cases
}

fn by_network() -> Vec<Case> {
    let entry = [cidr("10.1.0.0/16", &[]), cidr("169.254.169.254", &[]), cidr("fe80::/10", &[]), cidr("0.0.0.0", &[])];
    let mut cases = Vec::new();
    for ip in ["10.1.0.0", "10.1.255.255", "169.254.169.254", "0.0.0.0"] {
        cases.push(Case::dials(format!("http://{ip}/"), format!("{ip}:80")).with(&entry));
        cases.push(Case::dials("http://any.example/", format!("{ip}:80")).answering(&[ip]).with(&entry));
        cases.push(Case::dials(format!("http://[::ffff:{ip}]/"), format!("[::ffff:{ip}]:80")).with(&entry));
    }
    cases.push(Case::dials("http://[fe80::1]/", "[fe80::1]:80").with(&entry));
    for ip in ["10.0.255.255", "10.2.0.0", "169.254.169.253", "169.254.169.255", "0.0.0.1", "127.0.0.1"] {
        cases.push(Case::blocked(format!("http://{ip}/"), ip).with(&entry));
        let mixed = Case::blocked_name("http://any.example/", &["10.1.0.1", ip], ("any.example", ip));
        cases.push(mixed.with(&entry));
    }
    // All of v6 is not all of v4.
    let v6 = [cidr("::/0", &[])];
    cases.push(Case::dials("http://[::1]/", "[::1]:80").with(&v6));
    cases.push(Case::blocked("http://127.0.0.1/", "127.0.0.1").with(&v6));
    cases.push(Case::blocked("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1").with(&v6));
    // An entry for this host's own public address.
    let own = [cidr("203.0.114.0/24", &[])];
    cases.push(Case::dials("http://203.0.114.5/", "203.0.114.5:80").with(&own).owning(&[&["203.0.114.5"]]));
    cases
}

fn by_port() -> Vec<Case> {
    let entry = [host("safety.internal", &[9001, 25]), cidr("10.1.0.0/16", &[81, 8080])];
    let mut cases = Vec::new();
    for port in [9001, 25] {
        let url = format!("http://safety.internal:{port}/");
        cases.push(Case::dials(url, format!("10.0.0.1:{port}")).answering(&["10.0.0.1"]).with(&entry));
    }
    for port in [81, 8080] {
        cases.push(Case::dials(format!("http://10.1.0.1:{port}/"), format!("10.1.0.1:{port}")).with(&entry));
    }
    for port in [80, 443, 9000, 9002, 8080] {
        let url = format!("http://safety.internal:{port}/");
        cases.push(Case::blocked_name(url, &["10.0.0.1"], ("safety.internal", "10.0.0.1")).with(&entry));
        if port != 8080 {
            cases.push(Case::blocked(format!("http://10.1.0.1:{port}/"), "10.1.0.1").with(&entry));
        }
    }
    for (url, port) in [
        ("http://safety.internal:26/", 26),
        ("http://10.1.0.1:25/", 25),
        ("http://10.2.0.1:81/", 81),
        ("http://8.8.8.8:81/", 81),
        ("http://other.example:25/", 25),
        ("http://safety.internal:6667/", 6667),
    ] {
        cases.push(Case::refused(url, format!("port {port} not allowed")).answering(&["10.1.0.1"]).with(&entry));
    }
    // Port 81 is open for the network, not for every name.
    cases.push(Case::blocked_name("http://b.example:81/", &["8.8.8.8"], ("b.example", "8.8.8.8")).with(&entry));
    cases.push(Case::dials("http://b.example:81/", "10.1.0.9:81").answering(&["10.1.0.9"]).with(&entry));
    cases
}

/// Addresses that lead to other addresses.
fn translated() -> Vec<Case> {
    let entry = [cidr("64:ff9b::/96", &[]), cidr("64:ff9b:1::/48", &[]), cidr("2002::/16", &[])];
    let mut cases = Vec::new();
    for ip in ["64:ff9b::808:808", "64:ff9b:1::808:808", "2002:808:808::1", "64:ff9b:1:808:8:800:808:808"] {
        cases.push(Case::dials(format!("http://[{ip}]/"), format!("[{ip}]:80")).with(&entry));
        cases.push(Case::dials("http://t.example/", format!("[{ip}]:80")).answering(&[ip]).with(&entry));
        // The address behind it is one of ours.
        let own: &[&[&str]] = &[&["8.8.8.8"]];
        cases.push(Case::blocked(format!("http://[{ip}]/"), ip).with(&entry).owning(own));
    }
    for ip in [
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::",
        "64:ff9b:1::7f00:1",
        "64:ff9b:1:7f00:0:100::",
        "64:ff9b:1:a00:0:100:808:808",
        "64:ff9b:1:7f:0:1:808:808",
        "64:ff9b:1:0:7f:0:108:808",
        "2002:7f00:1::1",
        "2002:a00:1::8.8.8.8",
    ] {
        let shown = ip.parse::<std::net::Ipv6Addr>().unwrap().to_string();
        cases.push(Case::blocked(format!("http://[{ip}]/"), &shown).with(&entry));
        cases.push(Case::blocked_name("http://t.example/", &[ip], ("t.example", &shown)).with(&entry));
    }
    // A host entry opens no translator.
    let safety = [host("safety.internal", &[])];
    let shown = ("safety.internal", "64:ff9b::808:808");
    cases.push(Case::blocked_name("http://safety.internal/", &["64:ff9b::808:808"], shown).with(&safety));
    cases
}

fn by_tenant() -> Vec<Case> {
    let absent = host("house.internal", &[]);
    let everyone = tenants(host("all.internal", &[]), &["*"]);
    let some = tenants(host("some.internal", &[]), &["acme", "umbrella"]);
    let network = tenants(cidr("127.0.0.0/8", &[9000]), &["acme"]);
    let entries = [absent, everyone, some, network];
    let mut cases = Vec::new();
    for (name, open_to) in [
        ("house.internal", vec![None, Some("default")]),
        ("all.internal", vec![None, Some("default"), Some("acme"), Some("umbrella"), Some("other"), Some("*")]),
        ("some.internal", vec![Some("acme"), Some("umbrella")]),
    ] {
        for tenant in [None, Some("default"), Some("acme"), Some("umbrella"), Some("other"), Some("ACME"), Some("*")] {
            if tenant == Some("ACME") && name == "all.internal" {
                continue;
            }
            let url = format!("http://{name}/");
            let case = if open_to.contains(&tenant) {
                Case::dials(url, "10.0.0.1:80").answering(&["10.0.0.1"])
            } else {
                Case::blocked_name(url, &["10.0.0.1"], (name, "10.0.0.1"))
            };
            cases.push(Case { tenant, ..case }.with(&entries));
        }
    }
    let literal = "http://127.0.0.1:9000/";
    cases.push(Case::dials(literal, "127.0.0.1:9000").with(&entries).of_tenant("acme"));
    for tenant in ["default", "umbrella", ""] {
        cases.push(Case::blocked(literal, "127.0.0.1").with(&entries).of_tenant(tenant));
    }
    cases.push(Case::blocked(literal, "127.0.0.1").with(&entries));
    // The port that a tenant's entry names stays closed for others.
    let low = [tenants(cidr("10.0.0.0/8", &[81]), &["acme"])];
    cases.push(Case::dials("http://10.0.0.1:81/", "10.0.0.1:81").with(&low).of_tenant("acme"));
    cases.push(Case::refused("http://10.0.0.1:81/", "port 81 not allowed").with(&low).of_tenant("other"));
    cases
}
