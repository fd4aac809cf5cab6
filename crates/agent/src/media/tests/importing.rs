//! What a result may name, and what it may not.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use pintle_domain::tool::ToolOutput;

use super::*;
use crate::tools::{Guard, Protected};

/// Imports `entry` for a hook whose folder is `bench.hook()`: the content and its type, or why not.
fn imported(bench: &Bench, entry: &str) -> Result<(Vec<u8>, String), String> {
    let (turn, dir) = (bench.turn("t", "s"), bench.hook());
    let reference = turn.import(&MediaOrigin { dir: Some(&dir), hides: None, source: "h" }, entry).map_err(|said| {
        assert_eq!(said.entry, entry);
        said.why
    })?;
    let file = turn.resolve(&reference).unwrap();
    assert_eq!(file.sha256, sha256(&fs::read(&file.path).unwrap()));
    Ok((fs::read(&file.path).unwrap(), file.content_type))
}

fn refused(bench: &Bench, entry: &str) -> String {
    imported(bench, entry).unwrap_err()
}

fn taken(bench: &Bench, entry: &str) -> Vec<u8> {
    imported(bench, entry).unwrap().0
}

#[test]
fn a_file_of_the_hook_is_copied() {
    let bench = Bench::new();
    let path = bench.file("shot.png", PNG);
    assert_eq!(imported(&bench, &path), Ok((PNG.to_vec(), "image/png".into())));
    let turn = bench.turn("t", "s");
    let reference = turn.import(&MediaOrigin { dir: Some(&bench.hook()), hides: None, source: "h" }, &path).unwrap();
    fs::write(&path, "other").unwrap();
    let file = turn.resolve(&reference).unwrap();
    assert_eq!((fs::read(file.path).unwrap(), file.file_name.as_str()), (PNG.to_vec(), "shot.png"));
    assert_eq!(imported(&bench, &bench.file("empty", b"")), Ok((Vec::new(), "application/octet-stream".into())));
}

#[test]
fn links_lead_only_inside() {
    let bench = Bench::new();
    let inside = bench.file("a", b"a");
    let (root, hook) = (bench.root.path(), bench.hook());
    fs::write(root.join("secret"), "secret").unwrap();
    fs::create_dir(root.join("hook-two")).unwrap();
    fs::write(root.join("hook-two/b"), "b").unwrap();
    symlink(&inside, hook.join("absolute")).unwrap();
    symlink("a", hook.join("relative")).unwrap();
    symlink(root.join("secret"), hook.join("out")).unwrap();
    symlink("../secret", hook.join("up")).unwrap();
    symlink(root, hook.join("folder")).unwrap();
    symlink(&hook, root.join("way-in")).unwrap();
    symlink("loop", hook.join("loop")).unwrap();
    symlink("nowhere", hook.join("dangling")).unwrap();
    let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
    for path in ["hook/absolute", "hook/relative", "way-in/a", "hook/../hook/a", "hook/folder/hook/a"] {
        assert_eq!(taken(&bench, &at(path)), b"a", "{path}");
    }
    let outside = format!("its real path does not lie in the hook's `dir`, {:?}", hook.canonicalize().unwrap());
    for path in ["hook/out", "hook/up", "hook/folder/secret", "secret", "hook/../secret", "hook-two/b"] {
        assert_eq!(refused(&bench, &at(path)), outside, "{path}");
    }
    assert_eq!(refused(&bench, "/dev/null"), outside);
    assert_eq!(refused(&bench, &at("hook/loop")), "it cannot be read: Too many levels of symbolic links (os error 40)");
    let missing = "it cannot be read: No such file or directory (os error 2)";
    assert_eq!(refused(&bench, &at("hook/dangling")), missing);
    assert_eq!(refused(&bench, &at("hook/none")), missing);
}

