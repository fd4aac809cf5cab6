//! Requests to a model and its answers.

use super::*;

/// What the hooks, each returning a list of tools, leave: the names that are offered, and who owns which.
fn offered(start: &[&str], returned: &[(&str, &[&str])]) -> (Vec<String>, Vec<(String, String)>, Vec<String>) {
    let hooks = returned.iter().map(|(name, _)| hook(name, &[AtBeforeLlm])).collect();
    let script = returned.iter().fold(Script::default(), |script, (name, tools)| {
        let patch = LlmPatch { tools: Some(definitions(tools)), ..LlmPatch::default() };
        script.says(name, Verdict::<BeforeLlm>::Modify(patch))
    });
    let concluded = conclude(hooks, Agent::with(&[]), before_llm(start), script);
    let BeforeLlm { request, owners } = concluded.subject;
    let names = request.tools.iter().map(|tool| tool.get().function.name.clone()).collect();
    let owners = owners.into_iter().map(|(tool, by)| (tool, by.to_string())).collect();
    (names, owners, concluded.records.iter().flat_map(|record| record.warnings.clone()).collect())
}

#[test]
fn a_hook_owns_the_tools_it_brings_and_no_others() {
    let own =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(t, h)| ((*t).to_owned(), (*h).to_owned())).collect::<Vec<_>>();
    let (names, owners, _) = offered(&["exec"], &[("a", &["exec", "web"])]);
    assert_eq!((names, owners), (vec!["exec".into(), "web".into()], own(&[("web", "a")])));

    // An edit moves no ownership, neither of a built-in nor of another hook's tool.
    let (_, owners, _) = offered(&["exec"], &[("a", &["exec", "web"]), ("b", &["web", "exec"])]);
    assert_eq!(owners, own(&[("web", "a")]));

    // Of two definitions with one name the first stays.
    let (names, owners, warnings) = offered(&["exec"], &[("a", &["exec", "exec", "web", "web"])]);
    assert_eq!((names, owners), (vec!["exec".into(), "web".into()], own(&[("web", "a")])));
    assert_eq!(warnings.len(), 2);
    assert_eq!(warnings[0], "a second definition of tool `exec` is ignored; the first stays");

    // What is taken out again belongs to nobody; what is brought back belongs to who brought it.
    let (_, owners, _) = offered(&[], &[("a", &["web"]), ("b", &[])]);
    assert_eq!(owners, own(&[]));
    let (_, owners, _) = offered(&[], &[("a", &["web"]), ("b", &[]), ("c", &["web"])]);
    assert_eq!(owners, own(&[("web", "c")]));
}

#[test]
fn an_unknown_model_is_a_fault_and_takes_nothing_else_along() {
    let patch = |model: &str| {
        let patch = LlmPatch { model: Some(model.into()), tools: Some(definitions(&["web"])), ..LlmPatch::default() };
        Script::default().says("h", Verdict::<BeforeLlm>::Modify(patch))
    };
    let conclude = |script| conclude(vec![hook("h", &[AtBeforeLlm])], Agent::with(&[]), before_llm(&[]), script);
    let concluded = conclude(patch("gpt-9"));
    assert_eq!(concluded.subject.request.model, "m");
    assert_eq!(concluded.subject.owners.len(), 1);
    let told = lines(&concluded.records);
    assert!(told.starts_with("before_llm h protocol_error became continue"), "{told}");
    assert!(concluded.records.to_vec()[0].change.is_some(), "what it changed all the same is told");
    assert_eq!(conclude(patch("big")).subject.request.model, "big");
    let concluded = conclude(patch(""));
    assert_eq!(concluded.subject.request.model, "m");
    assert_eq!(concluded.records.to_vec()[0].warnings, ["an empty `model` keeps the model"]);
    assert_eq!(concluded.subject.owners.len(), 1);
}

#[test]
fn a_replaced_answer_keeps_the_usage_and_gets_its_finish_reason_from_its_calls() {
    let usage = Some(Usage { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
    let private = ProviderData::of(vec![crate::json::json!({"signature": "s"})]);
    let original = LlmReply { usage, private: private.clone(), ..LlmReply::text("hello") };
    let replaced = |with: LlmReply| {
        let subject = AfterLlm { model: "m".into(), response: original.clone() };
        let script = Script::default().says("h", Verdict::<AfterLlm>::Modify(with));
        conclude(vec![hook("h", &[AtAfterLlm])], Agent::with(&[]), subject, script).subject.response
    };
    let bare = |reply: LlmReply| LlmReply { finish_reason: String::new(), ..reply };
    let claimed = Some(Usage { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

    let text = replaced(LlmReply { usage: claimed, role: Role::User, ..bare(LlmReply::text("bye")) });
    assert_eq!(text, LlmReply { usage, ..LlmReply::text("bye") });
    let calls = vec![CallPart::new("c1", "exec", "{}")];
    let asking = replaced(bare(LlmReply::calls(calls.clone())));
    assert_eq!(
        (asking.finish_reason.as_str(), asking.usage, asking.private),
        ("tool_calls", usage, ProviderData::default())
    );
    let kept = replaced(LlmReply { finish_reason: "length".into(), ..LlmReply::text("hello") });
    assert_eq!((kept.finish_reason.as_str(), kept.private), ("length", private));
}
