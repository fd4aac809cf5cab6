//! The section `gateway`, which only the user's own files have.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use pintle_dialects::process::config::EntryProblem;
use pintle_domain::webhook::WebhookEvent;
use url::Url;

use crate::config::gateway::{GatewayConfig, TlsFiles, WebhookConfig};
use crate::config::raw::{RawGateway, RawTls, RawWebhook};

/// Lays the section of one file in `folder` over what is there; lists take the place of earlier ones.
pub(super) fn lay_over(config: &mut GatewayConfig, raw: &RawGateway, folder: &Path) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    if let Some(listen) = &raw.listen {
        config.listen.clone_from(listen);
    }
    config.token_env = raw.token_env.clone().or(config.token_env.take());
    if let Some(owners) = &raw.owner_ids {
        config.owner_ids.clone_from(owners);
    }
    if let Some(origins) = &raw.allowed_origins {
        config.allowed_origins = read_all(origins, "allowed_origins", origin, &mut problems);
    }
    if let Some(proxies) = &raw.trusted_proxies {
        config.trusted_proxies = read_all(proxies, "trusted_proxies", network, &mut problems);
    }
    match raw.public_url.as_deref().map(origin) {
        Some(Ok(url)) => config.public_url = Some(url),
        Some(Err(message)) => problems.push(EntryProblem::new(&["gateway", "public_url"], message)),
        None => {}
    }
    match &raw.tls {
        Some(RawTls { cert: Some(cert), key: Some(key) }) => {
            config.tls = Some(TlsFiles { cert: folder.join(cert), key: folder.join(key) });
        }
        Some(_) => problems.push(EntryProblem::new(&["gateway", "tls"], "expected both `cert` and `key`".to_owned())),
        None => {}
    }
    config.requests_per_minute = raw.requests_per_minute.unwrap_or(config.requests_per_minute);
    let seconds = |given: Option<u32>, before: Duration| given.map_or(before, |s| Duration::from_secs(s.into()));
    config.drain_delay = seconds(raw.drain_delay_s, config.drain_delay);
    config.drain = seconds(raw.drain_s, config.drain);
    let http = &mut config.http;
    http.approval_wait = seconds(raw.approval_wait_s, http.approval_wait);
    http.max_body = raw.max_body.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(http.max_body);
    http.media_quota = raw.media_quota_mb.map_or(http.media_quota, |mb| u64::from(mb) << 20);
    http.metrics_listen = raw.metrics_listen.clone().or(http.metrics_listen.take());
    for (i, raw) in raw.webhooks.iter().flatten().enumerate() {
        match webhook(raw) {
            Ok(new) => {
                config.webhooks.retain(|before| before.url != new.url);
                config.webhooks.push(new);
            }
            Err(problem) => problems.push(problem.under(&["gateway", "webhooks", &i.to_string()])),
        }
    }
    config.node = raw.node.clone().or(config.node.take());
    problems
}

fn webhook(raw: &RawWebhook) -> Result<WebhookConfig, EntryProblem> {
    let bad = |key: &str, message: String| EntryProblem::new(&[key], message);
    let missing = |key: &str| bad(key, format!("expected `{key}`"));
    let text = raw.url.as_deref().ok_or_else(|| missing("url"))?;
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
    let url = url.ok_or_else(|| bad("url", "expected a URL of http or https without a password".to_owned()))?;
    let names = || WebhookEvent::ALL.map(WebhookEvent::word);
    let event = |word: &String| {
        let unknown = || bad("events", format!("unknown event \"{word}\", expected {}", names().join(" or ")));
        WebhookEvent::named(word).ok_or_else(|| unknown().meant(word, names()))
    };
    let events: Vec<WebhookEvent> = raw.events.iter().flatten().map(event).collect::<Result<_, _>>()?;
    if events.is_empty() {
        return Err(missing("events"));
    }
    let secret_env = raw.secret_env.clone().filter(|name| !name.is_empty()).ok_or_else(|| missing("secret_env"))?;
    Ok(WebhookConfig { url, events, secret_env, tenant: raw.tenant.clone() })
}

