//! What scripts that behave can rely on.

use std::time::Duration;

use pintle_domain::checkpoint::Duty;
use pintle_domain::json::json;
use pintle_sandbox::{CompileError, ScriptFault, limits};

use crate::stage::{self, run, runtime, sandbox, value};

#[test]
fn the_event_is_data() {
    runtime().block_on(async {
        let source = "function handle(event) { return {
            keys: Object.keys(event), proto: Object.keys(event.toolInput), own: event.toolInput.__proto__.polluted,
            plain: ({}).polluted === undefined, text: event.rawInput, sum: event.toolInput.n + 0.5,
        }; }";
        let event =
            r#"{"toolInput":{"__proto__":{"polluted":true},"n":1},"rawInput":"`${1}` \u0000\u2028'\"</script>"}"#;
        let ran = sandbox().run(stage::call(source, event)).await;
        let wanted = json!({
            "keys": ["toolInput", "rawInput"], "proto": ["__proto__", "n"], "own": true, "plain": true,
            "text": "`${1}` \u{0}\u{2028}'\"</script>", "sum": 1.5,
        });
        assert_eq!(pintle_domain::json::Value::Object(ran.returned.unwrap()), wanted);
    });
}

#[test]
fn nothing_stays_between_runs() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let leave = "var left = 1; Array.prototype.left = 1; Math.left = 1; Object.prototype.left = 1;
            function handle(event) { return { left: typeof left }; }";
        let look = "function handle(event) { return { left: typeof left, array: [].left, math: Math.left }; }";
        for _ in 0..4 {
            let ran = run(&sandbox, leave).await;
            assert_eq!(json!(ran.returned.unwrap()), json!({"left": "number"}));
            let ran = run(&sandbox, look).await;
            assert_eq!(json!(ran.returned.unwrap()), json!({"left": "undefined"}));
        }
    });
}

