//! What hosts told their hooks, as it was recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pintle_domain::json::{self, Object, Value, json};
use pintle_guard::{GuardHost, GuardRuling, HOSTS, HookInput, HostEvent, Malformed};

/// One recorded event.
pub(crate) struct Recorded {
    pub(crate) host: &'static GuardHost,
    pub(crate) name: String,
    pub(crate) event: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) payload: Value,
}

impl Recorded {
    pub(crate) fn decode(&self) -> Result<HostEvent, Malformed> {
        decode(self.host, Some(&self.event), &self.environment, self.payload.to_string().as_bytes())
    }
}

pub(crate) fn decode(
    host: &GuardHost,
    event: Option<&str>,
    environment: &[(String, String)],
    stdin: &[u8],
) -> Result<HostEvent, Malformed> {
    host.read(&HookInput { event, environment, cwd: "/started/here", stdin })
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// All recorded events of `host`.
pub(crate) fn of(host: &'static GuardHost) -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(host.id);
    let files = sorted(&folder).into_iter().flat_map(|version| sorted(&version));
    files.map(|file| read(host, &file)).collect()
}

fn read(host: &'static GuardHost, file: &Path) -> Recorded {
    let record = json::parse(&fs::read_to_string(file).unwrap()).unwrap();
    let environment = record["environment"].as_object().unwrap().iter();
    Recorded {
        host,
        name: file.file_stem().unwrap().to_string_lossy().into_owned(),
        event: record["event"].as_str().unwrap().to_owned(),
        environment: environment.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect(),
        payload: record["payload"].clone(),
    }
}

/// All recorded events of all hosts.
pub(crate) fn all() -> &'static [Recorded] {
    static ALL: LazyLock<Vec<Recorded>> = LazyLock::new(|| HOSTS.iter().flat_map(|host| of(host)).collect());
    &ALL
}

/// The arguments of the call that an event is about, with one more member.
fn changed(event: &HostEvent) -> Object {
    let mut arguments = event.tool().map(|tool| tool.arguments.clone()).unwrap_or_default();
    arguments.insert("command".to_owned(), Value::from("echo changed"));
    arguments
}

/// Every ruling, with `reason` where it has one.
pub(crate) fn rulings(event: &HostEvent, reason: &str) -> Vec<GuardRuling> {
    let reason = || reason.to_owned();
    let ask = |attended| GuardRuling::Ask {
        tool: "exec".to_owned(),
        approval: "0190-7".to_owned(),
        reason: reason(),
        attended,
    };
    vec![
        GuardRuling::NoObjection,
        GuardRuling::Allow,
        GuardRuling::Deny { reason: reason() },
        ask(true),
        ask(false),
        GuardRuling::ModifyInput { arguments: changed(event), context: None },
        GuardRuling::ModifyInput { arguments: Object::new(), context: Some(reason()) },
        GuardRuling::Respond { by: "answers".to_owned(), text: reason() },
        GuardRuling::ModifyResult { text: reason(), shaped: None, added: None },
        GuardRuling::ModifyPrompt { text: reason() },
        GuardRuling::ModifyRequest { request: json!({"messages": [{"role": "user", "content": reason()}]}) },
        GuardRuling::AbortTurn { reason: reason() },
        GuardRuling::AbortRun { reason: reason() },
        GuardRuling::Inject { text: reason() },
    ]
}
