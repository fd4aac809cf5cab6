//! What every store has to do with uploads, and with requests that may come a second time.

use jiff::Timestamp;
use pintle_domain::id::{DEFAULT_TENANT, SessionId, TenantId, TurnId};
use pintle_domain::store::{
    Repeat, RepeatName, RepeatStore, SessionStore, SpendingAccount, SpendingHold, SpendingRoom, SpendingStanding,
    SpendingStore, SpentSum, Upload, UploadStore,
};

use super::approvals;
use super::sessions::{append_of, appended, begun, key};

/// Longer than what any store puts into one row.
const LONG: usize = (1 << 20) + 7;

/// Room for everything.
const PLENTY: u64 = 1 << 40;

/// A moment as every store keeps it: in whole microseconds.
fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_microsecond(approvals::moment(seconds).as_microsecond()).expect("it is one")
}

/// Runs the suite on an empty store.
///
/// # Panics
/// The store does not do what it has to.
pub fn exchange<S: UploadStore + RepeatStore + SessionStore + SpendingStore + ?Sized>(store: &S) {
    an_upload_comes_back_whole(store);
    a_tenant_has_no_more_than_its_quota(store);
    an_upload_is_its_users_until_a_session_takes_it(store);
    what_belongs_to_a_session_goes_with_it(store);
    uploads_that_nobody_took_are_forgotten(store);
    a_request_begins_once(store);
    the_end_of_a_turn_ends_its_requests(store);
    texts_that_passed_are_remembered_for_a_while(store);
    what_is_spent_adds_up(store);
    what_requests_may_come_to_is_held_until_it_is_known(store);
}

fn what_requests_may_come_to_is_held_until_it_is_known<S: SpendingStore + ?Sized>(store: &S) {
    let account = |payer: &str| SpendingAccount {
        tenant: TenantId::default_tenant(),
        vendor: "anthropic".into(),
        payer: payer.into(),
        day: jiff::civil::date(2026, 11, 26),
    };
    let sum = |tokens| SpentSum { tokens, nano_dollars: 2 * tokens };
    let id = |number: u32| format!("0193a5b0-7000-7000-8000-{number:012}");
    let hold = |number: u32, payer: &str, node: &str| SpendingHold {
        id: id(number),
        account: account(payer),
        most: sum(60),
        node: node.into(),
    };
    let room = SpendingRoom { tokens: Some(100), ..SpendingRoom::default() };
    let at = |second: i64| (moment(second), moment(second + 10));
    let standing = |spent, held, has_room| Ok(SpendingStanding { spent: sum(spent), held: sum(held), has_room });
    let ask = |hold: &SpendingHold, room, second| store.hold_spending(hold, room, at(second));
    assert_eq!(ask(&hold(1, "key:h", "a"), room, 0), standing(0, 0, true));
    assert_eq!(ask(&hold(2, "key:h", "b"), room, 0), standing(0, 60, true), "one more may begin");
    assert_eq!(ask(&hold(3, "key:h", "a"), room, 0), standing(0, 120, false), "and no third");
    assert_eq!(ask(&hold(4, "key:other", "a"), room, 0), standing(0, 0, true), "of this key");
    let dollars = SpendingRoom { nano_dollars: Some(240), ..SpendingRoom::default() };
    assert_eq!(ask(&hold(3, "key:h", "a"), dollars, 0), standing(0, 120, false), "a limit in dollars as well");
    // What the request itself holds is not in its way.
    let own = SpendingRoom { own: sum(60), ..room };
    assert_eq!(ask(&hold(5, "key:h", "a"), own, 0), standing(0, 120, true));
    for _ in 0..2 {
        store.settle_spending(&id(1), &account("key:h"), sum(30)).expect("done");
    }
    assert_eq!(store.spent_at_doors(&account("key:h")), Ok(sum(30)), "once");
    store.settle_spending(&id(5), &account("key:h"), SpentSum::default()).expect("done");
    assert_eq!(ask(&hold(6, "key:h", "a"), room, 5), standing(30, 60, true));
    // One node lives, the other died.
    store.keep_spending_holds("a", moment(30)).expect("done");
    assert_eq!(ask(&hold(7, "key:h", "a"), room, 10), standing(30, 60, true));
    // What went on for longer than it was held is counted nevertheless.
    store.settle_spending(&id(2), &account("key:h"), sum(20)).expect("done");
    assert_eq!(store.spent_at_doors(&account("key:h")), Ok(sum(50)));
    store.spend_at_doors(&account("key:h"), SpentSum { tokens: u64::MAX, nano_dollars: u64::MAX }).expect("done");
    store.spend_at_doors(&account("key:h"), sum(1)).expect("the most that there is stays that");
    assert!(store.spent_at_doors(&account("key:h")).is_ok_and(|spent| spent.tokens >= i64::MAX.unsigned_abs()));
}

