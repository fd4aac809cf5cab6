//! JavaScript, as node runs it.

use super::lexer::{Shape, Token, tokens};
use super::{Look, Touched, unread};

/// Names that lead to nothing that runs, writes or connects.
const NAMES: &[&str] = &[
    "console",
    "log",
    "error",
    "warn",
    "table",
    "info",
    "process",
    "version",
    "versions",
    "argv",
    "platform",
    "arch",
    "cwd",
    "exit",
    "stdout",
    "write",
    "uptime",
    "memoryUsage",
    "hrtime",
    "JSON",
    "parse",
    "stringify",
    "Math",
    "Object",
    "keys",
    "values",
    "entries",
    "Array",
    "isArray",
    "from",
    "map",
    "filter",
    "reduce",
    "forEach",
    "join",
    "split",
    "slice",
    "length",
    "push",
    "sort",
    "reverse",
    "concat",
    "includes",
    "indexOf",
    "find",
    "some",
    "every",
    "flat",
    "flatMap",
    "fill",
    "const",
    "let",
    "var",
    "if",
    "else",
    "for",
    "of",
    "in",
    "while",
    "return",
    "new",
    "Date",
    "now",
    "toISOString",
    "getTime",
    "toString",
    "toFixed",
    "Number",
    "String",
    "Boolean",
    "parseInt",
    "parseFloat",
    "isNaN",
    "true",
    "false",
    "null",
    "undefined",
    "NaN",
    "Infinity",
    "typeof",
    "Set",
    "Map",
    "size",
    "has",
    "get",
    "add",
    "max",
    "min",
    "floor",
    "ceil",
    "round",
    "random",
    "abs",
    "sqrt",
    "pow",
    "PI",
    "trim",
    "toUpperCase",
    "toLowerCase",
    "repeat",
    "padStart",
    "padEnd",
    "startsWith",
    "endsWith",
    "test",
    "match",
    "encodeURIComponent",
    "decodeURIComponent",
    "Buffer",
    "toLocaleString",
    "hex",
    "base64",
    "node",
    "name",
    "scripts",
    "dependencies",
    "devDependencies",
    "features",
    "release",
    "pid",
    "RegExp",
    "BigInt",
    "require",
    "function",
    "assert",
    "strictEqual",
    "crypto",
    "randomUUID",
    "randomBytes",
    "createHash",
    "update",
    "digest",
    "cpus",
];

/// Modules that `require` may load.
const MODULES: &[&str] = &[
    "path",
    "url",
    "util",
    "assert",
    "node:path",
    "node:url",
    "node:util",
    "node:assert",
    "crypto",
    "node:crypto",
    "querystring",
];

const SHAPE: Shape = Shape { quotes: "\"'", comments: &["//"], triple: false };

pub(super) fn look(code: &str) -> Look {
    let tokens = tokens(code, &SHAPE).ok_or_else(|| unread("node", "its quotes or letters"))?;
    // After a slash that may begin a pattern or a comment, quotes may be none.
    let slash = tokens.iter().position(|token| *token == Token::Sign('/'));
    if slash.is_some_and(|slash| tokens[slash..].iter().any(|token| matches!(token, Token::Text(_)))) {
        return Err(unread("node", "/"));
    }
    let mut reads = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) if name == "require" => reads.extend(required(&tokens, at)?),
            Token::Name(name) => {
                // A name of one letter can only stand for what the code itself made.
                if name.len() > 1 && !NAMES.contains(&name.as_str()) && !is_declared(&tokens, name) {
                    return Err(unread("node", name));
                }
            }
            Token::Sign('\\' | '`' | '#' | '@') => return Err(unread("node", "a sign that may hide a name")),
            // An index by a text can name any member.
            Token::Sign('[') => match tokens.get(at + 1..at + 3) {
                Some([Token::Number, Token::Sign(']')]) | None => {}
                Some([Token::Text(text), Token::Sign(']')])
                    if NAMES.contains(&text.as_str())
                        || (text.contains(['-', '@', '/', ' ', '.', ':']) && !text.contains('\\')) => {}
                _ if is_literal(&tokens, at) => {}
                _ => return Err(unread("node", "[")),
            },
            Token::Sign(_) | Token::Number | Token::Text(_) | Token::Line => {}
        }
    }
    Ok(Touched { reads, ..Touched::default() })
}

/// Whether the `[` at `at` begins a list, not an index.
fn is_literal(tokens: &[Token], at: usize) -> bool {
    match at.checked_sub(1).map(|before| &tokens[before]) {
        None => true,
        Some(Token::Sign(sign)) => "=(,:[{;?&|+".contains(*sign),
        Some(Token::Name(name)) => name == "return" || name == "of" || name == "in",
        Some(Token::Number | Token::Text(_) | Token::Line) => false,
    }
}

/// Whether the code itself declares `name`, which cannot be a global then.
fn is_declared(tokens: &[Token], name: &str) -> bool {
    let refused = [
        "constructor",
        "eval",
        "Function",
        "fetch",
        "globalThis",
        "global",
        "module",
        "exports",
        "Reflect",
        "Proxy",
        "Worker",
        "import",
        "this",
        "prototype",
        "env",
        "binding",
        "mainModule",
        "dlopen",
        "kill",
        "exec",
        "spawn",
    ];
    !refused.contains(&name)
        && tokens.windows(2).any(|pair| matches!(pair, [Token::Name(word), Token::Name(declared)] if ["const", "let", "var"].contains(&word.as_str()) && declared == name))
}

/// `require("./package.json")` reads that file; some modules are harmless.
fn required(tokens: &[Token], at: usize) -> Result<Option<String>, String> {
    match tokens.get(at + 1..at + 4) {
        Some([Token::Sign('('), Token::Text(module), Token::Sign(')')]) if MODULES.contains(&module.as_str()) => {
            Ok(None)
        }
        Some([Token::Sign('('), Token::Text(file), Token::Sign(')')])
            if file.ends_with(".json") && !file.contains('\\') =>
        {
            Ok(Some(file.clone()))
        }
        Some([Token::Sign('('), Token::Text(module), Token::Sign(')')]) => Err(unread("node", module)),
        _ => Err(unread("node", "require")),
    }
}
