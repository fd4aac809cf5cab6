//! Which files count, and how they are laid over each other.

use std::fs;
use std::path::Path;

use super::*;

/// A folder with the user's own configuration in `own`, a project in `work/deep`, and the state in `home`.
pub(super) struct Place {
    pub(super) root: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["own/pintle", "work/deep"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let place = Self::new();
        files.iter().for_each(|(file, text)| place.write(file, text));
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    pub(super) fn env(&self) -> Env {
        let vars = [("XDG_CONFIG_HOME", self.path("own")), ("PINTLE_HOME", self.path("home"))];
        let vars = vars.map(|(name, path)| (name.to_owned(), path.into_os_string()));
        Env { vars: vars.into(), cwd: self.path("work/deep") }
    }

    pub(super) fn load(&self) -> Result<Loaded, HostError> {
        load(&self.env(), &LoadOptions { builtins: &["redact"], ..LoadOptions::default() })
    }

    /// What is said and the outline of all hooks, with the root of the place left out.
    pub(super) fn said(&self) -> String {
        let loaded = self.load();
        let left_out: String =
            loaded.iter().flat_map(|loaded| &loaded.left_out).map(|line| format!("left out: {line}\n")).collect();
        (left_out + &said(loaded)).replace(&format!("{}/", self.root.path().display()), "")
    }
}

pub(super) const OWN: &str = "own/pintle/pintle.toml";
pub(super) const FOUND: &str = "work/pintle.toml";
const HOOK: &str = "[hooks.processes.a]\nenabled = true\ncommand = ['h']\nintercept = ['after_llm']\n";

#[test]
fn without_any_file_there_is_an_agent_and_the_way_to_a_provider() {
    let place = Place::new();
    let Loaded { config, diagnostics, left_out, files, in_force } = place.load().unwrap();
    assert_eq!((diagnostics, left_out, files, in_force), (vec![], vec![], vec![], vec![]));
    assert_eq!((config.home.clone(), config.store_url.as_str()), (place.path("home"), "sqlite://pintle.db"));
    let agent = config.agent(None).unwrap();
    assert_eq!((agent.name.as_str(), &agent.workspace, agent.max_iterations), ("main", &place.path("work/deep"), 50));
    let error = config.models(agent, None).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (crate::error::ErrorKind::Usage, "there is no model provider"));
    assert!(error.hints.iter().any(|hint| hint.contains("OPENAI_API_KEY")), "{error}");
    assert!(error.hints.iter().any(|hint| hint.contains("pintle demo")), "{error}");
}

#[test]
fn a_provider_of_the_environment_needs_no_file() {
    let place = Place::with(&[(OWN, HOOK)]);
    let mut env = place.env();
    env.vars.insert("ANTHROPIC_API_KEY".into(), "k".into());
    let Loaded { config, .. } = load(&env, &LoadOptions::default()).unwrap();
    let models = config.models(config.agent(None).unwrap(), None).unwrap();
    assert_eq!(models[0].provider, "anthropic");
    assert_eq!(config.secrets, ["ANTHROPIC_API_KEY", pintle_telemetry::HEADERS].map(str::to_owned).into());
    assert_eq!(config.hooks.len(), 1);
}

