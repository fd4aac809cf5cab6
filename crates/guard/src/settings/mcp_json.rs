//! Wraps the MCP servers of a client's file, each in the tool door, and takes them out again: text in, text out.

use std::collections::BTreeSet;
use std::path::Path;

use pintle_domain::json::{Value, json};

use super::json_text::{Element, Kind, Node, parse};
use super::others::NotEdited;

/// The members in which clients name their servers: most, VS Code, Zed.
const SERVERS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

/// The words behind the program by which an entry is ours.
const WORDS: [&str; 2] = ["mcp", "proxy"];

/// Longest name of a server in the tool door.
const MAX_NAME: usize = 32;

/// How the door is started.
#[derive(Clone, Copy, Debug)]
pub struct DoorCommand<'a> {
    /// The program.
    pub program: &'a str,
    /// Flags that stand before all others, such as `--config FILE`.
    pub flags: &'a [String],
}

/// A file of servers that was edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedFile {
    /// The file from now on.
    pub text: String,
    /// The servers that were wrapped now or before, by the client's names, each with its name in the door.
    pub wrapped: Vec<(String, String)>,
    /// The servers that were left as they are, and why.
    pub left: Vec<(String, String)>,
}

/// What one entry starts or reaches.
enum Reached {
    Command { command: String, args: Vec<String> },
    Url(String),
    Wrapped(String),
    Left(&'static str),
}

/// The programs of the entries of `text` that are written as ours are.
pub fn door_programs(text: &str) -> Vec<String> {
    let Ok(root) = parse(text, true) else { return Vec::new() };
    let Ok(servers) = servers(&root) else { return Vec::new() };
    let program = |(_, entry): &(&str, &Node)| door_entry(entry).ok().flatten().map(|(program, _)| program);
    servers.iter().filter_map(program).collect()
}

/// Lets every server of `text` be started through the door. `own`: the programs by which an entry is ours.
///
/// # Errors
/// It has no servers, or cannot be read.
pub fn wrap(text: &str, door: DoorCommand<'_>, own: &[String]) -> Result<WrappedFile, NotEdited> {
    let root = parse(text, true)?;
    let servers = servers(&root)?;
    let mut file = WrappedFile { text: String::new(), wrapped: Vec::new(), left: Vec::new() };
    let (mut edits, mut taken) = (Vec::new(), BTreeSet::new());
    for (name, entry) in &servers {
        if let Reached::Wrapped(known) = reached(entry, own)? {
            taken.insert(known.clone());
            file.wrapped.push(((*name).to_owned(), known));
        }
    }
    for (name, entry) in servers {
        let (tail, is_url) = match reached(entry, own)? {
            Reached::Wrapped(_) => continue,
            Reached::Left(why) => {
                file.left.push((name.to_owned(), why.to_owned()));
                continue;
            }
            Reached::Command { command, args } => {
                (["--".to_owned(), command].into_iter().chain(args).collect::<Vec<_>>(), false)
            }
            Reached::Url(url) => (vec!["--url".to_owned(), url], true),
        };
        let named = own_name(name, &mut taken);
        let words = WORDS.iter().map(|word| (*word).to_owned()).chain(["--name".to_owned(), named.clone()]);
        let args: Vec<String> = door.flags.iter().cloned().chain(words).chain(tail).collect();
        edits.extend(entry_edits(entry, door.program, &args, is_url)?);
        file.wrapped.push((name.to_owned(), named));
    }
    file.text = applied(text, edits);
    Ok(file)
}

/// Lets every server of `text` that was wrapped be started as before. `own`: the programs by which an entry is ours.
///
/// # Errors
/// It cannot be read.
pub fn unwrap(text: &str, own: &[String]) -> Result<String, NotEdited> {
    let root = parse(text, true)?;
    let mut edits = Vec::new();
    for (_, entry) in servers(&root)? {
        let Some(args) = own_args(entry, own)? else { continue };
        let Some(command) = entry.member("command")? else { continue };
        let list = entry.member("args")?;
        if let Some(at) = args.iter().position(|word| word == "--") {
            let Some((program, rest)) = args[at + 1..].split_first() else { continue };
            edits.push((command.value.start..command.value.end, Value::from(program.as_str()).to_string()));
            if let Some(list) = list {
                edits.push((list.value.start..list.value.end, line(rest)));
            }
        } else if let Some(url) = args.iter().position(|word| word == "--url").and_then(|at| args.get(at + 1)) {
            let url = format!("\"url\": {}", Value::from(url.as_str()));
            edits.push((command.start..command.value.end, url));
            edits.extend(list.map(|list| removed(text, entry, list)).unwrap_or_default());
            if let Some(kind) = entry.member("type")? {
                edits.push((kind.value.start..kind.value.end, "\"http\"".to_owned()));
            }
        }
    }
    Ok(applied(text, edits))
}

/// Takes `member` out of `entry`, with one comma.
fn removed(text: &str, entry: &Node, member: &Element) -> Vec<EntryEdit> {
    let Kind::Object(members) = &entry.kind else { return Vec::new() };
    let before = members.iter().take_while(|known| known.start < member.start).last();
    let (start, end) = (member.start, member.value.end);
    match before.and_then(|before| before.comma) {
        Some(comma) if text[comma + 1..start].trim().is_empty() => vec![(comma..end, String::new())],
        // A comment in between stays.
        Some(comma) => vec![(comma..comma + 1, String::new()), (start..end, String::new())],
        None => {
            let next = members.iter().find(|known| known.start > member.start);
            let comma = member.comma.map(|comma| (comma..comma + 1, String::new()));
            match next {
                Some(next) if member.comma.is_some_and(|comma| text[comma + 1..next.start].trim().is_empty()) => {
                    vec![(start..next.start, String::new())]
                }
                Some(_) | None => [Some((start..end, String::new())), comma].into_iter().flatten().collect(),
            }
        }
    }
}

fn servers(root: &Node) -> Result<Vec<(&str, &Node)>, NotEdited> {
    let mut found = None;
    for name in SERVERS {
        let Some(servers) = root.member(name)? else { continue };
        let Kind::Object(members) = &servers.value.kind else { return Err(NotEdited::Shape(name.to_owned())) };
        for member in members {
            servers.value.member(&member.name)?;
        }
        let all = found.get_or_insert_with(Vec::new);
        all.extend(members.iter().map(|member| (member.name.as_str(), &member.value)));
    }
    found.ok_or(NotEdited::NoServers)
}

fn text_of(entry: &Node, name: &str) -> Result<Option<String>, NotEdited> {
    Ok(entry.member(name)?.and_then(|member| member.value.value().as_str().map(str::to_owned)))
}

fn args_of(entry: &Node) -> Result<Option<Vec<String>>, NotEdited> {
    let Some(args) = entry.member("args")? else { return Ok(Some(Vec::new())) };
    let value = args.value.value();
    let words = value.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
    Ok(words.flatten())
}

/// The program and the arguments of an entry that is written as ours are.
fn door_entry(entry: &Node) -> Result<Option<(String, Vec<String>)>, NotEdited> {
    let (Some(program), Some(args)) = (text_of(entry, "command")?, args_of(entry)?) else { return Ok(None) };
    let end = args.iter().position(|word| word == "--").unwrap_or(args.len());
    let is_door = args[..end].windows(3).any(|words| words[..2] == WORDS && words[2] == "--name");
    Ok(is_door.then_some((program, args)))
}

/// The arguments of an entry that is ours. The program says so: another one may be started with the same words.
fn own_args(entry: &Node, own: &[String]) -> Result<Option<Vec<String>>, NotEdited> {
    Ok(door_entry(entry)?.filter(|(program, _)| own.contains(program)).map(|(_, args)| args))
}

fn reached(entry: &Node, own: &[String]) -> Result<Reached, NotEdited> {
    if let Some(args) = own_args(entry, own)? {
        let name = args.iter().position(|word| word == "--name").and_then(|at| args.get(at + 1));
        return Ok(Reached::Wrapped(name.cloned().unwrap_or_default()));
    }
    let is_pintle = |program: &str| Path::new(program).file_name().is_some_and(|name| name == "pintle");
    if door_entry(entry)?.is_some_and(|(program, _)| is_pintle(&program)) {
        return Ok(Reached::Left("it is a tool door already, of another `pintle` than this one"));
    }
    let (command, url) = (text_of(entry, "command")?, text_of(entry, "url")?);
    let is_old = text_of(entry, "type")?.is_some_and(|kind| kind == "sse");
    Ok(match (command, url, args_of(entry)?) {
        (Some(command), None, Some(_)) if is_line(&command) => {
            Reached::Left("its `command` is a line and no program: put the words behind the first one into `args`")
        }
        (Some(command), None, Some(args)) => Reached::Command { command, args },
        (None, Some(_), _) if entry.member("headers")?.is_some() => {
            Reached::Left("it sends headers of its own, which the door would not")
        }
        (None, Some(_), _) if is_old => Reached::Left("it speaks the old SSE transport, which the door does not"),
        (None, Some(url), _) => Reached::Url(url),
        (_, _, _) => Reached::Left("it has neither a `command` with a list of `args` nor a `url`"),
    })
}

/// Whether `command` is a whole line, such as `npx -y foo`; a path may have blanks, too.
fn is_line(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.next().is_some_and(|first| !first.contains(['/', '\\'])) && words.next().is_some()
}

/// A name for the door that no other server of the file has.
fn own_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c.to_ascii_lowercase() } else { '-' };
    let clean: String = name.chars().map(keep).take(MAX_NAME).collect();
    let clean = if clean.is_empty() { "server".to_owned() } else { clean };
    let mut number = 1;
    let mut own = clean.clone();
    while !taken.insert(own.clone()) {
        number += 1;
        let mark = format!("-{number}");
        own = format!("{}{mark}", &clean[..clean.len().min(MAX_NAME - mark.len())]);
    }
    own
}

