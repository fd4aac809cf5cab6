//! The body of a request as a person reads it: every character of its JSON, in lines of a readable length.

use pintle_domain::json::Value;

use crate::clean::is_hidden;

/// The member that holds the definitions of tools: schemas, one line each.
const TOOLS: &str = "tools";

/// How deep lists and objects are opened: below it stand single values of a message.
const MAX_DEPTH: usize = 4;

/// `body` in lines of at most `columns`, as far as its texts allow.
pub(super) fn laid_out(body: &str, columns: usize) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => opened(&value, 0, columns),
        Err(_) => visible(body),
    }
}

fn opened(value: &Value, depth: usize, columns: usize) -> String {
    let whole = visible(&value.to_string());
    let fits = depth > 0 && 2 * depth + whole.chars().count() < columns;
    let inside = "  ".repeat(depth + 1);
    let (brackets, lines): (_, Vec<String>) = match value {
        Value::Object(members) if !fits && depth < MAX_DEPTH => {
            let line = |(name, value): (&String, &Value)| {
                // A list of schemas is read where the tools are defined; here each is known by its beginning.
                let tools = value.as_array().filter(|tools| depth == 0 && name == TOOLS && !tools.is_empty());
                let value = tools.map_or_else(|| opened(value, depth + 1, columns), |tools| listed(tools));
                format!("{inside}{}: {value}", visible(&Value::from(name.as_str()).to_string()))
            };
            (["{", "}"], members.iter().map(line).collect())
        }
        Value::Array(items) if !fits && depth < MAX_DEPTH => {
            (["[", "]"], items.iter().map(|item| format!("{inside}{}", opened(item, depth + 1, columns))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            return whole;
        }
    };
    let [open, close] = brackets;
    if lines.is_empty() {
        return format!("{open}{close}");
    }
    format!("{open}\n{}\n{}{close}", lines.join(",\n"), "  ".repeat(depth))
}

/// Definitions of tools, a line each.
fn listed(tools: &[Value]) -> String {
    let lines: Vec<String> = tools.iter().map(|tool| format!("    {}", visible(&tool.to_string()))).collect();
    format!("[\n{}\n  ]", lines.join(",\n"))
}

/// JSON in which everything is visible that a terminal would act on, still the same JSON.
fn visible(json: &str) -> String {
    let mut units = [0; 2];
    let mut spelled = |c: char| c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    json.chars().map(|c| if is_hidden(c) { spelled(c) } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_laid_out_and_stays_the_same_json() {
        let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"one and one and one"},{"type":"text","text":"\u202etwo"}]}],"tools":[{"name":"read","schema":{"type":"object"}}],"n":1.50,"none":[]}"#;
        let body = &body.replace("\\u202e", "\u{202e}");
        let shown = laid_out(body, 60);
        insta::assert_snapshot!(shown, @r#"
        {
          "model": "m",
          "messages": [
            {
              "role": "user",
              "content": [
                {"type":"text","text":"one and one and one"},
                {"type":"text","text":"\u202etwo"}
              ]
            }
          ],
          "tools": [
            {"name":"read","schema":{"type":"object"}}
          ],
          "n": 1.50,
          "none": []
        }
        "#);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&shown), value(body));
        assert!(!shown.contains('\u{202e}'));
    }
}
