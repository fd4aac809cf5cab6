//! Records by the table of the page: every row, every text, and the order.

use pintle_domain::id::{DEFAULT_TENANT, HookId, SENTINEL_TENANT, TenantId};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{Edition, Rule};
use pintle_domain::store::Tenant;

use super::*;

mod change;
mod files;
mod property;
mod refusals;
mod samples;

const ACME: &str = "0193a5b0-7000-7000-8000-0000000000ac";

/// A host with the agent `main` of each tenant, whose checks have simple rules.
#[derive(Debug)]
struct World {
    edition: Edition,
    tenant: TenantId,
    is_master: bool,
    lang: Lang,
    held: usize,
    agents: Vec<ConfiguredAgent>,
    tenants: Vec<Tenant>,
    new_row: NewRow,
}

impl Default for World {
    fn default() -> Self {
        let tenant = |id: &str, slug: &str| Tenant {
            id: id.into(),
            slug: slug.into(),
            name: slug.into(),
            created_at: "2026-01-01T00:00:00Z".into(),
        };
        Self {
            edition: Edition::Lite,
            tenant: TenantId::default_tenant(),
            is_master: false,
            lang: Lang::Api,
            held: 0,
            agents: vec![
                ConfiguredAgent::new(&DEFAULT_TENANT.into(), "main"),
                ConfiguredAgent::new(&DEFAULT_TENANT.into(), "helper"),
                ConfiguredAgent::new(&ACME.into(), "main"),
            ],
            tenants: vec![tenant(SENTINEL_TENANT, "global"), tenant(DEFAULT_TENANT, "default"), tenant(ACME, "acme")],
            new_row: NewRow {
                id: HookId::from("0193a5b0-7000-7000-8000-0000000000aa"),
                at: "2026-01-31T12:00:00Z".into(),
                by: Some("ann".into()),
            },
        }
    }
}

impl World {
    fn record_context<T>(&self, work: impl FnOnce(&RecordContext<'_>) -> T) -> T {
        let url = |_: &TenantId, url: &str| match url {
            url if url.contains("127.0.0.1") => Err("ssrf: IP 127.0.0.1 is in a blocked range".to_owned()),
            _ => Ok(()),
        };
        let header = |name: &str, _: &str| match name.to_ascii_lowercase().as_str() {
            "host" => Err(format!("header `{name}` cannot be set")),
            _ => Ok(()),
        };
        let signing_secret =
            |text: &str| if text.starts_with("whsec_") { Ok(()) } else { Err("not a `whsec_` secret".to_owned()) };
        let script = |source: &str| match source.contains("function handle") {
            true => Ok(()),
            false => Err("SyntaxError: Line 1:3 unexpected token".to_owned()),
        };
        work(&RecordContext {
            tenant: &self.tenant,
            is_master: self.is_master,
            edition: self.edition,
            lang: self.lang,
            agents: &self.agents,
            tenants: &self.tenants,
            held: &|_| self.held,
            new_row: &self.new_row,
            checks: Checks { url: &url, header: &header, signing_secret: &signing_secret, script: &script },
        })
    }

    fn read(&self, record: &Value) -> Result<ValidRecord, RecordError> {
        self.record_context(|record_context| read(record, record_context))
    }

    fn hook(&self, record: &Value) -> Rule {
        self.read(record).unwrap().hook
    }

    fn patch(&self, current: &Rule, updates: &Value) -> Result<ValidRecord, RecordError> {
        self.record_context(|record_context| patch(current, updates, record_context))
    }

    /// The word and the text of a refusal; empty if there is none.
    fn refusal(&self, record: &Value) -> String {
        said(&self.read(record))
    }

    fn agent(&self, at: usize) -> &str {
        &self.agents[at].uuid
    }
}

fn master() -> World {
    World { is_master: true, ..World::default() }
}

fn standard() -> World {
    World { edition: Edition::Standard, ..World::default() }
}

fn said<T>(read: &Result<T, RecordError>) -> String {
    match read {
        Ok(_) => String::new(),
        Err(refused) if refused.code == RecordErrorCode::InvalidRequest => refused.message.clone(),
        Err(RecordError { code, message }) => format!("{}: {message}", code.word()),
    }
}

/// `base` with the members of `with` over it.
fn with(base: &Value, with: Value) -> Value {
    let mut all = base.as_object().unwrap().clone();
    all.extend(with.as_object().unwrap().clone());
    Value::Object(all)
}

fn command() -> Value {
    json!({"event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": {"command": "cat"}})
}

fn http(config: Value) -> Value {
    let config = with(&json!({"url": "https://a.example/x"}), config);
    json!({"event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "config": config})
}

fn prompt(config: Value) -> Value {
    let config = with(&json!({"prompt_template": "Judge."}), config);
    json!({"event": "pre_tool_use", "handler_type": "prompt", "scope": "tenant", "matcher": "^exec$", "config": config})
}

fn script(source: &str) -> Value {
    json!({"event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "config": {"source": source}})
}
