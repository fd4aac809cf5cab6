//! A guard: sees every call of the tool `exec` before it runs, and refuses forced pushes.
//!
//! Each line on standard input is one JSON object, and each answer is one line on standard output.
//! Print nothing else there; standard error is yours.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

/// Rules on one call. `{}` lets it pass; `modify` and `respond` are possible, too.
fn before_tool(params: &Value) -> Value {
    let command = params["arguments"]["command"].as_str().unwrap_or_default();
    if is_forced_push(command) {
        return json!({"action": "deny_tool", "reason": "forced pushes are done by people"});
    }
    json!({})
}

/// What must not happen. Change this, then the frames in tests/guard.rs.
fn is_forced_push(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| *word != "git").skip_while(|word| *word != "push");
    words.any(|word| matches!(word, "--force" | "-f") || word.starts_with('+'))
}

/// The reply to a call, or nothing for a notification.
fn reply(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let answer = match message["method"].as_str().unwrap_or_default() {
        "hook.hello" => Ok(json!({"ok": true, "name": "guard"})),
        "hook.before_tool" => Ok(before_tool(params)),
        // The tool stages come as a pair; this guard has nothing to say to the second one.
        "hook.after_tool" => Ok(json!({})),
        method => Err(json!({"code": -32601, "message": format!("unknown method {method}")})),
    };
    Some(match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    })
}

/// The loop ends when the input ends.
fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(message) => {
                if let Some(reply) = reply(&message) {
                    writeln!(out, "{reply}")?;
                    out.flush()?;
                }
            }
            Err(error) => eprintln!("skipped a line: {error}"),
        }
    }
    Ok(())
}
