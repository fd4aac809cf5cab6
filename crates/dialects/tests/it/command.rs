//! The files of commands, looked up beside a configuration.

use std::collections::BTreeSet;
use std::path::Path;

use pintle_dialects::command::{CommandForm, FilesBeside, MissingFile, PlacedCommand, depends_on_folder, form};
use proptest::prelude::*;

/// What stands in the folder of the configuration.
const THERE: [&str; 15] = [
    "guard.py",
    "gate.sh",
    "gate.js",
    "my guard.py",
    "hooks/deep.py",
    "pkg/__main__.py",
    "pkg/sub.py",
    "gate/__init__.py",
    "gate.py",
    "solo.py",
    "app/index.js",
    "rules.json",
    "pre.js",
    "bin/tool",
    "guard.ts",
];

fn place(argv: &[&str]) -> Result<PlacedCommand, MissingFile> {
    let is_file = |path: &Path| THERE.iter().any(|file| Path::new("/etc/pintle").join(file) == path);
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    FilesBeside { folder: Path::new("/etc/pintle"), is_file: &is_file }.place(&argv)
}

#[test]
fn the_files_of_words_are_those_beside_the_configuration() {
    let check = |argv: &str, expected: &str| {
        let placed = place(&argv.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!((placed.argv.join(" ").as_str(), placed.form), (expected, CommandForm::Words), "{argv}");
    };
    check("python3 guard.py", "python3 /etc/pintle/guard.py");
    check("python3.12 -u -W ignore ./guard.py --strict x", "python3.12 -u -W ignore /etc/pintle/guard.py --strict x");
    check("python3 -Xdev guard.py", "python3 -Xdev /etc/pintle/guard.py");
    check("python3 -- guard.py", "python3 -- /etc/pintle/guard.py");
    check("python3 pkg", "python3 /etc/pintle/pkg");
    check("/usr/bin/python3 hooks/./deep.py", "/usr/bin/python3 /etc/pintle/hooks/deep.py");
    check("./gate.sh a", "/etc/pintle/gate.sh a");
    check("bin/tool --rules rules.json", "/etc/pintle/bin/tool --rules /etc/pintle/rules.json");
    check("tool --rules=rules.json", "tool --rules=/etc/pintle/rules.json");
    check("sh -eu gate.sh", "sh -eu /etc/pintle/gate.sh");
    check("bash -o pipefail gate.sh", "bash -o pipefail /etc/pintle/gate.sh");
    check("node gate", "node /etc/pintle/gate");
    check("node app", "node /etc/pintle/app");
    check("node -r ./pre.js gate.js", "node -r /etc/pintle/pre.js /etc/pintle/gate.js");
    check("node --import=./pre.js gate.js", "node --import=/etc/pintle/pre.js /etc/pintle/gate.js");
    check("node -r dotenv/config gate.js", "node -r dotenv/config /etc/pintle/gate.js");
    check("deno run -A guard.ts", "deno run -A /etc/pintle/guard.ts");
    check("bun run guard.ts", "bun run /etc/pintle/guard.ts");
    check("npx tsx guard.ts", "npx tsx /etc/pintle/guard.ts");
    check("uv run guard.py", "uv run /etc/pintle/guard.py");
    check("uv run python -u guard.py", "uv run python -u /etc/pintle/guard.py");
    check("env -u A B=c python3 guard.py", "env -u A B=c python3 /etc/pintle/guard.py");
    check("timeout -k 1 5 nice ./gate.sh", "timeout -k 1 5 nice /etc/pintle/gate.sh");
    // These say nothing of a folder.
    for as_it_is in [
        "python3 /opt/guard.py",
        "npx -y @modelcontextprotocol/server-filesystem /data .",
        "docker run --rm me/image",
        "deno task guard",
        "deno run https://example.com/guard.ts",
        "true",
        "git diff --quiet",
        "eslint src/a.js",
        "python3 -",
        "node -e code missing.js",
        "ruby -rset -e code",
    ] {
        check(as_it_is, as_it_is);
    }
    assert_eq!(place(&["python3", "my guard.py"]).unwrap().argv, ["python3", "/etc/pintle/my guard.py"]);
    assert_eq!(place(&[]).unwrap().argv, Vec::<String>::new());
}

#[test]
fn the_files_of_a_plain_text_are_so_too_and_others_are_not_looked_at() {
    let check = |text: &str, expected: &str, form: CommandForm| {
        let placed = place(&["/bin/sh", "-c", text]).unwrap();
        assert_eq!((placed.argv[2].as_str(), placed.form), (expected, form), "{text}");
    };
    check("python3 guard.py", "python3 /etc/pintle/guard.py", CommandForm::Words);
    check("  python3   'my guard.py' --x 'a|b'", "  python3   '/etc/pintle/my guard.py' --x 'a|b'", CommandForm::Words);
    check(". ./gate.sh", ". /etc/pintle/gate.sh", CommandForm::Words);
    check("exec ./gate.sh", "exec /etc/pintle/gate.sh", CommandForm::Words);
    check("python3 ~/guard.py", "python3 ~/guard.py", CommandForm::Words);
    check("sh \"$HOME/gate.sh\" guard.py", "sh \"$HOME/gate.sh\" /etc/pintle/guard.py", CommandForm::Words);
    check("exit 2", "exit 2", CommandForm::Words);
    for text in [
        "bash -c 'python3 guard.py'",
        "python3 guard.py | tee log",
        "cd x && ./gate.sh",
        "$CLAUDE_PROJECT_DIR/gate.sh",
        "A=b ./gone.sh",
    ] {
        check(text, text, CommandForm::ShellText);
    }
    // The shell itself is a file like others, and a text is no file.
    assert_eq!(place(&["bin/tool", "-c", "gate.sh"]).unwrap().argv[0], "/etc/pintle/bin/tool");
    assert_eq!(place(&["./bash", "-c", "exit 2"]).unwrap_err().name, "./bash");
    assert_eq!(place(&["sh", "-c", "gate.sh"]).unwrap().argv, ["sh", "-c", "gate.sh"]);
    let placed = place(&["env", "-C", "/x", "./gate.sh"]).unwrap();
    assert_eq!(placed.form, CommandForm::ShellText);
    let placed = place(&["timeout", "5", "bash", "-euo", "pipefail", "-c", "sh gate.sh", "name"]).unwrap();
    assert_eq!((placed.argv[6].as_str(), placed.form), ("sh /etc/pintle/gate.sh", CommandForm::Words));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let check = |argv: &[&str], word: usize, name: &str| {
        let missing = MissingFile { word, name: name.to_owned(), folder: "/etc/pintle".into() };
        assert_eq!(place(argv).unwrap_err(), missing, "{argv:?}");
    };
    check(&["python3", "gone.py"], 1, "gone.py");
    check(&["./gone"], 0, "./gone");
    check(&["env", "A=b", "nice", "../gone.sh"], 3, "../gone.sh");
    check(&["node", "-r", "./gone.js", "gate.js"], 2, "./gone.js");
    check(&["php", "-f", "gone.php"], 2, "gone.php");
    check(&["ruby", "-rset", "gone.rb"], 2, "gone.rb");
    check(&["uv", "run", "gone.py"], 2, "gone.py");
    check(&["/bin/sh", "-c", "python3 -u gone.py"], 2, "gone.py");
    let said = place(&["python3", "gone.py"]).unwrap_err().to_string();
    for part in ["`gone.py`", "does not exist in /etc/pintle", "put the file there, or write its absolute path"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_module_is_run_from_there_and_never_from_where_it_runs() {
    assert_eq!(place(&["python3", "-m", "solo", "x"]).unwrap().argv, ["python3", "/etc/pintle/solo.py", "x"]);
    assert_eq!(place(&["python3", "-um", "solo"]).unwrap().argv, ["python3", "-u", "/etc/pintle/solo.py"]);
    assert_eq!(place(&["python3", "-msolo"]).unwrap().argv, ["python3", "/etc/pintle/solo.py"]);
    let code = |argv: &[&str]| {
        let placed = place(argv).unwrap();
        assert_eq!((placed.argv[1].as_str(), placed.form), ("-c", CommandForm::Words));
        placed.argv[2].clone()
    };
    for module in ["pkg", "pkg.sub", "gate"] {
        let code = code(&["python3", "-m", module]);
        assert!(code.contains(r#"["/etc/pintle"] + [p for p in sys.path if p]"#), "{code}");
        assert!(code.contains(&format!("run_module({module:?}")), "{code}");
    }
    // One that is installed: neither folder counts.
    let code = code(&["python3", "-m", "json.tool"]);
    assert!(
        code.contains("sys.path = [p for p in sys.path if p];") && code.contains(r#"run_module("json.tool""#),
        "{code}"
    );
    let placed = place(&["/bin/sh", "-c", "python3 -m pkg --strict"]).unwrap();
    assert!(placed.argv[2].starts_with("python3 -c 'import sys;") && placed.argv[2].ends_with("' --strict"));
}

#[test]
fn what_depends_on_the_folder_is_known_without_looking() {
    let check = |argv: &[&str], expected: bool| {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(depends_on_folder(&argv), expected, "{argv:?}");
    };
    check(&["/bin/sh", "-c", "python3 guard.py"], true);
    check(&["/bin/sh", "-c", "python3 -m gate"], true);
    check(&["/bin/sh", "-c", "jq . | grep x"], true);
    check(&["/bin/sh", "-c", "python3 /etc/pintle/guard.py"], false);
    check(&["/bin/sh", "-c", "python3 ~/guard.py"], false);
    check(&["python3", "guard.py"], true);
    check(&["npx", "eslint", "."], false);
    let text = |text: &str| form(&["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()]);
    assert_eq!((text("a | b"), text("./a b")), (CommandForm::ShellText, CommandForm::Words));
}

proptest! {
    /// Whatever is written: what was placed once is placed so again, wherever one looks; and a word that is a file there
    /// is never left to the folder in which the command runs.
    #[test]
    fn placing_is_done_once(words in proptest::collection::vec(word(), 0..7), is_text in any::<bool>()) {
        // A text that begins like an option is one.
        let is_text = is_text && words.first().is_some_and(|first| !first.starts_with('-'));
        let argv: Vec<String> = match is_text {
            true => vec!["/bin/sh".to_owned(), "-c".to_owned(), words.join(" ")],
            false => words,
        };
        let there: BTreeSet<_> = THERE.iter().map(|file| Path::new("/etc/pintle").join(file)).collect();
        let beside = FilesBeside { folder: Path::new("/etc/pintle"), is_file: &|path| there.contains(path) };
        if let Ok(placed) = beside.place(&argv) {
            let elsewhere = FilesBeside { folder: Path::new("/w/agent"), is_file: &|_| true };
            if placed.form == CommandForm::Words && !placed.argv.iter().any(|word| word.contains("gone")) {
                let words = if is_text { vec![placed.argv[2].clone()] } else { placed.argv.clone() };
                let relative = |word: &&str| THERE.contains(word);
                // A program without a slash is looked up in `PATH`, and there is one.
                let left: Vec<&str> = words.iter().flat_map(|text| text.split(' ')).filter(relative).collect();
                prop_assert!(left.len() <= 1, "{left:?} in {placed:?}");
            }
            prop_assert_eq!(&beside.place(&placed.argv).unwrap(), &placed);
            prop_assert_eq!(elsewhere.place(&argv).unwrap().form, placed.form);
        }
    }
}

/// Words that commands are made of.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "python3",
        "node",
        "sh",
        "env",
        "nice",
        "timeout",
        "5",
        "guard.py",
        "gate.sh",
        "rules.json",
        "gone.py",
        "./gone",
        "-m",
        "pkg",
        "solo",
        "-u",
        "-r",
        "./pre.js",
        "--x=rules.json",
        "-c",
        "--",
        "A=b",
        "|",
        "/opt/x.py",
        "uv",
        "run",
        "exec",
        "~/x",
        "$HOME/y",
        "npx",
        "tsx",
        "-um",
        "-e",
    ];
    proptest::sample::select(words.map(str::to_owned).to_vec())
}
