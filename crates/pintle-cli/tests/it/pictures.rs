//! The pictures of the README and the guides: what the program prints, with its colours.
//!
//! A picture that shows anything else than the program does now fails; `cargo xtask gen` draws it anew. How long
//! something took, and which number it got, may differ.

use std::path::Path;
use std::process::Stdio;

use anstyle::RgbColor;
use anstyle_svg::{Palette, Term};
use regex::Regex;

use super::env::{ON_TERMINAL, PINTLE, TestEnv};
use super::run::scripted;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/skills");

/// As wide as the lines of explanations are in pictures.
const COLUMNS: &str = "104";

/// The sixteen colours, and those of paper and ink, light enough for the dark paper.
const PALETTE: Palette = Palette([
    RgbColor(0x1b, 0x1f, 0x26),
    RgbColor(0xf0, 0x7a, 0x75),
    RgbColor(0x8c, 0xc8, 0x81),
    RgbColor(0xe3, 0xb6, 0x5c),
    RgbColor(0x7f, 0xae, 0xee),
    RgbColor(0xc7, 0x9b, 0xe6),
    RgbColor(0x66, 0xc5, 0xcf),
    RgbColor(0xd9, 0xdc, 0xe1),
    RgbColor(0x9a, 0x9d, 0xa3),
    RgbColor(0xf5, 0x9a, 0x96),
    RgbColor(0xa6, 0xda, 0x9d),
    RgbColor(0xee, 0xcb, 0x82),
    RgbColor(0xa3, 0xc5, 0xf5),
    RgbColor(0xd8, 0xb8, 0xf0),
    RgbColor(0x8e, 0xd8, 0xe0),
    RgbColor(0xf2, 0xf3, 0xf5),
]);
const PAPER: RgbColor = RgbColor(0x1b, 0x1f, 0x26);
const INK: RgbColor = RgbColor(0xd9, 0xdc, 0xe1);

/// One terminal: what was typed, and what came.
struct Screen<'a> {
    env: &'a TestEnv,
    shown: String,
}

impl<'a> Screen<'a> {
    fn of(env: &'a TestEnv) -> Self {
        Self { env, shown: String::new() }
    }

    /// Shows `typed` behind a prompt, with a remark, and runs the program as if it had been typed.
    fn run(&mut self, args: &[&str], remark: &str) -> &mut Self {
        let quoted = |word: &&str| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() };
        let typed = args.iter().map(quoted).collect::<Vec<_>>().join(" ");
        self.shown.push_str(&format!("\x1b[1m$ pintle {typed}\x1b[0m\x1b[2m{remark}\x1b[0m\n"));
        // Some questions are answered on a terminal only.
        let mut command = self.env.command("python3");
        command.args(["-c", ON_TERMINAL, "y\n", PINTLE, "--color", "always"]).args(args).env("COLUMNS", COLUMNS);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let here = self.env.path("here").display().to_string();
        self.shown.push_str(&String::from_utf8(output.stdout).unwrap().replace(&here, "~/project"));
        self
    }
}

/// `text` with times and numbers of a run made equal.
fn same(text: &str) -> String {
    let rules = [
        (r" *(?:<|\b)[0-9]+(\.[0-9]+)? (µs|ms|s)\b", " TIME"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "ID"),
        (r"\b([0-9a-f]{8}(-[0-9a-f]{4})?|[0-9a-f]{12})\b", "ID"),
        (r"sha256 [0-9a-f]+", "sha256 DIGEST"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC", "AT"),
        // The widest line says how wide a picture is.
        (r#"<svg width="[0-9]+px""#, "<svg"),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

/// Compares the picture `name` with what is `shown`; or draws it, where it shows anything else.
fn check(name: &str, shown: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(format!("{name}.svg"));
    let term = Term::new().palette(PALETTE).bg_color(PAPER.into()).fg_color(INK.into());
    // What is dim by the usual opacity is too dark to read.
    let drawn = term.render_svg(shown.trim_end()).replace("opacity: 0.4", "opacity: 0.65");
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    if same(&kept) == same(&drawn) {
        return;
    }
    assert!(
        std::env::var_os("PINTLE_GENERATE").is_some(),
        "docs/images/{name}.svg is not what the program prints: run `cargo xtask gen`, look at the picture, and commit \
         it. The program prints:\n{shown}"
    );
    std::fs::write(&file, drawn).unwrap();
}

#[test]
fn the_demo() {
    let env = TestEnv::new();
    let mut screen = Screen::of(&env);
    screen.run(&["demo"], "");
    check("demo", &screen.shown);
}

#[test]
fn a_call_waits_for_a_person() {
    let call = r#"{"when": {"contains": "Push"}, "tool_calls": [{"name": "exec", "arguments": {"command": "git push -q origin main && echo pushed"}}]},
        {"when": {"tool_result": "pushed"}, "text": "Done: your commit is on origin/main."}"#;
    let env = scripted(call, "tools = ['exec']\nask = ['exec']\n");
    let git = "git init -q --bare ../origin.git && git init -q -b main && git remote add origin ../origin.git \
               && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first";
    assert!(env.command("sh").args(["-c", git]).status().unwrap().success());
    let mut screen = Screen::of(&env);
    screen.run(&["run", "--session", "trip", "Push my commit."], "");
    let waits: serde_json::Value = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
    let id = waits[0]["id"].as_str().unwrap();
    screen.shown.push('\n');
    screen.run(&["approvals", "approve", &id[..13]], "          # in another terminal");
    screen.shown.push('\n');
    screen.run(&["sessions", "resume", "trip"], "");
    assert!(screen.shown.contains("Done: your commit"), "{}", screen.shown);
    check("approval", &screen.shown);
}

#[test]
fn what_calls_read() {
    let env = scripted(
        "",
        &format!(
            "system = 'Be brief.'\ntools = ['read_file', 'web_fetch']\nskills = ['house-style', 'cite-sources']\n\
             [skills]\ndir = '{EXAMPLES}'\n"
        ),
    );
    let mut screen = Screen::of(&env);
    screen.run(&["skills", "explain", "--message", "Summarise https://example.org for our readers."], "");
    // The first and the third call say it all.
    let blocks: Vec<&str> = screen.shown.split("\n\n").collect();
    let [head, first, _, third, _] = blocks[..] else { panic!("{}", screen.shown) };
    assert!(first.contains("call R1") && third.contains("call R3"), "{}", screen.shown);
    check("skills", &[head, first, "…", third].join("\n\n"));
}