/// The good ones of a list; the others are told.
fn read_all<T>(
    texts: &[String],
    key: &str,
    read: impl Fn(&str) -> Result<T, String>,
    problems: &mut Vec<EntryProblem>,
) -> Vec<T> {
    let mut good = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        match read(text) {
            Ok(one) => good.push(one),
            Err(message) => problems.push(EntryProblem::new(&["gateway", key, &i.to_string()], message)),
        }
    }
    good
}

fn origin(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let bare = url.filter(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty());
    bare.ok_or_else(|| format!("expected an origin such as https://chat.example.org, got \"{text}\""))
}

fn network(text: &str) -> Result<IpNet, String> {
    let one = || text.parse::<IpAddr>().map(IpNet::from);
    let expected = |_| format!("expected an address or a network such as 10.0.0.0/8, got \"{text}\"");
    text.parse::<IpNet>().or_else(|_| one()).map_err(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_needs_an_address_events_and_a_secret() {
        let entry = |url: &str, events: &[&str], secret: Option<&str>| RawWebhook {
            url: Some(url.to_owned()),
            events: Some(events.iter().map(|&event| event.to_owned()).collect()),
            secret_env: secret.map(str::to_owned),
            tenant: None,
        };
        let mut config = GatewayConfig::default();
        let good = entry("https://a.example/x", &["turn.failed", "budget.low"], Some("S"));
        let entries = vec![
            good.clone(),
            entry("ftp://a.example", &["turn.failed"], Some("S")),
            entry("https://u:p@a.example", &["turn.failed"], Some("S")),
            entry("https://a.example", &["turn.fail"], Some("S")),
            entry("https://a.example", &[], Some("S")),
            entry("https://a.example", &["turn.failed"], None),
            RawWebhook { url: None, ..good },
        ];
        let raw = RawGateway { webhooks: Some(entries), ..RawGateway::default() };
        let told: Vec<String> = lay_over(&mut config, &raw, Path::new("/"))
            .into_iter()
            .map(|problem| format!("{}: {}", problem.path.join("."), problem.message))
            .collect();
        let url = "expected a URL of http or https without a password";
        let names = WebhookEvent::ALL.map(WebhookEvent::word).join(" or ");
        assert_eq!(
            told,
            [
                format!("gateway.webhooks.1.url: {url}"),
                format!("gateway.webhooks.2.url: {url}"),
                format!("gateway.webhooks.3.events: unknown event \"turn.fail\", expected {names}"),
                "gateway.webhooks.4.events: expected `events`".to_owned(),
                "gateway.webhooks.5.secret_env: expected `secret_env`".to_owned(),
                "gateway.webhooks.6.url: expected `url`".to_owned(),
            ]
        );
        let only = WebhookConfig {
            url: Url::parse("https://a.example/x").unwrap(),
            events: vec![WebhookEvent::TurnFailed, WebhookEvent::BudgetLow],
            secret_env: "S".to_owned(),
            tenant: None,
        };
        assert_eq!(config.webhooks, [only]);
    }

    #[test]
    fn bad_entries_are_told_and_the_others_count() {
        let mut config = GatewayConfig::default();
        let raw = RawGateway {
            allowed_origins: Some(vec!["https://a.example".into(), "a.example".into(), "https://a.example/x".into()]),
            trusted_proxies: Some(vec!["10.0.0.0/8".into(), "127.0.0.1".into(), "10.0.0.0/64".into()]),
            public_url: Some("ftp://x".into()),
            tls: Some(RawTls { cert: Some("c.pem".into()), key: None }),
            drain_s: Some(7),
            ..RawGateway::default()
        };
        let problems = lay_over(&mut config, &raw, Path::new("/etc/pintle"));
        let paths: Vec<String> = problems.iter().map(|problem| problem.path.join(".")).collect();
        assert_eq!(
            paths,
            [
                "gateway.allowed_origins.1",
                "gateway.allowed_origins.2",
                "gateway.trusted_proxies.2",
                "gateway.public_url",
                "gateway.tls"
            ]
        );
        assert_eq!((config.allowed_origins.len(), config.trusted_proxies.len()), (1, 2));
        assert_eq!((config.drain, config.drain_delay), (Duration::from_secs(7), Duration::from_secs(5)));
    }
}
