//! Reading, listing, finding, searching.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;

use tokio_util::sync::CancellationToken;

use super::Tree;
use crate::tools::error::ToolError;
use crate::tools::{find, list, read, search};

fn text(result: Result<String, ToolError>) -> String {
    result.unwrap_or_else(|e| format!("error: {e}"))
}

fn read(tree: &Tree, path: &str, offset: Option<u64>, limit: Option<u64>) -> String {
    let args = read::Args { path: path.into(), offset, limit };
    text(read::read(&tree.workspace, &args, &CancellationToken::new()))
}

fn list(tree: &Tree, path: &str) -> String {
    text(list::list(&tree.workspace, &list::Args { path: Some(path.into()) }, &CancellationToken::new()))
}

fn find(tree: &Tree, pattern: &str, path: Option<&str>, include_ignored: bool) -> String {
    let args = find::Args { pattern: pattern.into(), path: path.map(Into::into), include_ignored };
    text(find::find(&tree.workspace, &args, &CancellationToken::new()))
}

fn search(tree: &Tree, args: search::Args) -> String {
    text(search::search(&tree.workspace, &args, &CancellationToken::new()))
}

fn pattern(pattern: &str) -> search::Args {
    search::Args {
        pattern: pattern.into(),
        path: None,
        glob: None,
        ignore_case: false,
        include_ignored: false,
        max_results: None,
    }
}

#[test]
fn lines_are_shown_and_every_cut_says_how_to_go_on() {
    let tree = Tree::new(&[("ws/a", "1\n2\n3\n"), ("ws/open", "1\n2"), ("ws/empty", "")]);
    for (path, offset, limit, expected) in [
        ("a", None, None, "1\n2\n3\n"),
        ("./a", Some(2), None, "2\n3\n"),
        ("a", Some(2), Some(1), "2\n[cut after line 2; the file has 6 bytes; go on with offset 3]"),
        ("a", Some(3), Some(1), "3\n"),
        ("a", Some(4), None, "error: `a` has only 3 lines, got offset 4"),
        ("a", Some(99), None, "error: `a` has only 3 lines, got offset 99"),
        ("open", None, None, "1\n2"),
        ("open", Some(2), None, "2"),
        ("open", Some(3), None, "error: `open` has only 2 lines, got offset 3"),
        ("empty", None, None, "[empty file]"),
        ("none", None, None, "error: `none` does not exist"),
        (".", None, None, "error: `.` is a folder, not a regular file"),
        ("a/b", None, None, "error: `a/b` is not a folder"),
        ("a\0b", None, None, "error: \"a\\0b\" is not a path: it holds a zero byte"),
    ] {
        assert_eq!(read(&tree, path, offset, limit), expected, "{path} {offset:?} {limit:?}");
    }
}