fn what_is_spent_adds_up<S: SpendingStore + ?Sized>(store: &S) {
    let day = |day: i8| jiff::civil::date(2026, 11, day);
    let account = |payer: &str, on: i8| SpendingAccount {
        tenant: TenantId::default_tenant(),
        vendor: "openai".into(),
        payer: payer.into(),
        day: day(on),
    };
    let sum = |tokens, nano_dollars| SpentSum { tokens, nano_dollars };
    let own = account("key:a", 26);
    assert_eq!(store.spent_at_doors(&own), Ok(SpentSum::default()));
    for (tokens, nano_dollars) in [(7, 1 << 40), (5, 3)] {
        store.spend_at_doors(&own, sum(tokens, nano_dollars)).expect("done");
    }
    let other_vendor = SpendingAccount { vendor: "gemini".into(), ..own.clone() };
    for other in [account("key:b", 26), account("key:a", 27), other_vendor] {
        assert_eq!(store.spent_at_doors(&other), Ok(SpentSum::default()), "{other:?}");
        store.spend_at_doors(&other, sum(1, 1)).expect("done");
    }
    assert_eq!(store.spent_at_doors(&own), Ok(sum(12, (1 << 40) + 3)));
    let nobody = TenantId::from("0193a5b0-7000-7000-8000-00000000ffff");
    assert!(store.spend_at_doors(&SpendingAccount { tenant: nobody, ..own.clone() }, sum(1, 1)).is_err());
    store.forget_spending(day(27)).expect("done");
    assert_eq!(store.spent_at_doors(&own), Ok(SpentSum::default()));
    assert_eq!(store.spent_at_doors(&account("key:a", 27)), Ok(sum(1, 1)));
}

fn upload(id: &str, tenant: &str, content: &[u8]) -> Upload {
    Upload {
        id: id.repeat(32),
        tenant: TenantId::from(tenant),
        user: "anna".into(),
        session: None,
        content_type: "image/png".into(),
        file_name: "it's %_ \"a\".png".into(),
        size_bytes: content.len() as u64,
        sha256: "0".repeat(64),
        created_at: moment(10),
    }
}

fn an_upload_comes_back_whole<S: UploadStore + ?Sized>(store: &S) {
    for (id, length) in [("a", 0), ("b", 1), ("c", LONG)] {
        let content: Vec<u8> = (0..length).map(|i| u8::try_from(i % 251).expect("it is small")).collect();
        let new = upload(id, DEFAULT_TENANT, &content);
        assert_eq!(store.keep_upload(&new, &content, PLENTY), Ok(true));
        assert_eq!(store.upload(&new.tenant, &new.id), Ok(Some(new.clone())));
        assert_eq!(store.upload_content(&new.tenant, &new.id), Ok(Some(content)));
        // Another tenant's is none.
        let other = TenantId::from("0193a5b0-7000-7000-8000-0000000000aa");
        assert_eq!(store.upload(&other, &new.id), Ok(None));
        assert_eq!(store.upload_content(&other, &new.id), Ok(None));
    }
}

