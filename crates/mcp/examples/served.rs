//! Three small tools behind `serve_stdio`: what `pintle mcp` does, without the gates.
//!
//! The tests let a foreign client drive it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{Annotations, ToolOutput};
use pintle_mcp::{OfferedTool, ToolSource, serve_stdio};
use tokio_util::sync::CancellationToken;

struct Small;

impl ToolSource for Small {
    fn tools(&self) -> Vec<OfferedTool> {
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let harmless = Annotations { read_only: Some(true), destructive: Some(false) };
        let tool = |name, about, schema: Value, annotations| OfferedTool {
            definition: ToolDef::new(name, about, schema),
            annotations,
        };
        vec![
            tool("shout", "Says it louder.", text, harmless),
            tool("echo", "Gives its arguments back.", json!({"type": "object"}), Annotations::default()),
            tool("wait", "Waits until it is withdrawn.", json!({"type": "object"}), Annotations::default()),
        ]
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Object,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match name {
                "shout" => match arguments.get("text").and_then(Value::as_str) {
                    Some(text) => ToolOutput::ok(text.to_uppercase()),
                    None => ToolOutput::error("`text` is missing: expected a string"),
                },
                "echo" => ToolOutput {
                    media: vec!["data:image/png;base64,aGk=".into()],
                    ..ToolOutput::ok(Value::from(arguments).to_string())
                },
                _ => {
                    cancel.cancelled().await;
                    eprintln!("withdrawn");
                    ToolOutput::error("withdrawn")
                }
            }
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), pintle_mcp::ServeError> {
    serve_stdio(Arc::new(Small)).await
}