#[test]
fn huge_files_and_lines_are_cut_and_binary_files_refused() {
    let tree = Tree::new(&[]);
    let line = "\u{20ac}".repeat(200_000);
    fs::write(tree.at("ws/long"), format!("{line}\nnext\n")).unwrap();
    let shown = read(&tree, "long", None, None);
    assert!(shown.len() < 257 * 1024 && !shown.contains('\u{fffd}'), "{}", shown.len());
    assert!(shown.ends_with("\n[cut inside line 1; the file has 600006 bytes; go on with offset 2]"));
    assert_eq!(read(&tree, "long", Some(2), None), "next\n");

    // Sparse: a tebibyte that takes no room, and no time.
    let sparse = fs::File::create(tree.at("ws/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert_eq!(
        read(&tree, "sparse", None, None),
        "error: `sparse` is a binary file (1099511627776 bytes); only text can be shown"
    );
    fs::write(tree.at("ws/latin"), b"caf\xe9\n").unwrap();
    assert_eq!(
        read(&tree, "latin", None, None),
        "caf\u{fffd}\n[not UTF-8: bytes that are not text are shown as \u{fffd}]"
    );
}

#[test]
fn a_cancelled_read_stops() {
    let tree = Tree::new(&[("ws/a", "1\n")]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let args = read::Args { path: "a".into(), offset: None, limit: None };
    assert_eq!(text(read::read(&tree.workspace, &args, &cancel)), "error: cancelled while the tool ran");
    let args = find::Args { pattern: "*".into(), path: None, include_ignored: false };
    assert_eq!(text(find::find(&tree.workspace, &args, &cancel)), "error: cancelled while the tool ran");
    assert_eq!(text(search::search(&tree.workspace, &pattern("x"), &cancel)), "error: cancelled while the tool ran");
}

#[test]
fn nothing_leads_out_of_the_workspace() {
    let tree = Tree::new(&[("ws/in/a", "inside\n"), ("out/secret", "outside\n")]);
    tree.link("ws/up", "../out");
    tree.link("ws/file", "../out/secret");
    tree.link("ws/abs", tree.at("out/secret"));
    tree.link("ws/in/chain", "../up/secret");
    tree.link("ws/loop", "loop");
    tree.link("ws/good", "in/a");
    tree.link("ws/in/back", "../in/a");
    let outside =
        |path: &str| format!("error: `{path}` is outside the workspace; use a path inside it, relative to its root");
    let absolute = tree.at("out/secret").to_str().unwrap().to_owned();
    let sneaky = format!("{}/../out/secret", tree.at("ws").display());
    let prefix = format!("{}x/secret", tree.at("ws").display());
    for path in [
        "../out/secret",
        "in/../../out/secret",
        "/etc/passwd",
        "/",
        "up/secret",
        "file",
        "abs",
        "in/chain",
        &absolute,
        &sneaky,
        &prefix,
    ] {
        assert_eq!(read(&tree, path, None, None), outside(path), "{path}");
    }
    assert_eq!(list(&tree, "up"), outside("up"));
    assert_eq!(list(&tree, ".."), outside(".."));
    assert_eq!(find(&tree, "*", Some("up"), true), outside("up"));
    let everywhere = search::Args { path: Some("file".into()), ..pattern("outside") };
    assert_eq!(search(&tree, everywhere), outside("file"));
    assert_eq!(search(&tree, pattern("outside")), "[no line matches]");
    assert!(read(&tree, "loop", None, None).starts_with("error: cannot read `loop`: "));
    let spelled = tree.at("ws/in/a").to_str().unwrap().to_owned();
    for path in ["in/a", "good", "in/back", "in/../in/./a", "in//a", &spelled] {
        assert_eq!(read(&tree, path, None, None), "inside\n", "{path}");
    }
}

#[test]
fn devices_pipes_and_sockets_are_never_opened() {
    let tree = Tree::new(&[("ws/a", "x\n")]);
    // Opening this one would wait for a writer for ever; so would a walk that reads it as rules.
    tree.fifo("ws/fifo");
    tree.fifo("ws/.gitignore");
    let _listening = UnixListener::bind(tree.at("ws/socket")).unwrap();
    assert_eq!(read(&tree, "fifo", None, None), "error: `fifo` is a named pipe, not a regular file");
    assert_eq!(read(&tree, "socket", None, None), "error: `socket` is a socket, not a regular file");
    assert_eq!(search(&tree, pattern("x")), "a:1: x");
    assert_eq!(
        list(&tree, "."),
        ".gitignore  (named pipe)\na  2\nfifo  (named pipe)\npintle.toml  14\nsocket  (socket)"
    );
}

#[test]
fn what_is_protected_is_not_read_under_any_name() {
    let tree = Tree::new(&[("ws/a", "x\n")]);
    fs::hard_link(tree.at("home/db"), tree.at("ws/twin")).unwrap();
    fs::hard_link(tree.at("ws/a"), tree.at("ws/b")).unwrap();
    fs::hard_link(tree.at("ws/pintle.toml"), tree.at("ws/notes.txt")).unwrap();
    let refused = |path: &str| {
        format!("error: `{path}` is protected: it belongs to the program that runs you and is not yours to read")
    };
    assert_eq!(read(&tree, "twin", None, None), refused("twin"));
    assert_eq!(search(&tree, pattern("home's")), "[no line matches]");
    // Two names for one's own file are nothing special, and the configuration may be read.
    assert_eq!(read(&tree, "b", None, None), "x\n");
    assert_eq!(read(&tree, "pintle.toml", None, None), "secret_of = 1\n");
    // By its own name: another one was given to it for somebody who cannot reach it there.
    assert_eq!(read(&tree, "notes.txt", None, None), refused("notes.txt"));
    assert_eq!(search(&tree, pattern("secret_of")), "pintle.toml:1: secret_of = 1");
}

#[test]
fn a_protected_folder_inside_the_workspace_is_passed_over() {
    let tree = Tree::new(&[("ws/state/db", "needle\n"), ("ws/state/deep/db", "needle\n"), ("ws/src/a", "needle\n")]);
    let mut protected = tree.protected.clone();
    tree.link("state-link", tree.at("ws/state"));
    // Named by a link: what counts is what it is.
    protected.dirs.push(tree.at("state-link"));
    let workspace = crate::tools::workspace::Workspace::open(&tree.at("ws"), &protected).unwrap();
    let tree = Tree { workspace, ..tree };
    tree.link("ws/way", "state");
    for path in ["state/db", "state/deep/db", "way/db", "src/../state/db"] {
        assert!(read(&tree, path, None, None).contains("is protected"), "{path}");
    }
    for path in ["state", "state/deep", "way"] {
        assert!(list(&tree, path).contains("is protected"), "{path}");
        assert!(find(&tree, "*", Some(path), true).contains("is protected"), "{path}");
    }
    assert_eq!(list(&tree, "."), "pintle.toml  14\nsrc/\nway -> state");
    assert_eq!(find(&tree, "**/*", None, true), "pintle.toml\nsrc/a\nway");
    assert_eq!(search(&tree, pattern("needle")), "src/a:1: needle");
}

#[test]
fn a_listing_is_sorted_marked_and_bounded() {
    let tree = Tree::new(&[("ws/d/b", "12345"), ("ws/d/a/x", ""), ("ws/empty/x", "")]);
    tree.link("ws/d/c", "../nowhere");
    fs::write(tree.at("ws/d").join(std::ffi::OsStr::from_bytes(b"n\xff")), "").unwrap();
    assert_eq!(list(&tree, "d"), "a/\nb  5\nc -> ../nowhere\nn\u{fffd}  0");
    fs::remove_file(tree.at("ws/empty/x")).unwrap();
    assert_eq!(list(&tree, "empty"), "[empty folder]");
    assert_eq!(list(&tree, "d/b"), "error: `d/b` is not a folder");
    for i in 0..1005 {
        fs::write(tree.at(&format!("ws/empty/{i:04}")), "").unwrap();
    }
    let text = list(&tree, "empty");
    assert_eq!(text.lines().count(), 1001);
    assert!(text.ends_with("0999  0\n[cut: 1000 of 1005 entries; use find_files for the others]"), "{text}");
}

#[test]
fn globs_find_by_name_or_by_path_and_respect_gitignore() {
    let tree = Tree::new(&[
        ("ws/.gitignore", "target\n*.log\n!keep.log\n/top.rs\n"),
        ("ws/src/.gitignore", "/gen.rs\n"),
        ("ws/src/a.rs", ""),
        ("ws/src/gen.rs", ""),
        ("ws/src/deep/gen.rs", ""),
        ("ws/src/top.rs", ""),
        ("ws/top.rs", ""),
        ("ws/keep.log", ""),
        ("ws/x.log", ""),
        ("ws/target/b.rs", ""),
        ("ws/.git/c.rs", ""),
        ("ws/.hidden/d.rs", ""),
    ]);
    tree.link("ws/src/loop", "..");
    for (glob, path, all, expected) in [
        ("*.rs", None, false, ".hidden/d.rs src/a.rs src/deep/gen.rs src/top.rs"),
        ("*.rs", Some("src"), false, "src/a.rs src/deep/gen.rs src/top.rs"),
        ("*.rs", Some("src/deep"), false, "src/deep/gen.rs"),
        ("*.rs", None, true, ".hidden/d.rs src/a.rs src/deep/gen.rs src/gen.rs src/top.rs target/b.rs top.rs"),
        ("src/*.rs", None, false, "src/a.rs src/top.rs"),
        ("./src/**/*.rs", None, false, "src/a.rs src/deep/gen.rs src/top.rs"),
        ("deep/*", Some("src"), false, "src/deep/gen.rs"),
        ("*.log", None, false, "keep.log"),
        ("*.{log,toml}", None, false, "keep.log pintle.toml"),
        ("loop", None, false, "src/loop"),
    ] {
        assert_eq!(find(&tree, glob, path, all).replace('\n', " "), expected, "{glob} {path:?} {all}");
    }
    assert_eq!(find(&tree, "*.zip", None, false), "[no file matches `*.zip`]");
    assert_eq!(find(&tree, "[", None, false), "error: `[` is not a glob: unclosed character class; missing ']'");
    for i in 0..501 {
        fs::write(tree.at(&format!("ws/src/{i:03}.txt")), "").unwrap();
    }
    let text = find(&tree, "*.txt", None, false);
    assert!(text.ends_with("src/499.txt\n[cut after 500 files; narrow the pattern or the path]"), "{text}");
}

#[test]
fn a_search_is_bounded_and_says_what_it_left_out() {
    let tree = Tree::new(&[
        ("ws/.gitignore", "target\n"),
        ("ws/a.rs", "fn Needle() {}\r\nhay\nneedle needle\n"),
        ("ws/b.txt", "needle"),
        ("ws/target/c.rs", "needle\n"),
        ("ws/bin", "needle\0\n"),
    ]);
    fs::write(tree.at("ws/latin"), b"caf\xe9 needle\n").unwrap();
    let all = "a.rs:3: needle needle\nb.txt:1: needle\nlatin:1: caf\u{fffd} needle";
    assert_eq!(search(&tree, pattern("needle")), all);
    assert_eq!(search(&tree, search::Args { glob: Some("*.rs".into()), ..pattern("needle") }), "a.rs:3: needle needle");
    assert_eq!(
        search(
            &tree,
            search::Args { path: Some("a.rs".into()), ignore_case: true, ..pattern("^fn needle\\(\\) \\{\\}$") }
        ),
        "a.rs:1: fn Needle() {}"
    );
    assert_eq!(
        search(&tree, search::Args { path: Some("target".into()), include_ignored: true, ..pattern("needle") }),
        "target/c.rs:1: needle"
    );
    assert_eq!(
        search(&tree, search::Args { max_results: Some(1), ..pattern("needle") }),
        "a.rs:3: needle needle\n[cut after 1 lines; narrow the pattern, the path or the glob]"
    );
    let text = search(&tree, pattern("("));
    assert!(text.starts_with("error: `(` is not a regular expression: "), "{text}");
    let text = search(&tree, pattern("(a{1000}){1000}"));
    assert!(text.contains("exceeds size limit"), "{text}");
    fs::write(tree.at("ws/b.txt"), vec![b'x'; 5 * 1024 * 1024]).unwrap();
    fs::write(tree.at("ws/wide"), format!("{}needle", "w".repeat(500))).unwrap();
    let text = search(&tree, pattern("w.*needle|xxx"));
    assert_eq!(text, format!("wide:1: {}…\n[1 files over 4194304 bytes were not searched]", "w".repeat(300)));
}

#[test]
fn a_folder_that_nests_without_end_is_given_up_on() {
    let tree = Tree::new(&[]);
    let mut deep = tree.at("ws");
    for _ in 0..150 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("x.rs"), "").unwrap();
    assert_eq!(
        find(&tree, "*.rs", None, false),
        "[no file matches `*.rs`]\n[not everything was searched: the folder is too large; narrow the path]"
    );
}