#[test]
fn the_language_works() {
    runtime().block_on(async {
        let source = r#"
            class Rules { static #deny = [/\brm\s+-rf\b/u, /mkfs/]; static hit(cmd) { return Rules.#deny.find((r) => r.test(cmd)); } }
            const { now } = Date;
            function handle({ toolName, toolInput: { cmd, list: [first, ...rest] } }) {
                const random = Math.random();
                return {
                    decision: Rules.hit(cmd) ? "block" : "other", reason: `${toolName}: ${cmd?.trim() ?? "none"}`,
                    numbers: [first, rest.length, Number("0x10"), parseInt("12px"), parseFloat("1.5e3"), [3, 1, 2].toSorted()],
                    time: now() > 1.6e12, zone: new Date(0).getTimezoneOffset(), iso: new Date(0).toISOString(), random: random >= 0 && random < 1,
                    uri: encodeURIComponent("a b"), back: decodeURIComponent("%20"), named: "2026-11".match(/(?<y>\d+)-/).groups.y,
                    sparse: [undefined, () => 1, NaN, Infinity], gone: undefined,
                };
            }"#;
        let wanted = json!({
            "decision": "block", "reason": "exec: rm -rf /", "numbers": [1, 2, 16, 12, 1500, [1, 2, 3]],
            "time": true, "zone": 0, "iso": "1970-01-01T00:00:00.000Z", "random": true,
            "uri": "a%20b", "back": " ", "named": "2026", "sparse": [null, null, null, null],
        });
        assert_eq!(value(source).await, wanted);
    });
}

#[test]
fn calls_may_be_nested_as_deep_as_promised() {
    runtime().block_on(async {
        let source = |depth| {
            format!(
                "function down(n) {{ return n === 0 ? 0 : 1 + down(n - 1); }}
                function handle(event) {{ return {{ deep: down({depth}) }}; }}"
            )
        };
        assert_eq!(value(&source(limits::FRAMES - 6)).await, json!({"deep": limits::FRAMES - 6}));
        let ran = run(&sandbox(), &source(limits::FRAMES * 3 / 2)).await;
        assert_eq!(ran.returned, Err(ScriptFault::TooDeep));
    });
}

#[test]
fn the_console_is_kept_in_order_and_bounded() {
    runtime().block_on(async {
        let source = "console.log('loaded');
            function handle(event) { console.log('a', 1, true, null, undefined, { b: [1] }, [2]); console.error(new TypeError('t'));
            return {}; }";
        let ran = run(&sandbox(), source).await;
        assert_eq!(ran.log, "log: loaded\nlog: a 1 true null undefined {\"b\":[1]} [2]\nerror: TypeError: t\n");
        let flood = "function handle(event) { for (;;) console.log('0123456789'.repeat(10)), n(); } let i = 0;
            function n() { if (i++ > 1000) throw new Error('enough\\nsecond line'); }";
        let ran = run(&sandbox(), flood).await;
        assert_eq!(ran.returned, Err(ScriptFault::Threw("Error: enough".into())));
        assert_eq!(ran.log.len(), limits::CONSOLE_BYTES + limits::CONSOLE_CUT.len());
        assert!(ran.log.ends_with("... truncated"), "a throw keeps what was written before it");
    });
}

#[test]
fn sources_are_checked() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let check = |source: &'static str| async { sandbox.compile(source).await.err().map(|error| error.to_string()) };
        assert_eq!(check("function handle(event) { return {}; }").await, None);
        assert_eq!(check("function handle() { return {}; }").await, None);
        let missing = Some("script: export function handle(event)".to_owned());
        assert_eq!(check("function handel(event) { }").await, missing);
        assert_eq!(check("function handle(event, more) { }").await, missing);
        let broken = check("function handle(event) {\n  return {;\n}").await.unwrap();
        assert!(broken.starts_with("script compile error: SyntaxError: Line 2:"), "{broken}");
        let text = "script compile error: SyntaxError: Line 2:3 the source contains a NUL character";
        assert_eq!(check("//\n  \0").await.as_deref(), Some(text));
        assert_eq!(check("throw new Error('at load')").await.as_deref(), Some("script threw: Error: at load"));
        let json = check("JSON.parse('{')").await.unwrap();
        assert!(json.starts_with("script threw: SyntaxError: "), "{json}");
        let looping = sandbox.compile("for (;;);").await;
        assert_eq!(looping, Err(CompileError::Load(ScriptFault::Timeout { after_ms: 1000 })));
    });
}

#[test]
fn sizes_are_bounded() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let source =
            format!("function handle(event) {{ return {{ size: event.text.length }}; }} //{}", "x".repeat(100_000));
        let event = |bytes: usize| json!({ "text": "x".repeat(bytes) }).to_string();
        let large = event(3 << 20);
        let ran = sandbox.run(stage::call(&source, &large)).await;
        assert_eq!(json!(ran.returned.unwrap()), json!({"size": 3 << 20}));
        let larger = event(limits::EVENT_BYTES);
        let ran = sandbox.run(stage::call(&source, &larger)).await;
        assert_eq!(ran.returned, Err(ScriptFault::EventTooLarge { bytes: larger.len() }));
        let long = "/".repeat(limits::SOURCE_BYTES + 1);
        let ran = run(&sandbox, &long).await;
        assert_eq!(ran.returned, Err(ScriptFault::SourceTooLarge { bytes: limits::SOURCE_BYTES + 1 }));
        let back = "function handle(event) { return { text: event.text }; }";
        let most = event(limits::RETURN_BYTES - 100);
        let ran = sandbox.run(stage::call(back, &most)).await;
        assert_eq!(ran.returned.unwrap()["text"].as_str().unwrap().len(), limits::RETURN_BYTES - 100);
    });
}

#[test]
fn an_event_that_is_nested_too_deeply_is_a_fault() {
    runtime().block_on(async {
        let event = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let ran = sandbox().run(stage::call("function handle(event) { return {}; }", &event)).await;
        assert_eq!(ran.returned, Err(ScriptFault::TooDeep));
    });
}

