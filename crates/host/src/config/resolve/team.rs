//! The gateway whose rules hold here.

use std::net::IpAddr;
use std::path::Path;

use pintle_dialects::process::config::EntryProblem;
use pintle_store::keyring::signing::PublicKeys;
use url::Url;

use crate::config::raw::RawRulesFrom;
use crate::config::{Config, RulesFrom, TeamKey};

/// Takes over whose rules hold. Where nobody can read that, it is kept that somebody's were to.
pub(super) fn rules_from(config: &mut Config, raw: Option<&RawRulesFrom>, folder: &Path) -> Option<EntryProblem> {
    match read(raw?, folder) {
        Ok(from) => {
            config.rules_from = Some(Ok(from));
            None
        }
        Err(problem) => {
            config.rules_from = Some(Err(problem.message.clone()));
            Some(problem.under(&["guard", "rules_from"]))
        }
    }
}

fn read(raw: &RawRulesFrom, folder: &Path) -> Result<RulesFrom, EntryProblem> {
    let some = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let key = match (some(&raw.key_env), some(&raw.key_file)) {
        (Some(name), None) => TeamKey::Env(name),
        (None, Some(file)) => TeamKey::File(folder.join(file)),
        (None, None) => {
            let message = "expected `key_env`, the variable that holds the API key, or `key_file`";
            return Err(EntryProblem::new(&["key_env"], message));
        }
        (Some(_), Some(_)) => {
            return Err(EntryProblem::new(&["key_file"], "expected either `key_env` or `key_file`, got both"));
        }
    };
    let url = base(raw.url.as_deref().unwrap_or_default()).map_err(|why| EntryProblem::new(&["url"], why))?;
    let signer = some(&raw.signer).map(|line| line.trim().to_owned());
    if let Some(line) = &signer {
        let expected = |why| EntryProblem::new(&["signer"], format!("expected the line of a public key: {why}"));
        PublicKeys::parse(line).map_err(expected)?;
        if line.contains('\n') {
            return Err(EntryProblem::new(&["signer"], "expected one key, got several lines"));
        }
    }
    Ok(RulesFrom { url, key, signer })
}

/// The address of a gateway. A key goes over the network only encrypted.
fn base(text: &str) -> Result<Url, String> {
    let expected = |what: &str| format!("expected {what}, got \"{text}\"");
    let url = Url::parse(text).map_err(|_| expected("a URL such as https://pintle.example.org"))?;
    let is_bare = url.has_host() && url.username().is_empty() && url.password().is_none();
    if !is_bare || url.query().is_some() || url.fragment().is_some() {
        return Err(expected("a URL without a user, a password and a query"));
    }
    let is_here = |host: &str| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    match url.scheme() {
        "https" => {}
        "http" if url.host_str().is_some_and(is_here) => {}
        _ => return Err(expected("a URL of https, or of http on this machine")),
    }
    let mut url = url;
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_named_so_that_no_key_goes_in_the_clear() {
        for (text, expected) in [
            ("https://p.example", Some("https://p.example/")),
            ("https://p.example:8443/team", Some("https://p.example:8443/team/")),
            ("http://127.0.0.1:18790", Some("http://127.0.0.1:18790/")),
            ("http://localhost:1/", Some("http://localhost:1/")),
            ("http://[::1]:1", Some("http://[::1]:1/")),
            ("http://p.example", None),
            ("http://127.0.0.1.example", None),
            ("ftp://p.example", None),
            ("https://u:p@p.example", None),
            ("https://p.example/?x=1", None),
            ("p.example", None),
            ("", None),
        ] {
            assert_eq!(base(text).ok().map(String::from).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_gateway_that_nobody_can_read_is_kept_as_one() {
        let raw = |url: &str, key: &str| RawRulesFrom {
            url: Some(url.into()),
            key_env: Some(key.into()),
            ..RawRulesFrom::default()
        };
        let mut config = Config::empty("/h".into());
        assert!(rules_from(&mut config, None, Path::new("/c")).is_none() && config.rules_from.is_none());
        for (raw, member) in [
            (raw("http://p.example", "K"), "url"),
            (raw("https://p.example", " "), "key_env"),
            (RawRulesFrom { key_file: Some("k".into()), ..raw("https://p.example", "K") }, "key_file"),
            (RawRulesFrom { signer: Some("ed25519:00000000:AA==".into()), ..raw("https://p.example", "K") }, "signer"),
        ] {
            config.rules_from = None;
            let problem = rules_from(&mut config, Some(&raw), Path::new("/c")).unwrap();
            assert_eq!(problem.path, ["guard", "rules_from", member]);
            assert!(matches!(config.rules_from, Some(Err(_))));
        }
        let file = RawRulesFrom { key_env: None, key_file: Some("key".into()), ..raw("https://p.example", "") };
        assert_eq!(rules_from(&mut config, Some(&file), Path::new("/c")), None);
        assert_eq!(config.rules_from.unwrap().unwrap().key, TeamKey::File("/c/key".into()));
    }
}
