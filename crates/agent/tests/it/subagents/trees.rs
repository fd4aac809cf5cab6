//! Random trees of agents under one gate.

use super::*;

/// What one agent of a random tree does, in one batch.
#[derive(Clone, Debug)]
enum Does {
    /// It works, well or badly.
    Works { bad: bool },
    /// It gives all this to another one.
    Delegates(Vec<Does>),
}

impl Does {
    fn to_json(&self) -> Value {
        match self {
            Self::Works { bad } => json!(bad),
            Self::Delegates(plan) => json!(plan.iter().map(Self::to_json).collect::<Vec<_>>()),
        }
    }
}

/// What must come of a plan at some depth.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    ran: usize,
    denied: usize,
    too_deep: usize,
    began: usize,
}

fn expected(plan: &[Does], depth: u8, sum: &mut Expected) {
    for one in plan {
        match one {
            Does::Works { bad: false } => sum.ran += 1,
            Does::Works { bad: true } => sum.denied += 1,
            Does::Delegates(_) if depth == 3 => sum.too_deep += 1,
            Does::Delegates(plan) => {
                sum.began += 1;
                expected(plan, depth + 1, sum);
            }
        }
    }
}

/// What one does who stands `depth` levels down; nobody plans further than six.
fn one(depth: u8) -> BoxedStrategy<Does> {
    let works = any::<bool>().prop_map(|bad| Does::Works { bad });
    if depth == 6 {
        return works.boxed();
    }
    let delegates = proptest::collection::vec(one(depth + 1), 0..3).prop_map(Does::Delegates);
    prop_oneof![1 => works, 3 => delegates].boxed()
}

fn plans() -> impl Strategy<Value = Vec<Does>> {
    proptest::collection::vec(one(0), 0..4)
}

/// Carries out the plan that stands in the prompt.
fn obeys(request: &LlmRequest) -> LlmReply {
    let plan: Value = match after_tools(request) {
        true => return LlmReply::text("done"),
        false => serde_json::from_str(&last(request)).unwrap(),
    };
    let parts = plan.as_array().unwrap().iter().enumerate().map(|(n, one)| match one.as_bool() {
        Some(bad) => call(n, "work", &json!({"bad": bad})),
        None => call(n, "delegate", &json!({"agent": "helper", "task": one.to_string()})),
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { LlmReply::text("nothing to do") } else { LlmReply::calls(parts) }
}

fn check_tree(plan: &[Does]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = ran.clone();
        let work = OwnTool::new(
            "work",
            false,
            Box::new(move |_, _| {
                counted.fetch_add(1, Ordering::Relaxed);
                std::future::ready(ToolOutput::ok("hi")).boxed()
            }),
        );
        let test_agents =
            TestAgentsParts::of(Mind::quick(|_, request| obeys(request)), &["main", "helper"]).own(work).test_agents();
        test_agents.mount(vec![gate_of(&test_agents, "main", false)]);
        let mut conversation = Conversation::new("s");
        let report = test_agents.turn(&mut conversation, &Does::Delegates(plan.to_vec()).to_json().to_string()).await;
        let mut wanted = Expected::default();
        expected(plan, 0, &mut wanted);
        let results = said(&conversation)[1..].join("\n");
        let came = Expected {
            ran: ran.load(Ordering::Relaxed),
            denied: results.matches("no bad work").count(),
            too_deep: results.matches("at most 3 levels").count(),
            began: test_agents.seen.count("subturn_spawn"),
        };
        assert_eq!(came, wanted, "{results}");
        assert_eq!(report.denials.len(), wanted.denied + wanted.too_deep, "{:?}", report.denials);
        let counts =
            ["subturn_end", "subagent_stop", "subturn_result_delivered"].map(|name| test_agents.seen.count(name));
        assert_eq!((counts, test_agents.seen.count("turn_end")), ([wanted.began; 3], wanted.began + 1));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever delegates to whatever: what the gate of the one at the top denies does not run, and every denial
    /// reaches what that one reads.
    #[test]
    fn no_tree_of_agents_gets_around_the_gate_at_its_top(plan in plans()) {
        check_tree(&plan);
    }
}
