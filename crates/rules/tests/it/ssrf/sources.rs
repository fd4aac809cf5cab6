//! What a resolver may say, and what this host's own addresses are.

use super::Case;

/// Answers of which at least one is blocked, and the first that is.
const MIXED: &[(&[&str], &str)] = &[
    (&["8.8.8.8", "127.0.0.1"], "127.0.0.1"),
    (&["127.0.0.1", "8.8.8.8"], "127.0.0.1"),
    (&["8.8.8.8", "1.1.1.1", "10.0.0.1"], "10.0.0.1"),
    (&["8.8.8.8", "10.0.0.1", "1.1.1.1"], "10.0.0.1"),
    (&["192.168.0.1", "10.0.0.1", "127.0.0.1"], "192.168.0.1"),
    (&["8.8.8.8", "::1"], "::1"),
    (&["2606:4700::1", "::1"], "::1"),
    (&["2606:4700::1", "::ffff:127.0.0.1"], "::ffff:127.0.0.1"),
    (&["2606:4700::1", "fe80::1", "8.8.8.8"], "fe80::1"),
    (&["8.8.8.8", "0.0.0.0"], "0.0.0.0"),
    (&["8.8.8.8", "::"], "::"),
    (&["8.8.8.8", "8.8.8.8", "8.8.8.8", "169.254.169.254"], "169.254.169.254"),
    (&["8.8.8.8", "64:ff9b::8.8.8.8"], "64:ff9b::808:808"),
    (&["8.8.8.8", "2002:808:808::1"], "2002:808:808::1"),
    (&["8.8.8.8", "255.255.255.255"], "255.255.255.255"),
    (&["8.8.8.8", "224.0.0.251"], "224.0.0.251"),
];

/// Answers of which one is this host's own public address.
const OWN: &[(&[&str], &str)] = &[
    (&["203.0.114.5"], "203.0.114.5"),
    (&["::ffff:203.0.114.5"], "::ffff:203.0.114.5"),
    (&["8.8.8.8", "203.0.114.5"], "203.0.114.5"),
    (&["2606:4700::5"], "2606:4700::5"),
    (&["8.8.8.8", "2606:4700::5", "203.0.114.5"], "2606:4700::5"),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = MIXED
        .iter()
        .map(|(answers, ip)| Case::blocked_name("http://mixed.example:{P}/", answers, ("mixed.example", ip)))
        .collect();
    let many: Vec<String> = (0..=254).map(|last| format!("8.8.8.{last}")).chain(["127.0.0.1".into()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    cases.push(Case::blocked_name("http://many.example:{P}/", &many, ("many.example", "127.0.0.1")));
    cases.push(Case::refused("http://none.example/", "\"none.example\" resolved to no addresses").answering(&[]));
    cases.push(Case::refused("http://lost.example/", "resolve \"lost.example\""));
    let own: &[&[&str]] = &[&["203.0.114.5", "2606:4700::5"]];
    for (answers, ip) in OWN {
        cases.push(Case::blocked_name("http://own.example:{P}/", answers, ("own.example", ip)).owning(own));
        // It became ours between the check and the connection. The first of the answers is tried first.
        let late: &[&[&str]] = &[&[], own[0]];
        if answers.len() == 1 {
            cases.push(Case::blocked_name("http://own.example:{P}/", answers, ("own.example", ip)).owning(late));
        }
    }
    for (host, shown) in [
        ("203.0.114.5", "203.0.114.5"),
        ("0xcb007205", "203.0.114.5"),
        ("[::ffff:203.0.114.5]", "::ffff:203.0.114.5"),
        ("[2606:4700::5]", "2606:4700::5"),
    ] {
        let url = format!("http://{host}:{{P}}/");
        cases.push(Case::blocked(url.clone(), shown).owning(own));
        cases.push(Case::blocked(url, shown).owning(&[&[], own[0]]));
    }
    // Good answers are all that is left.
    cases.push(Case::dials("http://good.example/", "8.8.8.8:80").answering(&["8.8.8.8", "1.1.1.1"]).owning(own));
    cases.push(Case::dials("http://good.example/", "[2606:4700::6]:80").answering(&["2606:4700::6"]).owning(own));
    cases.push(Case::dials("http://mapped.example/", "[::ffff:8.8.8.8]:80").answering(&["::ffff:8.8.8.8"]));
    cases
}
