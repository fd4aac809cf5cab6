//! PHP.

use super::lexer::{Shape, Token, tokens};
use super::{Look, Touched, unread};

/// Names that run nothing, write nothing and open no connection.
const NAMES: &[&str] = &[
    "echo",
    "print",
    "phpversion",
    "PHP_VERSION",
    "PHP_EOL",
    "PHP_OS",
    "PHP_OS_FAMILY",
    "PHP_INT_MAX",
    "PHP_SAPI",
    "json_encode",
    "json_decode",
    "var_dump",
    "print_r",
    "var_export",
    "strlen",
    "count",
    "implode",
    "explode",
    "strtoupper",
    "strtolower",
    "ucfirst",
    "date",
    "time",
    "microtime",
    "round",
    "floor",
    "ceil",
    "max",
    "min",
    "abs",
    "sqrt",
    "rand",
    "mt_rand",
    "random_int",
    "md5",
    "sha1",
    "hash",
    "base64_encode",
    "bin2hex",
    "trim",
    "str_repeat",
    "str_replace",
    "substr",
    "in_array",
    "array_keys",
    "array_values",
    "array_sum",
    "sort",
    "range",
    "true",
    "false",
    "null",
    "if",
    "else",
    "for",
    "foreach",
    "as",
    "while",
    "extension_loaded",
    "get_loaded_extensions",
    "memory_get_usage",
    "sprintf",
    "printf",
    "number_format",
    "isset",
    "empty",
    "array",
    "JSON_PRETTY_PRINT",
    "function_exists",
    "class_exists",
    "version_compare",
    "exit",
];

const SHAPE: Shape = Shape { quotes: "\"'", comments: &["//", "#"], triple: false };

pub(super) fn look(code: &str) -> Look {
    if let Some(sign) = ["/*", "?>", "<?", "<<<"].into_iter().find(|sign| code.contains(sign)) {
        return Err(unread("php", sign));
    }
    let tokens = tokens(code, &SHAPE).ok_or_else(|| unread("php", "its quotes or letters"))?;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) => {
                let variable = at > 0 && tokens[at - 1] == Token::Sign('$');
                let called = tokens.get(at + 1) == Some(&Token::Sign('('));
                if (!variable && !NAMES.contains(&name.as_str()))
                    || (variable && (called || name.starts_with('_') || name == "GLOBALS"))
                {
                    return Err(unread("php", name));
                }
            }
            // A text, a list or a bracket that is called names the function by its value.
            Token::Sign('(') if at > 0 && matches!(tokens[at - 1], Token::Sign(')' | ']' | '}') | Token::Text(_)) => {
                return Err(unread("php", "("));
            }
            Token::Text(text) if text.contains("{$") || text.contains("${") => return Err(unread("php", "{$")),
            Token::Sign('`' | '\\' | '&' | '@') => return Err(unread("php", "a sign that may hide a name")),
            Token::Sign(_) | Token::Text(_) | Token::Number | Token::Line => {}
        }
    }
    Ok(Touched::default())
}
