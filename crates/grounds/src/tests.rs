//! What rules of the store are given by their host.

use domain::id::HookId;
use engine::live::Rules;
use rules::handler::Vault as _;
use store::keyring::KeySource;
use testkit::log::Log;

use super::*;

#[test]
fn a_tenant_is_called_what_the_rules_in_force_call_it() {
    let live = Arc::new(Live::default());
    let of = |tenant: &str| slug_of(&Arc::downgrade(&live), &TenantId::from(tenant));
    let acme = "0193a5b0-7000-7000-8000-00000000000a";
    assert_eq!((of(SENTINEL_TENANT), of(acme).as_deref()), (None, Some(acme)), "nobody knows it yet");
    let named = |slug: &str| Rules { slugs: [(TenantId::from(acme), slug.to_owned())].into(), ..Rules::default() };
    live.replace(named("acme"));
    assert_eq!((of(SENTINEL_TENANT), of(acme).as_deref()), (None, Some("acme")));
    live.replace(named("acme-2"));
    assert_eq!(of(acme).as_deref(), Some("acme-2"));
    // Where nothing is in force any more, nobody has the rights of global hooks.
    assert_eq!(slug_of(&Weak::new(), &TenantId::from(acme)).as_deref(), Some(acme));
}

#[test]
fn a_secret_that_stands_in_the_clear_is_used_and_logged() {
    let home = tempfile::tempdir().unwrap();
    let source = KeySource::new(|_| None, Some(home.path().join("key")));
    let sealed = Sealed(Arc::new(Keyring::open(&source).unwrap()));
    let (hook, tenant) = (HookId::from("0193a5b0-7000-7000-8000-0000000000aa"), TenantId::default_tenant());
    let path = "config.headers.authorization";
    let (log, _listening) = Log::begin();
    let text = sealed.seal_value(&hook, &tenant, path, "Bearer secret").unwrap();
    assert_eq!(sealed.open(&hook, &tenant, path, &text), Ok("Bearer secret".to_owned()));
    assert_eq!(log.lines(), [""; 0]);
    assert_eq!(sealed.open(&hook, &tenant, path, "Bearer secret"), Ok("Bearer secret".to_owned()));
    let line = format!("WARN crypto.unencrypted_value_read hook_id={hook} path=\"{path}\"");
    assert_eq!(log.lines(), [line]);
}

#[test]
fn a_worker_that_is_none_is_an_error_and_so_is_a_script_where_there_is_none() {
    let worker = Launcher { program: "/nothing/here".into(), args: Vec::new(), vars: Vec::new() };
    assert!(check_script(worker, "function handle() { return {}; }").is_err());
    let nowhere = scripts(None);
    let checked = futures_util::FutureExt::now_or_never(nowhere.check("function handle() { return {}; }"));
    assert_eq!(checked, Some(Err("there is no program here that runs scripts".to_owned())));
}
