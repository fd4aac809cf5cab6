//! The protocol as JSON Schema.

use pintle_domain::json::{Object, Value, json};

use super::notation::{BadNotation, Part, Type, Word};
use super::protocol::Protocol;

/// The whole schema: a frame at its root, and everything else under `$defs`.
pub(super) fn of(protocol: &Protocol) -> Result<Value, BadNotation> {
    let mut definitions = Object::new();
    let mut methods = Object::new();
    for shape in &protocol.shapes {
        let mut schema = schema(protocol, &shape.of)?;
        if !shape.note.is_empty() {
            schema["description"] = json!(shape.note);
        }
        definitions.insert(shape.name.to_owned(), schema);
    }
    for method in &protocol.methods {
        let (params, payload) = (format!("{}.params", method.name), format!("{}.payload", method.name));
        let least = method.least.map(|role| role.word());
        let row = json!({ "leastRole": least, "params": reference(&params), "payload": reference(&payload) });
        methods.insert(method.name.to_owned(), row);
        definitions.insert(params, closed(schema(protocol, &method.params)?));
        definitions.insert(payload, schema(protocol, &method.payload)?);
    }
    let mut events = Object::new();
    events.insert("agent".to_owned(), reference("event.agent"));
    let mut kinds = Vec::new();
    for (event, has_payload) in &protocol.run_events {
        let mut whole = schema(protocol, &protocol.run_head)?;
        whole["properties"]["type"] = json!({ "const": event.name });
        let mut needed = vec![json!("type")];
        if *has_payload {
            whole["properties"]["payload"] = schema(protocol, &event.of)?;
            needed.push(json!("payload"));
        }
        let others = whole["required"].as_array().map(|all| all.to_vec()).unwrap_or_default();
        whole["required"] = Value::Array(needed.into_iter().chain(others).collect());
        let name = format!("agent.{}", event.name);
        kinds.push(reference(&name));
        definitions.insert(name, whole);
    }
    definitions.insert("event.agent".to_owned(), json!({ "anyOf": kinds }));
    for event in &protocol.events {
        let name = format!("event.{}", event.name);
        events.insert(event.name.to_owned(), reference(&name));
        definitions.insert(name, schema(protocol, &event.of)?);
    }
    let frames = ["RequestFrame", "ResponseFrame", "EventFrame", "HookFrame"];
    Ok(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Frames of protocol 3",
        "anyOf": frames.map(reference).to_vec(),
        "x-methods": methods,
        "x-events": events,
        "$defs": definitions,
    }))
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Params have no members that nobody reads.
fn closed(mut schema: Value) -> Value {
    if schema.get("properties").is_some() {
        schema["additionalProperties"] = json!(false);
    } else if schema.get("$ref").is_some() {
        schema["unevaluatedProperties"] = json!(false);
    }
    schema
}

fn schema(protocol: &Protocol, of: &Type) -> Result<Value, BadNotation> {
    Ok(match of {
        Type::Word(Word::Unknown) => json!({}),
        Type::Word(Word::True) => json!({ "const": true }),
        Type::Word(Word::False) => json!({ "const": false }),
        Type::Word(word) => json!({ "type": word.name() }),
        Type::Literal(text) => json!({ "const": text }),
        Type::Exactly(number) => json!({ "const": number }),
        Type::Named(name) => {
            protocol.shape(name)?;
            reference(name)
        }
        Type::List(of) => json!({ "type": "array", "items": schema(protocol, of)? }),
        Type::OneOf(all) => one_of(protocol, all)?,
        Type::Members(parts) => object(protocol, parts)?,
    })
}

fn one_of(protocol: &Protocol, all: &[Type]) -> Result<Value, BadNotation> {
    let literals: Option<Vec<&str>> =
        all.iter().map(|one| if let Type::Literal(text) = one { Some(text.as_str()) } else { None }).collect();
    if let Some(literals) = literals {
        return Ok(json!({ "enum": literals }));
    }
    let all: Vec<Value> = all.iter().map(|one| schema(protocol, one)).collect::<Result<_, _>>()?;
    Ok(json!({ "anyOf": all }))
}

fn object(protocol: &Protocol, parts: &[Part]) -> Result<Value, BadNotation> {
    let (mut properties, mut required) = (Object::new(), Vec::new());
    for member in protocol.members(parts)? {
        properties.insert(member.name.clone(), schema(protocol, &member.of)?);
        if !member.optional {
            required.push(json!(member.name));
        }
    }
    Ok(json!({ "type": "object", "properties": properties, "required": required }))
}
