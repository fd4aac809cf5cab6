//! Python.

use super::lexer::{Shape, Token, tokens};
use super::{Look, Touched, unread};

/// Modules that run nothing, write nothing and open no connection by what their public names do.
const MODULES: &[&str] = &[
    "json",
    "sys",
    "re",
    "math",
    "cmath",
    "collections",
    "itertools",
    "datetime",
    "time",
    "string",
    "random",
    "hashlib",
    "base64",
    "binascii",
    "textwrap",
    "pprint",
    "csv",
    "statistics",
    "functools",
    "decimal",
    "fractions",
    "uuid",
    "platform",
    "unicodedata",
    "struct",
    "copy",
    "html",
    "difflib",
    "tomllib",
    "tomli",
    "calendar",
    "bisect",
    "heapq",
    "enum",
    "secrets",
    "ast",
    "os",
    "os.path",
    "urllib.parse",
    "zlib",
    "colorsys",
    "numbers",
    "array",
    "keyword",
    "locale",
    "hmac",
    "fnmatch",
    "glob",
    "yaml",
    "zoneinfo",
    "collections.abc",
    "typing",
    "sysconfig",
    "site",
    "abc",
    "ipaddress",
    "errno",
    "shlex",
    "pathlib",
    "stat",
    "posixpath",
    "importlib.metadata",
];

/// Names that are harmless after `os.`.
const OF_OS: &[&str] = &[
    "path",
    "getcwd",
    "cpu_count",
    "sep",
    "linesep",
    "name",
    "getpid",
    "listdir",
    "uname",
    "walk",
    "stat",
    "scandir",
    "curdir",
    "pathsep",
];

/// Names that run, load, write, or lead to something that does.
const REFUSED: &[&str] = &[
    "exec",
    "eval",
    "compile",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "breakpoint",
    "help",
    "modules",
    "system",
    "popen",
    "subprocess",
    "shutil",
    "socket",
    "ctypes",
    "pty",
    "builtins",
    "runpy",
    "codecs",
    "io",
    "attrgetter",
    "methodcaller",
    "load_source",
    "import_module",
    "settrace",
    "setprofile",
    "breakpointhook",
    "displayhook",
    "excepthook",
    "meta_path",
    "path_hooks",
    "unlink",
    "remove_file",
    "rmdir",
    "rmtree",
    "unsafe_load",
    "full_load",
    "environ",
    "getenv",
    "fdopen",
    "fork",
    "spawn",
    "kill",
    "execfile",
    "reload",
    "addaudithook",
    "gi_frame",
    "f_globals",
    "f_builtins",
    "f_back",
    "tb_frame",
    "cr_frame",
    "ag_frame",
    "get_type_hints",
    "ForwardRef",
    "threading",
    "multiprocessing",
    "urlopen",
    "urlretrieve",
    "requests",
    "open_code",
    "sys_exec",
    "input",
    "addsitedir",
    "sre_compile",
];

const SHAPE: Shape = Shape { quotes: "\"'", comments: &["#"], triple: true };

pub(super) fn look(code: &str) -> Look {
    let tokens = tokens(code, &SHAPE).ok_or_else(|| unread("python", "its quotes or letters"))?;
    if code.lines().take(2).any(|line| line.trim_start().starts_with('#') && line.contains("coding")) {
        return Err(unread("python", "an encoding of its own"));
    }
    let mut touched = Touched::default();
    let paths = Paths::of(&tokens)?;
    let mut plain_modules: Vec<String> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Token::Name(name) = &tokens[at] {
            match name.as_str() {
                "import" | "from" if begins_statement(&tokens, at) => {
                    at = imports(&tokens, at, &mut plain_modules)?;
                    continue;
                }
                "open" => opened(&tokens, at, &mut touched)?,
                _ => named(&tokens, at, name)?,
            }
            // The braces of an f-string hold code.
            if let (Some(Token::Text(text)), true) = (tokens.get(at + 1), is_prefix(name)) {
                if name.to_ascii_lowercase().contains(['f', 't']) && text.contains('{') {
                    formatted(text)?;
                }
                at += 2;
                continue;
            }
        }
        if tokens[at] == Token::Sign('`') {
            return Err(unread("python", "`"));
        }
        at += 1;
    }
    foreign_modules(&tokens, &plain_modules)?;
    paths.into_touched(&mut touched);
    Ok(touched)
}

fn is_prefix(name: &str) -> bool {
    name.len() <= 2 && name.chars().all(|letter| "rRbBuUfFtT".contains(letter))
}

fn begins_statement(tokens: &[Token], at: usize) -> bool {
    at == 0 || matches!(tokens[at - 1], Token::Line | Token::Sign(';' | ':'))
}

