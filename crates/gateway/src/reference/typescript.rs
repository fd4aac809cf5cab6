//! The protocol as types of TypeScript.

use std::fmt::Write as _;

use super::notation::{Part, Type};
use super::protocol::Protocol;

/// The whole module.
pub(super) fn of(protocol: &Protocol) -> String {
    let mut module = "// Generated from the code by `cargo xtask gen`.\n\n\
                      /** The version of the protocol. */\nexport const PROTOCOL = 3;\n"
        .to_owned();
    for shape in &protocol.shapes {
        if shape.note.is_empty() {
            module.push('\n');
        } else {
            put(&mut module, format_args!("\n/** {} */\n", shape.note));
        }
        put(&mut module, format_args!("export type {} = {};\n", shape.name, laid_out(&shape.of)));
    }
    module.push_str("\n/** What each method takes and gives. */\nexport type Methods = {\n");
    for method in &protocol.methods {
        let least = method.least.map_or("Anybody".to_owned(), |role| format!("Least role: {}", role.word()));
        let note = if method.row.note.is_empty() { String::new() } else { format!("; {}", method.row.note) };
        put(&mut module, format_args!("  /** {least}{note}. */\n  readonly \"{}\": {{\n", method.name));
        put(&mut module, format_args!("    readonly params: {};\n", method.params));
        put(&mut module, format_args!("    readonly payload: {};\n  }};\n", method.payload));
    }
    module.push_str("};\n\n/** What every event of a run has. */\n");
    put(&mut module, format_args!("export type RunHead = {};\n", laid_out(&protocol.run_head)));
    module.push_str("\n/** The payloads of the events of a run. */\nexport type RunEvents = {\n");
    for (event, has_payload) in &protocol.run_events {
        let of = if *has_payload { event.of.to_string() } else { "undefined".to_owned() };
        noted(&mut module, event.note);
        put(&mut module, format_args!("  readonly \"{}\": {of};\n", event.name));
    }
    module.push_str(
        "};\n\n/** An event of a run: the payload of an event `agent`. */\nexport type RunEvent = {\n  \
         [Kind in keyof RunEvents]: RunHead & { readonly type: Kind } & (RunEvents[Kind] extends undefined\n      \
         ? { readonly payload?: undefined }\n      : { readonly payload: RunEvents[Kind] });\n\
         }[keyof RunEvents];\n\n/** The payload of each event. */\nexport type Events = {\n  \
         /** To the connections of its user and to administrators. */\n  readonly \"agent\": RunEvent;\n",
    );
    for event in &protocol.events {
        noted(&mut module, event.note);
        put(&mut module, format_args!("  readonly \"{}\": {};\n", event.name, event.of));
    }
    module.push_str("};\n");
    module
}

fn noted(module: &mut String, note: &str) {
    if !note.is_empty() {
        put(module, format_args!("  /** {note} */\n"));
    }
}

/// A type by itself: an object has a line for each member.
fn laid_out(of: &Type) -> String {
    let Type::Members(parts) = of else { return of.to_string() };
    let own: String = parts.iter().filter_map(Part::member).map(|member| format!("  {member};\n")).collect();
    let shapes = parts.iter().filter_map(Part::shape).map(str::to_owned);
    shapes.chain([format!("{{\n{own}}}")]).collect::<Vec<_>>().join(" & ")
}

fn put(module: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible = module.write_fmt(text);
}
