//! In which version an agent runs: what it says itself, or what the package says that its program belongs to, which is
//! that of a process or that on the path.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use pintle_guard::GuardHost;
use pintle_host::config::Env;
use pintle_process::ProcessStat;

/// How many words of a command line are looked at: an interpreter has its script behind some options.
const MAX_WORDS: usize = 8;

/// How far above a program its package begins.
const MAX_ABOVE: usize = 8;

/// The longest package file that is read, in bytes: they have some thousands, and an agent may put one beside its script.
const MAX_PACKAGE_BYTES: u64 = 1 << 20;

/// What a version ends with in a package for one kind of machine.
const MACHINES: [&str; 3] = ["-linux", "-darwin", "-win32"];

/// The variables in which hosts say their version as it is.
const VERSIONS: [&str; 2] = ["QWEN_CODE_STARTUP_VERSION", "COPILOT_CLI_BINARY_VERSION"];

/// The version that a host says in its environment, such as 2.1.330 in `claude-code_2-1-330_harness`.
pub(crate) fn said_version(env: &[(String, String)]) -> Option<String> {
    if let Some((_, version)) = env.iter().find(|(name, _)| VERSIONS.contains(&name.as_str())) {
        return Some(version.clone());
    }
    let (_, said) = env.iter().find(|(name, _)| name == "AI_AGENT")?;
    let version = said.split('_').find(|part| part.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(version.replace('-', "."))
}

/// The version of `host` that the process `pid` runs.
pub(crate) fn version_of_process(host: &GuardHost, pid: u32) -> Option<String> {
    programs_of(pid).iter().find_map(|program| version_of(host, program))
}

/// Whether the process `pid` runs `host`, by the package of what it runs or by its name.
pub(crate) fn is_of(host: &GuardHost, pid: u32) -> bool {
    runs(host, pid, || ProcessStat::of(pid).is_some_and(|stat| stat.name == host.id))
}

/// The same of the process `pid` that has this `name`.
pub(super) fn is_of_named(host: &GuardHost, (pid, name): (u32, &str)) -> bool {
    runs(host, pid, || name == host.id)
}

/// The same of one of which `is_named` says whether its name is the host's.
fn runs(host: &GuardHost, pid: u32, is_named: impl FnOnce() -> bool) -> bool {
    let is_called = |program: &Path| program.file_stem().is_some_and(|name| name == host.id);
    let is_packaged = |program: &Path| version_of(host, program).is_some();
    let program = program_of(pid);
    // Each call asks this: what costs least is looked at first, and packages last.
    if program.as_deref().is_some_and(is_called) || is_named() {
        return true;
    }
    program.as_deref().is_some_and(is_packaged)
        || script_of(pid, program.as_deref()).is_some_and(|script| is_called(&script) || is_packaged(&script))
}

/// The version of the package that `program` belongs to, if that is one of `host`.
pub(crate) fn version_of(host: &GuardHost, program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    real.ancestors().skip(1).take(MAX_ABOVE).find_map(|folder| packaged(host, &folder.join("package.json")))
}

/// The program that `host` is on the path of `env`.
pub(crate) fn on_path(host: &GuardHost, env: &Env) -> Option<PathBuf> {
    let path = env.vars.get("PATH")?;
    std::env::split_paths(path).map(|folder| folder.join(host.id)).find(|file| file.is_file())
}

/// The programs of all hosts and our own on the path of `env`, absolute: whoever replaces one of them has no guard any more.
pub(crate) fn all_on_path(env: &Env) -> Vec<String> {
    let folders: Vec<PathBuf> =
        env.vars.get("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    let names = pintle_guard::HOSTS.iter().map(|host| host.id).chain(["pintle", "pintle-hook"]);
    let files = names.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = files.filter(|file| file.is_absolute() && file.is_file());
    found.filter_map(|file| Some(file.to_str()?.to_owned())).collect()
}

/// What the names of programs begin with that interpret a script which is the host.
const INTERPRETERS: [&str; 7] = ["node", "bun", "deno", "python", "sh", "bash", "dash"];

/// What the process `pid` may run: its program, and the script that this interprets. Other words are what somebody told the
/// host, such as the folder of a project, which has a package of its own.
fn programs_of(pid: u32) -> Vec<PathBuf> {
    let program = program_of(pid);
    let script = script_of(pid, program.as_deref());
    program.into_iter().chain(script).collect()
}

/// The file that the process `pid` runs.
fn program_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The script that `program` interprets in the process `pid`.
fn script_of(pid: u32, program: Option<&Path>) -> Option<PathBuf> {
    let name = program?.file_name()?.to_str()?;
    if !INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter)) {
        return None;
    }
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = words.split(|byte| *byte == 0).take(MAX_WORDS).filter_map(|word| std::str::from_utf8(word).ok());
    let script = Path::new(words.skip(1).find(|word| !word.starts_with('-') && word.contains('/'))?);
    if script.is_absolute() {
        return Some(script.to_owned());
    }
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok();
    Some(cwd.as_deref().unwrap_or(Path::new("/")).join(script))
}

