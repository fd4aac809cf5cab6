//! What the guide shows of whole agents in a program of one's own: it compiles as it stands there.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{Conversation, FrontEnds, Runner, SkillSet, TextRequest, TurnHandle, TurnReport, UserOutput};
use pintle_domain::history::{HistoryKey, HistoryMessage};
use pintle_skills::{Scanner, SkillSelection};

#[expect(dead_code, reason = "the guide has it; that it compiles is the test")]
fn an_agent_with_skills(runner: Runner) -> Runner {
    let enabled = vec!["cite-sources".to_owned()];
    let wanted = || SkillSelection::of(Path::new("skills"), &enabled);
    let mut scanner = Scanner::default();
    scanner.look(wanted());
    let skills = Arc::new(SkillSet::new(scanner.current().hooks()));
    let runner = runner.with_skills(skills.clone());

    // After a change in the folder, or every now and then:
    if scanner.look(wanted()) {
        skills.put(scanner.current().hooks());
    }
    runner
}

#[expect(dead_code, reason = "the guide has it; that it compiles is the test")]
async fn an_agent_whose_front_end_keeps_the_conversation(
    runner: Runner,
    mut conversation: Conversation,
    secret: [u8; 32],
    (user_output, turn_handle): (Arc<dyn UserOutput>, TurnHandle),
) -> (TurnReport, Vec<HistoryMessage>) {
    let history = Vec::new();
    let runner =
        runner.with_front_ends(FrontEnds { key: Some(HistoryKey::of(&secret)), verify: true, ..FrontEnds::default() });
    let request = TextRequest { history: Some(&history), ..TextRequest::from("and then?") };
    let report = runner.turn(&mut conversation, request, user_output, &turn_handle).await;
    (report, history)
}
