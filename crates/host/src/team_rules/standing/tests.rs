//! The last good rules of a team, and what shuts.

use super::*;
use crate::config::TeamKey;
use crate::team_rules::kept::{Contact, Pin};
use jiff::Timestamp;
use pintle_rules::team::{TeamTenant, digest};
use pintle_store::keyring::signing::SigningKey;
use tempfile::TempDir;

/// A gateway, and a machine that trusts it.
struct Team {
    dir: TempDir,
    key: SigningKey,
    folder: TeamFolder,
    from: RulesFrom,
}

fn tenant(slug: &str) -> TeamTenant {
    TeamTenant { id: format!("id of {slug}"), slug: slug.to_owned() }
}

fn statement(version: u64, rules: Option<&str>) -> TeamStatement {
    let rules: Option<Vec<pintle_domain::json::Value>> =
        rules.map(|text| pintle_domain::json::parse(text).unwrap().as_array().cloned().unwrap());
    TeamStatement {
        gateway: "https://p.example".into(),
        tenant: tenant("acme"),
        version,
        issued_at: Timestamp::UNIX_EPOCH,
        nonce: "n".into(),
        digest: digest(rules.as_deref().unwrap_or_default()),
        rules,
    }
}

const RULE: &str = r#"[{"id":"0193a5b0-7000-7000-8000-0000000000bb","name":"größe","version":1,
    "created_at":"2026-01-31T12:00:00Z","source":"user","handler":{"type":"script","config":{"source":"function handle() {}"}},
    "when":{"event":"pre_tool_use","matcher":"","if_expr":"","priority":0},
    "outcome":{"timeout_ms":1000,"on_timeout":"block","may_rewrite":false,"breaker":"off","on_trip":"block"}}]"#;

impl Team {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = SigningKey::open_or_create(&dir.path().join("gateway")).unwrap();
        let url = "https://p.example/".parse().unwrap();
        let from = RulesFrom { url, key: TeamKey::Env("K".into()), signer: None };
        let folder = TeamFolder::of(&dir.path().join("home"));
        Self { dir, key, folder, from }
    }

    fn text(&self, statement: &TeamStatement) -> String {
        SignedStatement::of(statement.text(), self.key.public_line(), |message| self.key.sign(message)).to_text()
    }

    fn pin(&self, version: u64) -> Pin {
        Pin {
            url: self.from.url.to_string(),
            signer: self.key.public_line(),
            tenant: tenant("acme"),
            version,
            since: Timestamp::UNIX_EPOCH,
            machine: String::new(),
        }
    }

    fn keep(&self, statement: &TeamStatement, pin: &Pin) {
        self.folder.keep_rules(&self.text(statement)).unwrap();
        self.folder.keep_pin(pin).unwrap();
    }

    fn now(&self) -> TeamStanding {
        TeamStanding::of(&Ok(self.from.clone()), &self.folder)
    }

    #[track_caller]
    fn is_shut(&self, wanted: &str) {
        match self.now() {
            TeamStanding::Shut { why } => assert!(why.contains(wanted), "{why}"),
            TeamStanding::InForce(team) => panic!("in force: {team:?}"),
        }
    }
}

#[test]
fn the_last_good_rules_are_in_force_and_nothing_passes_before_them() {
    let team = Team::new();
    team.is_shut("no rules of the team have come from https://p.example yet");
    team.keep(&statement(7, Some(RULE)), &team.pin(7));
    let TeamStanding::InForce(found) = team.now() else { panic!("{:?}", team.now()) };
    assert_eq!((found.rules.len(), found.rules[0].name.as_str(), found.statement.version), (1, "größe", 7));
    assert_eq!(found.signer, team.key.public_line());
    // One that is newer than what is known: the pin is written after it.
    team.keep(&statement(8, Some(RULE)), &team.pin(7));
    assert!(team.now().digest().is_some());
    team.folder.keep_contact(&Contact { away: Some((Timestamp::now(), "gone".into())), ..Contact::default() }).unwrap();
    assert!(team.now().digest().is_some(), "a gateway that is away takes nothing away");
    let refused = Some((Timestamp::now(), "its signature does not hold".into()));
    team.folder.keep_contact(&Contact { refused, ..Contact::default() }).unwrap();
    team.is_shut("its signature does not hold");
}

#[test]
fn what_another_gateway_said_shuts_nothing_of_this_one() {
    let team = Team::new();
    team.keep(&statement(7, Some(RULE)), &team.pin(7));
    let refused = Some((Timestamp::now(), "its signature does not hold".to_owned()));
    let contact = |from: &str| Contact { refused: refused.clone(), from: Some(from.to_owned()), ..Contact::default() };
    team.folder.keep_contact(&contact("https://elsewhere.example/")).unwrap();
    assert!(team.now().digest().is_some());
    team.folder.keep_contact(&contact(team.from.url.as_str())).unwrap();
    team.is_shut("its signature does not hold");
}