#[test]
fn a_named_file_is_the_only_one() {
    let place = Place::with(&[(OWN, HOOK), (FOUND, HOOK), ("work/deep/x.json", r#"{"hooks": {}}"#)]);
    let load_named =
        |file: &str| load(&place.env(), &LoadOptions { config: Some(Path::new(file)), ..LoadOptions::default() });
    let loaded = load_named("x.json").unwrap();
    assert_eq!((loaded.files, loaded.config.hooks.len()), (vec![PathBuf::from("x.json")], 0));
    let error = load_named("gone.toml").unwrap_err();
    assert_eq!(error.kind, crate::error::ErrorKind::Usage);
    assert!(error.message.starts_with(&format!("{}: cannot be read", place.path("work/deep/gone.toml").display())));
    assert_eq!(load_named("..").unwrap_err().kind, crate::error::ErrorKind::Usage);
}

#[test]
fn two_files_of_the_user_are_an_error() {
    let place = Place::with(&[(OWN, ""), ("own/pintle/pintle.json", "{}")]);
    let error = place.load().unwrap_err();
    assert_eq!(error.kind, crate::error::ErrorKind::Usage);
    assert!(error.message.contains("pintle.toml and ") && error.message.ends_with("pintle.json are there"), "{error}");
}

#[test]
fn a_file_of_the_user_that_does_not_parse_ends_the_command() {
    let place = Place::with(&[(OWN, "x = [")]);
    let error = place.load().unwrap_err();
    assert_eq!(error.kind, crate::error::ErrorKind::Usage);
    assert!(error.message.contains("pintle.toml:1:"), "{error}");
}

#[test]
fn the_users_own_file_is_not_found_again() {
    let place = Place::with(&[(OWN, HOOK)]);
    let env = Env { cwd: place.path("own/pintle"), ..place.env() };
    let loaded = load(&env, &LoadOptions::default()).unwrap();
    assert_eq!((loaded.files.len(), loaded.config.hooks.len(), loaded.left_out.len()), (1, 1, 0));
}

#[test]
fn the_nearest_file_counts() {
    let place = Place::with(&[("pintle.json", "{"), (FOUND, ""), ("work/deep/pintle.json", "{}")]);
    assert_eq!(place.load().unwrap().files, [place.path("work/deep/pintle.json")]);
}

fn config(text: &str) -> Config {
    let place = Place::with(&[("work/deep/x.toml", text)]);
    load(&place.env(), &LoadOptions { config: Some(Path::new("x.toml")), ..LoadOptions::default() }).unwrap().config
}

#[test]
fn an_agent_is_named_or_the_default_or_the_only_one_or_main() {
    let check = |text: &str, name: Option<&str>, expected: Result<&str, &str>| {
        let config = config(text);
        let found = config.agent(name).map(|agent| agent.name.as_str());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(error), Err(expected)) => {
                assert_eq!(error.kind, crate::error::ErrorKind::Usage);
                assert!(error.to_string().contains(expected), "{error}");
            }
            (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
        }
    };
    check("", None, Ok("main"));
    check("[agents.bob]", None, Ok("bob"));
    check("[agents.bob]\n[agents.main]", None, Ok("main"));
    check("[agents.bob]\ndefault = true\n[agents.main]", None, Ok("bob"));
    check("[agents.bob]\ndefault = true\n[agents.main]", Some("main"), Ok("main"));
    check("[agents.bob]\n[agents.eve]", None, Err("there is no agent `main`"));
    check("[agents.bob]\n[agents.eve]", Some("bbo"), Err("did you mean `bob`?"));
    check("[agents.main]\nsystem = 3", None, Err("x.toml:2:10: agents.main.system: expected a string, got 3"));
    check("[agents.bob]\n[agents.main]\nsystem = 3", None, Err("x.toml:3:10: agents.main.system"));
}

#[test]
fn a_model_that_cannot_be_resolved_says_where_it_stands() {
    let text = "[providers.local]\nkind = 'openai'\n[agents.main]\nmodel = 'lcal/m'\n[agents.none]\n";
    let config = config(text);
    let said = |agent: &str, model: Option<&str>| {
        let error = config.models(config.agent(Some(agent)).unwrap(), model).unwrap_err();
        assert_eq!(error.kind, crate::error::ErrorKind::Usage);
        error.to_string()
    };
    assert_eq!(
        said("main", None),
        "x.toml:4:9: agents.main.model: there is no provider \"lcal\", expected PROVIDER/MODEL; did you mean \"local\"?"
    );
    assert_eq!(said("main", Some("m")), "--model: expected PROVIDER/MODEL, got \"m\"");
    let models = config.models(config.agent(Some("main")).unwrap(), Some("local/x/y")).unwrap();
    assert_eq!(models, [ModelRef { provider: "local".into(), model: "x/y".into() }]);
}

#[test]
fn a_model_is_missing_where_only_a_provider_is_there() {
    let config = config("[providers.local]\nkind = 'openai'\n");
    let error = config.models(config.agent(None).unwrap(), None).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (crate::error::ErrorKind::Usage, "the agent `main` has no model"));
    assert!(error.hints[0].contains("agents.main.model = \"local/MODEL\""), "{error}");
}

/// The lines that are left out of a place, without its root.
fn lines(place: &Place) -> Vec<String> {
    let root = format!("{}/", place.root.path().display());
    place.load().unwrap().left_out.iter().map(|line| line.replace(&root, "")).collect()
}

#[test]
fn what_nobody_accepted_stops_nothing_however_broken_it_is() {
    let in_force = |place: &Place| format!("{:?}", place.load().unwrap().config.hooks);
    let check = |files: &[(&str, &str)], expected: &str| {
        let place = Place::with(&[(OWN, HOOK)]);
        let before = in_force(&place);
        files.iter().for_each(|(file, text)| place.write(file, text));
        let said = lines(&place);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with(expected), "{said:?}");
        assert_eq!(in_force(&place), before);
    };
    check(&[(FOUND, "x = [")], "work/pintle.toml:1:");
    check(&[(FOUND, "x = [")], &lines(&Place::with(&[(FOUND, "x = [")]))[0]);
    let both = "both work/pintle.toml and work/pintle.json are there, and neither has been accepted";
    check(&[(FOUND, "[agents.main]\nsystem = 'x'\n"), ("work/pintle.json", "{}")], both);
    check(
        &[(FOUND, "[agents.main]\nsystem = 'x'\n")],
        "work/pintle.toml is not trusted; left out: agents.main (system)",
    );
}