fn named(tokens: &[Token], at: usize, name: &str) -> Result<(), String> {
    let attribute = at > 0 && tokens[at - 1] == Token::Sign('.');
    let dunder = name.starts_with("__") && !["__name__", "__version__", "__doc__", "__file__"].contains(&name);
    let hidden = attribute && name.starts_with('_') && !name.starts_with("__");
    if REFUSED.contains(&name) || dunder || hidden || name == "import" || (attribute && (name == "os" || name == "sys"))
    {
        return Err(unread("python", name));
    }
    if name == "os" && !attribute {
        let next = match (tokens.get(at + 1), tokens.get(at + 2)) {
            (Some(Token::Sign('.')), Some(Token::Name(next))) => next.as_str(),
            _ => "os",
        };
        if !OF_OS.contains(&next) {
            return Err(unread("python", &format!("os.{next}")));
        }
    }
    if name == "yaml" {
        let safe = matches!(tokens.get(at + 2), Some(Token::Name(next)) if ["safe_load", "safe_load_all", "safe_dump", "dump", "YAMLError"].contains(&next.as_str()));
        if !safe {
            return Err(unread("python", "yaml"));
        }
    }
    // `load` of anything but these may make objects that run code.
    if attribute && (name == "loads" || name == "load") {
        let of = at.checked_sub(2).map(|before| &tokens[before]);
        if !matches!(of, Some(Token::Name(module)) if ["json", "tomllib", "tomli"].contains(&module.as_str())) {
            return Err(unread("python", name));
        }
    }
    Ok(())
}

/// `open("path")`, and with a mode as a text.
fn opened(tokens: &[Token], at: usize, touched: &mut Touched) -> Result<(), String> {
    let method = at > 0 && tokens[at - 1] == Token::Sign('.');
    let Some([Token::Sign('('), Token::Text(path), rest @ ..]) = tokens.get(at + 1..).filter(|_| !method) else {
        return Err(unread("python", "open"));
    };
    let (mode, rest) = match rest {
        [Token::Sign(','), Token::Text(mode), rest @ ..] => (mode.as_str(), rest),
        _ => ("r", rest),
    };
    let rest = match rest {
        [Token::Sign(','), Token::Name(option), Token::Sign('='), Token::Text(_), rest @ ..]
            if option == "encoding" || option == "newline" =>
        {
            rest
        }
        _ => rest,
    };
    if path.contains('\\') || rest.first() != Some(&Token::Sign(')')) {
        return Err(unread("python", "open"));
    }
    match mode.trim_end_matches(['b', 't']) {
        "r" => touched.reads.push(path.clone()),
        "w" | "a" | "x" => touched.writes.push(path.clone()),
        _ => return Err(unread("python", "open")),
    }
    Ok(())
}

/// What `pathlib` is used for: only paths that stand there as texts, and only what reads or writes them.
struct Paths {
    named: Vec<String>,
    writes: bool,
}

impl Paths {
    fn of(tokens: &[Token]) -> Result<Paths, String> {
        let is = |token: &Token, word: &str| matches!(token, Token::Name(name) if name == word);
        let mut paths = Paths { named: Vec::new(), writes: false };
        if !tokens.iter().any(|token| is(token, "pathlib")) {
            return Ok(paths);
        }
        let elsewhere = [
            "parent",
            "parents",
            "joinpath",
            "with_name",
            "with_suffix",
            "with_stem",
            "resolve",
            "rglob",
            "iterdir",
            "home",
            "cwd",
            "expanduser",
            "absolute",
            "rename",
            "chmod",
            "symlink_to",
            "hardlink_to",
            "link_to",
            "readlink",
            "PosixPath",
            "PurePath",
            "relative_to",
            "walk",
            "replace_with",
            "glob",
            "copy",
            "move",
            "lchmod",
        ];
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Sign('/') => return Err(unread("python", "/")),
                Token::Name(name) if elsewhere.contains(&name.as_str()) => return Err(unread("python", name)),
                Token::Name(name) if name == "Path" => match tokens.get(at + 1..at + 4) {
                    Some([Token::Sign('('), Token::Text(path), Token::Sign(')')]) if !path.contains('\\') => {
                        paths.named.push(path.clone())
                    }
                    _ if at > 0 && is(&tokens[at - 1], "import") => {}
                    _ => return Err(unread("python", "Path")),
                },
                Token::Name(name) if ["write_text", "write_bytes", "mkdir", "touch"].contains(&name.as_str()) => {
                    paths.writes = true
                }
                // `p.replace(q)` of a path moves it; of a text it has two values.
                Token::Name(name) if name == "replace" && !has_two(tokens.get(at + 1..).unwrap_or_default()) => {
                    return Err(unread("python", "replace"));
                }
                Token::Name(_) | Token::Number | Token::Text(_) | Token::Sign(_) | Token::Line => {}
            }
        }
        Ok(paths)
    }

    fn into_touched(self, touched: &mut Touched) {
        if self.writes {
            touched.writes.extend(self.named.iter().cloned());
        }
        touched.reads.extend(self.named);
    }
}

