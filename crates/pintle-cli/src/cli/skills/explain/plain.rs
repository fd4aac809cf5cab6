//! The form for people.

use anstyle::{AnsiColor, Style};
use pintle_agent::driver::rehearsal::{CallPurpose, ModelCall};
use pintle_domain::message::{Message, Role};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Explained;
use super::absent::AbsentHook;
use super::body;
use super::cost::Cost;
use super::row::{Row, rows};
use crate::clean::clean;

/// What is taken for the width of what is not a terminal, in columns: wide enough for a row with all that belongs to it.
const USUAL_COLUMNS: usize = 100;

/// The widths that are believed: in fewer columns nothing is readable, and more of them nobody has.
const COLUMNS: std::ops::RangeInclusive<usize> = 40..=1000;

/// Between two shares.
const PARTED: &str = " · ";

/// Before the text of a message.
const INDENT: &str = "     ";

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Yellow.on_default();
const PERSON: Style = AnsiColor::Green.on_default();
const MODEL: Style = AnsiColor::Cyan.on_default();
const PLAIN: Style = Style::new();

/// How wide a line may be: as `COLUMNS` says, else as the terminal is.
pub(super) fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let told = told.or_else(|| terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0)));
    told.filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS).clamp(*COLUMNS.start(), *COLUMNS.end())
}

/// `explained` for lines of `columns`.
pub(super) fn text(explained: &Explained, columns: usize) -> String {
    let went = &explained.went;
    let table = Table::of(explained, columns);
    let mut text = head(explained);
    for (at, call) in went.calls.iter().enumerate() {
        text += &format!("\n{}", table.call(at, call));
        if let (Some(wire), Some(body)) = (&explained.wire, explained.bodies.get(at)) {
            let bytes = body.len();
            text += &format!(
                "{DIM}wire {} · {} · {bytes} bytes{DIM:#}\n{}\n",
                clean(&wire.name()),
                clean(&wire.by()),
                body::laid_out(body, columns)
            );
        }
    }
    text += &missing("never in a turn like this", explained.absent.iter().filter(|absent| absent.never));
    text += &missing("not in this turn", explained.absent.iter().filter(|absent| !absent.never));
    if let Some((stage, why)) = went.end.as_ref().and_then(|end| end.error.as_ref()) {
        text += &format!("\n{BAD}the turn ended at {}:{BAD:#} {}\n", clean(stage), clean(why));
    }
    let whole = went.calls.iter().fold(Cost::default(), |whole, call| whole.plus(&Cost::of(call)));
    let calls = went.calls.len();
    let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    text + "\n" + &folded(&format!("{calls}, about {}", costs(&whole)), columns)
}

fn head(explained: &Explained) -> String {
    let flow = if explained.went.planned { "planned" } else { "direct" };
    let what = match &explained.turn {
        None => "a dry run: nothing is sent, no tool runs".to_owned(),
        Some((turn, session)) => format!("turn {} of session {}", clean(turn), clean(session)),
    };
    format!("{BOLD}{}{BOLD:#} · flow {flow} · {DIM}{what}{DIM:#}\n", clean(&explained.agent))
}

fn costs(cost: &Cost) -> String {
    let shares: Vec<String> = cost.shares().map(|(share, tokens)| format!("{} {tokens}", share.words().0)).collect();
    format!("{} tok: {}", cost.total(), shares.join(PARTED))
}

fn missing<'a>(title: &str, absent: impl Iterator<Item = &'a AbsentHook>) -> String {
    let lines: Vec<(String, &AbsentHook)> =
        absent.map(|absent| (clean(&format!("{}/{}", absent.skill, absent.name)), absent)).collect();
    let Some(width) = lines.iter().map(|(name, _)| name.width()).max() else { return String::new() };
    let mut text = format!("\n{BOLD}{title}{BOLD:#}\n");
    for (name, absent) in lines {
        let gap = " ".repeat(width - name.width());
        text += &format!("  {name}{gap}  {:<18}  {}\n", absent.timing.word(), clean(&absent.why));
    }
    text
}

/// How the rows of all calls are laid out.
struct Table<'a> {
    explained: &'a Explained,
    columns: usize,
    who: usize,
    what: usize,
    /// Whether what becomes of a message stands in the line of its text, for want of room in its own.
    narrow: bool,
}

impl<'a> Table<'a> {
    fn of(explained: &'a Explained, columns: usize) -> Self {
        let (mut who, mut what, mut note) = (0, 0, 0);
        for at in 0..explained.went.calls.len() {
            let tools = tools(&explained.went.calls[at]);
            for row in rows(&explained.went, at) {
                who = who.max(clean(&row.who()).width());
                what = what.max(clean(&row.what(&tools)).width());
                note = note.max(row.note(at == 0).width());
            }
        }
        // Number, role, tokens and what stands between.
        let narrow = 13 + who + 2 + what + 11 + 2 + note > columns;
        Self { explained, columns, who, what, narrow }
    }

