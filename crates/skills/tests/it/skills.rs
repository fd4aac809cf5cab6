//! Folders of skills as people, and others, may leave them.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use pintle_domain::skill::finding::{Finding, Severity};
use pintle_domain::skill::scan::Scan;
use pintle_skills::{ReadLimits, Scanner, SkillFolder, SkillSeals, SkillSelection, body, scan_hooks};

/// What stands outside and must never be seen.
const CANARY: &str = "the canary sings";

/// A folder with a folder of skills in it.
struct Yard {
    root: tempfile::TempDir,
}

impl Yard {
    fn new() -> Self {
        let yard = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(yard.dir()).unwrap();
        yard
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn dir(&self) -> PathBuf {
        self.at("skills")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.dir().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// A skill whose manifest has one entry for each of `files`, named by its number.
    fn skill(&self, name: &str, files: &[&str]) {
        let entries = files.iter().enumerate().map(|(number, file)| {
            let file = pintle_domain::json::Value::from(*file);
            format!(
                r#"{{"name":"h{number}","file":{file},"timing":"after_user_input","role":"system","persistent":false}}"#
            )
        });
        let entries: Vec<String> = entries.collect();
        self.write(&format!("{name}/hooks/hooks.json"), format!("{{\"hooks\":[\n{}]}}", entries.join(",\n")));
    }

    fn scan(&self, enabled: &[&str]) -> Scan {
        let enabled: Vec<String> = enabled.iter().map(|name| (*name).to_owned()).collect();
        scan_hooks(&enabled, &self.dir())
    }

    /// `text` without the name of the folder.
    fn plain(&self, text: &str) -> String {
        text.replace(self.root.path().to_str().unwrap(), "")
    }

    fn said(&self, findings: &[Finding]) -> String {
        findings.iter().map(|found| self.plain(&format!("{found}\n"))).collect()
    }
}

fn names(scan: &Scan) -> Vec<String> {
    scan.skills.iter().flat_map(|skill| &skill.hooks).map(|hook| format!("{}={}", hook.id(), hook.content)).collect()
}

#[test]
fn skills_stand_in_the_order_in_which_they_are_enabled_and_hooks_in_that_of_their_manifest() {
    let yard = Yard::new();
    for (skill, texts) in [("zeta", ["z.md", "a.md"]), ("alpha", ["two.md", "one.md"])] {
        yard.skill(skill, &texts);
        for text in texts {
            yard.write(&format!("{skill}/hooks/{text}"), format!("\u{feff}\r\n {skill} {text}\r\n"));
        }
    }
    yard.write("zeta/SKILL.md", "---\nname: zeta\ndescription: Does z.\n---\nBody of z.\n");
    yard.write("never/SKILL.md", "---\ndescription: Is not enabled.\n---\n");
    let scan = yard.scan(&["zeta", "alpha", "zeta"]);
    assert_eq!(
        names(&scan),
        [
            "skill:zeta/h0=zeta z.md",
            "skill:zeta/h1=zeta a.md",
            "skill:alpha/h0=alpha two.md",
            "skill:alpha/h1=alpha one.md"
        ]
    );
    assert_eq!(scan.catalogue().names().collect::<Vec<_>>(), ["zeta"]);
    let dup = "warning W5: the skill `zeta` has a hook";
    assert_eq!(
        yard.said(&scan.findings),
        format!(
            "skill `zeta`: warning S3: the skill `zeta` is listed twice; the first one counts\n\
             skill `alpha`: {dup} `h0` as well; both go in\nskill `alpha`: {dup} `h1` as well; both go in\n"
        )
    );
    assert_eq!(scan.worst(), Some(Severity::Warning));
    let other = yard.scan(&["alpha", "zeta"]);
    assert_ne!(scan.hooks().hash, other.hooks().hash, "the order is part of the snapshot");
    assert_eq!(scan.hooks(), yard.scan(&["zeta", "alpha"]).hooks());
}

/// What the manifest of the hostile skill names.
const TEXTS: [&str; 23] = [
    "good.md",
    "/etc/passwd",
    "../../../canary.md",
    "..\\x.md",
    "C:x.md",
    "missing.md",
    "fifo.md",
    "folder.md",
    "socket.md",
    "device.md",
    "out.md",
    "absolute.md",
    "dangling.md",
    "loop.md",
    "big.md",
    "latin.md",
    "nul.md",
    "blank.md",
    "sparse.md",
    "long.md",
    "inside.md",
    "through.md",
    "odd.md",
];

/// What is enabled beside it.
const HOSTILE: [&str; 14] = [
    "hostile",
    "../outside",
    "",
    "pipe",
    "piped",
    "linked",
    "circle",
    "flat",
    "forgotten",
    "huge",
    "broken",
    "plain",
    "named",
    "plian",
];

/// Everything that a folder of texts can hold and that is not text.
fn hostile(yard: &Yard) {
    fs::write(yard.at("canary.md"), CANARY).unwrap();
    fs::create_dir(yard.at("outside")).unwrap();
    fs::write(yard.at("outside/canary.md"), CANARY).unwrap();
    let canary = yard.at("canary.md");
    yard.skill("hostile", &TEXTS);
    let hooks = yard.dir().join("hostile/hooks");
    let at = |name: &str| hooks.join(name);
    for (name, bytes) in [
        ("good.md", b"good".to_vec()),
        ("big.md", vec![b'x'; 300 << 10]),
        ("latin.md", b"caf\xe9".to_vec()),
        ("nul.md", b"a\0b".to_vec()),
        ("blank.md", b" \r\n\t\n".to_vec()),
        ("long.md", vec![b'y'; 3000]),
        ("odd.md", "a\u{202e}b".into()),
    ] {
        fs::write(at(name), bytes).unwrap();
    }
    mkfifo(&at("fifo.md"), Mode::S_IRWXU).unwrap();
    fs::create_dir(at("folder.md")).unwrap();
    drop(UnixListener::bind(at("socket.md")).unwrap());
    symlink("/dev/zero", at("device.md")).unwrap();
    symlink("../../../canary.md", at("out.md")).unwrap();
    symlink(&canary, at("absolute.md")).unwrap();
    symlink("nowhere.md", at("dangling.md")).unwrap();
    symlink("loop.md", at("loop.md")).unwrap();
    symlink("../inside.txt", at("inside.md")).unwrap();
    symlink("../../../outside", at("way")).unwrap();
    symlink("way/canary.md", at("through.md")).unwrap();
    yard.write("hostile/inside.txt", "inside");
    fs::File::create(at("sparse.md")).unwrap().set_len(1 << 40).unwrap();
    // Whole skills that are no skills.
    mkfifo(&yard.dir().join("pipe"), Mode::S_IRWXU).unwrap();
    fs::create_dir_all(yard.dir().join("piped/hooks")).unwrap();
    mkfifo(&yard.dir().join("piped/hooks/hooks.json"), Mode::S_IRWXU).unwrap();
    mkfifo(&yard.dir().join("piped/SKILL.md"), Mode::S_IRWXU).unwrap();
    fs::create_dir(yard.dir().join("linked")).unwrap();
    symlink("../../outside", yard.dir().join("linked/hooks")).unwrap();
    symlink("/etc/passwd", yard.dir().join("linked/SKILL.md")).unwrap();
    fs::create_dir(yard.dir().join("circle")).unwrap();
    symlink("hooks", yard.dir().join("circle/hooks")).unwrap();
    yard.write("flat/hooks", "a file");
    yard.write("forgotten/hooks/a.MD", "text");
    yard.write("huge/hooks/hooks.json", vec![b' '; 300 << 10]);
    yard.write("broken/hooks/hooks.json", "{\"hooks\": [}");
    yard.write("broken/SKILL.md", "---\ndescription: [\n---\n");
    yard.write("plain/SKILL.md", "no front matter");
    yard.write("named/SKILL.md", "---\nname: other\ndescription: It is called otherwise.\n---\n");
}

#[test]
fn a_hostile_tree_costs_little_and_shows_nothing_from_outside() {
    let yard = Yard::new();
    hostile(&yard);
    let watch = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).unwrap();
    let touched = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_ACCESS;
    for path in ["canary.md", "outside/canary.md", "outside"] {
        watch.add_watch(&yard.at(path), touched).unwrap();
    }
    let scan = yard.scan(&HOSTILE);
    assert!(watch.read_events().is_err_and(|error| error == nix::errno::Errno::EAGAIN), "something outside was opened");
    // The watch does see what is opened.
    fs::read(yard.at("canary.md")).unwrap();
    assert!(!watch.read_events().unwrap().is_empty());

    assert_eq!(names(&scan)[..1], ["skill:hostile/h0=good".to_owned()], "what is in order goes in");
    assert_eq!(names(&scan).len(), 4, "the good, the long, the one that is linked to inside, and the odd one");
    assert!(names(&scan).contains(&"skill:hostile/h20=inside".to_owned()));
    assert!(!format!("{scan:?}").contains(CANARY));
    insta::assert_snapshot!(yard.said(&scan.findings));
}

#[test]
fn a_skill_may_be_a_link_and_nothing_in_it_may_lead_out_of_where_that_leads() {
    let yard = Yard::new();
    yard.skill("real", &["a.md"]);
    yard.write("real/hooks/a.md", "text");
    fs::create_dir(yard.at("elsewhere")).unwrap();
    fs::rename(yard.dir().join("real"), yard.at("elsewhere/real")).unwrap();
    symlink(yard.at("elsewhere/real"), yard.dir().join("link")).unwrap();
    assert_eq!(names(&yard.scan(&["link"])), ["skill:link/h0=text"]);
}

#[test]
fn who_swaps_files_while_they_are_read_wins_nothing() {
    let yard = Yard::new();
    yard.skill("racy", &["a.md"]);
    let text = yard.write("racy/hooks/a.md", "mine");
    fs::write(yard.at("canary.md"), CANARY).unwrap();
    let (canary, stop) = (yard.at("canary.md"), Arc::new(AtomicBool::new(false)));
    let swapper = std::thread::spawn({
        let (stop, link, plain) = (stop.clone(), yard.at("link"), yard.at("plain"));
        move || {
            let mut swaps = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                symlink(&canary, &link).unwrap();
                fs::rename(&link, &text).unwrap();
                fs::write(&plain, "mine").unwrap();
                fs::rename(&plain, &text).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    for _ in 0..300 {
        let found = names(&yard.scan(&["racy"]));
        assert!(found.is_empty() || found == ["skill:racy/h0=mine"], "{found:?}");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 0);
}

#[test]
fn a_manifest_that_breaks_keeps_what_it_said_before() {
    let yard = Yard::new();
    let dir = yard.dir();
    let enabled = ["one".to_owned(), "two".to_owned()];
    let wanted = SkillSelection::of(&dir, &enabled);
    for skill in ["one", "two"] {
        yard.skill(skill, &["a.md"]);
        yard.write(&format!("{skill}/hooks/a.md"), "first");
    }
    let mut scanner = Scanner::default();
    let found = |scanner: &Scanner| names(scanner.current());
    assert!(scanner.look(wanted));
    assert!(!scanner.look(wanted), "nothing changed");
    let (first, before) = (scanner.current().clone(), found(&scanner));

    yard.write("one/hooks/hooks.json", "{\"hooks\": [");
    yard.write("two/hooks/a.md", "second");
    assert!(scanner.look(wanted));
    assert_eq!(found(&scanner), ["skill:one/h0=first", "skill:two/h0=second"]);
    assert!(scanner.current().skill("one").unwrap().stale && !scanner.current().skill("two").unwrap().stale);
    let said = yard.said(&scanner.current().findings);
    assert!(said.contains("error F3: it is not JSON") && said.contains("before stay in force"), "{said}");
    assert_eq!(names(&first), before, "a snapshot never changes");
    assert!(!scanner.look(wanted), "it is as stale as before");

    // Entries fall alone, and what is gone is gone.
    yard.skill("one", &["a.md", "gone.md"]);
    fs::remove_dir_all(dir.join("two")).unwrap();
    assert!(scanner.look(wanted));
    assert_eq!(found(&scanner), ["skill:one/h0=first"]);
    assert!(!scanner.current().skill("one").unwrap().stale);
    yard.write("one/hooks/hooks.json", "[]");
    fs::remove_file(dir.join("one/hooks/a.md")).unwrap();
    assert!(scanner.look(wanted) && found(&scanner) == ["skill:one/h0=first"]);
    fs::remove_file(dir.join("one/hooks/hooks.json")).unwrap();
    assert!(scanner.look(wanted) && found(&scanner).is_empty());
    yard.write("one/hooks/hooks.json", "[]");
    assert!(scanner.look(wanted) && found(&scanner).is_empty(), "what was taken out does not come back");
}

#[test]
fn a_body_is_read_when_it_is_asked_for_and_only_from_inside() {
    let yard = Yard::new();
    yard.write("a/SKILL.md", "---\ndescription: x\n---\n\n# Do it\n");
    yard.write("a/reference/deep/table.csv", "1,2\n");
    yard.write("b/SKILL.md", "just text");
    fs::write(yard.at("canary.md"), CANARY).unwrap();
    symlink("../../canary.md", yard.dir().join("a/out.md")).unwrap();
    yard.write("a/large.md", vec![b'x'; (256 << 10) + 1]);
    yard.write("a/binary", b"\x7fELF\0");
    let a = yard.dir().join("a");
    let check = |file: Option<&str>| body(&a, file, ReadLimits::default()).map_err(|why| why.to_string());
    let text = format!(
        "[The folder of this skill is {}. Relative paths below are about it; commands need the whole path. Beside \
         SKILL.md it holds: binary, large.md, reference/deep/table.csv]\n\n# Do it",
        a.display()
    );
    assert_eq!(check(None).unwrap(), text);
    assert_eq!(check(Some("Reference/DEEP/table.CSV")).unwrap(), "1,2\n", "the case of letters does not matter");
    assert_eq!(check(Some("larg.md")).unwrap_err(), "is not there (did you mean `large.md`?)");
    assert_eq!(check(Some("reference/deep/../deep/table.csv")).unwrap(), "1,2\n");
    assert_eq!(body(&yard.dir().join("b"), None, ReadLimits::default()).unwrap(), "just text");
    for (file, why) in [
        ("../../canary.md", "leads out of the folder of its skill"),
        ("/etc/passwd", "leads out of the folder of its skill"),
        ("out.md", "leads out of the folder of its skill"),
        ("reference", "is not a regular file (it is a folder)"),
        ("no.md", "is not there"),
        ("SKILL.md/x", "is not there (a part of the path is not a folder)"),
        ("binary", "holds a zero byte"),
        ("large.md", "is too large (262145 bytes, at most 262144 are read)"),
        ("", "is not there"),
    ] {
        assert_eq!(check(Some(file)), Err(why.to_owned()), "{file}");
    }
    assert!(body(Path::new("/nowhere/at/all"), None, ReadLimits::default()).is_err());
}

/// One row of the table of findings: the code, what is written in `hooks.json`, and the hooks that are in force all the
/// same.
const ROWS: [(&str, &str, &str); 24] = [
    ("", r#"{"hooks": [A], "description": "x", "version": 1, "$schema": "y"}"#, "a"),
    ("", r#"{"hooks": []}"#, ""),
    ("F3", r#"{"hooks": [A],}"#, ""),
    ("F3", "// why\n{\"hooks\": [A]}", ""),
    ("F4", r#"[A]"#, ""),
    ("F4", r#"{"hook": [A]}"#, ""),
    ("F5", r#"{"hooks": {"PreToolUse": [A]}}"#, ""),
    ("F7", r#"{"hooks": [A], "hokos": 1}"#, "a"),
    ("F9", r#"{"hooks": [A], "hooks": [B]}"#, ""),
    ("F9", r#"{"hooks": [A, {"name": "x", "name": "y"}, B]}"#, "a b"),
    ("E1", r#"{"hooks": [A, "x", B]}"#, "a b"),
    ("E2", r#"{"hooks": [A, {"name": "x"}, B]}"#, "a b"),
    ("E3", r#"{"hooks": [A, X-"persistent": false-"persistent": "false"-, B]}"#, "a b"),
    ("E4", r#"{"hooks": [A, X-"x"-""-, B]}"#, "a b"),
    ("E5", r#"{"hooks": [A, X-"x"-"a"-, B]}"#, "a b"),
    ("E6", r#"{"hooks": [A, X-after_tool_call-After_Tool_Call-, B]}"#, "a b"),
    ("E7", r#"{"hooks": [A, X-"system"-"assistant"-, B]}"#, "a b"),
    ("E8", r#"{"hooks": [A, X-good.md-gone.md-, B]}"#, "a b"),
    ("E9", r#"{"hooks": [A, X-"tool_filter": ["t"]-"tool_filter": [""]-, B]}"#, "a b"),
    ("W1", r#"{"hooks": [A, X-after_tool_call-before_planning-, B]}"#, "a x b"),
    ("W2", r#"{"hooks": [X-["t"]-[]-]}"#, "x"),
    ("W3", r#"{"hooks": [X-["t"]-null-]}"#, "x"),
    ("W6", r#"{"hooks": [X-"persistent": false-"persistent": true-]}"#, "x"),
    ("W8", r#"{"hooks": [X-good.md-long.md-]}"#, "x"),
];

/// The manifest that a row stands for: `A` and `B` are good entries, `X-FROM-TO-` is one in which something is replaced.
fn spelt(row: &str) -> String {
    let entry = |name: &str| {
        format!(
            r#"{{"name": "{name}", "file": "good.md", "timing": "after_tool_call", "role": "system", "persistent": false, "tool_filter": ["t"]}}"#
        )
    };
    let mut text = row.to_owned();
    if let Some((before, rest)) = row.split_once("X-") {
        let mut parts = rest.splitn(3, '-');
        let (from, to, after) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let changed = entry("x").replace(from, to);
        assert_ne!(changed, entry("x"), "{row}");
        text = format!("{before}{changed}{after}");
    }
    text.replace("[A", &format!("[{}", entry("a"))).replace(" B]", &format!(" {}]", entry("b"))).replace("[B]", "[]")
}

#[test]
fn a_fault_costs_the_smallest_unit_that_holds_it_and_is_named() {
    for (code, row, kept) in ROWS {
        let yard = Yard::new();
        yard.write("s/hooks/hooks.json", spelt(row));
        yard.write("s/hooks/good.md", "text");
        yard.write("s/hooks/long.md", "y".repeat((2 << 10) + 1));
        let scan = yard.scan(&["s"]);
        let codes: Vec<String> = scan.findings.iter().map(|found| found.code.to_string()).collect();
        let names: Vec<&str> = scan.skills[0].hooks.iter().map(|hook| hook.name.as_str()).collect();
        assert_eq!((codes.join(" ").as_str(), names.join(" ").as_str()), (code, kept), "{row}\n{}", spelt(row));
    }
}

#[test]
fn what_is_wrong_with_a_manifest_is_told_from_top_to_bottom() {
    let yard = Yard::new();
    let file =
        r#"{"name": "x", "file": "gone.md", "timing": "after_user_input", "role": "system", "persistent": false}"#;
    yard.write("s/hooks/hooks.json", format!("{{\"hooks\": [\n{file},\n7],\n\"hokos\": 1}}"));
    let scan = yard.scan(&["s"]);
    let lines: Vec<String> = scan.findings.iter().map(|found| format!("{}:{:?}", found.code, found.line)).collect();
    assert_eq!(lines, ["E8:Some(2)", "E1:Some(3)", "F7:Some(4)"]);
}

#[test]
fn bounds_hold_to_the_byte() {
    let check = |manifest_bytes: usize, text_bytes: usize, codes: &str, hooks: usize| {
        let yard = Yard::new();
        let mut manifest = spelt(r#"{"hooks": [A]}"#);
        manifest += &" ".repeat(manifest_bytes - manifest.len());
        yard.write("s/hooks/hooks.json", manifest);
        yard.write("s/hooks/good.md", "y".repeat(text_bytes));
        let scan = yard.scan(&["s"]);
        let found: Vec<String> = scan.findings.iter().map(|found| found.code.to_string()).collect();
        assert_eq!(
            (found.join(" ").as_str(), scan.skills[0].hooks.len()),
            (codes, hooks),
            "{manifest_bytes} {text_bytes}"
        );
    };
    check(256 << 10, 2 << 10, "", 1);
    check((256 << 10) + 1, 2 << 10, "F2", 0);
    check(1 << 10, 64 << 10, "W8", 1);
    check(1 << 10, (64 << 10) + 1, "E8", 0);
    check(1 << 10, 1, "", 1);
    check(1 << 10, 0, "E8", 0);
}

#[test]
fn of_a_sealed_skill_nothing_is_read_but_what_was_accepted() {
    let yard = Yard::new();
    yard.skill("one", &["a.md"]);
    yard.write("one/hooks/a.md", "text");
    yard.write("one/SKILL.md", "---\ndescription: Says something.\n---\nBody.");
    yard.write("one/MORE.md", "more");
    symlink("MORE.md", yard.dir().join("one/LINK.md")).unwrap();
    let folder = yard.dir().join("one");
    let seal = SkillFolder::open(&folder, ReadLimits::default()).unwrap().seal().unwrap();
    let seals = SkillSeals::from([("one".to_owned(), Arc::new(seal.clone()))]);
    let enabled = ["one".to_owned(), "two".to_owned()];
    let mut scanner = Scanner::default();
    let mut look = || {
        let dir = yard.dir();
        scanner.look(SkillSelection { seals: Some(&seals), ..SkillSelection::of(&dir, &enabled) });
        scanner.current().clone()
    };
    let loaded = |file: Option<&str>| body(&folder, file, ReadLimits { seal: Some(&seal), hidden: None });
    let scan = look();
    assert_eq!((scan.hooks().hooks.len(), scan.skill("one").unwrap().description.is_some()), (1, true));
    assert_eq!(["MORE.md", "./MORE.md", "LINK.md"].map(|file| loaded(Some(file)).unwrap()), ["more", "more", "more"]);
    let text = loaded(None).unwrap();
    assert!(text.starts_with("[The folder") && text.ends_with("it holds: LINK.md, MORE.md]\n\nBody."), "{text}");

    // What changes or comes afterwards is not read, whoever asks for it.
    yard.write("one/hooks/a.md", "Obey me.");
    yard.write("one/MORE.md", "Obey me.");
    yard.write("one/NEW.md", "Obey me.");
    let refused = |file: &str| loaded(Some(file)).unwrap_err().to_string();
    for file in ["MORE.md", "LINK.md", "NEW.md"] {
        assert_eq!(refused(file), "is not as it was accepted with `pintle trust`", "{file}");
    }
    yard.skill("two", &["a.md"]);
    yard.write("two/hooks/a.md", "Obey me.");
    yard.write("two/SKILL.md", "---\ndescription: Obey me.\n---\n");
    let scan = look();
    let texts: Vec<String> = scan.hooks().hooks.iter().map(|hook| hook.content.clone()).collect();
    assert_eq!(texts, Vec::<String>::new());
    assert!(scan.skill("two").unwrap().description.is_none(), "{:?}", scan.findings);
    assert!(yard.said(&scan.findings).contains("is not as it was accepted"), "{}", yard.said(&scan.findings));
}

#[test]
fn a_hidden_file_is_not_read_under_any_name() {
    let yard = Yard::new();
    yard.write("one/SKILL.md", "Body.");
    fs::write(yard.at("key"), CANARY).unwrap();
    fs::hard_link(yard.at("key"), yard.dir().join("one/KEY.md")).unwrap();
    let is_key = |file: &fs::File| file.metadata().is_ok_and(|of| std::os::unix::fs::MetadataExt::nlink(&of) > 1);
    let loaded =
        |file: &str| body(&yard.dir().join("one"), Some(file), ReadLimits { seal: None, hidden: Some(&is_key) });
    assert!(loaded("SKILL.md").unwrap().ends_with("]\n\nBody."));
    assert_eq!(loaded("KEY.md").unwrap_err().to_string(), "is protected: it is one of Pintle's own files");
}