/// The version that the package of `file` says, if it is one of `host`.
fn packaged(host: &GuardHost, file: &Path) -> Option<String> {
    if !file.is_file() {
        return None;
    }
    let mut said = Vec::new();
    File::open(file).ok()?.take(MAX_PACKAGE_BYTES).read_to_end(&mut said).ok()?;
    let said: serde_json::Value = serde_json::from_slice(&said).ok()?;
    let (name, version) = (said.get("name")?.as_str()?, said.get("version")?.as_str()?);
    let is_its =
        |package: &&&str| name.strip_prefix(**package).is_some_and(|more| more.is_empty() || more.starts_with('-'));
    host.versions.packages.iter().find(is_its)?;
    let end = MACHINES.iter().find_map(|machine| version.find(machine)).unwrap_or(version.len());
    Some(version[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn programs_on_the_path_are_those_of_agents_and_our_own() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for file in ["a/claude", "a/ls", "b/claude", "b/pintle", "c/codex"] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        let path = std::env::join_paths([at("a"), at("b"), "c".into()]).unwrap();
        let env = Env { vars: [("PATH".into(), path)].into(), cwd: dir.path().to_owned() };
        let expected = ["a/claude", "b/claude", "b/pintle"].map(|name| at(name).to_str().unwrap().to_owned());
        assert_eq!(all_on_path(&env), expected);
    }

    #[test]
    fn a_host_says_its_version_in_its_environment() {
        let of = |said: &str| said_version(&[("AI_AGENT".into(), said.into())]);
        assert_eq!(of("claude-code_2-1-330_harness").as_deref(), Some("2.1.330"));
        assert_eq!(of("another"), None);
        let qwen = [("QWEN_CODE_STARTUP_VERSION".to_owned(), "0.24.4".to_owned())];
        assert_eq!(said_version(&qwen).as_deref(), Some("0.24.4"));
        assert_eq!(said_version(&[]), None);
    }

    #[test]
    fn a_program_has_the_version_of_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let host = pintle_guard::host("codex").unwrap();
        let check = |name: &str, version: &str, expected: Option<&str>| {
            let package = dir.path().join("node_modules/x");
            fs::create_dir_all(package.join("vendor/bin")).unwrap();
            fs::write(package.join("package.json"), format!(r#"{{"name": "{name}", "version": "{version}"}}"#))
                .unwrap();
            fs::write(package.join("vendor/bin/codex"), "").unwrap();
            fs::remove_file(dir.path().join("codex")).ok();
            symlink(package.join("vendor/bin/codex"), dir.path().join("codex")).unwrap();
            let env = Env { vars: [("PATH".into(), dir.path().into())].into(), cwd: "/".into() };
            let found = on_path(host, &env).and_then(|program| version_of(host, &program));
            assert_eq!(found.as_deref(), expected, "{name} {version}");
        };
        check("@openai/codex", "0.169.0", Some("0.169.0"));
        check("@openai/codex", "0.169.0-linux-x64", Some("0.169.0"));
        check("@openai/codex-linux-x64", "0.170.0-alpha.1", Some("0.170.0-alpha.1"));
        check("@openai/codexes", "1.0.0", None);
        check("another", "1.0.0", None);
        check("@openai/codex", &"1".repeat(1 << 20), None);
    }

    #[test]
    fn a_process_is_looked_at_by_its_program_and_its_script() {
        let dir = tempfile::tempdir().unwrap();
        let host = pintle_guard::host("gemini").unwrap();
        fs::write(dir.path().join("package.json"), r#"{"name": "@google/gemini-cli", "version": "0.61.0"}"#).unwrap();
        let script = dir.path().join("gemini.js");
        fs::write(&script, "read line").unwrap();
        let qwen = pintle_guard::host("qwen").unwrap();
        for word in [script.as_path(), Path::new("./gemini.js")] {
            let mut command = std::process::Command::new("sh");
            let command = command.arg(word).current_dir(dir.path()).stdin(std::process::Stdio::piped());
            let mut child = command.spawn().unwrap();
            let pid = child.id();
            // A process that has just begun has no words yet.
            while fs::read(format!("/proc/{pid}/cmdline")).unwrap().is_empty() {
                std::thread::yield_now();
            }
            assert_eq!(version_of_process(host, pid).as_deref(), Some("0.61.0"), "{}", word.display());
            assert_eq!(version_of_process(qwen, pid), None);
            assert!(is_of(host, pid) && !is_of(qwen, pid));
            assert!(is_of_named(host, (pid, "sh")) && is_of_named(qwen, (pid, "qwen")));
            assert!(!is_of_named(qwen, (pid, "sh")));
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        // What a program is told to work on says nothing of it.
        let mut command = std::process::Command::new("tail");
        let mut child = command.arg("-f").arg(&script).stdout(std::process::Stdio::null()).spawn().unwrap();
        assert_eq!(version_of_process(host, child.id()), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
