//! The `if` of an entry: one permission rule, such as `Bash(git *)` or `Edit(*.ts)`. What cannot be decided holds, so that
//! a command runs once too often and never once too few.

use std::path::{Path, PathBuf};

use pintle_domain::json::Value;
use pintle_domain::shell::ShellFacts;
use pintle_domain::tool::ToolCall;

use super::tools::{self, ToldCall};

/// A permission rule, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRule {
    text: String,
    tool: String,
    /// What stands in brackets; all calls of the tool where there are none.
    about: Option<String>,
}

/// What a rule is compared with.
#[derive(Clone, Copy, Debug)]
pub struct RuleInput<'a> {
    /// The call as it was made.
    pub call: &'a ToolCall,
    /// What is known of its shell text.
    pub shell: &'a ShellFacts,
    /// The folder that it works in.
    pub cwd: &'a Path,
    /// The folder of files that `~` stands for; none where that is not known.
    pub home: Option<&'a Path>,
    /// Where a path leads to, as far as it leads anywhere.
    pub real: fn(&Path) -> PathBuf,
}

impl PermissionRule {
    /// Reads `text`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let (tool, about) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| format!("`{text}` has no `)` at its end"))?;
                (tool.trim(), Some(inner.trim()).filter(|inner| !inner.is_empty() && *inner != "*"))
            }
        };
        let is_name = !tool.is_empty() && tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-*".contains(c));
        if !is_name {
            return Err(format!("expected one rule such as `Bash(git *)`, got `{text}`"));
        }
        Ok(Self { text: trimmed.to_owned(), tool: tool.to_owned(), about: about.map(str::to_owned) })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is about a call.
    pub fn holds(&self, seen: &RuleInput<'_>) -> bool {
        if !self.names(seen.call) {
            return false;
        }
        let Some(about) = &self.about else { return true };
        let Ok(parts) = tools::told(seen.call, None, seen.cwd) else { return true };
        match seen.call.tool.as_str() {
            "exec" => parts.iter().any(|part| of_shell(about, part, seen.shell)),
            "write_file" | "edit_file" | "read_file" => parts.iter().any(|part| of_file((about, false), part, seen)),
            "search_text" | "find_files" | "list_dir" => parts.iter().any(|part| of_file((about, true), part, seen)),
            "web_fetch" => parts.iter().any(|part| of_url(about, part)),
            "delegate" | "spawn" => parts.iter().any(|part| of_agent(about, part)),
            _ => true,
        }
    }

    /// Whether the tool of `call` is one of those that are meant. Rules about edits are about all that changes files,
    /// rules about reading about all that looks into them.
    fn names(&self, call: &ToolCall) -> bool {
        let of_class = matches!(
            (self.tool.as_str(), call.tool.as_str()),
            ("Edit" | "Write" | "MultiEdit", "write_file" | "edit_file")
                | ("Read", "read_file" | "search_text" | "find_files" | "list_dir")
        );
        let means = |name: &str| {
            wild(&self.tool, name)
                || name
                    .strip_prefix(&self.tool)
                    .is_some_and(|rest| rest.starts_with("__") && self.tool.starts_with("mcp__"))
        };
        of_class
            || means(&call.raw_tool)
            || means(&call.tool)
            || tools::spelling(&call.tool, &call.raw_tool).iter().any(|name| means(name))
    }
}

/// Whether a shell text, or one command of it, is what `about` says; what cannot be read may be anything.
fn of_shell(about: &str, part: &ToldCall, shell: &ShellFacts) -> bool {
    let Some(text) = part.input.get("command").and_then(Value::as_str) else { return true };
    let fits = |command: &str| match about.strip_suffix(":*") {
        Some(prefix) => command.starts_with(prefix),
        None => wild(about, command) || about.strip_suffix(" *").is_some_and(|bare| wild(bare, command)),
    };
    if shell.unknown || shell.commands.is_empty() || fits(text.trim()) {
        return true;
    }
    shell.commands.iter().any(|command| {
        // A program may be written with its folder.
        let arguments = command.argv.get(1..).unwrap_or_default();
        let named = std::iter::once(&command.name).chain(arguments).cloned().collect::<Vec<_>>().join(" ");
        fits(&named) || fits(&command.argv.join(" "))
    })
}

