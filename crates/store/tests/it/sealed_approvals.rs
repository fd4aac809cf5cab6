//! Questions and answers under seal: the suite, and what somebody with the database alone achieves.

use std::path::Path;
use std::sync::Arc;

use pintle_domain::approval::{Approval, ApprovalFlaw, ApprovalStanding, ApprovalState};
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{Actor, StoreError, Tenant, TenantScope};
use pintle_domain::tool::CallPlace;
use pintle_store::keyring::signing::SigningKey;
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_store::{Durability, Store, StoreKeys, migrate_to, open_with};
use pintle_testkit::conformance::approvals::{approvals, call, moment, question, said};
use pintle_testkit::postgres::Server;
use rusqlite::Connection;

/// The keys of `folder`: with a key that encrypts, or with the one that signs alone.
fn keys(folder: &Path, encrypts: bool) -> StoreKeys {
    let source = KeySource { file: encrypts.then(|| folder.join(KEY_FILE)), ..KeySource::default() };
    StoreKeys {
        keyring: Some(Arc::new(Keyring::open(&source).unwrap())),
        signing: Some(Arc::new(SigningKey::open_or_create(folder).unwrap())),
        ..StoreKeys::default()
    }
}

/// A database of either kind, and how somebody else changes its rows.
struct Place<'a> {
    folder: tempfile::TempDir,
    url: String,
    server: Option<&'a Server>,
}

impl Place<'_> {
    fn open(&self, encrypts: bool) -> Arc<dyn Store> {
        open_with(&self.url, Path::new("/"), Durability::Commit, keys(self.folder.path(), encrypts)).unwrap()
    }

    /// The one text that a query finds.
    fn ask(&self, sql: &str) -> String {
        match self.server {
            Some(server) => server.execute(&self.url, sql).trim().to_owned(),
            None => {
                let file = self.url.strip_prefix("sqlite://").unwrap();
                Connection::open(file).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
            }
        }
    }

    fn tell(&self, sql: &str) {
        match self.server {
            Some(server) => drop(server.execute(&self.url, sql)),
            None => {
                let file = self.url.strip_prefix("sqlite://").unwrap();
                Connection::open(file).unwrap().execute_batch(sql).unwrap();
            }
        }
    }
}

