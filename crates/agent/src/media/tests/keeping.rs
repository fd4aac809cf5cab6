//! How long a medium stays, and for whom.

use super::*;

#[test]
fn a_file_is_kept_whole_and_private() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let new = NewMedia { file_name: "../Shot 1.png", source: "hook h", ..plain(PNG) };
    let reference = turn.add(new).unwrap();
    let file = turn.resolve(&reference).unwrap();
    let folder = bench.root.path().canonicalize().unwrap().join("media").join(&reference["media://".len()..]);
    let expected = MediaFile {
        path: folder.join("Shot 1.png"),
        file_name: "Shot 1.png".into(),
        content_type: "image/png".into(),
        size_bytes: 11,
        sha256: sha256(PNG),
        reference,
    };
    assert_eq!(file, expected);
    assert_eq!(fs::read(&file.path).unwrap(), PNG);
    let modes = [&bench.root.path().join("media"), &folder, &file.path, &folder.join(".about.json")].map(|p| mode(p));
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
    let about: pintle_domain::json::Value =
        serde_json::from_slice(&fs::read(folder.join(".about.json")).unwrap()).unwrap();
    assert_eq!([&about["source"], &about["tenant"], &about["session"]], ["hook h", "t", "s"]);
}

#[test]
fn an_open_folder_is_closed_and_a_file_is_no_folder() {
    let bench = Bench::new();
    let folder = bench.root.path().join("other");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    MediaStore::open(folder.clone()).unwrap();
    assert_eq!(mode(&folder), 0o700);
    let file = bench.root.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(MediaStore::open(file.clone()).is_err());
    assert_eq!(fs::read(file).unwrap(), b"x");
}

#[test]
fn a_reference_is_for_its_session_and_what_it_delegates() {
    let bench = Bench::new();
    let reference = bench.turn("t", "s").add(plain(b"x")).unwrap();
    let sees = |scope: MediaScope| bench.store.turn(scope).resolve(&reference).is_ok();
    assert!(sees(scope("t", "s")));
    assert!(sees(scope("t", "s").child("c".into())));
    assert!(sees(scope("t", "s").child("c".into()).child("d".into())));
    assert!(!sees(scope("t", "c")));
    assert!(!sees(scope("u", "s")));
    assert!(!sees(scope("u", "s").child("c".into())));
    assert!(!sees(scope("t", "other").child("c".into())));
    let child = bench.store.turn(scope("t", "s").child("c".into())).add(plain(b"y")).unwrap();
    let said = bench.turn("t", "s").resolve(&child).unwrap_err();
    assert_eq!((said.entry, said.why.as_str()), (child, UNKNOWN));
}

#[test]
fn thirty_minutes_after_the_last_use_it_is_gone() {
    let bench = Bench::new();
    let reference = bench.turn("t", "s").add(plain(b"x")).unwrap();
    bench.pass(30 * MINUTE);
    assert_eq!(bench.sweep(), 0);
    bench.turn("t", "s").resolve(&reference).unwrap();
    bench.pass(30 * MINUTE);
    assert_eq!(bench.sweep(), 0);
    bench.pass(Duration::from_secs(1));
    // Also before anybody has swept.
    assert_eq!(bench.turn("t", "s").resolve(&reference).unwrap_err().why, UNKNOWN);
    assert_eq!((bench.sweep(), bench.stored()), (1, 0));
    assert_eq!(bench.turn("t", "s").resolve(&reference).unwrap_err().why, UNKNOWN);
}

#[test]
fn a_running_turn_keeps_what_it_made_and_used() {
    let bench = Bench::new();
    let (first, second) = (bench.turn("t", "s"), bench.turn("t", "s"));
    let reference = first.add(plain(b"x")).unwrap();
    bench.pass(20 * MINUTE);
    second.resolve(&reference).unwrap();
    drop(first);
    bench.pass(24 * 60 * MINUTE);
    assert_eq!(bench.sweep(), 0);
    assert_eq!(fs::read(second.resolve(&reference).unwrap().path).unwrap(), b"x");
    // A second process that uses the folder does not know of the turn, but of the use.
    let other = Bench::opened(bench.root.path(), bench.seconds.clone());
    assert_eq!(other.sweep(bench.now() + 30 * MINUTE).unwrap(), 0);
    bench.pass(60 * MINUTE);
    assert_eq!(bench.sweep(), 0);
    assert_eq!(other.sweep(bench.now() + 30 * MINUTE).unwrap(), 0);
    drop(second);
    bench.pass(31 * MINUTE);
    assert_eq!(bench.sweep(), 1);
}

#[test]
fn what_failed_to_resolve_is_not_held() {
    let bench = Bench::new();
    let reference = bench.turn("t", "s").add(plain(b"x")).unwrap();
    let stranger = bench.turn("t", "other");
    assert!(stranger.resolve(&reference).is_err());
    bench.pass(31 * MINUTE);
    assert_eq!(bench.sweep(), 1);
    drop(stranger);
}

#[test]
fn it_survives_a_restart() {
    let bench = Bench::new();
    let reference = bench.turn("t", "s").add(plain(b"x")).unwrap();
    let again = Bench::opened(bench.root.path(), bench.seconds.clone());
    assert_eq!(fs::read(again.turn(scope("t", "s")).resolve(&reference).unwrap().path).unwrap(), b"x");
    assert_eq!(again.sweep(bench.now() + 31 * MINUTE).unwrap(), 1);
}