fn a_tenant_has_no_more_than_its_quota<S: UploadStore + ?Sized>(store: &S) {
    let tenant = "0193a5b0-7000-7000-8000-0000000000bb";
    let (ten, one) = ([7; 10], [7; 1]);
    assert_eq!(store.keep_upload(&upload("d", tenant, &ten), &ten, 10), Ok(true));
    let more = upload("e", tenant, &one);
    assert_eq!(store.keep_upload(&more, &one, 10), Ok(false));
    assert_eq!(store.upload(&more.tenant, &more.id), Ok(None));
    assert_eq!(store.keep_upload(&more, &one, 11), Ok(true));
}

fn an_upload_is_its_users_until_a_session_takes_it<S: UploadStore + ?Sized>(store: &S) {
    let new = upload("f", DEFAULT_TENANT, b"x");
    assert_eq!(store.keep_upload(&new, b"x", PLENTY), Ok(true));
    let (first, second) = (key(DEFAULT_TENANT, "takes"), key(DEFAULT_TENANT, "comes late"));
    let elsewhere = key("0193a5b0-7000-7000-8000-0000000000aa", "takes");
    let take = |session, user| store.take_upload(session, &new.id, user);
    assert_eq!(take(&first, "ben"), Ok(false));
    assert_eq!(take(&elsewhere, "anna"), Ok(false));
    assert_eq!(take(&first, "anna"), Ok(true));
    assert_eq!(take(&first, "ben"), Ok(true), "it is the session's now");
    assert_eq!(take(&second, "anna"), Ok(false));
    assert_eq!(store.take_upload(&first, "nothing", "anna"), Ok(false));
    let taken = store.upload(&new.tenant, &new.id).expect("the store reads").expect("it is there");
    assert_eq!(taken, Upload { session: Some(SessionId::from("takes")), ..new });
}

fn what_belongs_to_a_session_goes_with_it<S>(store: &S)
where
    S: UploadStore + RepeatStore + SessionStore + ?Sized,
{
    let (goes, stays) = (key(DEFAULT_TENANT, "goes"), key(DEFAULT_TENANT, "stays"));
    for (id, session) in [("1", &goes), ("2", &stays)] {
        appended(store, append_of(session, vec![begun(&TurnId::fresh(), "hello")]));
        let new = upload(id, DEFAULT_TENANT, b"x");
        assert_eq!(store.keep_upload(&new, b"x", PLENTY), Ok(true));
        assert_eq!(store.take_upload(session, &new.id, "anna"), Ok(true));
        let name = RepeatName { session: session.clone(), user: "anna".into(), key: "k".into() };
        assert_eq!(store.begin_repeat(&name, &repeat("t", 10), moment(0)), Ok(None));
    }
    assert_eq!(store.delete(&goes), Ok(true));
    let there = |id: &str| store.upload(&TenantId::default_tenant(), &id.repeat(32)).map(|found| found.is_some());
    assert_eq!((there("1"), there("2")), (Ok(false), Ok(true)));
    let known = |session: &pintle_domain::store::SessionKey| {
        let name = RepeatName { session: session.clone(), user: "anna".into(), key: "k".into() };
        store.repeat(&name, moment(0)).map(|found| found.is_some())
    };
    assert_eq!((known(&goes), known(&stays)), (Ok(false), Ok(true)));
}

fn uploads_that_nobody_took_are_forgotten<S: UploadStore + ?Sized>(store: &S) {
    // Those of the tests before are from moment 10 as well.
    let late = Upload { created_at: moment(100), ..upload("3", DEFAULT_TENANT, b"x") };
    assert_eq!(store.keep_upload(&late, b"x", PLENTY), Ok(true));
    assert_eq!(store.forget_uploads(moment(10), 10), Ok(0));
    let gone = store.forget_uploads(moment(100), 2).expect("the store forgets");
    assert_eq!(gone, 2, "no more than it is told at once");
    while store.forget_uploads(moment(100), 2).expect("the store forgets") > 0 {}
    let there = |id: &str| store.upload(&late.tenant, &id.repeat(32)).map(|found| found.is_some());
    assert_eq!((there("a"), there("2"), there("3")), (Ok(false), Ok(true), Ok(true)));
    assert_eq!(store.upload_content(&late.tenant, &"c".repeat(32)), Ok(None));
}