#[test]
fn what_is_old_or_somebody_elses_shuts_and_says_what_to_do() {
    let team = Team::new();
    let good = statement(7, Some(RULE));
    team.keep(&good, &team.pin(9));
    team.is_shut("it is older than what is known: version 7");
    team.is_shut("if the gateway was set back on purpose, remove ");
    team.keep(&good, &Pin { tenant: tenant("other"), ..team.pin(7) });
    team.is_shut("its rules are of tenant \"acme\", and those of \"other\" are trusted here");
    let other = SigningKey::open_or_create(&team.dir.path().join("other")).unwrap();
    team.keep(&good, &Pin { signer: other.public_line(), ..team.pin(7) });
    team.is_shut("if the gateway has a new key, set `signer`");
    team.keep(&good, &Pin { url: "https://elsewhere.example/".into(), ..team.pin(7) });
    team.is_shut("no rules of the team have come");
    team.keep(&statement(7, None), &team.pin(7));
    team.is_shut("it has no rules");
    std::fs::write(team.folder.path().join("pin.json"), "{").unwrap();
    team.is_shut("pin.json is damaged");
    let broken = TeamStanding::of(&Err("no URL".into()), &team.folder);
    assert!(matches!(broken, TeamStanding::Shut { why } if why.contains("`guard.rules_from` cannot be read")));
}

#[test]
fn a_signer_that_the_operator_names_counts_before_the_one_that_came_first() {
    let mut team = Team::new();
    let good = statement(7, Some(RULE));
    team.keep(&good, &team.pin(7));
    let other = SigningKey::open_or_create(&team.dir.path().join("other")).unwrap();
    team.from.signer = Some(other.public_line());
    team.is_shut("no rules of the team have come");
    assert_eq!(known(&team.from, Some(&team.pin(7))).signer, Some(other.public_line()));
    team.from.signer = Some(team.key.public_line());
    assert!(team.now().digest().is_some());
}

#[test]
fn rules_of_another_form_or_with_a_rule_that_is_none_shut() {
    let team = Team::new();
    for (rules, wanted) in [
        (RULE.replace("pre_tool_use", "pre_coffee"), "its rule \"größe\" cannot be read"),
        (RULE.replace("\"script\"", "\"wish\""), "its rule \"größe\" cannot be read"),
        ("[7]".to_owned(), "its rule \"number 0\" cannot be read"),
    ] {
        team.keep(&statement(7, Some(&rules)), &team.pin(7));
        team.is_shut(wanted);
    }
    let signed = statement(7, Some(RULE)).text().replace("\"format\":1", "\"format\":2");
    let text = SignedStatement::of(signed, team.key.public_line(), |message| team.key.sign(message)).to_text();
    team.folder.keep_rules(&text).unwrap();
    team.is_shut("it has form 2");
    // The digest in it is not that of its rules.
    let wrong = TeamStatement { digest: "00".into(), ..statement(7, Some(RULE)) };
    team.keep(&wrong, &team.pin(7));
    team.is_shut("its signature does not hold");
}

#[test]
fn no_cut_and_no_changed_byte_is_ever_in_force() {
    let team = Team::new();
    let text = team.text(&statement(7, Some(RULE)));
    let known = known(&team.from, Some(&team.pin(7)));
    let open = |bytes: &[u8]| SignedStatement::open(bytes, &known, holds);
    assert!(open(text.as_bytes()).is_ok());
    for end in 0..text.len() {
        assert!(open(&text.as_bytes()[..end]).is_err(), "cut at {end}");
    }
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            assert!(open(&bytes).is_err(), "bit {bit} of byte {at}: {}", String::from_utf8_lossy(&bytes));
        }
    }
    let long = vec![b' '; pintle_rules::team::MAX_STATEMENT_BYTES + 1];
    assert!(matches!(open(&long), Err(TeamFault::TooLong(_))));
}

#[test]
fn at_first_use_any_key_counts_and_from_then_on_no_other() {
    let team = Team::new();
    let text = team.text(&statement(7, Some(RULE)));
    let (signed, _) = SignedStatement::open(text.as_bytes(), &known(&team.from, None), holds).unwrap();
    assert_eq!(signed.signer, team.key.public_line());
    let other = SigningKey::open_or_create(&team.dir.path().join("other")).unwrap();
    let forged = SignedStatement::of(statement(8, Some(RULE)).text(), other.public_line(), |it| other.sign(it));
    let open = |text: &str| SignedStatement::open(text.as_bytes(), &known(&team.from, Some(&team.pin(7))), holds);
    assert!(matches!(open(&forged.to_text()), Err(TeamFault::OtherSigner { .. })));
    let claimed = SignedStatement { signer: team.key.public_line(), ..forged };
    assert_eq!(open(&claimed.to_text()).unwrap_err(), TeamFault::Forged);
}