/// Whether a file is one that `about` means, in the manner of `.gitignore`, by its name or where that leads to; or a
/// folder with such a file, where one is looked `within`.
fn of_file((about, within): (&str, bool), part: &ToldCall, seen: &RuleInput<'_>) -> bool {
    let Some(file) = tools::file_of(&part.input) else { return true };
    // What is no path at all may be anything.
    if !file.starts_with('/') {
        return true;
    }
    let real = |path: &Path| (seen.real)(path).to_string_lossy().into_owned();
    let said = |path: &Path| path.to_string_lossy().into_owned();
    let files = [plain_path(file), plain_path(&real(Path::new(file)))];
    let folders = [(said(seen.cwd), seen.home.map(said)), (real(seen.cwd), seen.home.map(real))];
    folders.iter().any(|(cwd, home)| {
        let Some(pattern) = anchored(about, cwd, home.as_deref()) else { return true };
        let is_meant = |file: &String| {
            path_wild(&pattern, file)
                || path_wild(&format!("{pattern}/**"), file)
                || within && leads_to(&steps(&pattern), &steps(file))
        };
        files.iter().any(is_meant)
    })
}

/// The pattern of whole paths that `about` is in the folder `cwd`; none where it is about a home that is not known.
fn anchored(about: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    Some(match (about.strip_prefix("//"), about.strip_prefix("~/")) {
        (Some(absolute), _) => format!("/{absolute}"),
        (None, Some(below)) => format!("{}/{below}", home?),
        (None, None) => {
            let relative = about.trim_start_matches("./").trim_start_matches('/');
            let is_anchored = about.starts_with('/') || about.starts_with("./") || relative.contains('/');
            if is_anchored { format!("{cwd}/{relative}") } else { format!("**/{relative}") }
        }
    })
}

/// Whether something below the folder `path` may fit `pattern`.
fn leads_to(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (_, None) | (Some((&"**", _)), _) => true,
        (Some((step, rest)), Some((first, below))) => wild(step, first) && leads_to(rest, below),
        (None, Some(_)) => false,
    }
}

fn steps(path: &str) -> Vec<&str> {
    path.split('/').filter(|step| !step.is_empty()).collect()
}

/// `path` without `.` and `..`.
fn plain_path(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", steps.join("/"))
}

fn of_url(about: &str, part: &ToldCall) -> bool {
    let Some(domain) = about.strip_prefix("domain:") else { return true };
    let Some(url) = part.input.get("url").and_then(Value::as_str) else { return true };
    let Some((_, rest)) = url.split_once("://") else { return true };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let domain = domain.to_ascii_lowercase();
    host == domain || wild(&domain, &host) || host.ends_with(&format!(".{domain}"))
}

fn of_agent(about: &str, part: &ToldCall) -> bool {
    part.input.get("subagent_type").and_then(Value::as_str).is_none_or(|agent| wild(about, agent))
}

