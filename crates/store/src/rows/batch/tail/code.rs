//! A row of the tail as bytes: statements by their number in a list, never by their text, so that nobody who can write
//! to the table has others run.

use jiff::Timestamp;
use pintle_domain::audit::{AuditKind, DraftEntry};
use pintle_domain::id::TenantId;

use super::super::super::{executions, records};
use crate::db::{Cell, Statement, moment};
use crate::evidence::Note;

/// The first byte: other bytes are of another program.
const FORM: u8 = 1;

/// The statements that evidence is made of, and what stands in for each; numbered by their places, which stay.
const KINDS: [(&str, Option<&str>); 5] = [
    (records::TURN, None),
    (records::SET, None),
    (records::EVENT, None),
    (executions::SQLITE_INSERT, Some(executions::SQLITE_ORPHAN)),
    (executions::SQLITE_INSERT_OUTPUT, Some(executions::SQLITE_ORPHAN_OUTPUT)),
];

/// The number of `statement`.
pub(super) fn kind_of(statement: &Statement<'_>) -> Option<u8> {
    u8::try_from(KINDS.iter().position(|(sql, _)| *sql == statement.sql)?).ok()
}

/// All that is to be written; `None` if there is more of something than can be counted.
pub(super) fn written(statements: &[&Statement<'_>], notes: &[&Note]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(4096);
    out.extend([FORM, u8::try_from(statements.len()).ok()?]);
    for statement in statements {
        out.extend([kind_of(statement)?, u8::try_from(statement.cells.len()).ok()?]);
        statement.cells.iter().for_each(|cell| put_cell(&mut out, cell));
    }
    out.push(u8::try_from(notes.len()).ok()?);
    for Note { draft, .. } in notes {
        out.push(u8::try_from(AuditKind::ALL.iter().position(|kind| *kind == draft.kind())?).ok()?);
        out.extend(draft.at().as_microsecond().to_le_bytes());
        put_bytes(&mut out, draft.beginning().as_bytes());
    }
    Some(out)
}

/// What [`written`] made the bytes of; `None` if it did not.
pub(super) fn read(bytes: &[u8], tenant: &TenantId) -> Option<(Vec<Statement<'static>>, Vec<Note>)> {
    let mut rest = Rest(bytes);
    if rest.byte()? != FORM {
        return None;
    }
    let statements = (0..rest.byte()?).map(|_| statement(&mut rest)).collect::<Option<Vec<_>>>()?;
    let notes = (0..rest.byte()?).map(|_| note(&mut rest, tenant)).collect::<Option<Vec<_>>>()?;
    // A row fills its page.
    rest.0.iter().all(|byte| *byte == 0).then_some((statements, notes))
}

fn statement(rest: &mut Rest<'_>) -> Option<Statement<'static>> {
    let (sql, orphan) = *KINDS.get(usize::from(rest.byte()?))?;
    let cells = (0..rest.byte()?).map(|_| rest.cell()).collect::<Option<Vec<_>>>()?;
    // A parameter that nothing is bound to would be nothing.
    let last = format!("?{}", cells.len());
    let is_whole = sql.contains(&last) && !sql.contains(&format!("?{}", cells.len() + 1));
    is_whole.then_some(Statement { sql, cells, orphan })
}

fn note(rest: &mut Rest<'_>, tenant: &TenantId) -> Option<Note> {
    let kind = *AuditKind::ALL.get(usize::from(rest.byte()?))?;
    let at = Timestamp::from_microsecond(rest.number()?).ok()?;
    let beginning = String::from_utf8(rest.bytes()?.to_vec()).ok()?;
    Some(Note { draft: DraftEntry::of_beginning(tenant, at, kind, beginning), at: moment(at), seq: None })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn put_cell(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match cell {
        Cell::Null => out.push(0),
        Cell::Text(text) => {
            out.push(1);
            put_bytes(out, text.as_bytes());
        }
        Cell::Int(number) => {
            out.push(2);
            out.extend(number.to_le_bytes());
        }
        Cell::Flag(flag) => out.extend([3, u8::from(*flag)]),
        Cell::Bytes(bytes) => {
            out.push(4);
            put_bytes(out, bytes);
        }
    }
}

/// What was not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    fn cell(&mut self) -> Option<Cell<'static>> {
        match self.byte()? {
            0 => Some(Cell::Null),
            1 => Some(Cell::Text(String::from_utf8(self.bytes()?.to_vec()).ok()?.into())),
            2 => Some(Cell::Int(self.number()?)),
            3 => Some(Cell::Flag(self.byte()? != 0)),
            4 => Some(Cell::Bytes(self.bytes()?.to_vec().into())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_testkit::conformance::audit::cleared;
    use pintle_testkit::conformance::executions::{failed, ran};

    use super::super::super::Rows;
    use super::*;
    use crate::db::Dialect;
    use crate::evidence::SealedTexts;
    use crate::sealing::StoreKeys;
    use pintle_domain::execution::Execution;
    use pintle_domain::id::HookId;

    fn rows() -> Rows {
        let mut events = cleared();
        let event = ran(&HookId::fresh(), failed());
        let made = Execution::of(&event, &event.hooks.to_vec()[0]).unwrap();
        events.push(event);
        let mut rows = Rows::of_records(&events, &StoreKeys::default(), Dialect::Sqlite).unwrap();
        let sealed = SealedTexts { detail: None, output: Some(b"sealed".to_vec()) };
        rows.statements.push(executions::insert(made, sealed, Dialect::Sqlite));
        rows
    }

    #[test]
    fn what_has_no_output_is_written_as_ever() {
        let rows = rows();
        let kinds: Vec<_> = rows.statements.iter().map(|it| (kind_of(it).unwrap(), it.cells.len())).collect();
        assert_eq!(kinds[kinds.len() - 2..], [(3, 24), (4, 25)]);
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let rows = rows();
        let (statements, notes): (Vec<_>, Vec<_>) =
            (rows.statements.iter().collect(), rows.notes.iter().map(|pending| &pending.note).collect());
        let tenant = notes[0].draft.tenant_id().clone();
        let bytes = written(&statements, &notes).unwrap();
        let (again, noted) = read(&bytes, &tenant).unwrap();
        let told = |it: &Statement<'_>| format!("{it:?}");
        assert_eq!(
            again.iter().map(told).collect::<Vec<_>>(),
            statements.iter().map(|it| told(it)).collect::<Vec<_>>()
        );
        assert_eq!(
            noted.iter().map(|note| (&note.draft, &note.at)).collect::<Vec<_>>(),
            notes.iter().map(|note| (&note.draft, &note.at)).collect::<Vec<_>>()
        );
        for short in 0..bytes.len() {
            assert!(read(&bytes[..short], &tenant).is_none(), "{short} bytes of {}", bytes.len());
        }
        assert!(read(&[&bytes[..], &[0; 9]].concat(), &tenant).is_some());
        assert!(read(&[&bytes[..], &[1]].concat(), &tenant).is_none());
        for (at, other) in [(0, 9), (2, 77), (3, 1), (3, 200)] {
            let mut altered = bytes.clone();
            altered[at] = other;
            assert!(read(&altered, &tenant).is_none(), "byte {at} is {other}");
        }
    }
}