#[test]
fn waiting_for_a_slot_is_not_the_scripts_fault() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let event = stage::event().to_string();
        let slow = stage::call("function handle(event) { for (;;); }", &event);
        let short = pintle_sandbox::ScriptRun {
            budget: Duration::from_millis(20),
            ..stage::call("function handle(event) { return {}; }", &event)
        };
        let other = pintle_sandbox::ScriptRun { tenant: "other", ..stage::call(short.source, &event) };
        let mut slow_ones: Vec<_> = (0..limits::TENANT_SLOTS).map(|_| Box::pin(sandbox.run(slow))).collect();
        for run in &mut slow_ones {
            // Each of them has its slot after it was looked at once.
            let looked = futures_util::poll!(run.as_mut());
            assert!(looked.is_pending());
        }
        let waited = sandbox.run(short).await;
        assert_eq!(waited.returned, Err(ScriptFault::NoSlot { waited_ms: 20 }));
        assert!(sandbox.run(other).await.returned.is_ok(), "another tenant has its own");
        drop(slow_ones);
        let ran = sandbox.run(stage::call(short.source, &event)).await;
        assert!(ran.returned.is_ok(), "their slots are free again");
    });
}

#[test]
fn a_flood_of_observers_leaves_gates_their_slots_and_waits_apart_from_its_own_time() {
    runtime().block_on(async {
        let (sandbox, event) = (sandbox(), stage::event().to_string());
        let observer = |source: &'static str, timeout, wait| pintle_sandbox::ScriptRun {
            duty: Duty::Observer,
            timeout,
            budget: timeout + wait,
            ..stage::call(source, &event)
        };
        let endless = observer("function handle(event) { for (;;); }", stage::PATIENT, stage::PATIENT);
        let mut flood: Vec<_> = (0..100).map(|_| Box::pin(sandbox.run(endless))).collect();
        for run in &mut flood {
            assert!(futures_util::poll!(run.as_mut()).is_pending());
        }
        let quick = "function handle(event) { return {}; }";
        let gate = sandbox.run(stage::call(quick, &event)).await;
        assert!(gate.returned.is_ok() && gate.waited.is_zero(), "{gate:?}");
        // One more observer gives up, and has a timeout of nothing on its account.
        let wait = Duration::from_millis(20);
        let late = sandbox.run(observer(quick, Duration::from_secs(5), wait)).await;
        assert_eq!((late.returned, late.waited), (Err(ScriptFault::NoSlot { waited_ms: 20 }), wait));
        // Once there is a place it has all of its own time, however long it waited.
        let waiting = sandbox.run(observer(quick, stage::PATIENT, stage::PATIENT));
        let freed = async {
            let busy = "function handle(event) { const end = Date.now() + 30; while (Date.now() < end); return {}; }";
            assert!(sandbox.run(stage::call(busy, &event)).await.returned.is_ok());
            drop(flood);
        };
        let (ran, ()) = futures_util::future::join(waiting, freed).await;
        assert!(ran.returned.is_ok() && ran.waited >= wait, "{ran:?}");
    });
}

#[test]
fn many_callers_are_all_served() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let source = "function handle(event) { return { n: event.n }; }";
        let call = async |n: usize| {
            let (tenant, event) = (format!("tenant-{}", n % 7), json!({ "n": n }).to_string());
            let ran = sandbox.run(pintle_sandbox::ScriptRun { tenant: &tenant, ..stage::call(source, &event) }).await;
            assert_eq!(json!(ran.returned.unwrap()), json!({ "n": n }));
        };
        futures_util::future::join_all((0..100).map(call)).await;
        // Those that run at once, one that is ready, and those that still die.
        assert!(sandbox.processes().len() <= limits::SLOTS + 1, "{}", sandbox.processes().len());
    });
}

#[test]
fn the_budget_cuts_the_scripts_time() {
    runtime().block_on(async {
        let event = stage::event().to_string();
        let call = stage::call("function handle(event) { for (;;); }", &event);
        let budget = Duration::from_millis(200);
        let ran = sandbox().run(pintle_sandbox::ScriptRun { budget, ..call }).await;
        let Err(ScriptFault::Timeout { after_ms }) = ran.returned else { panic!("{ran:?}") };
        assert!(after_ms <= 200, "{after_ms}");
    });
}
