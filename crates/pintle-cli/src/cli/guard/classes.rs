//! How far the classes of tools are under guard, as `pintle guard status` shows them.

use std::fmt::Write as _;

use anstyle::Style;
use guard::coverage::GuardLevel;
use guard::measured::{ClassCoverage, CoverageBasis, GuardDoor, door_coverage};
use host::config::Config;
use serde_json::{Value, json};

use crate::clean::clean;

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

/// The doors that are the same for every agent, as far as the configuration opens them.
#[derive(Default)]
pub(super) struct OpenDoors {
    models: Vec<String>,
    tools: Vec<String>,
}

impl OpenDoors {
    /// Those that `config` opens.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            models: config.model_doors.keys().cloned().collect(),
            tools: config.tool_doors.keys().cloned().collect(),
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
            let names = self.names(door);
            let said = match names {
                [] => "nothing of the configuration is behind it",
                _ => "",
            };
            writeln!(text, "{BOLD}{} door{BOLD:#}  {said}{}", door.word(), clean(&names.join(", ")))
                .and_then(|()| if names.is_empty() { Ok(()) } else { rows(&mut text, door) })
                .expect("a text takes everything that is written to it");
        }
        text
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let row = |door: GuardDoor| {
            let coverage = json_of(&door_coverage(door));
            json!({"door": door.word(), "behind": self.names(door), "coverage": coverage})
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
    use guard::tools::ToolClass;

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