fn in_both(check: impl Fn(&Place<'_>)) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("pintle.db").display());
    check(&Place { folder, url, server: None });
    let server = Server::start();
    check(&Place { folder: tempfile::tempdir().unwrap(), url: server.fresh_database(), server: Some(&server) });
}

/// A question of a turn of its own.
fn asked(id: &str) -> Approval {
    let who = Identity::top("main", "cli:1", TurnId::from(id));
    question(id, &who, &call(r#"{"command":"rm -rf build"}"#)).at(CallPlace::in_folder("/work"))
}

#[test]
fn stores_with_keys_pass_the_suite() {
    in_both(|place| approvals(&*place.open(true)));
}

#[test]
fn whatever_somebody_writes_there_is_no_leave() {
    in_both(|place| {
        for encrypts in [true, false] {
            let store = place.open(encrypts);
            // Drawn on below: the seal of an answer to another question.
            let sealed = format!("sealed-{encrypts}");
            store.ask(asked(&sealed), moment(0)).unwrap();
            store.answer(&TenantScope::All, &sealed, said(true), moment(1)).unwrap();
            let edits = [
                ("waits", false, "state = 'approved', answered_by = 'eve'"),
                ("shown", false, "body = replace(body, 'rm -rf', 'ls')"),
                ("why", false, "body = replace(body, 'it deletes', 'it is fine')"),
                ("where", false, "body = replace(body, '/work', '/play')"),
                ("bare", false, "seal = NULL"),
                ("who", true, "answered_by = 'eve'"),
                ("note", true, "note = 'eve'"),
                ("until", true, "body = replace(body, '2026-01-03', '2036-01-03')"),
                ("open", true, "seal = NULL"),
                ("other", true, "seal = (SELECT seal FROM approvals WHERE id LIKE 'sealed%' LIMIT 1)"),
            ];
            for (i, (name, answered, edit)) in edits.into_iter().enumerate() {
                let id = format!("{name}-{encrypts}-{i}");
                let asked = asked(&id);
                store.ask(asked.clone(), moment(0)).unwrap();
                if answered {
                    store.answer(&TenantScope::All, &id, said(true), moment(1)).unwrap();
                }
                place.tell(&format!("UPDATE approvals SET {edit} WHERE id = '{id}'"));
                let found = store.approval(&TenantScope::All, &id).unwrap().unwrap();
                assert!(found.is_altered() && found.state_at(moment(2)) == ApprovalState::Void, "{id}");
                let used = store.use_up(&DEFAULT_TENANT.into(), &id, moment(2)).unwrap_err();
                assert!(used.to_string().contains("it is void, not approved"), "{id}: {used}");
                let answer = store.answer(&TenantScope::All, &id, said(true), moment(2)).unwrap_err();
                assert!(answer.to_string().contains("it is void: "), "{id}: {answer}");
                let again = Approval { id: format!("again-{id}"), ..asked };
                let standing = store.ask(again, moment(3)).unwrap();
                let ApprovalStanding::Waiting(again) = standing else { panic!("{id}: {standing:?}") };
                assert!(again.again_because.is_some_and(|why| why.contains(&id)), "{id}");
                assert_eq!(store.approval(&TenantScope::All, &id).unwrap().unwrap().state, ApprovalState::Void, "{id}");
            }
        }
    });
}

#[test]
fn a_question_of_before_seals_waits_on_and_one_that_was_stripped_does_not() {
    in_both(|place| {
        let bare = |id: &str| Approval { place: None, ..asked(id) };
        let store = place.open(true);
        store.ask(bare("before"), moment(0)).unwrap();
        store.ask(asked("shown"), moment(0)).unwrap();
        drop(store);
        // As a version without seals left it.
        migrate_to(&place.url, Path::new("/"), 54).unwrap();
        let store = place.open(true);
        let state = |id: &str| store.approval(&TenantScope::All, id).unwrap().unwrap().state_at(moment(1));
        assert_eq!(state("before"), ApprovalState::Waiting);
        store.answer(&TenantScope::All, "before", said(true), moment(1)).unwrap();
        store.use_up(&DEFAULT_TENANT.into(), "before", moment(2)).unwrap();
        assert_eq!(state("shown"), ApprovalState::Void, "a version without seals said nothing of places");

        store.ask(asked("stripped"), moment(0)).unwrap();
        let body = serde_json::to_string(&bare("stripped")).unwrap().replace('\'', "''");
        place.tell(&format!("UPDATE approvals SET seal = NULL, body = '{body}' WHERE id = 'stripped'"));
        let found = store.approval(&TenantScope::All, "stripped").unwrap().unwrap();
        assert_eq!((found.place, found.flaw), (None, Some(ApprovalFlaw::Altered)));
        assert_eq!(state("stripped"), ApprovalState::Void);
        assert!(
            store.answer(&TenantScope::All, "stripped", said(true), moment(1)).is_err(),
            "nobody can say yes to it"
        );
        drop(store);
        assert_eq!(
            place.open(true).approval(&TenantScope::All, "stripped").unwrap().unwrap().flaw,
            Some(ApprovalFlaw::Altered)
        );
        let again = Approval { id: "again".into(), ..bare("stripped") };
        let standing = place.open(true).ask(again, moment(3)).unwrap();
        let ApprovalStanding::Waiting(again) = standing else { panic!("{standing:?}") };
        assert!(again.again_because.is_some_and(|why| why.contains("stripped")), "it is asked again, with the reason");
    });
}

#[test]
fn a_used_approval_is_not_armed_again() {
    in_both(|place| {
        let store = place.open(true);
        store.ask(asked("once"), moment(0)).unwrap();
        store.answer(&TenantScope::All, "once", said(true), moment(1)).unwrap();
        store.use_up(&DEFAULT_TENANT.into(), "once", moment(2)).unwrap();
        place.tell("UPDATE approvals SET state = 'approved'");
        let found = store.approval(&TenantScope::All, "once").unwrap().unwrap();
        assert_eq!((found.flaw, found.state_at(moment(3))), (Some(ApprovalFlaw::Unsealed), ApprovalState::Void));
    });
}

/// What somebody does who kept the row of an approval from before its use.
fn put_back(place: &Place<'_>, id: &str, seal: &str) {
    place.tell(&format!("UPDATE approvals SET state = 'approved', seal = '{seal}' WHERE id = '{id}'"));
}

/// A question that is asked now, and answered.
fn approved_now(place: &Place<'_>, store: &dyn Store, id: &str) -> (Approval, String) {
    let now = jiff::Timestamp::now();
    let until = now.checked_add(jiff::SignedDuration::from_hours(24)).unwrap();
    let asked = Approval { asked_at: now, expires_at: until, ..asked(id) };
    store.ask(asked.clone(), now).unwrap();
    store.answer(&TenantScope::All, id, said(true), now).unwrap();
    (asked, place.ask(&format!("SELECT seal FROM approvals WHERE id = '{id}'")))
}

#[test]
fn an_approval_that_was_used_stays_used_whatever_its_row_says() {
    in_both(|place| {
        let store = place.open(true);
        let now = jiff::Timestamp::now();
        let (asked, seal) = approved_now(place, &*store, "first");
        store.use_up(&DEFAULT_TENANT.into(), "first", now).unwrap();
        put_back(place, "first", &seal);
        let found = store.approval(&TenantScope::All, "first").unwrap().unwrap();
        assert_eq!((found.flaw, found.state_at(now)), (Some(ApprovalFlaw::UsedBefore), ApprovalState::Void));
        let used = store.use_up(&DEFAULT_TENANT.into(), "first", now).unwrap_err().to_string();
        assert!(used.contains("it is void, not approved"), "{used}");
        let again = Approval { id: "again".into(), ..asked };
        let ApprovalStanding::Waiting(again) = store.ask(again, now).unwrap() else { panic!("it must be asked again") };
        let why = again.again_because.unwrap();
        assert!(why.contains("approval `first` is void: it was used before"), "{why}");
    });
}

#[test]
fn whoever_takes_the_use_out_of_the_chain_wins_no_second_one() {
    in_both(|place| {
        for edit in [
            "DELETE FROM audit_log WHERE body LIKE '%{id}%'",
            "UPDATE audit_log SET body = replace(body, '{id}', 'nobody') WHERE body LIKE '%{id}%'",
            "UPDATE audit_log SET kind = 'record', body = '{}' WHERE body LIKE '%{id}%'",
        ] {
            let store = place.open(true);
            let now = jiff::Timestamp::now();
            let id = format!("taken-{}", edit.len());
            let (_, seal) = approved_now(place, &*store, &id);
            store.use_up(&DEFAULT_TENANT.into(), &id, now).unwrap();
            // Something stands behind it: without, the chain is shorter than its anchor knows.
            let (last, _) = approved_now(place, &*store, &format!("last-{}", edit.len()));
            store.use_up(&DEFAULT_TENANT.into(), &last.id, now).unwrap();
            place.tell(&edit.replace("{id}", &id));
            put_back(place, &id, &seal);
            let found = store.approval(&TenantScope::All, &id).unwrap().unwrap();
            assert_eq!(found.flaw, Some(ApprovalFlaw::BrokenChain), "{edit}");
            assert!(store.use_up(&DEFAULT_TENANT.into(), &id, now).is_err(), "{edit}");
            // An older signature is not what was written either.
            drop(store);
            place.tell("DELETE FROM audit_log; DELETE FROM audit_checkpoints");
        }
    });
}

#[test]
fn an_answer_is_to_what_was_shown() {
    in_both(|place| {
        let store = place.open(true);
        store.ask(asked("a"), moment(0)).unwrap();
        let shown = store.approval(&TenantScope::All, "a").unwrap().unwrap();
        for other in [
            Approval { reason: "nothing much".into(), ..shown.clone() },
            Approval { place: None, ..shown.clone() },
            Approval { expires_at: moment(7), ..shown.clone() },
        ] {
            let why = "approval `a` was altered since it was shown; look at it again";
            let answered = store.answer_shown(&other, said(true), moment(1));
            assert_eq!(answered, Err(StoreError::Conflict(why.into())));
        }
        let answered = store.answer_shown(&shown, said(true), moment(1)).unwrap();
        assert_eq!(answered.state, ApprovalState::Approved);
        assert_eq!(store.approval(&TenantScope::All, "a"), Ok(Some(answered)));
    });
}

#[test]
fn what_one_key_sealed_holds_when_another_one_came() {
    in_both(|place| {
        // Sealed with the key that signs; then one that encrypts is made.
        let store = place.open(false);
        store.ask(asked("a"), moment(0)).unwrap();
        store.answer(&TenantScope::All, "a", said(true), moment(1)).unwrap();
        drop(store);
        let store = place.open(true);
        assert_eq!(
            store.approval(&TenantScope::All, "a").unwrap().unwrap().state_at(moment(2)),
            ApprovalState::Approved
        );
        store.use_up(&DEFAULT_TENANT.into(), "a", moment(2)).unwrap();
    });
}

#[test]
fn a_question_that_another_key_sealed_is_not_called_altered() {
    in_both(|place| {
        let store = place.open(true);
        let (id, at) = (TenantId::from("0193a5b0-7000-7000-8000-0000000000d1"), moment(0));
        let acme = Tenant { id, slug: "acme".into(), name: "Acme".into(), created_at: at.to_string() };
        store.create_tenant(&acme, &Actor { name: "ada".into(), at, reason: String::new() }).unwrap();
        store.ask(asked("waits"), moment(0)).unwrap();
        store.ask(asked("answered"), moment(0)).unwrap();
        store.answer(&TenantScope::All, "answered", said(true), moment(1)).unwrap();
        drop(store);
        let other = tempfile::tempdir().unwrap();
        let there = open_with(&place.url, Path::new("/"), Durability::Commit, keys(other.path(), true)).unwrap();
        for id in ["waits", "answered"] {
            let found = there.approval(&TenantScope::All, id).unwrap().unwrap();
            assert_eq!((found.flaw, found.state_at(moment(2))), (Some(ApprovalFlaw::OtherKey), ApprovalState::Void));
            let why = there.answer(&TenantScope::All, id, said(true), moment(2)).unwrap_err().to_string();
            assert!(why.contains("the key here differs") && !why.contains("void"), "{why}");
        }
        drop(there);
        let store = place.open(true);
        let found = |id: &str| store.approval(&TenantScope::All, id).unwrap().unwrap();
        assert_eq!(found("answered").state_at(moment(2)), ApprovalState::Approved);
        place.tell("UPDATE approvals SET body = replace(body, 'rm -rf', 'ls') WHERE id = 'waits'");
        assert_eq!(found("waits").flaw, Some(ApprovalFlaw::Altered), "with the key, it is what was altered");
    });
}