    fn call(&self, at: usize, call: &ModelCall) -> String {
        let mut text = self.title(call);
        let tools = tools(call);
        for row in rows(&self.explained.went, at) {
            text += &self.row(&row, &tools, at == 0);
        }
        let notes = call.notes.iter().map(|note| format!("{INDENT}{NEW}{}{NEW:#}\n", clean(note)));
        text.extend(notes);
        text + &folded(&costs(&Cost::of(call)), self.columns)
    }

    fn title(&self, call: &ModelCall) -> String {
        let aim = match call.aim {
            CallPurpose::Plan => "planning".to_owned(),
            CallPurpose::Step => format!("round {}", call.round),
            CallPurpose::LastWords => format!("round {} · last words", call.round),
        };
        let boundary = call.cache_boundary().map(|at| format!("cache boundary: {at}")).unwrap_or_default();
        let left = format!("call R{} · {aim} · ", call.round);
        let names: Vec<String> = call.request.tools.iter().map(|tool| clean(&tool.get().function.name)).collect();
        let room = self.columns.saturating_sub(left.width() + boundary.width() + 2);
        let tools = offered(&names, room);
        let used = left.width() + tools.width() + boundary.width();
        let gap = " ".repeat(self.columns.saturating_sub(used).max(2));
        format!("{BOLD}{left}{BOLD:#}{tools}{gap}{DIM}{boundary}{DIM:#}\n")
    }

    fn row(&self, row: &Row<'_>, tools: &[(&str, &str)], first: bool) -> String {
        let role = match row.message.role {
            Role::System => ("system", PLAIN),
            Role::User => ("user", PERSON),
            Role::Assistant => ("assistant", MODEL),
            Role::Tool => ("tool", BOLD),
        };
        let (word, style) = if row.new { role } else { (role.0, DIM) };
        let rest = if row.new { PLAIN } else { DIM };
        let (who, what, note) = (clean(&row.who()), clean(&row.what(tools)), row.note(first));
        let (who_gap, what_gap) = (self.who - who.width(), self.what - what.width());
        let tokens = format!("{} tok", row.tokens);
        let line = format!(
            "{rest}{:>2}{rest:#} {style}{word:<9}{style:#} {rest}{who}{}  {what}{}  {tokens:>9}{rest:#}",
            row.index,
            " ".repeat(who_gap),
            " ".repeat(what_gap),
        );
        let room = self.columns - INDENT.len();
        let said = said(row.message);
        let mark = if row.new { NEW } else { DIM };
        if self.narrow {
            // What stood there before is known, and only told of if it is to leave.
            let parted = if note.is_empty() || !row.new { "" } else { " · " };
            let said =
                if row.new { cut(&said, room.saturating_sub(note.width() + parted.width())) } else { String::new() };
            if note.is_empty() && said.is_empty() {
                return format!("{line}\n");
            }
            return format!("{line}\n{INDENT}{mark}{note}{mark:#}{DIM}{parted}{said}{DIM:#}\n");
        }
        let note = if note.is_empty() { String::new() } else { format!("  {mark}{note}{mark:#}") };
        let below = if row.new { format!("{INDENT}{DIM}{}{DIM:#}\n", cut(&said, room)) } else { String::new() };
        format!("{line}{note}\n{below}")
    }
}

/// The calls in the list of `call`, by their ids, with the names of their tools.
fn tools(call: &ModelCall) -> Vec<(&str, &str)> {
    let messages = call.request.messages.iter().flat_map(|message| &message.get().tool_calls);
    messages.map(|part| (part.id.as_str(), part.function.name.as_str())).collect()
}

/// The names of tools, as many as there is room for.
fn offered(names: &[String], room: usize) -> String {
    if names.is_empty() {
        return "no tools".to_owned();
    }
    for shown in (0..=names.len()).rev() {
        let rest = names.len() - shown;
        let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
        let text = format!("tools {}{more}", names[..shown].join(" "));
        if text.width() <= room {
            return text;
        }
    }
    format!("{} tools", names.len())
}

/// The first line of what is said in `message`, with a mark if there is more.
fn said(message: &Message) -> String {
    let text = if message.content.trim().is_empty() && !message.tool_calls.is_empty() {
        let calls =
            message.tool_calls.iter().map(|part| format!("{}({})", part.function.name, part.function.arguments));
        calls.collect::<Vec<_>>().join(" ")
    } else {
        message.content.trim().to_owned()
    };
    match text.split_once('\n') {
        Some((first, _)) => format!("{} …", clean(first.trim_end())),
        None => clean(&text),
    }
}

/// `text` in at most `room` columns.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or_default();
        used <= room
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

/// A line of shares, parted between two of them where it gets too long.
fn folded(text: &str, columns: usize) -> String {
    let mut folded = String::from(INDENT);
    let mut column = INDENT.len();
    for (at, piece) in text.split(PARTED).enumerate() {
        if at > 0 {
            folded.push_str(PARTED.trim_end());
            column += PARTED.width() + piece.width();
            if column + PARTED.width() > columns {
                column = INDENT.len() + piece.width();
                folded.push('\n');
                folded.push_str(INDENT);
            } else {
                folded.push(' ');
            }
        } else {
            column += piece.width();
        }
        folded.push_str(piece);
    }
    folded + "\n"
}
