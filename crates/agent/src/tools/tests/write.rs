//! Writing and editing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use pintle_domain::tool::ToolOutput;

use super::Tree;
use crate::tools::error::ToolError;
use crate::tools::{edit, write};

fn text(result: Result<ToolOutput, ToolError>) -> String {
    result.map_or_else(|e| format!("error: {e}"), |output| output.for_llm)
}

fn write(tree: &Tree, path: &str, content: &str) -> String {
    text(write::write(&tree.workspace, &write::Args { path: path.into(), content: content.into() }))
}

fn edit(tree: &Tree, path: &str, old: &str, new: &str, replace_all: bool) -> String {
    let args = edit::Args { path: path.into(), old_text: old.into(), new_text: new.into(), replace_all };
    text(edit::edit(&tree.workspace, &args))
}

/// The names in a folder: nothing may be left behind.
fn names(tree: &Tree, path: &str) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(tree.at(path)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_made_replaced_and_found_through_links() {
    let tree = Tree::new(&[("ws/old", "old\n"), ("ws/d/x", "")]);
    tree.link("ws/link", "d/x");
    tree.link("ws/dir", "d");
    for (path, real, answer) in [
        ("new", "ws/new", "wrote `new` (4 bytes)"),
        ("old", "ws/old", "replaced `old` (4 bytes)"),
        ("a/b/c", "ws/a/b/c", "wrote `a/b/c` (4 bytes)"),
        ("./d/../a/n", "ws/a/n", "wrote `./d/../a/n` (4 bytes)"),
        ("link", "ws/d/x", "replaced `link` (4 bytes)"),
        ("dir/y", "ws/d/y", "wrote `dir/y` (4 bytes)"),
        ("dir/z/y", "ws/d/z/y", "wrote `dir/z/y` (4 bytes)"),
    ] {
        assert_eq!(write(&tree, path, "text"), answer, "{path}");
        assert_eq!(tree.text(real), "text", "{path}");
    }
    assert!(fs::symlink_metadata(tree.at("ws/link")).unwrap().is_symlink());
    assert_eq!(names(&tree, "ws"), ["a", "d", "dir", "link", "new", "old", "pintle.toml"]);
    let absolute = tree.at("ws/abs").to_str().unwrap().to_owned();
    assert_eq!(write(&tree, &absolute, ""), format!("wrote `{absolute}` (0 bytes)"));
    let output = write::write(&tree.workspace, &write::Args { path: "tag".into(), content: String::new() }).unwrap();
    assert_eq!(output.artifact_tags, ["tag"]);
}

#[test]
fn what_may_not_be_written_stays_as_it_is() {
    let tree = Tree::new(&[("out/x", "out\n"), ("ws/d/x", "x\n")]);
    tree.link("ws/up", "../out");
    tree.link("ws/file", "../out/x");
    tree.link("ws/dangling", "nowhere");
    tree.link("ws/conf", "pintle.toml");
    tree.link("ws/soon", "later.toml");
    tree.link("ws/ghost", "../home/new");
    tree.fifo("ws/fifo");
    fs::hard_link(tree.at("ws/pintle.toml"), tree.at("ws/twin")).unwrap();
    fs::hard_link(tree.at("home/db"), tree.at("ws/d/db")).unwrap();
    let before = names(&tree, "ws");
    for (path, reason) in [
        ("../out/x", "outside the workspace"),
        ("../new", "outside the workspace"),
        ("up/x", "outside the workspace"),
        ("up/new", "outside the workspace"),
        ("up/new/deep", "outside the workspace"),
        ("file", "outside the workspace"),
        ("/etc/pintle-test", "outside the workspace"),
        ("dangling", "is a symbolic link to nothing"),
        ("soon", "is a symbolic link to nothing"),
        ("ghost", "outside the workspace"),
        ("pintle.toml", "is protected"),
        ("./d/../pintle.toml", "is protected"),
        ("conf", "is protected"),
        ("twin", "is protected"),
        ("later.toml", "is protected"),
        ("pintle.json", "is protected"),
        ("d/deep/pintle.json", "is protected"),
        ("d/PINTLE.JSON", "is protected"),
        ("d/db", "is protected"),
        ("fifo", "is a named pipe"),
        ("d", "is a folder"),
        (".", "is a folder"),
        ("new/..", "does not exist"),
        ("new/../x", "does not exist"),
        ("d/x/y", "is not a folder"),
        ("a\0b", "zero byte"),
        (&"n".repeat(300), "cannot write"),
    ] {
        let answer = write(&tree, path, "evil");
        assert!(answer.starts_with("error: ") && answer.contains(reason), "{path}: {answer}");
    }
    assert_eq!(names(&tree, "ws"), before);
    assert_eq!(names(&tree, "out"), ["x"]);
    assert_eq!(names(&tree, "home"), ["db"]);
    assert_eq!((tree.text("out/x"), tree.text("ws/d/x")), ("out\n".into(), "x\n".into()));
    assert_eq!(
        (tree.text("ws/pintle.toml"), tree.text("home/db")),
        ("secret_of = 1\n".into(), "the home's data\n".into())
    );
    for path in ["conf", "twin", "pintle.toml"] {
        assert!(edit(&tree, path, "secret_of", "x", false).contains("is protected"), "{path}");
    }
}

#[test]
fn the_mode_stays_and_no_set_user_id_comes_along() {
    let tree = Tree::new(&[("ws/run", "x")]);
    for (mode, kept) in [(0o750, 0o750), (0o4711, 0o711), (0o600, 0o600)] {
        fs::set_permissions(tree.at("ws/run"), fs::Permissions::from_mode(mode)).unwrap();
        write(&tree, "run", "y");
        assert_eq!(fs::metadata(tree.at("ws/run")).unwrap().mode() & 0o7777, kept);
    }
}

#[test]
fn a_reader_sees_the_old_text_or_the_new_one() {
    let (old, new) = ("a".repeat(100_000), "b".repeat(100_000));
    let tree = Tree::new(&[("ws/f", &old)]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..50 {
                write(&tree, "f", if i % 2 == 0 { &new } else { &old });
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = tree.text("ws/f");
            assert!(seen == old || seen == new, "{} bytes", seen.len());
        }
    });
}