#[test]
fn only_regular_files_are_opened() {
    let bench = Bench::new();
    let hook = bench.hook();
    nix::unistd::mkfifo(&hook.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(hook.join("socket")).unwrap();
    fs::create_dir(hook.join("folder")).unwrap();
    let at = |path: &str| hook.join(path).to_str().unwrap().to_owned();
    assert_eq!(refused(&bench, &at("fifo")), "expected a regular file, got a named pipe");
    assert_eq!(refused(&bench, &at("socket")), "expected a regular file, got a socket");
    assert_eq!(refused(&bench, &at("folder")), "expected a regular file, got a folder");
    assert_eq!(refused(&bench, &at("")), "expected a regular file, got a folder");
    let (turn, dir) = (bench.turn("t", "s"), PathBuf::from("/dev"));
    let said = turn.import(&MediaOrigin { dir: Some(&dir), hides: None, source: "h" }, "/dev/zero").unwrap_err();
    assert_eq!(said.why, "expected a regular file, got a device");
    let sparse = bench.file("sparse", b"");
    fs::File::options().write(true).open(&sparse).unwrap().set_len(MAX_MEDIUM_BYTES + 1).unwrap();
    assert_eq!(refused(&bench, &sparse), "it is larger than 26214400 bytes");
    assert_eq!(bench.stored(), 0);
}

/// While one thread swaps a file for a link to a secret and back, no import ever sees the secret.
#[test]
fn a_file_that_is_swapped_meanwhile_leaks_nothing() {
    use std::sync::atomic::AtomicBool;
    let bench = Bench::new();
    let path = bench.file("a", b"public");
    let secret = bench.root.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let stop = AtomicBool::new(false);
    let swaps = |n: u32| {
        let next = bench.hook().join("next");
        if n.is_multiple_of(2) {
            symlink(&secret, &next).unwrap()
        } else {
            fs::write(&next, "public").unwrap()
        }
        fs::rename(&next, &path).unwrap();
    };
    let mut seen = [0; 2];
    std::thread::scope(|threads| {
        threads.spawn(|| (0..).take_while(|_| !stop.load(Ordering::SeqCst)).for_each(swaps));
        for _ in 0..500 {
            match imported(&bench, &path) {
                Ok((bytes, _)) => {
                    assert_eq!(bytes, b"public");
                    seen[0] += 1;
                }
                Err(_) => seen[1] += 1,
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(seen[0] + seen[1], 500);
}

/// Whoever can write into the folder of a hook can give any file there a name.
#[test]
fn what_is_the_hosts_is_taken_under_no_name() {
    let bench = Bench::new();
    let (turn, dir, home) = (bench.turn("t", "s"), bench.hook(), bench.root.path().join("home"));
    fs::create_dir(&home).unwrap();
    for (file, link) in [("home/key", "key.txt"), ("pintle.toml", "notes.txt"), ("own", "own.txt")] {
        fs::write(bench.root.path().join(file), "a secret").unwrap();
        fs::hard_link(bench.root.path().join(file), dir.join(link)).unwrap();
    }
    let files = vec![bench.root.path().join("pintle.toml")];
    let guard = Guard::new(&Protected { files, dirs: vec![home], ..Protected::default() });
    let hides = |file: &File| guard.hides(file);
    let taken = |name: &str| {
        let from = MediaOrigin { dir: Some(&dir), hides: Some(&hides), source: "h" };
        turn.import(&from, dir.join(name).to_str().unwrap()).map(drop).map_err(|said| said.why)
    };
    let refused = || Err("it is one of Pintle's own files, under another name".to_owned());
    assert_eq!([taken("key.txt"), taken("notes.txt"), taken("own.txt")], [refused(), refused(), Ok(())]);
}

#[test]
fn without_a_folder_no_path_is_taken() {
    let bench = Bench::new();
    let path = bench.file("a", b"a");
    let turn = bench.turn("t", "s");
    let said = |dir: Option<&Path>| turn.import(&MediaOrigin { dir, hides: None, source: "h" }, &path).unwrap_err().why;
    assert_eq!(said(None), "a path is taken only from a hook whose `dir` is set");
    let gone = "the hook's `dir` cannot be used: No such file or directory (os error 2)";
    assert_eq!(said(Some(&bench.hook().join("gone"))), gone);
}

#[test]
fn other_entries_are_refused() {
    let bench = Bench::new();
    bench.file("a", b"a");
    let unfamiliar = "expected a `media://` reference, a `data:` URL or the absolute path of a file";
    for entry in
        ["", "a", "./a", "../a", "~/a", "file:///etc/passwd", "https://h/x.png", "MEDIA://x", " /a", "data", "é"]
    {
        assert_eq!(refused(&bench, entry), unfamiliar, "{entry:?}");
    }
    for entry in ["media://", "media://../hook", "media://0123456789abcdef0123456789abcdef"] {
        assert_eq!(refused(&bench, entry), UNKNOWN, "{entry:?}");
    }
    let zero = refused(&bench, &format!("{}\0/x", bench.hook().display()));
    assert!(zero.starts_with("it cannot be read: "), "{zero}");
}

#[test]
fn data_urls_are_read_as_browsers_do() {
    let bench = Bench::new();
    let table: [(&str, &[u8], &str); 14] = [
        ("data:,", b"", "text/plain"),
        ("data:,a%20b%zz", b"a b%zz", "text/plain"),
        ("DATA:text/markdown,%23%20x", b"# x", "text/markdown"),
        ("data:text/plain;charset=utf-8,%C3%A9", "é".as_bytes(), "text/plain"),
        ("data:;base64,eA==", b"x", "text/plain"),
        ("data:;base64,eA", b"x", "text/plain"),
        ("data:;base64,e A=\n=", b"x", "text/plain"),
        ("data:;base64,eA%3D%3D", b"x", "text/plain"),
        ("data:audio/ogg;codecs=opus;BASE64,eA==", b"x", "audio/ogg"),
        ("data:image/jpeg;base64,iVBORw0KGgoAAf4=", PNG, "image/png"),
        ("data:nonsense,x", b"x", "text/plain"),
        ("data:a/b/c;base64,eA==", b"x", "text/plain"),
        ("data:text/html,<p>a</p>", b"<p>a</p>", "text/html"),
        ("data:application/x-\u{202e};base64,eA==", b"x", "application/octet-stream"),
    ];
    for (entry, bytes, content_type) in table {
        assert_eq!(imported(&bench, entry), Ok((bytes.to_vec(), content_type.to_owned())), "{entry}");
    }
    let bad = "it is not a well-formed `data:` URL: ";
    assert_eq!(refused(&bench, "data:image/png;base64"), format!("{bad}there is no comma before its data"));
    for entry in ["data:;base64,e", "data:;base64,eA=", "data:;base64,e*==", "data:;base64,eA==eA=="] {
        assert_eq!(refused(&bench, entry), format!("{bad}its data is not base64"), "{entry}");
    }
}

#[test]
fn a_data_url_ends_at_the_limit() {
    let bench = Bench::new();
    let url = |extra: usize| format!("data:,{}", "x".repeat(MAX_MEDIUM_BYTES as usize + extra));
    assert_eq!(taken(&bench, &url(0)).len() as u64, MAX_MEDIUM_BYTES);
    assert_eq!(refused(&bench, &url(1)), "it is larger than 26214400 bytes");
    assert_eq!(bench.stored(), 1);
}

#[test]
fn a_result_is_received_whole() {
    let bench = Bench::new();
    let (turn, dir) = (bench.turn("t", "s"), bench.hook());
    let path = bench.file("a.txt", b"a");
    let own = turn.add(plain(b"own")).unwrap();
    let foreign = bench.turn("t", "other").add(plain(b"foreign")).unwrap();
    let media = [&path, &own, &foreign, "data:,x", "/etc/passwd", &path, "x.png"].map(String::from);
    let output = ToolOutput { media: media.into(), artifact_tags: vec!["/p".into()], ..ToolOutput::ok("text") };
    let (received, unusable) = turn.receive(&MediaOrigin { dir: Some(&dir), hides: None, source: "h" }, output.clone());
    let contents: Vec<_> = received.media.iter().map(|r| fs::read(turn.resolve(r).unwrap().path).unwrap()).collect();
    assert_eq!(contents, [&b"a"[..], b"own", b"x"]);
    assert_eq!(received.media[1], own);
    assert_eq!(ToolOutput { media: output.media.clone(), ..received.clone() }, output);
    let entries: Vec<_> = unusable.iter().map(|unusable| unusable.entry.as_str()).collect();
    assert_eq!(entries, [foreign.as_str(), "/etc/passwd", "x.png"]);
    let delivered = received.clone().delivered(&unusable);
    assert!(delivered.for_llm.starts_with(&format!("text\n\nmedia unavailable: {foreign}: {UNKNOWN}\n\n")));
    assert_eq!(delivered.media, received.media);
    // As long as the turn runs they stay; a result without media costs nothing.
    bench.pass(60 * MINUTE);
    assert_eq!(bench.sweep(), 1);
    let nothing = turn.receive(&MediaOrigin { dir: None, hides: None, source: "h" }, ToolOutput::ok("x"));
    assert_eq!(nothing, (ToolOutput::ok("x"), Vec::new()));
}

#[test]
fn a_flood_of_entries_ends_at_the_bound() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let media = (0..100_000).map(|n| format!("data:,{n}")).collect();
    let output = ToolOutput { media, response_handled: true, ..ToolOutput::default() };
    let (received, unusable) = turn.receive(&MediaOrigin { dir: None, hides: None, source: "h" }, output);
    assert_eq!((received.media.len(), bench.stored()), (64, 64));
    let said: Vec<_> = unusable.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["99936 more: a result carries at most 64 media"]);
}