fn repeat(turn: &str, at: i64) -> Repeat {
    Repeat {
        digest: "d".into(),
        turn_id: TurnId::from(turn),
        owner: "process 1".into(),
        began_at: moment(at),
        outcome: None,
    }
}

fn named(user: &str, key_: &str) -> RepeatName {
    RepeatName { session: key(DEFAULT_TENANT, ""), user: user.into(), key: key_.into() }
}

fn a_request_begins_once<S: RepeatStore + ?Sized>(store: &S) {
    let (name, first) = (named("anna", "once"), repeat("first", 10));
    assert_eq!(store.repeat(&name, moment(0)), Ok(None));
    assert_eq!(store.begin_repeat(&name, &first, moment(0)), Ok(None));
    assert_eq!(store.begin_repeat(&name, &repeat("second", 11), moment(0)), Ok(Some(first.clone())));
    assert_eq!(store.repeat(&name, moment(10)), Ok(Some(first)));
    // Whoever else calls a request so means another one.
    for other in [
        named("ben", "once"),
        named("anna", "twice"),
        RepeatName { session: key(DEFAULT_TENANT, "s"), ..named("anna", "once") },
        RepeatName { session: key("0193a5b0-7000-7000-8000-0000000000aa", ""), ..named("anna", "once") },
    ] {
        assert_eq!(store.begin_repeat(&other, &repeat("other", 10), moment(0)), Ok(None), "{other:?}");
    }
    assert_eq!(store.begin_repeat(&name, &repeat("late", 20), moment(11)), Ok(None), "the first is too old");
    assert_eq!(store.forget_repeat(&name), Ok(()));
    assert_eq!(store.repeat(&name, moment(0)), Ok(None));
}

fn the_end_of_a_turn_ends_its_requests<S: RepeatStore + ?Sized>(store: &S) {
    let tenant = TenantId::default_tenant();
    let (ended, failed, other) = (named("anna", "ended"), named("anna", "failed"), named("anna", "works"));
    for (name, turn) in [(&ended, "turn 1"), (&failed, "turn 2"), (&other, "turn 3")] {
        assert_eq!(store.begin_repeat(name, &repeat(turn, 10), moment(0)), Ok(None));
    }
    assert_eq!(store.end_repeats(&tenant, &TurnId::from("turn 1"), Some("{}")), Ok(()));
    assert_eq!(store.end_repeats(&tenant, &TurnId::from("turn 1"), Some("{\"late\":1}")), Ok(()), "the first stays");
    assert_eq!(store.end_repeats(&tenant, &TurnId::from("turn 2"), None), Ok(()));
    let outcome = |name: &RepeatName| store.repeat(name, moment(0)).map(|found| found.map(|it| it.outcome));
    assert_eq!(outcome(&ended), Ok(Some(Some("{}".into()))));
    assert_eq!(outcome(&failed), Ok(None));
    assert_eq!(outcome(&other), Ok(Some(None)));
}

fn texts_that_passed_are_remembered_for_a_while<S: RepeatStore + ?Sized>(store: &S) {
    let codes: Vec<String> = (0..250).map(|number| format!("code {number}")).collect();
    assert_eq!(store.remember_passed(&codes[..200], moment(10)), Ok(()));
    assert_eq!(store.remember_passed(&codes[199..201], moment(20)), Ok(()));
    let known = |since| store.passed(&codes, moment(since)).map(|found| found.len());
    assert_eq!((known(0), known(10), known(11), known(21)), (Ok(201), Ok(201), Ok(2), Ok(0)));
    while store.forget_repeats(moment(20), 50).expect("the store forgets") > 0 {}
    assert_eq!(known(0), Ok(2));
    assert_eq!(store.passed(&[], moment(0)).map(|found| found.len()), Ok(0));
}
