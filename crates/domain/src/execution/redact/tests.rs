//! What looks like a secret, and what only seems to.

use super::*;

#[test]
fn secrets_go_before_the_text_is_cut() {
    let check = |text: &str, expected: &str| assert_eq!(redacted(text), expected);
    check("mail ann.b+c@example.org now", "mail [REDACTED] now");
    check("Authorization: bEaReR abcdefgh.ijk_l", "Authorization: [REDACTED]");
    check("Bearer short", "Bearer short");
    check("key sk-abcdEFGH1234 and sk-1234567", "key [REDACTED] and sk-1234567");
    let long = format!("{} sk-abcdefghijklmnop", "x".repeat(250));
    check(&long, &format!("{} [REDA", "x".repeat(250))[..256]);
    check("größe @ home", "größe @ home");
}

#[test]
fn the_value_of_a_name_that_says_what_it_is_goes() {
    for (text, expected) in [
        ("login failed: password=hunter2 for ann", "login failed: password=[REDACTED] for ann"),
        ("PGPASSWORD='a b' psql", "PGPASSWORD=[REDACTED] psql"),
        (r#"{"password": "a \" b", "x": 1}"#, r#"{"password": [REDACTED] b", "x": 1}"#),
        ("?api_key=abc&page=2", "?api_key=[REDACTED]&page=2"),
        ("db.passwd: s3cret, next", "db.passwd: [REDACTED], next"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: [REDACTED]"),
        ("curl --token abc --user-key  def x", "curl --token [REDACTED] --user-key  [REDACTED] x"),
        ("token=abc secret=def", "token=[REDACTED] secret=[REDACTED]"),
        ("{'token': 'abc'}", "{'token': [REDACTED]}"),
        ("no connection to postgres://ann:pw@db:5432/x", "no connection to postgres://[REDACTED]@db:5432/x"),
        ("redis://:pw@db", "redis://[REDACTED]@db"),
        ("MY_TOKEN: abcdefgh12345678", "MY_TOKEN: [REDACTED]"),
        ("deploy-token: 'abc def' x", "deploy-token: [REDACTED] x"),
        (
            "DB_SECRET: hunter2; STRIPE_KEY=abcdef ACCESS_KEY_ID: abcdef",
            "DB_SECRET: [REDACTED]; STRIPE_KEY=[REDACTED] ACCESS_KEY_ID: [REDACTED]",
        ),
        ("AWS_SECRET_ACCESS_KEY=ab/cd+ef", "AWS_SECRET_ACCESS_KEY=[REDACTED]"),
        ("token: abcdefgh12345678", "token: [REDACTED]"),
        ("secret: \"0a1b2c3d4e5f\"", "secret: \"[REDACTED]\""),
        (r#"curl -d "{\"password\":\"hunter2\"}""#, r#"curl -d "{\"password\":[REDACTED]}""#),
        ("password=true_enough", "password=[REDACTED]"),
        // Words of every day, and names that only look alike.
        ("token: true", "token: true"),
        (r#"{"token": true, "secret": null}"#, r#"{"token": true, "secret": null}"#),
        ("max_tokens: 4096, time_per_token: 0.05", "max_tokens: 4096, time_per_token: 0.05"),
        ("a token is spent; tokens: 12", "a token is spent; tokens: 12"),
        ("unexpected token: end_of_the_file", "unexpected token: end_of_the_file"),
        ("unexpected token: x", "unexpected token: x"),
        ("max_tokens=512 password_file=/run/x", "max_tokens=512 password_file=/run/x"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("the password is wrong", "the password is wrong"),
        ("password=", "password="),
    ] {
        assert_eq!(redacted(text), expected, "{text}");
    }
}

#[test]
fn what_begins_as_a_token_of_a_known_maker_goes() {
    // In parts, since whoever scans sources for tokens is not to find any here.
    let run = "0123456789abcdefGHIJ0123456789abcdefGHIJ";
    let digits = "0123456789abcdef".repeat(2);
    let web = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmN_Hl0w5N-Xg"].join(".");
    let of = |begin: &str| format!("{begin}{run}");
    let alike = [
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xoxe.xoxp-",
        "xapp-1-",
        "AIza",
        "ya29.",
        "GOCSPX-",
        "sk-",
        "sk-ant-api03-",
        "sk_live_",
        "rk_live_",
        "whsec_",
        "npm_",
        "pypi-AgE",
        "hf_",
        "gsk_",
        "xai-",
        "dckr_pat_",
        "hvs.",
    ];
    let others = [
        format!("pintle_{digits}"),
        format!("pintle_01234567={run}"),
        ["AKIA", "0123456789ABCDEF"].concat(),
        ["ASIA", "0123456789ABCDEF"].concat(),
        format!("dop_v1_{digits}"),
        format!("shpat_{digits}"),
        format!("SG.{run}.{run}"),
        web.clone(),
        // Unsigned, encrypted to a key that is shared, and cut.
        web.replace(".dozjgNryP4J3jVmN_Hl0w5N-Xg", "."),
        web.replace(".eyJ", "..eyJ"),
        format!("{web}.{run}.{run}"),
    ];
    for token in alike.into_iter().map(of).chain(others) {
        let token = token.trim_end_matches('.');
        for (before, after) in
            [("", ""), ("denied: ", " was sent"), ("\\n", "\\n"), ("(", ")"), ("ß", "ß"), ("https://", ".")]
        {
            assert_eq!(masked(&format!("{before}{token}{after}")), format!("{before}[REDACTED]{after}"), "{token}");
        }
    }
    let said = format!("denied: ghp_{run} pintle_{digits} {web} MY_TOKEN: abcdefgh12345678");
    assert_eq!(masked(&said), "denied: [REDACTED] [REDACTED] [REDACTED] MY_TOKEN: [REDACTED]");
}

#[test]
fn a_private_key_goes_whole() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".to_owned();
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let (begin, end) = (format!("-----BEGIN {kind}-----"), format!("-----END {kind}-----"));
        for key in [
            format!("{begin}\n{line}\n{line}\nabc=\n{end}"),
            format!(r"{begin}\n{line}\n{line}\nabc=\n{end}"),
            format!("{begin} {line} abc= {end}"),
            format!("{begin}\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,AB\r\n\r\n{line}\r\n{end}"),
            format!("{begin}\n-{line}\n-{line}\n-{end}"),
            // Cut.
            format!("{begin}\n{line}\n{line}"),
        ] {
            assert_eq!(masked(&format!("a {key}")), "a [REDACTED]", "{key}");
        }
        let told = format!("`{begin}` stands in a.pem");
        assert_eq!(masked(&told), told);
    }
}

#[test]
fn what_only_looks_alike_stays() {
    for text in [
        "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "turn 0193a5b0-7000-7000-8000-0000000000aa, call 550e8400-e29b-41d4-a716-446655440000",
        "tokens of an API are secret: keep a key in a variable, e.g. GITHUB_TOKEN or `--token`",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0Dg==",
        "key pintle_0a1b2c3d, pintle_hooks_total{kind=\"x\"} 1",
        "hf_hub_download npm_config_registry npm_package_version ghp_ github_pat_ xoxb- AIza eyJ sk-",
        "max_tokens: 4096, \"stop_tokens\": [1], token: true, PRIMARY_KEY: id",
        "import { SG } from 'sg'; SG.send.later(); eyJson.parse.it",
        "a -- b --- c ----- d -----BEGIN CERTIFICATE----- x",
    ] {
        assert_eq!(masked(text), text);
    }
}

#[test]
fn what_is_masked_is_masked_once() {
    let text = "MY_TOKEN: abcdefgh12345678 password=hunter2 ann@example.org a://b:c@d token: abcdefgh12345678";
    let once = masked(text).into_owned();
    assert_eq!(masked(&once), once);
}

/// Half a megabyte of what begins again and again, in the time of a test.
#[test]
fn long_texts_are_read_in_linear_time() {
    let times = |piece: &str| piece.repeat((1 << 19) / piece.len());
    for piece in
        ["AKIA0123456789ABCDEF.", "-----BEGIN PRIVATE KEY-----", "eyJAKIA0123456789ABCDEFa", "--sk-abcdefgh", "token:"]
    {
        let text = times(piece);
        assert!(masked(&text).len() <= text.len(), "{piece}");
    }
}
