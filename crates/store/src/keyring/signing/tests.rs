//! Keys in files, signatures, and a chain that is checked with the public key only.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use pintle_domain::audit::{AuditFinding, AuditKind, AuditLine, AuditLines, Verifier, append};
use pintle_domain::json::Object;

use super::*;

/// The first test vector of RFC 8032 7.1.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

fn home_with(key: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(SIGNING_KEY_FILE);
    fs::write(&path, key).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    home
}

#[test]
fn a_known_seed_gives_the_known_key_and_signature() {
    let home = home_with(&format!("ed25519-seed:{SEED}\n"));
    let key = SigningKey::open_or_create(home.path()).unwrap();
    assert_eq!(key.public_line(), "ed25519:21fe31df:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    assert_eq!(
        key.sign(b""),
        "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw=="
    );
    assert_eq!(format!("{key:?}"), "SigningKey { kid: \"21fe31df\", .. }");
}

#[test]
fn a_key_is_made_once_and_its_public_half_beside_it() {
    let home = tempfile::tempdir().unwrap();
    let first = SigningKey::open_or_create(home.path()).unwrap();
    let second = SigningKey::open_or_create(home.path()).unwrap();
    assert_eq!((first.kid(), first.sign(b"x")), (second.kid(), second.sign(b"x")));
    let mode = |name| fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(SIGNING_KEY_FILE), 0o600);
    let public = home.path().join(PUBLIC_KEY_FILE);
    assert_eq!(fs::read_to_string(&public).unwrap(), format!("{}\n", first.public_line()));
    // A public key that is not this one's is replaced; nothing else is left behind.
    fs::write(&public, "stale").unwrap();
    SigningKey::open_or_create(home.path()).unwrap();
    assert_eq!(fs::read_to_string(&public).unwrap(), format!("{}\n", first.public_line()));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
}

#[test]
fn what_is_no_signing_key_is_refused_and_kept() {
    for text in ["", SEED, "ed25519-seed:", &format!("ed25519-seed:{SEED}0\n"), &format!("ed25519-seed:{SEED}\n\n")] {
        let home = home_with(text);
        let error = SigningKey::open_or_create(home.path()).unwrap_err().to_string();
        let path = home.path().join(SIGNING_KEY_FILE);
        assert_eq!(
            error,
            format!(
                "audit signing key: `{}` does not hold `ed25519-seed:` and 64 hex digits; restore it from a backup, or \
                 move it away and a new key is made",
                path.display()
            )
        );
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
}

#[test]
fn public_keys_are_read_by_line_and_bad_lines_named() {
    let good = "ed25519:21fe31df:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let one = PublicKeys::parse(good).unwrap();
    assert_eq!(PublicKeys::parse(&format!("# ours\n\n  {good}\r\n{good}")), Ok(one));
    let line = |line, why| Err(PublicKeysError::Line { line, why });
    for (text, expected) in [
        ("", Err(PublicKeysError::None)),
        ("# none\n", Err(PublicKeysError::None)),
        (&format!("{good}\nssh-ed25519 AAAA"), line(2, "it has another form")),
        (&format!("{good}:x"), line(1, "it has another form")),
        (&good.replace("RSA", "").replace("11q", "1!q"), line(1, "the key is not base64")),
        ("ed25519:21fe31df:AAAA", line(1, "the key has not 32 bytes")),
        (&good.replace("21fe", "21ff"), line(1, "the id is not that of the key")),
    ] {
        assert_eq!(PublicKeys::parse(text), expected, "{text}");
    }
}

#[test]
fn a_signature_is_good_for_its_message_and_key_only() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = SigningKey::open_or_create(home.path()).unwrap();
    let stranger = SigningKey::open_or_create(other.path()).unwrap();
    let keys = PublicKeys::parse(&key.public_line()).unwrap();
    let signature = key.sign(b"message");
    assert_eq!(keys.verify(key.kid(), b"message", &signature), Proof::Good);
    assert_eq!(keys.verify(key.kid(), b"massage", &signature), Proof::Bad);
    assert_eq!(keys.verify(key.kid(), b"message", &stranger.sign(b"message")), Proof::Bad);
    assert_eq!(keys.verify(stranger.kid(), b"message", &signature), Proof::UnknownKey);
    for garbage in ["", "!", "AAAA", &signature[4..], &format!("{signature}AAAA")] {
        assert_eq!(keys.verify(key.kid(), b"message", garbage), Proof::Bad);
    }
}

