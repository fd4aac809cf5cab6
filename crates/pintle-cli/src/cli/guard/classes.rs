//! How far the classes of tools are under guard, as `pintle guard status` shows them.

use std::fmt::Write as _;
use std::net::SocketAddr;

use anstyle::Style;
use pintle_guard::coverage::GuardLevel;
use pintle_guard::measured::{ClassCoverage, CoverageBasis, GuardDoor, door_coverage};
use pintle_host::config::Config;
use serde_json::{Value, json};

use crate::clean::clean;
use crate::cli::command_line::complete;
use crate::guard::daemon_process::DaemonOf;

const BOLD: Style = Style::new().bold();

/// The rows of one agent or door. A way round that several of them have is said once, below them.
pub(super) fn write(text: &mut String, rows: &[&ClassCoverage]) -> std::fmt::Result {
    let repeated = repeated(rows);
    for row in rows {
        class(text, row, &repeated)?;
    }
    for (at, why) in repeated.iter().enumerate() {
        writeln!(text, "  {:<10} {}", mark(at), clean(why))?;
    }
    Ok(())
}

/// For programs.
pub(super) fn json_of(rows: &[ClassCoverage]) -> Vec<Value> {
    let row = |row: &ClassCoverage| {
        let (class, level, basis) = (row.class.word(), row.level.word(), row.basis.word());
        json!({"tools": class, "level": level, "basis": basis, "around": row.around})
    };
    rows.iter().map(row).collect()
}

/// How a row names a way round that is said below.
fn mark(at: usize) -> String {
    format!("({})", at + 1)
}

/// The ways round that stand in several rows, in their order.
fn repeated<'a>(rows: &[&'a ClassCoverage]) -> Vec<&'a str> {
    let (mut seen, mut again) = (Vec::<&str>::new(), Vec::<&str>::new());
    for around in rows.iter().copied().flat_map(|row| row.around.iter()) {
        let why: &str = around.as_ref();
        match (seen.contains(&why), again.contains(&why)) {
            (false, _) => seen.push(why),
            (true, false) => again.push(why),
            (true, true) => {}
        }
    }
    again
}

/// How far one class of tools is under guard.
fn class(text: &mut String, row: &ClassCoverage, repeated: &[&str]) -> std::fmt::Result {
    let basis = match row.basis {
        CoverageBasis::Proven => ", proven here",
        CoverageBasis::SameEvent => ", by the event that was proven here",
        CoverageBasis::Observed | CoverageBasis::Found => "",
    };
    let said = |why: &str| match repeated.iter().position(|it| *it == why) {
        Some(at) => mark(at),
        None => clean(why),
    };
    let around = match row.around.as_slice() {
        [] => String::new(),
        around => format!("; open: {}", around.iter().map(|why| said(why)).collect::<Vec<_>>().join(", ")),
    };
    writeln!(text, "  {:<10} {}{basis}{around}", row.class.word(), row.level.word())
}

/// Where the model door is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ModelDoorAt {
    /// No daemon that runs has one.
    #[default]
    Nowhere,
    /// The daemon has it here.
    Address(SocketAddr),
    /// The daemon is part of a gateway, which has doors of its own.
    Gateway,
}

impl ModelDoorAt {
    /// For programs.
    fn json(self) -> Value {
        match self {
            Self::Nowhere => Value::Null,
            Self::Address(address) => format!("http://{address}/door").into(),
            Self::Gateway => DaemonOf::Serve.command().into(),
        }
    }

    /// For people, with the vendors of which the configuration says something.
    fn said(self, vendors: &[String]) -> String {
        let names = clean(&vendors.join(", "));
        let settings = if vendors.is_empty() { String::new() } else { format!(", with settings for {names}") };
        match self {
            Self::Nowhere => {
                complete(&format!("closed{settings}: `pintle guard serve --http 127.0.0.1:8787` opens it"))
            }
            Self::Address(address) => format!("open at http://{address}/door{settings}"),
            Self::Gateway if vendors.is_empty() => NOT_CONFIGURED.to_owned(),
            Self::Gateway => format!("of `{}`{settings}", DaemonOf::Serve.command()),
        }
    }
}

/// Said of a door of which the configuration says nothing.
const NOT_CONFIGURED: &str = "not configured";

/// The doors that are the same for every agent: where they are, and what the configuration says of them.
#[derive(Default)]
pub(super) struct OpenDoors {
    models: Vec<String>,
    models_at: ModelDoorAt,
    tools: Vec<String>,
}