#[test]
fn a_file_that_nobody_accepted_hides_none_that_somebody_did() {
    let guard = HOOK.replace("after_llm", "before_tool");
    let armed = |place: &Place| {
        let hooks = place.load().unwrap().config.hooks;
        hooks.iter().filter(|loaded| loaded.hook.state == HookState::Armed).count()
    };
    let place = Place::with(&[(FOUND, &guard)]);
    trusting::trust(&place);
    assert_eq!((armed(&place), lines(&place)), (1, Vec::new()));
    // Beside it, and between it and where the work is done.
    place.write("work/pintle.json", "{");
    place.write("work/deep/pintle.toml", "[hooks.processes.a]\nenabled = false\n[agents.main]\nask = []\n");
    assert_eq!(armed(&place), 1);
    assert_eq!(
        lines(&place),
        [
            "work/pintle.json is not trusted, and the accepted file beside it counts alone",
            "work/deep/pintle.toml is not trusted; left out: agents.main (ask) (`pintle trust` shows what it would run, \
             and accepts it)",
        ]
    );
    // Whoever accepts the nearer one wants that one.
    trusting::trust(&place);
    assert_eq!((armed(&place), lines(&place)), (0, Vec::new()));
    // Two that somebody accepted: nobody can tell which is meant.
    let named = |file: &str| {
        let survey = trust::survey(&place.env(), &LoadOptions::default(), Some(&place.path(file))).unwrap();
        trust::accept(&place.path("home"), &survey).unwrap();
    };
    fs::remove_file(place.path("work/deep/pintle.toml")).unwrap();
    place.write("work/pintle.json", "{}");
    named("work/pintle.json");
    let error = place.load().unwrap_err();
    assert!(error.message.ends_with("pintle.json are there"), "{error}");
}

#[test]
fn a_door_or_a_demand_that_nobody_can_read_opens_nothing() {
    let of = |text: &str| Place::with(&[(OWN, text)]).load().unwrap().config;
    for (text, path) in [
        ("[doors.tool.files]\nhide = ['[']\n", "doors.tool.files"),
        ("[doors.tool.files]\nhidden = ['x']\n", "doors.tool.files"),
        ("[doors.tool.files]\nhide = 'x'\n", "doors.tool.files"),
        ("[doors.model.anthropic]\nbase_url = 'ftp://x'\n", "doors.model.anthropic"),
        ("[doors.model.antropic]\n", "doors.model.antropic"),
    ] {
        let config = of(text);
        assert!(config.broken.contains_key(path), "{text}: {:?}", config.broken);
    }
    for text in [
        "agent = 3",
        "agents = 'x'",
        "ask = 'no'",
        "headless_ask = 'host'",
        "deadline = '8'",
        "on_daemon_away = true",
        "on_daemon_away = 'yes'",
    ] {
        let config = of(&format!("[guard.hosts.claude]\n{text}\n"));
        assert!(config.broken.contains_key("guard.hosts.claude"), "{text}: {:?}", config.broken);
        assert!(!config.guard_hosts.get("claude").is_some_and(|host| host.allows_away), "{text}");
    }
    for text in [
        "[guard.hosts.claud]\nask = 'deny'\n",
        "[guard]\nrequire = ['shel']\n",
        "[guard]\nrequire = 'shell'\n",
        "[guard]\nrequires = ['shell']\n",
        // What was probably meant for it counts as much.
        "[guards]\nrequire = ['shell']\n",
        "[guards.hosts.claude]\nask = 'deny'\n",
        "rules_from = { url = 'https://pintle.example.org', key_file = 'k' }\n",
        "require = ['shell']\n",
    ] {
        let config = of(text);
        assert_eq!((config.guard_require.len(), config.broken.contains_key("guard")), (7, true), "{text}");
    }
    let other = of("[gateways]\nlisten = ['127.0.0.1:0']\n");
    assert_eq!((other.broken.len(), other.guard_require.len()), (0, 0));
    let good = of("[doors.tool.files]\nhide = ['x']\n[guard]\nrequire = ['shell']\n");
    assert_eq!((good.broken.len(), good.tool_doors.len(), good.guard_require.len()), (0, 1, 1));
}
