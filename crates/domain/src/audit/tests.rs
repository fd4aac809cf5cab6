//! What is hashed and signed, byte for byte, and the file form.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::json::json;

fn tenant() -> TenantId {
    "0193a5b0-7000-7000-8000-000000000002".into()
}

fn time() -> Timestamp {
    "2026-01-31T12:00:00.123456789Z".parse().unwrap()
}

fn data(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

fn two_rows() -> (AuditEntry, AuditEntry, ChainHead) {
    let (first, head) =
        append(&ChainHead::GENESIS, &tenant(), time(), AuditKind::Record, data(json!({"hook": "no-rm"}))).unwrap();
    let (second, head) =
        append(&head, &tenant(), time(), AuditKind::Decision, data(json!({"z": 1.50, "a": "\"\n"}))).unwrap();
    (first, second, head)
}

#[test]
fn rows_are_hashed_as_the_page_says() {
    let (first, second, head) = two_rows();
    assert_eq!(
        first.body,
        r#"{"at":"2026-01-31T12:00:00.123456Z","data":{"hook":"no-rm"},"kind":"record","seq":1,"tenant_id":"0193a5b0-7000-7000-8000-000000000002"}"#
    );
    assert!(second.body.contains(r#""data":{"a":"\"\n","z":1.5},"kind":"decision","seq":2,"#), "{}", second.body);
    assert_eq!((first.prev, second.prev), (Hash::ZERO, first.hash));
    assert_eq!(head, ChainHead { seq: 2, hash: second.hash });
    // These are what `printf '%s\n%s' "$prev" "$body" | sha256sum` prints.
    assert_eq!(first.hash.to_string(), "4bc3add559dc17efd9705f789878367058291b846dcfd24f4a31e3d551328cc2");
    assert_eq!(second.hash.to_string(), "1e2738f0b84f5c63159ae9e1476c615b429b0f049abd302dd1c824f6838f2f4e");
    // What a database does not keep is not kept here either.
    assert_eq!(first.at.to_string(), "2026-01-31T12:00:00.123456Z");
}

#[test]
fn a_checkpoint_signs_all_its_members() {
    let (_, _, head) = two_rows();
    let point =
        AuditCheckpoint::signed(&tenant(), &head, time(), "630dcd29", |message| format!("{} bytes", message.len()));
    let expected = format!(
        "pintle audit checkpoint 1\n{{\"at\":\"2026-01-31T12:00:00.123456Z\",\"hash\":\"{}\",\"kid\":\"630dcd29\",\"seq\":2,\
         \"tenant_id\":\"0193a5b0-7000-7000-8000-000000000002\"}}",
        head.hash
    );
    assert_eq!(String::from_utf8(point.message()).unwrap(), expected);
    assert_eq!(point.signature, format!("{} bytes", expected.len()));
    assert_eq!(point.link(), head);
}

#[test]
fn a_checkpoint_is_due_by_rows_or_by_time_and_never_for_nothing() {
    let (short, long) = (CHECKPOINT_EVERY - std::time::Duration::from_millis(1), CHECKPOINT_EVERY);
    for (rows, elapsed, expected) in
        [(0, long * 9, false), (1, short, false), (1, long, true), (999, short, false), (1000, short, true)]
    {
        assert_eq!(due(rows, elapsed), expected, "{rows} rows, {elapsed:?}");
    }
    assert_eq!((due_at_stop(0), due_at_stop(1)), (false, true));
}

#[test]
fn what_could_not_be_read_again_is_not_appended() {
    let long = data(json!({"text": "x".repeat(MAX_BODY_BYTES)}));
    let error = append(&ChainHead::GENESIS, &tenant(), time(), AuditKind::Record, long).unwrap_err();
    assert!(error.to_string().starts_with("audit record could not be written: 33554"), "{error}");
    let full = ChainHead { seq: MAX_SEQ, hash: Hash::ZERO };
    assert_eq!(append(&full, &tenant(), time(), AuditKind::Trip, Object::new()), Err(AppendError::Full(MAX_SEQ)));
    // What grows most when it is escaped still fits a line of the longest body.
    let quotes = data(json!({"text": "\"".repeat(5000)}));
    let (entry, _) = append(&ChainHead::GENESIS, &tenant(), time(), AuditKind::Record, quotes).unwrap();
    let (body, line) = (entry.body.len(), AuditLine::Entry(entry).to_string().len());
    assert!(line - 2 * body < MAX_LINE_BYTES - 2 * MAX_BODY_BYTES, "a body of {body} bytes makes a line of {line}");
}

#[test]
fn words_and_hashes_are_read_as_they_are_written() {
    for kind in AuditKind::ALL {
        assert_eq!(kind.word().parse(), Ok(kind));
    }
    assert!("Record".parse::<AuditKind>().is_err());
    let (first, ..) = two_rows();
    let text = first.hash.to_string();
    assert_eq!(text.parse(), Ok(first.hash));
    for bad in [&text[1..], &text.to_uppercase(), &format!("{text}0"), "", &"é".repeat(32)] {
        assert_eq!(bad.parse::<Hash>(), Err("a hash is 64 lower-case hex digits".into()));
    }
}

#[test]
fn bad_lines_are_named_with_what_is_wrong() {
    let (first, ..) = two_rows();
    let good = AuditLine::Entry(first).to_string();
    let change = |from: &str, to: &str| good.replacen(from, to, 1);
    let cases = [
        ("{".into(), "EOF while parsing an object at column 1"),
        ("[\"entry\"]".into(), "it is not a JSON object"),
        ("oops".into(), "it is not a JSON object"),
        ("{}".into(), "missing field `type` at column 2"),
        (change("entry", "row"), "unknown variant `row`, expected `entry` or `checkpoint` at column 13"),
        (change("entry", "checkpoint"), "unknown field `kind`, expected one of"),
        (change("\"seq\":1,", ""), "missing field `seq` at column"),
        (change("\"seq\":1,", "\"seq\":1,\"seq\":1,"), "duplicate field `seq`"),
        (change("\"seq\":1,", "\"seq\":\"1\","), "invalid type: string \"1\", expected u64"),
        (change("\"seq\":1,", "\"seq\":1.0,"), "invalid type"),
        (change("\"seq\":1,", "\"seq\":0,"), "`seq` is 0; rows are counted from 1 to 9007199254740991"),
        (change("\"seq\":1,", "\"seq\":9007199254740992,"), "`seq` is 9007199254740992;"),
        (change("\"seq\":1,", "\"seq\":-1,"), "invalid value: integer `-1`, expected u64"),
        (change("T12:00", "T25:00"), "`at` is not a time such as"),
        (change("record", "rec\\u001b[31m"), "`kind`: unknown kind `rec\\u{1b}[31m`"),
        (change("\"prev\":\"0", "\"prev\":\"g"), "`prev`: a hash is 64 lower-case hex digits"),
        (change("0193a5b0", "\\u0007"), "`tenant_id` is not 1 to 256 bytes of plain text"),
        (change("\"seq\"", "\"x\\u001b[31m\""), "unknown field `x\u{fffd}[31m`"),
        (format!("{good} {{}}"), "trailing characters"),
    ];
    for (line, why) in cases {
        let error = read_line(7, line.as_bytes()).expect_err(&line).to_string();
        assert!(error.starts_with(&format!("line 7: {why}")), "{line}\n{error}");
    }
    let error = read_line(2, b"{\"type\":\"\xff\"}").unwrap_err();
    assert_eq!(error.to_string(), "line 2: byte 10 is not UTF-8");
    // Depth costs nothing: what is not a member of a line is not entered.
    let deep = format!("{{\"x\":{}", "[".repeat(1_000_000));
    assert_eq!(read_line(1, deep.as_bytes()).unwrap_err().why, "EOF while parsing a list at column 1000005");
}

fn lines(pieces: &[&[u8]]) -> Vec<Result<AuditLine, AuditLineError>> {
    let (mut lines, mut read) = (AuditLines::default(), Vec::new());
    for piece in pieces {
        lines.feed(piece, |line| read.push(line));
    }
    lines.end(|line| read.push(line));
    read
}

#[test]
fn a_line_without_end_is_named_and_the_next_ones_are_read() {
    let (first, second, _) = two_rows();
    let (first, second) = (AuditLine::Entry(first), AuditLine::Entry(second));
    let (a, b) = (first.to_string(), second.to_string());
    let mega = vec![b'x'; 1 << 20];
    let mut pieces: Vec<&[u8]> = vec![a.as_bytes(), b"\n\n"];
    pieces.extend(std::iter::repeat_n(mega.as_slice(), 70));
    pieces.extend([b"\n".as_slice(), b.as_bytes()]);
    let error = AuditLineError { line: 3, why: format!("longer than {MAX_LINE_BYTES} bytes") };
    assert_eq!(lines(&pieces), [Ok(first), Err(error), Ok(second)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_come_back_however_the_file_is_cut(
        texts in prop::collection::vec(any::<String>(), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let (mut head, mut written) = (ChainHead::GENESIS, Vec::new());
        for text in &texts {
            let (entry, next) = append(&head, &tenant(), time(), AuditKind::Change, data(json!({"text": text}))).unwrap();
            head = next;
            written.push(AuditLine::Entry(entry));
            written.push(AuditLine::Checkpoint(AuditCheckpoint::signed(&tenant(), &head, time(), "k", |_| "s".into())));
        }
        let file: String = written.iter().map(|line| format!("{line}\n")).collect();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(file.len())).collect();
        at.sort_unstable();
        at.push(file.len());
        let mut from = 0;
        let pieces: Vec<&[u8]> = at.iter().map(|to| &file.as_bytes()[std::mem::replace(&mut from, *to)..*to]).collect();
        prop_assert_eq!(lines(&pieces), written.into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(lines(&[&bytes]).iter().all(Result::is_err));
    }
}
