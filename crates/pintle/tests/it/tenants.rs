//! Two tenants see nothing of each other.

use pintle::prelude::*;
use pintle::store::{RecordQuery, StoreError, TenantScope};

use crate::host::{Till, open, refund};

#[tokio::test]
async fn nothing_of_one_tenant_is_seen_or_answered_by_another() {
    let pintle = open();
    pintle.hook("ask", "", |_: &PreToolUse| Verdict::Ask("sure?".into())).unwrap();
    let [acme, globex] = ["acme", "globex"].map(|name| pintle.add_tenant(name).unwrap());
    let turn = acme.turn("support", "s", TurnId::fresh());
    assert_eq!(turn.identity().tenant_id.as_str(), "acme");
    let till = Till::default();
    let Err(Stop::Parked(parked)) = turn.call(refund("c1"), &till).await else { panic!("it ran") };
    let id = parked.question.id;
    let (ours, theirs) = (acme.approvals().unwrap(), globex.approvals().unwrap());
    assert_eq!(ours.list(true, 9).unwrap().len(), 1);
    assert_eq!(theirs.list(false, 9).unwrap(), []);
    assert_eq!(theirs.get(&id).unwrap(), None);
    let yes = || Answer { approve: true, by: "eve".into(), note: String::new() };
    // Neither the id nor the beginning of it helps.
    assert!(matches!(theirs.answer(&id, yes()), Err(StoreError::NotFound(_))));
    assert!(matches!(theirs.answer(&id[..8], yes()), Err(StoreError::NotFound(_))));
    assert!(matches!(theirs.answered(&id).await, Err(StoreError::NotFound(_))));
    assert_eq!(ours.get(&id).unwrap().unwrap().state, pintle::approval::ApprovalState::Waiting);
    assert_eq!(ours.answer(&id, yes()).unwrap().state, pintle::approval::ApprovalState::Approved);
    // The same ids in another tenant are another call.
    let same = globex.turn("support", "s", turn.identity().turn_id.clone());
    assert!(matches!(same.call(refund("c1"), &till).await, Err(Stop::Parked(_))));
    assert_eq!(till.runs(), 0);
    let _done = turn.call(refund("c1"), &till).await.unwrap();
    let all = RecordQuery { limit: 99, ..RecordQuery::of(TenantScope::All) };
    let of = |tenant: &Tenant, query: &RecordQuery| {
        let found = tenant.records().find(query).unwrap();
        assert!(found.iter().all(|event| event.tenant_id == tenant.id()), "{found:?}");
        found.len()
    };
    assert!(of(&acme, &all) > of(&globex, &all) && of(&globex, &all) > 0);
    let foreign = RecordQuery { tenant: TenantScope::One("acme".into()), ..all };
    assert_eq!(of(&globex, &foreign), of(&globex, &RecordQuery { tenant: TenantScope::All, ..foreign.clone() }));
}

#[tokio::test]
async fn a_tenant_that_nobody_made_known_is_an_error() {
    let pintle = open();
    let Err(unknown) = pintle.tenant("acme") else { panic!("it is known") };
    assert_eq!(unknown, pintle::UnknownTenant("acme".into()));
    assert_eq!(pintle.add_tenant("acme").unwrap().id(), "acme");
    assert_eq!(pintle.tenant("acme").unwrap().id(), "acme");
}
