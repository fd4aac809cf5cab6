//! The examples of the page on scripts.

use pintle_domain::json::{Value, json};

use crate::stage::{runtime, sandbox, value};

const PAGE: &str = include_str!("../../../../docs/reference/scripts.md");

/// The blocks of the page that are marked as `language`.
fn blocks(language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    PAGE.split(&begin)
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a split has a first part").to_owned())
        .collect()
}

#[test]
fn the_examples_of_the_page_work() {
    let scripts = blocks("js");
    let answers: Vec<Value> = blocks("json").iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!((scripts.len(), answers.len()), (2, 2));
    assert_eq!(answers[0]["decision"], json!("block"));
    runtime().block_on(async {
        let sandbox = sandbox();
        for (script, answer) in scripts.iter().zip(answers) {
            sandbox.compile(script).await.unwrap();
            assert_eq!(value(script).await, answer);
        }
    });
}