#[test]
fn an_exported_chain_is_verified_with_the_public_key_only() {
    let home = tempfile::tempdir().unwrap();
    let key = SigningKey::open_or_create(home.path()).unwrap();
    let (tenant, mut head, mut file) = (TenantId::from("default"), ChainHead::GENESIS, String::new());
    let time = Timestamp::from_second(1_800_000_000).unwrap();
    for _ in 0..5 {
        let (entry, next) = append(&head, &tenant, time, AuditKind::Decision, Object::new()).unwrap();
        head = next;
        file.push_str(&format!("{}\n", AuditLine::Entry(entry)));
        if head.seq == 4 {
            file.push_str(&format!("{}\n", AuditLine::Checkpoint(key.checkpoint(&tenant, &head, time))));
        }
    }
    let keys = PublicKeys::parse(&fs::read_to_string(home.path().join(PUBLIC_KEY_FILE)).unwrap()).unwrap();
    let verify = |file: &str| {
        let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
        let (mut verifier, mut lines) = (Verifier::new(&check), AuditLines::default());
        lines.feed(file.as_bytes(), |line| verifier.line(line));
        lines.end(|line| verifier.line(line));
        verifier.finish()
    };
    let report = verify(&file);
    assert!(report.is_intact(), "{report}");
    assert_eq!((report.tenants[0].proven_to, report.tenants[0].unproven_rows), (Some(4), 1));
    // A checkpoint cannot be moved to another row, though its own members stay whole.
    let moved = file.replacen(
        "\"checkpoint\",\"tenant_id\":\"default\",\"seq\":4",
        "\"checkpoint\",\"tenant_id\":\"default\",\"seq\":3",
        1,
    );
    assert_ne!(moved, file);
    let expected = AuditFinding::BadSignature { seq: 3, kid: key.kid().into() };
    assert_eq!(verify(&moved).tenants[0].findings, [expected]);
}

#[test]
fn the_example_of_the_reference_page_says_what_the_page_says() {
    let page = include_str!("../../../../../docs/reference/audit.md");
    let starting = |mark: &str| -> String {
        page.lines().filter(|line| line.starts_with(mark)).map(|line| format!("{line}\n")).collect()
    };
    let keys = PublicKeys::parse(&starting("ed25519:")).unwrap();
    let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
    let (mut verifier, mut lines) = (Verifier::new(&check), AuditLines::default());
    lines.feed(starting("{\"type\":").as_bytes(), |line| verifier.line(line));
    let report = verifier.finish();
    assert_eq!(report.tenants[0].rows, 3);
    assert!(page.contains(&format!("```text\n{report}```")), "{report}");
}

#[test]
fn a_key_that_is_given_goes_before_the_file_and_leaves_what_was_signed_before_proven() {
    let folder = tempfile::tempdir().unwrap();
    let own = SigningKey::open_or_create(folder.path()).unwrap();
    let source = |value: &str| {
        let value = OsString::from(value);
        SigningSource::new(move |name| (name == ENV_SIGNING_KEY).then(|| value.clone()), folder.path())
    };
    assert_eq!(source("").key().unwrap().kid(), own.kid(), "an empty one is none");
    let hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let given = source(hex).key().unwrap();
    assert_ne!(given.kid(), own.kid());
    assert_eq!(source(&format!("{SEED_MARK}{hex}\n")).key().unwrap().kid(), given.kid(), "the line of a file");
    let public = std::fs::read_to_string(folder.path().join(PUBLIC_KEY_FILE)).unwrap();
    assert_eq!(public, format!("{}\n{}\n", given.public_line(), own.public_line()));
    let keys = PublicKeys::parse(&public).unwrap();
    for key in [&given, &own] {
        assert_eq!(keys.verify(key.kid(), b"text", &key.sign(b"text")), Proof::Good);
    }
    let told = source("secret-text").key().unwrap_err().to_string();
    assert!(told.contains("holds 11 bytes that are not a key") && !told.contains("secret-text"), "{told}");
    assert!(!format!("{:?}", source(hex)).contains(hex));
}