/// Whether `text` is `pattern`, in which `*` stands for any text.
fn wild(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|head| text.strip_prefix(head)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    let mut rest = rest;
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The same for paths, step by step: `*` stays within a step, `**` is any number of steps.
fn path_wild(pattern: &str, path: &str) -> bool {
    fn fits(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => (0..=path.len()).any(|at| fits(rest, &path[at..])),
            (Some((step, rest)), Some((first, below))) => wild(step, first) && fits(rest, below),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
    let (pattern, path) = (steps(pattern), steps(path));
    // More would take longer than any file is worth, and a command that runs too often does no harm.
    if pattern.iter().filter(|step| **step == "**").count() > MAX_DEEP_STARS || path.len() > MAX_STEPS {
        return true;
    }
    fits(&pattern, &path)
}

/// Most `**` of one pattern that is compared: each multiplies the ways in which a path may fit.
const MAX_DEEP_STARS: usize = 4;

/// Most steps of a path that is compared: deeper than file systems are used.
const MAX_STEPS: usize = 128;

#[cfg(test)]
mod tests {
    use pintle_domain::json::{Value, json};
    use pintle_domain::shell::ShellCommand;

    use super::*;

    fn commands(of: &[&[&str]]) -> ShellFacts {
        let command = |argv: &&[&str]| ShellCommand {
            name: argv[0].rsplit('/').next().unwrap().to_owned(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            ..ShellCommand::default()
        };
        ShellFacts { commands: of.iter().map(command).collect(), ..ShellFacts::default() }
    }

    fn holds(rule: &str, (tool, raw): (&str, &str), arguments: &Value, shell: &ShellFacts) -> bool {
        let rule = PermissionRule::read(rule).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        let call = ToolCall { id: "c".into(), tool: tool.into(), raw_tool: raw.into(), arguments };
        // One link, to a folder elsewhere.
        let real = |path: &Path| match path.strip_prefix("/w/link") {
            Ok(below) => Path::new("/h/me/.ssh").join(below),
            Err(_) => path.to_owned(),
        };
        rule.holds(&RuleInput { call: &call, shell, cwd: Path::new("/w"), home: Some(Path::new("/h/me")), real })
    }

    #[test]
    fn a_rule_about_commands_looks_into_compound_ones() {
        let push = commands(&[&["cd", "x"], &["/usr/bin/git", "push"]]);
        let unknown = ShellFacts { unknown: true, ..commands(&[&["ls"]]) };
        let text = json!({"command": "cd x && /usr/bin/git push"});
        for (rule, shell, expected) in [
            ("Bash(git *)", &push, true),
            ("Bash(git push)", &push, true),
            ("Bash(git push:*)", &push, true),
            ("Bash(npm *)", &push, false),
            ("Bash(cd *)", &push, true),
            ("Bash(* push)", &push, true),
            ("Bash", &push, true),
            ("Bash()", &push, true),
            ("Bash(npm *)", &unknown, true),
            ("Edit(*.ts)", &push, false),
            ("Read", &push, false),
        ] {
            assert_eq!(holds(rule, ("exec", "bash"), &text, shell), expected, "{rule}");
        }
        assert!(holds("Bash(git *)", ("exec", "exec"), &json!({"command": "git"}), &commands(&[&["git"]])));
        assert!(holds("Bash(npm *)", ("exec", "exec"), &json!({}), &ShellFacts::default()), "no text may be any text");
    }

    #[test]
    fn a_rule_about_files_reads_paths_as_gitignore_does() {
        let none = ShellFacts::default();
        for (rule, path, expected) in [
            ("Edit(*.ts)", "/w/src/a.ts", true),
            ("Edit(*.ts)", "/w/src/a.tsx", false),
            ("Write(src/**)", "src/deep/a.rs", true),
            ("Edit(src/**)", "/w/other/src/a.rs", false),
            ("Edit(./src/*.rs)", "/w/src/a.rs", true),
            ("Edit(/src/*.rs)", "/w/src/deep/a.rs", false),
            ("Edit(//etc/**)", "/etc/passwd", true),
            ("Edit(//etc/**)", "/w/../etc/passwd", true),
            ("Edit(~/.ssh/**)", "/h/me/.ssh/id", true),
            ("Edit(~/.ssh/**)", "/h/you/.ssh/id", false),
            ("Edit(~/.ssh/**)", "link/id", true),
            ("Edit(link/**)", "/w/link/id", true),
            ("Edit(~/.aws/**)", "link/id", false),
            ("Edit(secret)", "/w/a/secret/key", true),
            ("Read(*.ts)", "/w/a.ts", false),
        ] {
            let arguments = json!({"path": path, "content": ""});
            assert_eq!(holds(rule, ("write_file", "write_file"), &arguments, &none), expected, "{rule} {path}");
        }
        for (rule, path, expected) in [
            ("Read(*.env)", "/w/a.env", true),
            ("Read(*.env)", "/w", true),
            ("Read(secret/**)", ".", true),
            ("Read(secret/**)", "secret/deep", true),
            ("Read(secret/**)", "src", false),
            ("Read(secret/key)", "secret", true),
            ("Read(~/.ssh/id)", "link", true),
        ] {
            let arguments = json!({"pattern": "x", "path": path});
            assert_eq!(holds(rule, ("search_text", "Grep"), &arguments, &none), expected, "{rule} {path}");
        }
    }

    #[test]
    fn other_tools_have_rules_of_their_own() {
        let none = ShellFacts::default();
        for (rule, tool, arguments, expected) in [
            (
                "WebFetch(domain:example.com)",
                ("web_fetch", "web_fetch"),
                json!({"url": "https://api.Example.com:8/x"}),
                true,
            ),
            (
                "WebFetch(domain:example.com)",
                ("web_fetch", "web_fetch"),
                json!({"url": "https://badexample.com"}),
                false,
            ),
            ("Agent(explore)", ("delegate", "Agent"), json!({"subagent_type": "explore"}), true),
            ("Agent(explore)", ("delegate", "Agent"), json!({"subagent_type": "other"}), false),
            ("mcp__rig__touch", ("mcp_rig_touch", "mcp__rig__touch"), json!({}), true),
            ("mcp__rig", ("mcp_rig_touch", "mcp__rig__touch"), json!({}), true),
            ("mcp__rig__*", ("mcp_rig_touch", "mcp_rig_touch"), json!({}), true),
            ("mcp__other", ("mcp_rig_touch", "mcp__rig__touch"), json!({}), false),
        ] {
            assert_eq!(holds(rule, tool, &arguments, &none), expected, "{rule} {arguments}");
        }
    }

    #[test]
    fn what_is_no_rule_is_said() {
        for (rule, said) in [
            ("", "expected one rule"),
            ("Bash(git *", "has no `)`"),
            ("git push", "expected one rule"),
            ("(x)", "expected"),
        ] {
            assert!(PermissionRule::read(rule).unwrap_err().contains(said), "{rule}");
        }
        assert_eq!(PermissionRule::read(" Bash(git *) ").unwrap().text(), "Bash(git *)");
    }
}
