//! The table, read: what the page, the schema and the types are written from.

use pintle_rules::admin::CallerRole;

use super::notation::{BadNotation, Member, Part, Type, parse};
use super::rows::{MethodRow, Row};
use super::table;
use crate::roles::methods;

/// All of the protocol.
pub(super) struct Protocol {
    /// `connect` first, then in the order of the table of roles.
    pub(super) methods: Vec<Method>,
    /// Events of a run, by their `type`; those without a payload have none.
    pub(super) run_events: Vec<(Named, bool)>,
    /// What every event of a run has.
    pub(super) run_head: Type,
    /// All events but `agent`.
    pub(super) events: Vec<Named>,
    /// The shapes, words included.
    pub(super) shapes: Vec<Named>,
}

/// A method, what it takes and gives.
pub(super) struct Method {
    pub(super) name: &'static str,
    /// Nothing where anybody may.
    pub(super) least: Option<CallerRole>,
    pub(super) params: Type,
    pub(super) payload: Type,
    pub(super) row: &'static MethodRow,
}

/// Something with a name and a type.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) of: Type,
    pub(super) note: &'static str,
}

impl Protocol {
    /// Reads the table.
    pub(super) fn read() -> Result<Self, BadNotation> {
        let mut found = vec![Method::read(&table::CONNECT, None)?];
        for method in methods() {
            let row = table::all_methods().find(|row| row.name == method.name);
            let row = row.ok_or_else(|| BadNotation::no_shape(method.name))?;
            found.push(Method::read(row, Some(method.least))?);
        }
        let of_words = |(name, words): (&'static str, Vec<&'static str>)| Named {
            name,
            of: Type::OneOf(words.into_iter().map(|word| Type::Literal(word.to_owned())).collect()),
            note: "",
        };
        let mut shapes: Vec<Named> = table::words().into_iter().map(of_words).collect();
        shapes.extend(named(table::all_shapes())?);
        let run_events = named(table::RUN_EVENTS)?.into_iter().zip(table::RUN_EVENTS);
        Ok(Self {
            methods: found,
            run_events: run_events.map(|(event, row)| (event, !row.of.is_empty())).collect(),
            run_head: parse(table::RUN_HEAD)?,
            events: named(table::EVENTS)?,
            shapes,
        })
    }

    /// The shape `name`.
    pub(super) fn shape(&self, name: &str) -> Result<&Type, BadNotation> {
        let found = self.shapes.iter().find(|shape| shape.name == name).map(|shape| &shape.of);
        found.ok_or_else(|| BadNotation::no_shape(name))
    }

    /// The members of an object, those of the shapes in it included.
    pub(super) fn members<'a>(&'a self, parts: &'a [Part]) -> Result<Vec<&'a Member>, BadNotation> {
        let mut members = Vec::new();
        for part in parts {
            match part {
                Part::Member(member) => members.push(member),
                Part::AllOf(name) => match self.shape(name)? {
                    Type::Members(parts) => members.extend(self.members(parts)?),
                    Type::Word(_)
                    | Type::Literal(_)
                    | Type::Exactly(_)
                    | Type::Named(_)
                    | Type::List(_)
                    | Type::OneOf(_) => {
                        return Err(BadNotation::no_shape(name));
                    }
                },
            }
        }
        Ok(members)
    }
}

impl Method {
    fn read(row: &'static MethodRow, least: Option<CallerRole>) -> Result<Self, BadNotation> {
        Ok(Self { name: row.name, least, params: parse(row.params)?, payload: parse(row.payload)?, row })
    }
}

fn named(rows: impl IntoIterator<Item = &'static Row>) -> Result<Vec<Named>, BadNotation> {
    let read = |row: &'static Row| {
        let of = if row.of.is_empty() { Type::Members(Vec::new()) } else { parse(row.of)? };
        Ok(Named { name: row.name, of, note: row.note })
    };
    rows.into_iter().map(read).collect()
}
