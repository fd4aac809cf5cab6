//! Hooks that do not come up, and what is said of hooks that do: with real children, each wrong in its own way.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use super::env::{PINTLE, TestEnv};

/// The longest time that a hook of these tests has to shake hands.
const LONGEST: Duration = Duration::from_millis(900);

/// What may lie between the longest start and the first tool, beside what a run without hooks takes.
const SLACK: Duration = Duration::from_millis(100);

/// A hook that answers everything with `{}`.
const OPEN: &str = r#"while read -r line; do id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"result\":{}}"; done"#;

/// An agent that writes one file, and `hooks`.
fn writer(hooks: &str) -> TestEnv {
    let env = TestEnv::new();
    let call = r#"{"id": "c1", "name": "write_file", "arguments": {"path": "out.txt", "content": "x"}}"#;
    env.write(
        "config/pintle/reply.json",
        &format!(r#"{{"replies": [{{"tool_calls": [{call}]}}, {{"text": "done"}}]}}"#),
    );
    env.write("config/pintle/open.sh", OPEN);
    env.write("config/pintle/broken.py", "import sys\nprint('(' \n");
    env.user_config(&format!(
        "[agents.main]\nmodel = 'play/x'\ntools = ['write_file']\n\
         [providers.play]\nkind = 'scripted'\nscript = 'reply.json'\n{hooks}"
    ));
    env
}

fn hook(name: &str, command: &str, more: &str) -> String {
    format!("[hooks.processes.{name}]\nenabled = true\nintercept = ['before_tool']\ncommand = {command}\n{more}\n")
}

#[test]
fn a_start_that_takes_long_says_what_it_waits_for() {
    let hooks = hook("slow", "['sh', '-c', 'read -r go <gate; exec sh open.sh']", "start_timeout_ms = 60000")
        + &hook("quick", "['sh', 'open.sh']", "");
    let env = writer(&hooks);
    assert!(std::process::Command::new("mkfifo").arg(env.path("config/pintle/gate")).status().unwrap().success());
    let mut run = env.command(PINTLE);
    run.args(["run", "--quiet", "go"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut shown = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    // Only those that are still starting are named, once.
    assert_eq!(shown.next().as_deref(), Some("waiting for hooks to start: slow"));
    File::options().write(true).open(env.path("config/pintle/gate")).unwrap().write_all(b"go\n").unwrap();
    let rest: Vec<String> = shown.collect();
    assert!(rest.iter().all(|line| !line.contains("waiting for")), "{rest:?}");
    let output = run.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"done\n"[..]));
}

/// How long it took from the launch to the first tool, at best: what else the machine does is nobody's fault here.
fn first_tool(env: &TestEnv) -> Duration {
    let once = || {
        let began = SystemTime::now();
        let seen = env.pintle(&["run", "--quiet", "go"]);
        assert_eq!(seen.code, Some(0), "{seen}");
        let written = std::fs::metadata(env.path("here/out.txt")).unwrap().modified().unwrap();
        written.duration_since(began).unwrap_or_default()
    };
    (0..3).map(|_| once()).min().unwrap()
}

/// Hooks that cannot come up, each with what is said of it.
const FAILING: [(&str, &str, &str); 5] = [
    ("gone", "['no-such-program']", "program `no-such-program` was not found through PATH"),
    ("left", "['sh', '-c', 'echo why >&2; exit 3']", "exited with status 3 before it answered hook.hello: why"),
    ("syntax", "['python3', 'broken.py']", "exited with status 1 before it answered hook.hello: SyntaxError: "),
    (
        "refuses",
        r#"['sh', '-c', 'read -r l; echo "{\"id\":1,\"error\":{\"message\":\"no licence\"}}"; cat >/dev/null']"#,
        "hook.hello returned an error: no licence",
    ),
    ("killed", "['sh', '-c', 'kill -KILL $$']", "was killed by signal 9 before it answered hook.hello"),
];

#[test]
fn ten_hooks_that_cannot_come_up_hold_the_first_tool_for_the_longest_start_alone() {
    let mut hooks = String::new();
    for (name, command, _) in FAILING {
        hooks += &hook(name, command, "on_failure = 'continue'");
    }
    for number in 1..=5 {
        // Silent ones, of which the last has the longest time.
        let timeout = LONGEST.as_millis() / 5 * number;
        let more = format!("on_failure = 'continue'\nstart_timeout_ms = {timeout}\ntimeout_ms = 30000");
        hooks += &hook(&format!("silent{number}"), "['sh', '-c', 'exec cat >/dev/null']", &more);
    }
    let env = writer(&hooks);
    let (alone, among) = (first_tool(&writer("")), first_tool(&env));
    assert!(among >= LONGEST, "{among:?}: the last one had its time");
    assert!(among <= alone + LONGEST + SLACK, "{among:?} among ten, {alone:?} alone");
    // Each names its cause, at the start and afterwards.
    let run = env.pintle(&["run", "go"]);
    let why = env.pintle(&["why", "-v"]);
    for (name, _, cause) in FAILING {
        assert!(run.err.contains(&format!("hook \"{name}\" could not start: {cause}")), "{name}: {run}");
        assert!(why.out.contains(cause), "{name}: {why}");
    }
    assert!(run.err.contains("hook \"silent5\" could not start: no answer to hook.hello within"), "{run}");
}

#[test]
fn a_crash_in_the_middle_has_its_last_words_in_why_and_the_last_of_them_in_lists() {
    let env = writer(&hook("crashes", "['python3', 'crashes.py']", ""));
    env.write(
        "config/pintle/crashes.py",
        "import json, sys\nfor line in sys.stdin:\n    call = json.loads(line)\n    if call['method'] != 'hook.hello':\n        \
         raise KeyError('no path in ' + call['method'])\n    print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': \
         {}}), flush=True)\n",
    );
    let run = env.pintle(&["run", "go"]);
    let last = "exited with status 1: KeyError: 'no path in hook.before_tool'";
    assert!(run.err.contains(last) && !run.err.contains("Traceback"), "{run}");
    for args in [&["why"][..], &["why", "-v"]] {
        let why = env.pintle(args);
        assert!(why.out.contains(last) && why.out.contains("│ Traceback (most recent call last):"), "{why}");
    }
    let list = env.pintle(&["hooks", "list"]);
    assert!(list.out.contains(&format!("unproven: {last}")), "{list}");
    let show = env.pintle(&["hooks", "show", "crashes"]);
    assert!(show.out.contains(last), "{show}");
}

#[test]
fn a_syntax_error_is_told_by_its_own_words_everywhere() {
    let env = writer(&hook("syntax", "['python3', 'broken.py']", ""));
    let run = env.pintle(&["-v", "run", "go"]);
    assert!(run.err.contains("before it answered hook.hello: SyntaxError: "), "{run}");
    // Each line of the trace is one line of the log.
    let logged: Vec<&str> = run.err.lines().filter(|line| line.contains("hook.stderr")).collect();
    assert!(logged.iter().any(|line| line.contains("broken.py") && !line.contains("SyntaxError")), "{logged:#?}");
    let show = env.pintle(&["hooks", "show", "syntax"]);
    assert!(show.out.contains("unproven: could not start: exited with status 1 before it answered"), "{show}");
    assert!(show.out.contains("SyntaxError: ") && !show.out.contains("File \""), "{show}");
    let doctor = env.pintle(&["doctor"]);
    assert!(doctor.code == Some(5) && doctor.out.contains("unproven at hello: could not start: "), "{doctor}");
    assert!(doctor.out.contains("SyntaxError: ") && !doctor.out.contains("File \""), "{doctor}");
    for args in [&["-v", "doctor"][..], &["-v", "hooks", "show", "syntax"]] {
        let seen = env.pintle(args);
        assert!(seen.out.contains("File \"") && seen.out.contains("broken.py"), "the whole trace: {seen}");
    }
}

#[test]
fn a_matcher_without_a_tool_is_told_at_the_start_and_stops_a_strict_one() {
    let env = writer(&hook("g", "['sh', 'open.sh']", "matcher = '^writefile$'"));
    let finding = "hooks.processes.g.matcher: `^writefile$` matches no tool; did you mean \"write_file\"?";
    let lint = env.pintle(&["hooks", "lint"]);
    assert!(lint.code == Some(2) && lint.out.contains(finding), "{lint}");
    let run = env.pintle(&["run", "go"]);
    assert!(run.code == Some(0) && run.err.contains(finding), "{run}");
    assert!(run.err.contains("guard  g  unproven: matches no tool; did you mean write_file?"), "{run}");
    let strict = env.pintle(&["run", "--strict", "go"]);
    assert!(strict.code == Some(5) && strict.err.contains("guards that cannot work: g\n"), "one guard, once: {strict}");
    for args in [&["hooks", "list"][..], &["hooks", "show", "g"]] {
        let seen = env.pintle(args);
        assert!(seen.out.contains("unproven: matches no tool; did you mean write_file?"), "{seen}");
    }
}

#[test]
fn what_is_shown_as_armed_answered_as_it_is_now() {
    let env = writer(&hook("g", "['sh', 'open.sh']", "matcher = '^write_file$'"));
    let said = |args: &[&str]| {
        let seen = env.pintle(args);
        assert_eq!(seen.code, Some(0), "{seen}");
        let mut all = seen.out;
        write!(all, "{}", seen.err).unwrap();
        all
    };
    let shown = || [said(&["hooks", "list"]), said(&["hooks", "show", "g"])];
    assert!(shown().iter().all(|text| text.contains("unproven: has not answered yet")), "{:?}", shown());
    assert!(said(&["run", "go"]).contains("guard  g  unproven: has not answered yet"));
    assert!(shown().iter().all(|text| text.contains("armed (proven [time] ago)")), "{:?}", shown());
    assert!(said(&["run", "--strict", "go"]).contains("guard  g  armed (proven [time] ago)"));
    // Another script is another hook, though its entry is the same.
    env.write("config/pintle/open.sh", &format!("# changed\n{OPEN}"));
    assert!(
        shown().iter().all(|text| text.contains("unproven: answered before, but not as it is now")),
        "{:?}",
        shown()
    );
    // `doctor` proves it.
    assert!(said(&["doctor"]).contains("guards armed 1/1"));
    assert!(shown().iter().all(|text| text.contains("armed (proven [time] ago)")), "{:?}", shown());
}

#[test]
fn a_guard_that_stands_where_none_is_read_stays_shut() {
    for place in ["hooks.process", "hook.processes", "hooks", "proceses"] {
        let entry = |key: &str, more: &str| format!("[{place}.g]\n{key} = true\ncommand = ['sh', 'open.sh']\n{more}\n");
        let env = writer(&entry("enabled", "intercept = ['before_tol']"));
        let run = env.pintle(&["run", "go"]);
        assert!(run.err.contains(&format!("hooks are not read from \"{place}\"")), "{run}");
        assert!(run.code == Some(0) && !env.path("here/out.txt").exists(), "{run}");
        assert_eq!(env.pintle(&["run", "--strict", "go"]).code, Some(5), "{place}");
        assert_eq!(env.pintle(&["doctor"]).code, Some(5), "{place}");
        // Neither one that is switched off nor one that only listens guards anything.
        for entry in [entry("pair", "intercept = ['before_tool']"), entry("enabled", "observe = ['all']")] {
            let env = writer(&entry);
            assert_eq!(env.pintle(&["run", "go"]).code, Some(0), "{place}");
            assert!(env.path("here/out.txt").exists(), "{place}");
        }
    }
}

/// A hook that writes down, when it is asked, what its host holds and what it may hold itself.
const COUNTS: &str = r#"id=1; while read -r line; do
case $line in *before_tool*)
    host=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)
    set -- /proc/$host/fd/*; files=$#; set -- /proc/$host/task/*; echo "$files $# $(ulimit -Sn)" >counted;;
esac; echo "{\"id\":$id,\"result\":{}}"; id=$((id + 1)); done"#;

#[test]
fn a_child_takes_four_files_of_its_host_and_a_fifth_of_a_thread_and_has_the_limit_of_before() {
    const MORE: u64 = 40;
    let counted = |more: u64| {
        let mut hooks = hook("counts", "['sh', 'counts.sh']", "");
        for number in 1..=more {
            hooks += &hook(&format!("other{number}"), "['sh', 'open.sh']", "");
        }
        let env = writer(&hooks);
        env.write("config/pintle/counts.sh", COUNTS);
        let run =
            env.run(env.command("sh").args(["-c", &format!("ulimit -Sn 100; {} run go", super::env::PINTLE)]), "");
        assert_eq!(run.code, Some(0), "{run}");
        let text = std::fs::read_to_string(env.path("config/pintle/counted")).unwrap();
        <[u64; 3]>::try_from(text.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<_>>()).unwrap()
    };
    let ([files, threads, limit], [more_files, more_threads, same_limit]) = (counted(0), counted(MORE));
    assert_eq!((limit, same_limit), (100, 100), "40 hooks take more than 100 files, and the host may");
    assert_eq!(more_files - files, 4 * MORE);
    assert!(more_threads <= threads + MORE / 5, "{threads} threads, and {more_threads} with {MORE} more children");
}

#[test]
fn doctor_says_for_how_many_children_the_limit_is_enough() {
    let env = writer(&(1..=9).map(|number| hook(&format!("h{number}"), "['sh', 'open.sh']", "")).collect::<String>());
    let doctor = |limit: u32| {
        let line = format!("ulimit -n {limit}; {} doctor", super::env::PINTLE);
        env.run(env.command("sh").args(["-c", &line]), "")
    };
    let seen = doctor(200);
    assert!(seen.code == Some(0) && seen.out.contains("200 may be open, enough for 34 children at once"), "{seen}");
    let seen = doctor(98);
    let said = "9 hooks and servers are configured, and 98 files may be open, enough for 8; raise the hard limit";
    assert!(seen.code != Some(0) && seen.out.contains(said), "{seen}");
}
