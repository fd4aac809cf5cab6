//! The registry: which tools there are and what is refused before one runs.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::json::{Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::ToolOutput;
use pintle_egress::Egress;
use pintle_engine::permit::Permit;
use pintle_engine::tool::Tool;
use tokio_util::sync::CancellationToken;

use super::Tree;
use crate::tools::{BUILTIN, ExecShell, READ_ONLY, ToolEnv, Tools, ToolsError, contain, typed};

fn builtin(names: &[&str]) -> Result<Tools, ToolsError> {
    let tree = Tree::new(&[]);
    let config = ToolEnv {
        workspace: tree.at("ws"),
        protected: tree.protected.clone(),
        exec_env: vec![],
        exec_shell: ExecShell::default(),
        exec_guard: None,
        exec_unconfined: true,
        egress: Egress::new(vec![]),
        agents: vec![],
    };
    Tools::builtin(config, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

struct Foreign(ToolDef);

impl Tool for Foreign {
    fn definition(&self) -> &ToolDef {
        &self.0
    }

    fn read_only(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, _: Permit, _: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        Box::pin(ready(ToolOutput::ok("ran")))
    }
}

fn foreign(name: &str, parameters: Value) -> Arc<dyn Tool> {
    Arc::new(Foreign(ToolDef::new(name, "", parameters)))
}

#[test]
fn tools_come_in_their_own_order_and_only_four_change_nothing() {
    let mut shuffled = BUILTIN;
    shuffled.reverse();
    let tools = builtin(&shuffled).unwrap();
    let names: Vec<&str> = tools.definitions().iter().map(|def| def.function.name.as_str()).collect();
    assert_eq!(names, BUILTIN);
    let read_only: Vec<&str> = BUILTIN.into_iter().filter(|name| tools.get(name).unwrap().read_only()).collect();
    assert_eq!(read_only, READ_ONLY);
    assert_eq!(builtin(&["exec", "exec"]).unwrap().definitions().len(), 1);
    assert_eq!(builtin(&[]).unwrap().definitions().len(), 0);
}

#[test]
fn every_definition_is_closed_and_its_schema_is_one() {
    for def in builtin(&BUILTIN).unwrap().definitions() {
        assert_eq!(def.function.parameters["additionalProperties"], false, "{}", def.function.name);
        assert!(!def.function.description.is_empty());
    }
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    for (names, text) in [
        (&["read_fil"][..], "unknown tool `read_fil`; did you mean `read_file`?"),
        (&["exec", "Bash"], "unknown tool `Bash`; did you mean `exec`?"),
        (&["teleport"], "unknown tool `teleport`"),
    ] {
        assert_eq!(builtin(names).unwrap_err().to_string(), text);
    }
    let mut tools = builtin(&["exec"]).unwrap();
    tools.add(foreign("deploy", json!({"type": "object"}))).unwrap();
    assert_eq!(
        tools.add(foreign("deploy", json!({}))).unwrap_err().to_string(),
        "there already is a tool `deploy`; give one of them another name"
    );
    let text = tools.add(foreign("bad", json!({"type": "objekt"}))).unwrap_err().to_string();
    assert!(text.starts_with("the parameters of tool `bad` are not a JSON Schema: "), "{text}");
    let endless = tools.add(foreign("endless", json!({"$ref": "#"}))).unwrap_err().to_string();
    assert_eq!(
        endless,
        "the parameters of tool `endless` cannot be checked: \
         its schema refers to itself for one and the same value, which never ends"
    );
    assert_eq!(tools.canonical("Deploy"), Some("deploy"));
    assert_eq!(tools.canonical("functions.bash"), Some("exec"));
    assert_eq!(tools.canonical("read_file"), None);
    let missing = ToolEnv {
        workspace: "/nowhere/at/all".into(),
        protected: Default::default(),
        exec_env: vec![],
        exec_shell: ExecShell::default(),
        exec_guard: None,
        exec_unconfined: true,
        egress: Egress::new(vec![]),
        agents: vec![],
    };
    let text = Tools::builtin(missing, &[]).unwrap_err().to_string();
    assert!(text.starts_with("workspace `/nowhere/at/all` cannot be opened: "), "{text}");
}

#[test]
fn arguments_are_checked_against_the_definition() {
    let tools = builtin(&BUILTIN).unwrap();
    for (tool, arguments, text) in [
        ("exec", json!({"command": "x", "timeout_s": 600}), ""),
        (
            "exec",
            json!({"command": "x", "timeout_s": 601}),
            "invalid arguments of `exec`: at `/timeout_s`: expected maximum 600, got 601",
        ),
        ("exec", json!({}), "invalid arguments of `exec`: at the top: \"command\" is a required property, got {}"),
        (
            "read_file",
            json!({"path": "x", "offset": 0}),
            "invalid arguments of `read_file`: at `/offset`: expected minimum 1, got 0",
        ),
    ] {
        let arguments = arguments.as_object().unwrap();
        let entry = tools.entry(tool).unwrap();
        assert_eq!(entry.validator.check(tool, arguments).err().unwrap_or_default(), text);
    }
    // A schema takes any whole number; the type behind it need not.
    let arguments = json!({"path": "x", "offset": 1.0e30}).as_object().unwrap().clone();
    let text = typed::<crate::tools::read::Args>("read_file", arguments).unwrap_err();
    assert!(text.starts_with("invalid arguments of `read_file`: "), "{text}");
}

#[tokio::test]
async fn a_tool_that_panics_answers_with_an_error() {
    let output = contain("deploy", async { panic!("a defect") }).await;
    assert!(output.is_error);
    assert!(output.for_llm.starts_with("tool \"deploy\" failed inside"), "{}", output.for_llm);
    let none = CancellationToken::new();
    let output = contain("deploy", crate::tools::blocking(&none, |_| panic!("on the other thread"))).await;
    assert!(output.is_error && output.for_llm.starts_with("tool \"deploy\" failed inside"), "{}", output.for_llm);
}
