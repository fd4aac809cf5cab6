//! The table of faults: everything that a child can do wrong, at every place where it can do it, in a whole turn.

use futures_util::{FutureExt as _, StreamExt as _};
use pintle_agent::driver::TurnEnding;
use pintle_domain::hook::OnFailure;

mod cell;

use cell::{Cell, Child, Place};

/// How many cells run side by side: most of them wait.
const SIDE_BY_SIDE: usize = 12;

/// What a child does when it is asked, and what the hook is then said to have done.
struct Row {
    name: &'static str,
    child: Child,
    /// The phrase after `hook "h" `; none when the answer is as good as any.
    phrase: Option<&'static str>,
}

const TIMED_OUT: &str = "timed out after 400 ms";

fn rows() -> Vec<Row> {
    let row = |name, child, phrase| Row { name, child, phrase };
    let acts = Child::acting;
    let good = r#"printf '{"id":%s,"result":%s}\n' "$n" "$good""#;
    vec![
        row("missing program", Child::file("missing", None), Some("could not start")),
        row("missing interpreter", Child::file("lost", Some("#!/no/such/interpreter\n")), Some("could not start")),
        row("exit 1", acts("exit 1".into()), Some("exited with status 1")),
        row("exit 2", acts("exit 2".into()), Some("exited with status 2")),
        row("SIGKILL", acts("kill -KILL $$".into()), Some("was killed by signal 9")),
        row("SIGSEGV", acts("kill -SEGV $$".into()), Some("was killed by signal 11")),
        row("empty reply", acts(r#"printf '{"id":%s,"result":%s}\n' "$n" "$empty""#.into()), None),
        row(
            "half an object",
            acts(r#"printf '{"id":%s,"result":{"action":\n' "$n""#.into()),
            Some("sent an unreadable reply"),
        ),
        row(
            "a line of 10 MiB",
            acts(
                r#"printf '{"id":%s,"result":{"x":"' "$n"; head -c 10485760 /dev/zero | tr '\0' x; echo '"}}'"#.into(),
            ),
            Some("sent a reply above 1048576 bytes"),
        ),
        row("hang", Child::late(":".into()), Some(TIMED_OUT)),
        row(
            "hang with grandchildren that ignore TERM",
            Child::late("trap '' TERM; sleep 1000 & (sleep 1000 & sleep 1000) & wait".into()),
            Some(TIMED_OUT),
        ),
        row("noise before the answer", acts(format!("echo 'debug: asked'; echo; echo '[1,'; {good}")), None),
        // The next line that the child is sent says that its call was given up.
        row("reply after the deadline", Child::late(format!("read -r cancelled; {good}")), Some(TIMED_OUT)),
        row("stderr flood", acts(format!("head -c 33554432 /dev/zero | tr '\\0' y >&2; {good}")), None),
    ]
}

const PLACES: [Place; 8] = [
    Place::Stage("before_tool", OnFailure::Close),
    Place::Stage("before_tool", OnFailure::Continue),
    Place::Stage("approve_tool", OnFailure::Close),
    Place::Stage("before_llm", OnFailure::Continue),
    Place::Stage("after_llm", OnFailure::Continue),
    Place::Stage("after_tool", OnFailure::Continue),
    Place::Twin,
    Place::Observer,
];

/// What the tool message says in this cell, if the call is refused.
fn refusal(place: Place, row: &Row, phrase: Option<&str>) -> Option<String> {
    match (place, phrase) {
        (Place::Stage("before_tool", OnFailure::Close), Some(phrase)) => {
            Some(format!("Tool execution denied by hook: hook \"h\" {phrase}"))
        }
        (Place::Stage("approve_tool", _), Some(phrase)) => {
            let what = if phrase == TIMED_OUT { "timed out" } else { "failed" };
            Some(format!("Tool execution denied by approval hook: tool approval hook \"h\" {what}"))
        }
        // An empty answer is not a fault, but no approval either.
        (Place::Stage("approve_tool", _), None) if row.name == "empty reply" => {
            Some("Tool execution denied by approval hook (hook \"h\")".into())
        }
        (Place::Stage(..) | Place::Twin | Place::Observer, _) => None,
    }
}

async fn check(row: &Row, place: Place) {
    let at = format!("{} at {place:?}", row.name);
    let mut cell = Cell::mount(&row.child, place).await;
    let report = cell.host.turn("go").await;
    // The turn ends well whatever the hook did, once.
    assert_eq!((report.reply.as_str(), report.ending), ("done", TurnEnding::Completed), "{at}");
    assert_eq!((cell.host.seen.count("turn_end"), cell.host.is_valid()), (1, true), "{at}");
    match refusal(place, row, row.phrase) {
        Some(text) => {
            assert_eq!((cell.host.result("c1"), cell.ran()), (text.clone(), 0), "{at}");
            assert_eq!(cell.host.seen.payloads("tool_exec_skipped")[0]["Reason"], text, "{at}");
        }
        None => assert_eq!((cell.host.result("c1").as_str(), cell.ran()), ("hi", 1), "{at}"),
    }
    cell.check_errors(row.phrase.filter(|_| place != Place::Observer), &at);
    cell.check_others(&at);
    cell.close(&at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_at_every_place_has_its_outcome_and_leaves_nothing_behind() {
    let rows = rows();
    let cells = rows.iter().flat_map(|row| PLACES.map(|place| check(row, place).boxed()));
    futures_util::stream::iter(cells).for_each_concurrent(SIDE_BY_SIDE, |cell| cell).await;
}