/// Whether the brackets that open here hold two values.
fn has_two(tokens: &[Token]) -> bool {
    let mut open = 0_i32;
    for token in tokens {
        match token {
            Token::Sign('(' | '[' | '{') => open += 1,
            Token::Sign(')' | ']' | '}') if open <= 1 => return false,
            Token::Sign(')' | ']' | '}') => open -= 1,
            Token::Sign(',') if open == 1 => return true,
            Token::Name(_) | Token::Number | Token::Text(_) | Token::Sign(_) | Token::Line => {}
        }
    }
    false
}

/// Looks through the code in the braces of a formatted text.
fn formatted(text: &str) -> Result<(), String> {
    for inner in text.split('{').skip(1) {
        let code = inner.split('}').next().unwrap_or_default();
        let code = code.replace("\\", "");
        look(&code)?;
    }
    Ok(())
}

/// `import a, b as c`, `from a import b`; the result is where it ends.
fn imports(tokens: &[Token], at: usize, plain: &mut Vec<String>) -> Result<usize, String> {
    let from = tokens[at] == Token::Name("from".to_owned());
    let end = tokens[at..]
        .iter()
        .position(|token| matches!(token, Token::Line | Token::Sign(';')))
        .map_or(tokens.len(), |end| at + end);
    let (mut module, mut names, mut after_import) = (String::new(), Vec::new(), !from);
    for token in &tokens[at + 1..end] {
        match token {
            Token::Name(name) if from && !after_import && name == "import" => after_import = true,
            Token::Name(name) if from && !after_import => module.push_str(name),
            Token::Sign('.') if from && !after_import => module.push('.'),
            Token::Name(name) if from => names.push(name.clone()),
            Token::Name(name) => module.push_str(&format!(" {name}")),
            Token::Sign('.') => module.push('.'),
            Token::Sign(',') if !from => module.push(','),
            Token::Sign(',' | '(' | ')' | '*') if from => {}
            Token::Number | Token::Text(_) | Token::Sign(_) | Token::Line => return Err(unread("python", "import")),
        }
    }
    if from {
        let refused =
            names.iter().any(|name| REFUSED.contains(&name.as_str()) || name.starts_with('_') || name == "open");
        let unsafe_names =
            (module == "os" && names.iter().any(|name| !OF_OS.contains(&name.as_str()))) || module == "yaml";
        if !MODULES.contains(&module.as_str())
            || refused
            || unsafe_names
            || names.iter().any(|name| name == "os" || name == "sys" && module != "sys")
        {
            return Err(unread("python", &format!("import {module}")));
        }
        return Ok(end);
    }
    for entry in module.split(',') {
        let entry = entry.replace(" .", ".").replace(". ", ".");
        let mut words = entry.split_whitespace();
        let name = words.next().unwrap_or_default();
        let renamed = words.next() == Some("as");
        // A dangerous module under another name would slip past the names that are looked for.
        if renamed && ["os", "sys", "yaml"].contains(&name) {
            return Err(unread("python", &format!("import {name} as")));
        }
        if !MODULES.contains(&name) {
            if renamed || REFUSED.contains(&name) {
                return Err(unread("python", &format!("import {name}")));
            }
            plain.push(name.split('.').next().unwrap_or_default().to_owned());
        }
    }
    Ok(end)
}

/// Other modules may be asked for their version, and nothing else.
fn foreign_modules(tokens: &[Token], plain: &[String]) -> Result<(), String> {
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        if !plain.contains(name) {
            continue;
        }
        let imported = at > 0 && matches!(&tokens[at - 1], Token::Name(before) if before == "import");
        let listed =
            at > 0 && tokens[at - 1] == Token::Sign(',') && !matches!(tokens.get(at + 1), Some(Token::Sign('.')));
        let asked = matches!((tokens.get(at + 1), tokens.get(at + 2)), (Some(Token::Sign('.')), Some(Token::Name(next))) if ["__version__", "VERSION", "version", "__file__"].contains(&next.as_str()))
            && tokens.get(at + 3) != Some(&Token::Sign('('));
        if !imported && !listed && !asked {
            return Err(unread("python", name));
        }
    }
    Ok(())
}