impl OpenDoors {
    /// Those of which `config` says something.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            models: config.model_doors.keys().cloned().collect(),
            models_at: ModelDoorAt::Nowhere,
            tools: config.tool_doors.keys().cloned().collect(),
        }
    }

    /// The same with the model door there.
    #[must_use]
    pub(super) fn with_models_at(self, models_at: ModelDoorAt) -> Self {
        Self { models_at, ..self }
    }

    /// Whether agents can come by `door`.
    fn is_open(&self, door: GuardDoor) -> bool {
        match (door, self.models_at) {
            (GuardDoor::Model, ModelDoorAt::Nowhere) | (GuardDoor::Hook, _) => false,
            (GuardDoor::Model, ModelDoorAt::Address(_)) => true,
            (GuardDoor::Model, ModelDoorAt::Gateway) | (GuardDoor::Tool, _) => !self.names(door).is_empty(),
        }
    }

    fn said(&self, door: GuardDoor) -> String {
        match (door, self.names(door)) {
            (GuardDoor::Model, vendors) => self.models_at.said(vendors),
            (GuardDoor::Tool | GuardDoor::Hook, []) => NOT_CONFIGURED.to_owned(),
            (GuardDoor::Tool | GuardDoor::Hook, names) => clean(&names.join(", ")),
        }
    }

    fn names(&self, door: GuardDoor) -> &[String] {
        match door {
            GuardDoor::Model => &self.models,
            GuardDoor::Tool => &self.tools,
            GuardDoor::Hook => &[],
        }
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        for door in GuardDoor::OF_ALL {
            writeln!(text, "{BOLD}{} door{BOLD:#}  {}", door.word(), self.said(door))
                .and_then(|()| if self.is_open(door) { rows(&mut text, door) } else { Ok(()) })
                .expect("a text takes everything that is written to it");
        }
        text
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let row = |door: GuardDoor| {
            let coverage = json_of(&door_coverage(door));
            let at = if door == GuardDoor::Model { self.models_at.json() } else { Value::Null };
            json!({"door": door.word(), "at": at, "behind": self.names(door), "coverage": coverage})
        };
        GuardDoor::OF_ALL.map(row).into()
    }
}

/// The classes of tools that come by `door`; what does not is named once.
fn rows(text: &mut String, door: GuardDoor) -> std::fmt::Result {
    let all = door_coverage(door);
    let held: Vec<&ClassCoverage> = all.iter().filter(|row| row.level == GuardLevel::Held).collect();
    write(text, &held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_guard::tools::ToolClass;

    #[test]
    fn the_model_door_says_where_it_is() {
        let at = ModelDoorAt::Address(SocketAddr::from(([127, 0, 0, 1], 8787)));
        let all = ["anthropic".to_owned()];
        let (none, named): (&[String], &[String]) = (&all[..0], &all);
        for (at, vendors, said) in [
            (at, none, "open at http://127.0.0.1:8787/door"),
            (at, named, "open at http://127.0.0.1:8787/door, with settings for anthropic"),
            (ModelDoorAt::Nowhere, none, "closed: `pintle guard serve --http 127.0.0.1:8787` opens it"),
            (
                ModelDoorAt::Nowhere,
                named,
                "closed, with settings for anthropic: `pintle guard serve --http 127.0.0.1:8787` opens it",
            ),
            (ModelDoorAt::Gateway, none, NOT_CONFIGURED),
            (ModelDoorAt::Gateway, named, "of `pintle serve`, with settings for anthropic"),
        ] {
            assert_eq!(at.said(vendors), said);
        }
        let doors = OpenDoors { models: named.to_vec(), ..OpenDoors::default() };
        assert!(!doors.is_open(GuardDoor::Model) && doors.with_models_at(at).is_open(GuardDoor::Model));
    }

    #[test]
    fn what_several_rows_say_is_said_once() {
        let row = |class: ToolClass, around: &[&'static str]| ClassCoverage {
            class,
            level: GuardLevel::Held,
            basis: CoverageBasis::Observed,
            around: around.iter().map(|why| (*why).into()).collect(),
        };
        let all = [row(ToolClass::Shell, &["a", "b"]), row(ToolClass::Web, &["c", "a"]), row(ToolClass::Mcp, &[])];
        let mut text = String::new();
        write(&mut text, &all.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            text,
            "  shell      held; open: (1), b\n  web        held; open: c, (1)\n  mcp        held\n  (1)        a\n"
        );
    }
}
