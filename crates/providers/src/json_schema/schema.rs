//! The schema that an answer must follow, in the few words that every grammar converter knows.

use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::ToolDef;

/// Longest free text, in characters. A small model may run on until its last token, and llama.cpp refuses
/// repetitions of 2000 and more in a grammar.
const MAX_TEXT_CHARS: u64 = 1500;
/// Deepest nesting of parameters that is spelled out; anything may stand below. Tools rarely need four levels.
const MAX_LEVELS: usize = 12;
/// Most schemas that one tool's parameters are spelled out to: references can double at each level.
const MAX_SCHEMAS: usize = 1000;

/// One branch per tool, and one for the reply.
pub(super) fn of_answer(tools: &[&ToolDef], with_reply: bool) -> Value {
    let mut branches: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let arguments = of_parameters(&tool.function.parameters);
            json!({
                "type": "object",
                "properties": {"tool": {"const": tool.function.name}, "arguments": arguments},
                "required": ["tool", "arguments"],
            })
        })
        .collect();
    if with_reply {
        branches.push(json!({
            "type": "object",
            "properties": {"reply": {"type": "string", "maxLength": MAX_TEXT_CHARS}},
            "required": ["reply"],
        }));
    }
    json!({"anyOf": branches})
}

fn of_parameters(parameters: &Value) -> Value {
    let simple = Simplifier { root: parameters, left: MAX_SCHEMAS }.schema(parameters, 0);
    // Arguments are an object, whatever the tool says.
    if simple["type"] == "object" || simple["anyOf"].is_array() { simple } else { json!({"type": "object"}) }
}

struct Simplifier<'a> {
    root: &'a Value,
    left: usize,
}

impl Simplifier<'_> {
    /// `schema` in simple words; `{}`, which takes anything, where it is too deep, too large or says nothing known.
    fn schema(&mut self, schema: &Value, level: usize) -> Value {
        let Some(members) = schema.as_object() else { return json!({}) };
        if level == MAX_LEVELS || self.left == 0 {
            return json!({});
        }
        self.left -= 1;
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)).cloned();
            return found.map_or_else(|| json!({}), |found| self.schema(&found, level + 1));
        }
        if let Some(value) = members.get("const") {
            return json!({"const": value});
        }
        if let Some(values @ Value::Array(_)) = members.get("enum") {
            return json!({"enum": values});
        }
        let choices = members.get("anyOf").or_else(|| members.get("oneOf")).and_then(Value::as_array);
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            return json!({"anyOf": choices.iter().map(|choice| self.schema(choice, level + 1)).collect::<Vec<_>>()});
        }
        if let Some(all) = members.get("allOf").and_then(Value::as_array) {
            return self.schema(&merged(members, all), level + 1);
        }
        self.by_type(members, level)
    }

    fn by_type(&mut self, members: &Object, level: usize) -> Value {
        let kind = match members.get("type") {
            Some(Value::Array(kinds)) => {
                let one = |kind: &Value| {
                    let mut one = members.clone();
                    one.insert("type".into(), kind.clone());
                    self.schema(&Value::Object(one), level + 1)
                };
                return json!({"anyOf": kinds.iter().map(one).collect::<Vec<_>>()});
            }
            Some(kind) => kind.as_str().unwrap_or_default(),
            None if members.contains_key("properties") => "object",
            None if members.contains_key("items") => "array",
            None => "",
        };
        match kind {
            "object" => self.object(members, level),
            "array" => {
                let items = members.get("items").map_or_else(|| json!({}), |items| self.schema(items, level + 1));
                json!({"type": "array", "items": items})
            }
            "string" => {
                let own = members.get("maxLength").and_then(Value::as_u64);
                json!({"type": "string", "maxLength": own.map_or(MAX_TEXT_CHARS, |own| own.min(MAX_TEXT_CHARS))})
            }
            "integer" | "number" | "boolean" | "null" => json!({"type": kind}),
            _ => json!({}),
        }
    }

    fn object(&mut self, members: &Object, level: usize) -> Value {
        let Some(own) = members.get("properties").and_then(Value::as_object).filter(|own| !own.is_empty()) else {
            return json!({"type": "object"});
        };
        let properties: Object = own.iter().map(|(name, own)| (name.clone(), self.schema(own, level + 1))).collect();
        let required = members.get("required").and_then(Value::as_array);
        let known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let required: Vec<&Value> = required.into_iter().flatten().filter(known).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

/// The object with what `allOf` adds to it: members are taken over, `properties` and `required` are united.
fn merged(members: &Object, all: &[Value]) -> Value {
    let mut whole = members.clone();
    whole.shift_remove("allOf");
    for (name, value) in all.iter().filter_map(Value::as_object).flatten() {
        match (whole.get_mut(name), value) {
            (Some(Value::Object(have)), Value::Object(more)) => have.extend(more.clone()),
            (Some(Value::Array(have)), Value::Array(more)) => have.extend(more.iter().cloned()),
            (Some(_), _) => {}
            (None, value) => {
                whole.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(parameters: &str) -> String {
        of_parameters(&pintle_domain::json::parse(parameters).unwrap()).to_string()
    }

    #[test]
    fn parameters_are_reduced_to_simple_words() {
        let table = [
            r#"{"type":"object","additionalProperties":false,"$schema":"x"}"#,
            r#"{"properties":{"a":{"type":"string","format":"date","minLength":1},"b":{"type":"string","maxLength":5}},"required":["a","z",1]}"#,
            r#"{"type":"object","properties":{"n":{"type":["integer","null"],"minimum":1},"l":{"type":"array","items":{"type":"number"},"minItems":1},"x":true,"e":{"enum":[1.50,"a"]}}}"#,
            r##"{"type":"object","properties":{"p":{"$ref":"#/$defs/p"},"q":{"$ref":"http://elsewhere"}},"$defs":{"p":{"type":"boolean"}}}"##,
            r#"{"type":"object","properties":{"o":{"oneOf":[{"const":1},{"type":"string"}]}}}"#,
            r#"{"allOf":[{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]},{"properties":{"b":{"type":"null"}},"required":["b"]}]}"#,
            r#"{"type":"string"}"#,
            "true",
        ];
        insta::assert_snapshot!(table.map(simple).join("\n"), @r#"
        {"type":"object"}
        {"type":"object","properties":{"a":{"type":"string","maxLength":1500},"b":{"type":"string","maxLength":5}},"required":["a"]}
        {"type":"object","properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]},"l":{"type":"array","items":{"type":"number"}},"x":{},"e":{"enum":[1.50,"a"]}},"required":[]}
        {"type":"object","properties":{"p":{"type":"boolean"},"q":{}},"required":[]}
        {"type":"object","properties":{"o":{"anyOf":[{"const":1},{"type":"string","maxLength":1500}]}},"required":[]}
        {"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["a","b"]}
        {"type":"object"}
        {"type":"object"}
        "#);
    }

    #[test]
    fn endless_and_exploding_references_are_bounded() {
        let endless = r##"{"type":"object","properties":{"again":{"$ref":"#"}}}"##;
        assert!(simple(endless).len() < 2000);
        let twice = |next: usize| {
            let reference = json!({"$ref": format!("#/$defs/d{next}")});
            json!({"type": "object", "properties": {"a": reference, "b": reference, "c": reference, "d": reference}})
        };
        let defs: Object = (0..20).map(|i| (format!("d{i}"), twice(i + 1))).collect();
        let bomb = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
        assert!(simple(&bomb.to_string()).len() < 100_000);
    }
}
