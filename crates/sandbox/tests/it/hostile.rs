//! Programs that want something else than to decide. None gets it, none hurts the host, none hurts its neighbour.

use std::time::{Duration, Instant};

use pintle_sandbox::{ScriptFault, ScriptOutput};

use crate::stage::{self, PATIENT};

/// `=== name => classes`, and the program below it.
const PROGRAMS: &str = include_str!("hostile.txt");

/// The time of programs that are not meant to end.
const SHORT: Duration = Duration::from_millis(100);
/// The bound for the longest of them on a busy machine; how exact it is, the measurements say.
const LONG: Duration = Duration::from_secs(20);

const NEIGHBOUR: &str = "function handle(event) { return { decision: 'block', reason: event.toolName }; }";

struct Program<'a> {
    name: &'a str,
    /// One of them is how it ends.
    classes: Vec<&'a str>,
    source: &'a str,
}

fn programs() -> Vec<Program<'static>> {
    let parts = PROGRAMS.split("\n=== ").skip(1);
    let read = |part: &'static str| {
        let (title, source) = part.split_once('\n').expect("a title and a program");
        let (name, classes) = title.split_once(" => ").expect("a name and classes");
        Program { name, classes: classes.split(" | ").collect(), source }
    };
    parts.map(read).collect()
}

fn class(ran: &ScriptOutput) -> String {
    match &ran.returned {
        Ok(object) => serde_json::to_string(object).expect("JSON"),
        Err(ScriptFault::Timeout { .. }) => "timeout".into(),
        Err(ScriptFault::Syntax(_)) => "syntax".into(),
        Err(ScriptFault::NoHandle) => "no handle".into(),
        Err(ScriptFault::NotObject) => "no object".into(),
        Err(ScriptFault::Threw(text)) => format!("throws {text}"),
        Err(ScriptFault::OutOfMemory) => "memory".into(),
        Err(ScriptFault::TooDeep) => "depth".into(),
        Err(ScriptFault::ReturnTooLarge { .. }) => "too large".into(),
        Err(ScriptFault::Unreadable(_)) => "unreadable".into(),
        Err(fault) => panic!("no program may cause this: {fault}"),
    }
}

#[test]
fn every_program_ends_as_it_should() {
    let programs = programs();
    assert!(programs.len() >= 60, "{}", programs.len());
    let sandbox = stage::sandbox();
    let event = stage::event().to_string();
    let mut failures = String::new();
    stage::runtime().block_on(async {
        for program in &programs {
            let ends = !program.classes.contains(&"timeout");
            let timeout = if ends { PATIENT } else { SHORT };
            let hostile = pintle_sandbox::ScriptRun { timeout, ..stage::call(program.source, &event) };
            let started = Instant::now();
            let (ran, neighbour) = tokio::join!(sandbox.run(hostile), stage::run(&sandbox, NEIGHBOUR));
            let took = started.elapsed();
            let class = class(&ran);
            let neighbour = serde_json::to_string(&neighbour.returned.unwrap()).unwrap();
            assert_eq!(neighbour, r#"{"decision":"block","reason":"exec"}"#, "beside {}", program.name);
            assert!(ends || took < LONG, "{} took {took:?}", program.name);
            if !program.classes.contains(&class.as_str()) {
                failures += &format!("{}: {class}, not {}\n", program.name, program.classes.join(" or "));
            }
        }
    });
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn no_program_allows() {
    for program in programs() {
        assert!(!program.source.contains("allow"), "{}: a class could not tell it from an accident", program.name);
    }
}