#[test]
fn a_sweep_takes_left_overs_and_nothing_else() {
    let bench = Bench::new();
    let folder = bench.root.path().join("media");
    for name in [".gone-%a", ".new-%b", "%c"] {
        let path = folder.join(name.replace('%', "0123456789abcdef0123456789abcde"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "x").unwrap();
    }
    for name in ["notes", ".gone-notes", "0123"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("0123456789abcdef0123456789abcde0"), "a file").unwrap();
    std::os::unix::fs::symlink(bench.hook(), folder.join("0123456789abcdef0123456789abcde1")).unwrap();
    bench.file("a", b"x");
    // These were made by the real clock, which is what a sweep long after it has to go by.
    bench.store.sweep(SystemTime::now() + 365 * 24 * 60 * MINUTE).unwrap();
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let left = [".gone-notes", "0123", "0123456789abcdef0123456789abcde0", "0123456789abcdef0123456789abcde1", "notes"];
    assert_eq!(names, left);
    assert!(bench.hook().join("a").exists());
}

#[test]
fn a_draft_that_is_being_written_stays() {
    let bench = Bench::new();
    let draft = bench.root.path().join("media/.new-0123456789abcdef0123456789abcdef");
    fs::create_dir(&draft).unwrap();
    let made = fs::metadata(&draft).unwrap().modified().unwrap();
    bench.store.sweep(made + 30 * MINUTE).unwrap();
    assert!(draft.exists());
    bench.store.sweep(made + 31 * MINUTE).unwrap();
    assert!(!draft.exists());
}

#[test]
fn a_file_that_was_tampered_with_is_not_used() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let out = bench.root.path().join("out");
    let check = |tamper: &dyn Fn(&Path, &Path), expected: &str| {
        let reference = turn.add(plain(b"good")).unwrap();
        let path = turn.resolve(&reference).unwrap().path;
        tamper(path.parent().unwrap(), &path);
        assert_eq!(turn.deliver(&reference, &out).unwrap_err().why, expected);
    };
    let changed = "its file was changed after it was stored";
    check(&|_, file| fs::write(file, "evil").unwrap(), changed);
    check(&|_, file| fs::write(file, "").unwrap(), changed);
    check(&|_, file| fs::remove_file(file).unwrap(), "it cannot be read: No such file or directory (os error 2)");
    check(&|dir, _| fs::write(dir.join(".about.json"), "{").unwrap(), changed);
    check(&|dir, _| fs::remove_file(dir.join(".about.json")).unwrap(), UNKNOWN);
    let secret = bench.file("secret", b"good");
    check(
        &|_, file| {
            fs::remove_file(file).unwrap();
            std::os::unix::fs::symlink(&secret, file).unwrap();
        },
        "it cannot be read: Too many levels of symbolic links (os error 40)",
    );
    let renamed = |dir: &Path, name: &str| {
        let about = dir.join(".about.json");
        let text = fs::read_to_string(&about).unwrap();
        fs::write(&about, text.replace("a.txt", name)).unwrap();
    };
    check(&|dir, _| renamed(dir, "../../hook/secret"), changed);
    check(&|dir, _| renamed(dir, &secret), changed);
    assert!(!out.exists());
}

#[test]
fn copies_get_names_of_their_own() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let out = bench.root.path().join("deep/out");
    let names = ["a.txt", "/x/../a.txt", "a.txt", "..", "", "\0", "archive.tar.gz", "archive.tar.gz"];
    let delivered = names.map(|file_name| {
        let reference = turn.add(NewMedia { file_name, ..plain(file_name.as_bytes()) }).unwrap();
        let path = turn.deliver(&reference, &out).unwrap();
        assert_eq!(fs::read(&path).unwrap(), file_name.as_bytes());
        path.strip_prefix(&out).unwrap().to_str().unwrap().to_owned()
    });
    let expected =
        ["a.txt", "a-2.txt", "a-3.txt", "file.bin", "file-2.bin", "file-3.bin", "archive.tar.gz", "archive.tar-2.gz"];
    assert_eq!(delivered, expected);
    let reference = turn.add(plain(b"x")).unwrap();
    let said = turn.deliver(&reference, &out.join("a.txt")).unwrap_err();
    assert_eq!(said.why, "it cannot be written: File exists (os error 17)");
}

#[test]
fn a_link_in_the_way_of_a_copy_is_not_followed() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let target = bench.root.path().join("target");
    std::os::unix::fs::symlink(&target, bench.hook().join("a.txt")).unwrap();
    let reference = turn.add(plain(b"x")).unwrap();
    assert_eq!(turn.deliver(&reference, &bench.hook()).unwrap(), bench.hook().join("a-2.txt"));
    assert!(!target.exists());
}

#[test]
fn a_file_that_is_too_large_leaves_nothing() {
    let bench = Bench::new();
    let turn = bench.turn("t", "s");
    let bytes = vec![0; MAX_MEDIUM_BYTES as usize + 1];
    assert_eq!(turn.add(plain(&bytes)).unwrap_err().to_string(), "it is larger than 26214400 bytes");
    assert_eq!(bench.stored(), 0);
    turn.add(plain(&bytes[1..])).unwrap();
}
