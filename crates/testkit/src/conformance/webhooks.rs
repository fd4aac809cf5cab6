//! What every outbox of webhooks has to do.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::{RetryWhich, StoredEndpoint, WebhookStore};
use pintle_domain::webhook::{WebhookDelivery, WebhookEvent, delivery_id, endpoint_id};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("it is within bounds")
}

fn delivery(endpoint: &str, key: &str, second: i64) -> WebhookDelivery {
    WebhookDelivery {
        id: delivery_id(endpoint, WebhookEvent::TurnFailed, key),
        endpoint: endpoint.to_owned(),
        tenant: TenantId::default_tenant(),
        event: WebhookEvent::TurnFailed,
        seq: 0,
        data: format!("{{\"key\":\"{key}\"}}"),
        at: at(second),
        attempts: 0,
        next_at: at(second),
        failed_at: None,
        error: None,
    }
}

/// Plays through the life of deliveries to receivers that nobody else has.
///
/// # Panics
/// The store does something else.
pub fn webhooks(store: &dyn WebhookStore) {
    let run = uuid::Uuid::now_v7();
    let (one, two) = (endpoint_id(&format!("{run}/one")), endpoint_id(&format!("{run}/two")));
    let own = || -> Vec<StoredEndpoint> {
        let all = store.webhook_endpoints().expect("it can be read");
        [&one, &two].into_iter().filter_map(|id| all.iter().find(|it| it.id == *id).cloned()).collect()
    };
    let key = |what: &str| format!("{run}/{what}");
    let (a, b, c) = (delivery(&one, &key("a"), 1), delivery(&one, &key("b"), 2), delivery(&two, &key("c"), 3));
    // Whoever else notices the same keeps nothing new, and takes no number.
    assert_eq!(store.post_webhooks(vec![a.clone()]).expect("it is kept"), 1);
    assert_eq!(store.post_webhooks(vec![a.clone(), b.clone(), c.clone()]).expect("they are kept"), 2);
    let known = |id: &str, seq, waiting| StoredEndpoint { id: id.to_owned(), seq, waiting, ..Default::default() };
    assert_eq!(own(), [known(&one, 2, 2), known(&two, 1, 1)]);

    // What is due is one process's for a while.
    let of = |endpoint: &String| vec![endpoint.clone()];
    let taken = store.take_webhooks(&of(&one), (at(5), at(50)), 10).expect("it can be read");
    let leased = |it: &WebhookDelivery, seq| WebhookDelivery { seq, next_at: at(50), ..it.clone() };
    assert_eq!(taken, [leased(&a, 1), leased(&b, 2)]);
    assert_eq!(store.take_webhooks(&of(&one), (at(49), at(99)), 10).expect("it can be read"), []);
    // Others are nobody's business.
    let both = [one.clone(), two.clone()];
    assert_eq!(store.take_webhooks(&both, (at(2), at(50)), 10).expect("it can be read"), []);
    let rest = store.take_webhooks(&both, (at(50), at(90)), 1).expect("it can be read");
    assert_eq!(rest, [WebhookDelivery { next_at: at(90), ..leased(&a, 1) }]);

    // What came of them.
    store.webhook_delivered(&a.id).expect("it is gone");
    assert_eq!(store.post_webhooks(vec![a.clone()]).expect("it can be written"), 0, "it was told");
    let three = endpoint_id(&format!("{run}/three"));
    let before = store.webhook_cursor().expect("it can be read");
    let newer = before.map_or(at(1), |before| before + jiff::SignedDuration::from_secs(9));
    store.advance_webhooks(newer, std::slice::from_ref(&three)).expect("it can be written");
    store.advance_webhooks(at(-1_000_000_000), &[]).expect("it can be written");
    assert_eq!(store.webhook_cursor().expect("it can be read"), Some(newer), "it never goes back");
    let met = store.webhook_endpoints().expect("it can be read").into_iter().find(|it| it.id == three);
    assert_eq!(met, Some(known(&three, 0, 0)));
    let error = Some("it answered 500".to_owned());
    let again = WebhookDelivery { attempts: 1, next_at: at(60), error: error.clone(), ..leased(&b, 2) };
    store.webhook_tried(&again).expect("it is kept");
    assert_eq!(store.take_webhooks(&of(&one), (at(59), at(99)), 10).expect("it can be read"), []);
    let due = store.take_webhooks(&of(&one), (at(60), at(99)), 10).expect("it can be read");
    assert_eq!(due, [WebhookDelivery { next_at: at(99), ..again.clone() }]);
    let failed = WebhookDelivery { attempts: 12, failed_at: Some(at(100)), next_at: at(99), ..again };
    store.webhook_tried(&failed).expect("it is kept");
    assert_eq!(store.take_webhooks(&of(&one), (at(1000), at(1001)), 10).expect("it can be read"), []);
    assert_eq!(own()[0], StoredEndpoint { failed: 1, waiting: 0, ..known(&one, 2, 0) });
    let listed = store.webhook_deliveries(1000).expect("it can be read");
    let listed: Vec<&WebhookDelivery> = listed.iter().filter(|it| both.contains(&it.endpoint)).collect();
    assert_eq!(listed, [&WebhookDelivery { seq: 1, ..c.clone() }, &failed]);

    // A receiver that wants nothing gets nothing, until somebody says so.
    store.stop_webhook(&one, at(110)).expect("it is kept");
    store.stop_webhook(&one, at(111)).expect("it is kept");
    assert_eq!(own()[0].stopped_at, Some(at(110)));
    assert_eq!(store.post_webhooks(vec![delivery(&one, &key("d"), 112)]).expect("nothing is kept"), 0);
    assert_eq!(store.retry_webhooks(RetryWhich::WebhookDelivery("nothing"), at(120)).expect("there is none"), 0);
    assert_eq!(store.retry_webhooks(RetryWhich::WebhookDelivery(&failed.id), at(120)).expect("it is kept"), 1);
    assert_eq!(store.take_webhooks(&of(&one), (at(130), at(140)), 10).expect("it can be read"), []);
    assert_eq!(store.retry_webhooks(RetryWhich::Endpoint(&one), at(120)).expect("it is kept"), 1);
    let anew = store.take_webhooks(&of(&one), (at(130), at(140)), 10).expect("it can be read");
    assert_eq!(anew, [WebhookDelivery { attempts: 0, failed_at: None, next_at: at(140), ..failed }]);

    // What is old goes. The numbers go on.
    store.webhook_delivered(&b.id).expect("it is gone");
    store.webhook_delivered(&c.id).expect("it is gone");
    assert_eq!(store.post_webhooks(vec![delivery(&one, &key("e"), 200)]).expect("it is kept"), 1);
    assert_eq!(own(), [known(&one, 3, 1), known(&two, 1, 0)]);
    store.forget_webhooks(at(200)).expect("nothing is that old");
    assert_eq!(own()[0].waiting, 1);
    assert!(store.forget_webhooks(at(201)).expect("it is gone") >= 1);
    assert_eq!(own()[0].waiting, 0);
}