#[test]
fn a_folder_that_turns_into_a_link_does_not_lead_out() {
    let tree = Tree::new(&[("ws/d/x", "x\n"), ("out/x", "out\n")]);
    tree.link("ws/l", "../out");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..300 {
                write(&tree, "d/x", "evil");
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            // In one step: there always is a folder and a link, and only their names change.
            renameat2(AT_FDCWD, &tree.at("ws/d"), AT_FDCWD, &tree.at("ws/l"), RenameFlags::RENAME_EXCHANGE).unwrap();
        }
    });
    assert_eq!(tree.text("out/x"), "out\n");
    assert_eq!(names(&tree, "out"), ["x"]);
}

#[test]
fn a_passage_is_replaced_exactly_once() {
    let tree = Tree::new(&[("ws/f", "one\ntwo\ntwo\nthree\n")]);
    assert_eq!(edit(&tree, "f", "one\n", "1\n", false), "replaced 1 passage in `f`, at line 1");
    assert_eq!(
        edit(&tree, "f", "two", "2", false),
        "error: `old_text` stands 2 times in `f` (lines 2, 3); give more of its surroundings, or set `replace_all`"
    );
    assert_eq!(edit(&tree, "f", "two", "2", true), "replaced 2 passages in `f`, the first at line 2");
    assert_eq!(edit(&tree, "f", "three\n", "", false), "replaced 1 passage in `f`, at line 4");
    assert_eq!(tree.text("ws/f"), "1\n2\n2\n");
    assert_eq!(
        edit(&tree, "f", "x", "x", false),
        "error: `old_text` and `new_text` are equal: there is nothing to change"
    );
    assert_eq!(edit(&tree, "none", "x", "y", false), "error: `none` does not exist");
    fs::write(tree.at("ws/latin"), b"caf\xe9").unwrap();
    assert!(edit(&tree, "latin", "caf", "x", false).contains("is not UTF-8 text"));
    fs::File::create(tree.at("ws/big")).unwrap().set_len(9 << 20).unwrap();
    assert!(edit(&tree, "big", "x", "y", false).contains("has 9437184 bytes; at most 8388608"));
}

#[test]
fn a_miss_shows_what_comes_closest() {
    let tree = Tree::new(&[
        ("ws/f", "fn a() {\n\tlet x = 1;\n\tlet y = 2;\n}\n"),
        ("ws/dos", "one\r\ntwo\r\n"),
        ("ws/other", "nothing alike\n"),
    ]);
    assert_eq!(
        edit(&tree, "f", "    let x = 1;\n    let y = 2;", "", false),
        "error: `old_text` does not stand in `f`; lines 2 to 3 differ from it only in white space or line ends:\n\
         \tlet x = 1;\n\tlet y = 2;"
    );
    assert_eq!(
        edit(&tree, "f", "\tlet z = 1;\n", "", false),
        "error: `old_text` does not stand in `f`; the closest is at line 2:\n\tlet x = 1;"
    );
    assert_eq!(
        edit(&tree, "dos", "one\ntwo", "", false),
        "error: `old_text` does not stand in `dos`; lines 1 to 2 differ from it only in white space or line ends:\n\
         one\ntwo\n[the lines of this file end in carriage return and line feed]"
    );
    assert_eq!(
        edit(&tree, "other", "let x = 1;", "", false),
        "error: `old_text` does not stand in `other`; read the file again, nothing in it comes close"
    );
}

#[test]
fn nothing_new_is_made_beside_what_a_hook_runs() {
    let tree =
        Tree::new(&[("ws/hooks/guard.py", "import json\n"), ("ws/hooks/notes.md", "old\n"), ("ws/lib/x", "x\n")]);
    tree.link("ws/alias", "hooks");
    for path in ["hooks/json.py", "./lib/../hooks/json.py", "hooks/json/__init__.py", "hooks/a/b/c", "alias/json.py"] {
        let answer = write(&tree, path, "evil");
        assert!(answer.contains("would stand beside a script of hook \"guard\""), "{path}: {answer}");
    }
    assert_eq!(names(&tree, "ws/hooks"), ["guard.py", "notes.md"]);
    // What is there already is a file like any other; so are folders that stand there, and those above.
    assert!(write(&tree, "hooks/notes.md", "new").starts_with("replaced"));
    assert!(write(&tree, "lib/json.py", "fine").starts_with("wrote"));
    assert!(write(&tree, "json.py", "fine").starts_with("wrote"));
}