type EntryEdit = (std::ops::Range<usize>, String);

fn entry_edits(entry: &Node, program: &str, args: &[String], is_url: bool) -> Result<Vec<EntryEdit>, NotEdited> {
    let (program, args) = (Value::from(program).to_string(), line(args));
    let mut edits = Vec::new();
    if is_url {
        let Some(url) = entry.member("url")? else { return Ok(edits) };
        edits.push((url.start..url.value.end, format!("\"command\": {program}, \"args\": {args}")));
        if let Some(kind) = entry.member("type")? {
            edits.push((kind.value.start..kind.value.end, "\"stdio\"".to_owned()));
        }
        return Ok(edits);
    }
    let Some(command) = entry.member("command")? else { return Ok(edits) };
    match entry.member("args")? {
        Some(list) => {
            edits.push((command.value.start..command.value.end, program));
            edits.push((list.value.start..list.value.end, args));
        }
        None => edits.push((command.value.start..command.value.end, format!("{program}, \"args\": {args}"))),
    }
    Ok(edits)
}

/// A list on one line.
fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| json!(word).to_string()).collect();
    format!("[{}]", words.join(", "))
}

fn applied(text: &str, mut edits: Vec<EntryEdit>) -> String {
    edits.sort_by_key(|(place, _)| place.start);
    let (mut made, mut at) = (String::new(), 0);
    for (place, with) in edits {
        made.push_str(&text[at..place.start]);
        made.push_str(&with);
        at = place.end;
    }
    made.push_str(&text[at..]);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
  // mine
  "mcpServers": {
    "Time Server": {"command": "uvx", "args": ["mcp-server-time", "--x"], "env": {"KEY": "1"}},
    "bare":   { "command":"srv" },
    "wiki": { "type": "http", "url": "https://wiki.internal/mcp" },
    "keyed": {"url": "https://k.internal/mcp", "headers": {"Authorization": "Bearer x"}},
    "old": {"type": "sse", "url": "https://o.internal/sse"},
    "odd": {"command": "x", "args": "y"},
  },
  "other": 1
}
"#;

    const FLAGS: &[String] = &[];

    fn wrapped(text: &str) -> WrappedFile {
        wrap(text, DoorCommand { program: "/bin/pintle", flags: FLAGS }, &own()).unwrap()
    }

    fn own() -> Vec<String> {
        vec!["/bin/pintle".to_owned()]
    }

    #[test]
    fn servers_are_started_through_the_door_and_nothing_else_changes() {
        let file = wrapped(FILE);
        let expected = FILE
            .replace(
                r#""uvx", "args": ["mcp-server-time", "--x"]"#,
                r#""/bin/pintle", "args": ["mcp", "proxy", "--name", "time-server", "--", "uvx", "mcp-server-time", "--x"]"#,
            )
            .replace(
                r#""command":"srv""#,
                r#""command":"/bin/pintle", "args": ["mcp", "proxy", "--name", "bare", "--", "srv"]"#,
            )
            .replace(
                r#""type": "http", "url": "https://wiki.internal/mcp""#,
                r#""type": "stdio", "command": "/bin/pintle", "args": ["mcp", "proxy", "--name", "wiki", "--url", "https://wiki.internal/mcp"]"#,
            );
        assert_eq!(file.text, expected);
        let left: Vec<&str> = file.left.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left, ["keyed", "old", "odd"]);
        let again = wrapped(&file.text);
        assert_eq!((again.text, again.wrapped.len()), (file.text, 3));
    }

    #[test]
    fn what_is_wrapped_is_taken_out_again() {
        let file = wrapped(FILE).text.replace("\"other\": 1", "\"other\": 2");
        let expected = FILE
            .replace("\"other\": 1", "\"other\": 2")
            // Whether it had a list of arguments is not known any more.
            .replace(r#""command":"srv""#, r#""command":"srv", "args": []"#);
        assert_eq!(unwrap(&file, &own()).unwrap(), expected);
        assert_eq!(unwrap(FILE, &own()).unwrap(), FILE);
    }

    #[test]
    fn each_member_of_an_entry_is_taken_out_by_itself() {
        let args = r#""args": ["mcp", "proxy", "--name", "a", "--url", "http://x/"]"#;
        let url = r#""url": "http://x/""#;
        for (entry, expected) in [
            (format!(r#"{{"command": "/bin/pintle", {args}}}"#), format!("{{{url}}}")),
            (
                format!(r#"{{"command": "/bin/pintle", "env": {{"K": "1"}}, {args}, "x": 1}}"#),
                format!(r#"{{{url}, "env": {{"K": "1"}}, "x": 1}}"#),
            ),
            (
                format!(r#"{{"command": "/bin/pintle", "type": "stdio", {args}}}"#),
                format!(r#"{{{url}, "type": "http"}}"#),
            ),
            (format!(r#"{{{args}, "command": "/bin/pintle"}}"#), format!("{{{url}}}")),
            (
                format!(r#"{{{args}, /* c */ "type": "stdio", "command": "/bin/pintle"}}"#),
                format!(r#"{{ /* c */ "type": "http", {url}}}"#),
            ),
            (
                format!(r#"{{"command": "/bin/pintle", /* c */ {args}, "x": 1,}}"#),
                format!(r#"{{{url} /* c */ , "x": 1,}}"#),
            ),
            (r#"{"command": "/bin/pintle", "args": ["mcp", "proxy", "--name", "a"]}"#.to_owned(), String::new()),
        ] {
            let file = |entry: &str| format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
            let expected = if expected.is_empty() { &entry } else { &expected };
            assert_eq!(unwrap(&file(&entry), &own()).unwrap(), file(expected), "{entry}");
        }
    }

    #[test]
    fn an_entry_is_ours_by_its_program() {
        let args = r#""args": ["mcp", "proxy", "--name", "a", "--", "srv"]"#;
        let text = format!(
            r#"{{"mcpServers": {{"a": {{"command": "docker", {args}}}, "b": {{"command": "/other/pintle", {args}}}}}}}"#
        );
        assert_eq!(unwrap(&text, &own()).unwrap(), text);
        let file = wrapped(&text);
        assert_eq!((file.wrapped.len(), file.left.len()), (1, 1));
        assert!(file.text.contains(r#""--", "docker", "mcp", "proxy""#), "{}", file.text);
        assert_eq!(door_programs(&text), ["docker", "/other/pintle"]);
        assert_eq!(unwrap(&file.text, &own()).unwrap(), text);
    }

    #[test]
    fn servers_are_found_wherever_clients_name_them() {
        for name in SERVERS {
            let text = format!(r#"{{"{name}": {{"a": {{"command": "x"}}}}, "other": {{"b": {{"command": "y"}}}}}}"#);
            let file = wrapped(&text);
            assert_eq!(file.wrapped, [("a".to_owned(), "a".to_owned())], "{name}");
            assert!(file.text.contains(r#""--", "x"]"#), "{}", file.text);
            let args = r#""x", "args": []"#;
            assert_eq!(unwrap(&file.text, &own()).unwrap(), text.replace(r#""x""#, args), "{name}");
        }
    }

    #[test]
    fn a_line_is_no_program() {
        let file = wrapped(r#"{"mcpServers":{"a":{"command":"npx -y @x/foo"},"b":{"command":"/opt/My Tools/srv"}}}"#);
        assert_eq!((file.wrapped.len(), file.left.len()), (1, 1));
        assert!(file.left[0].0 == "a" && file.left[0].1.contains("is a line and no program"), "{:?}", file.left);
    }

    #[test]
    fn two_servers_have_two_names() {
        let file = wrapped(r#"{"mcpServers":{"A":{"command":"x"},"a":{"command":"y"},"ß":{"command":"z"}}}"#);
        let names: Vec<&str> = file.wrapped.iter().map(|(_, own)| own.as_str()).collect();
        assert_eq!(names, ["a", "a-2", "-"]);
    }

    #[test]
    fn a_file_without_servers_is_left() {
        for text in ["{}", r#"{"mcpServers":[]}"#, "{", r#"{"mcpServers":{"a":{"command":"x","command":"y"}}}"#] {
            assert!(wrap(text, DoorCommand { program: "p", flags: FLAGS }, &[]).is_err(), "{text}");
        }
        let none = wrap("{}", DoorCommand { program: "p", flags: FLAGS }, &[]).unwrap_err();
        assert_eq!(none.to_string(), "the file names no servers (`mcpServers`, `servers`, `context_servers`)");
    }
}
