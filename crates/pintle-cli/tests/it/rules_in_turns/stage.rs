//! A model that says what a test tells it and remembers what it was asked, rules in a folder, and what commands wrote.

use pintle_domain::json::{Value, json};
use pintle_testkit::http::{HttpStub, StubAnswer};
use tokio::runtime::Runtime;

use crate::env::{Seen, TestEnv};

/// A model behind a server on loopback.
pub(crate) struct Model {
    stub: HttpStub,
    /// What the server runs on.
    _runtime: Runtime,
}

impl Model {
    /// A model that gives `replies` in turn.
    pub(crate) fn giving(replies: Vec<StubAnswer>) -> Self {
        let runtime = Runtime::new().unwrap();
        Self { stub: runtime.block_on(HttpStub::start(replies)), _runtime: runtime }
    }

    /// Surroundings whose agent `main` asks this model. `agent` goes on with its table; `rules` stand in a file.
    pub(crate) fn env(&self, agent: &str, rules: &str) -> TestEnv {
        let env = TestEnv::new();
        env.user_config(&format!(
            "[providers.here]\nkind = 'openai'\nbase_url = '{}'\n[agent_hooks]\ndir = 'hooks.d'\n\
             [agents.main]\nmodel = 'here/m'\n{agent}",
            self.stub.url()
        ));
        env.write("config/pintle/hooks.d/rules.toml", rules);
        env
    }

    /// Where it is reached: `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        self.stub.url().replace("http://", "")
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.stub.seen().iter().map(pintle_testkit::http::ReceivedRequest::json).collect()
    }

    /// The request number `n` as it came.
    pub(crate) fn request(&self, n: usize) -> pintle_testkit::http::ReceivedRequest {
        self.stub.seen().swap_remove(n)
    }

    /// The messages of request number `n`, each as `role: content` with its calls.
    pub(crate) fn asked(&self, n: usize) -> Vec<String> {
        let requests = self.requests();
        let messages = requests[n]["messages"].as_array().unwrap();
        let call = |call: &Value| {
            let function = &call["function"];
            format!(" [{}({})]", function["name"].as_str().unwrap(), function["arguments"].as_str().unwrap())
        };
        let one = |message: &Value| {
            let calls = message["tool_calls"].as_array().into_iter().flatten().map(call).collect::<String>();
            let content = message["content"].as_str().unwrap_or_default();
            format!("{}: {content}{calls}", message["role"].as_str().unwrap())
        };
        messages.iter().map(one).collect()
    }
}

fn streamed(delta: &Value, reason: &str) -> StubAnswer {
    let lines = [
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string(),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string(),
        "[DONE]".to_owned(),
    ];
    StubAnswer::events(&lines.map(|line| format!("data: {line}\n\n")).concat())
}

/// A last word.
pub(crate) fn says(text: &str) -> StubAnswer {
    streamed(&json!({ "content": text }), "stop")
}

/// Calls of tools: id, name, arguments.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> StubAnswer {
    let parts: Vec<Value> = (0..)
        .zip(calls)
        .map(|(index, (id, name, arguments)): (usize, _)| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            json!({"index": index, "id": id, "type": "function", "function": function})
        })
        .collect();
    streamed(&json!({ "tool_calls": parts }), "tool_calls")
}

/// One call of `exec`.
pub(crate) fn runs(id: &str, command: &str) -> StubAnswer {
    calls(&[(id, "exec", json!({ "command": command }))])
}

/// A rule that is a script: `handle` is the body of its function.
pub(crate) fn script(name: &str, event: &str, more: &str, handle: &str) -> String {
    format!(
        "[[hook]]\nname = '{name}'\nevent = '{event}'\nhandler_type = 'script'\nscope = 'tenant'\n{more}\n\
         [hook.config]\nsource = '''\nfunction handle(event) {{ {handle} }}\n'''\n"
    )
}

/// A rule that is a command.
pub(crate) fn command(name: &str, event: &str, more: &str, command: &str) -> String {
    format!(
        "[[hook]]\nname = '{name}'\nevent = '{event}'\nhandler_type = 'command'\nscope = 'tenant'\n{more}\n\
         [hook.config]\ncommand = '''{command}'''\n"
    )
}

/// A rule that writes what it is sent to the file `NAME.jsonl`, a line each.
pub(crate) fn dumps(name: &str, event: &str, more: &str) -> String {
    command(name, event, more, &format!("line=$(cat); printf \"%s\\n\" \"$line\" >>{name}.jsonl"))
}

/// What a rule of [`dumps`] was sent.
pub(crate) fn dumped(env: &TestEnv, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(env.path(&format!("here/{name}.jsonl"))).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A turn in the session `s`.
pub(crate) fn turn(env: &TestEnv, prompt: &str) -> Seen {
    env.pintle(&["run", "--quiet", "--session", "s", prompt])
}

/// A turn that ends well.
pub(crate) fn whole_turn(env: &TestEnv, prompt: &str) -> String {
    let seen = turn(env, prompt);
    assert_eq!(seen.code, Some(0), "{seen}");
    seen.out
}

/// The rows of the history, oldest first: hook, event, decision.
pub(crate) fn history(env: &TestEnv) -> Vec<Value> {
    let page: Value = serde_json::from_str(&env.raw(&["hooks", "history", "--json"])).unwrap();
    let mut rows = page["executions"].as_array().unwrap().clone();
    rows.reverse();
    rows
}
