//! Our tools for foreign clients.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{Annotations, ToolOutput};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError, serve_server};
use rmcp::{RoleServer, ServerHandler};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ServeError;
use crate::wire::{Wire, exact};

/// How long the last answers may take to be written to a client that reads slowly.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A tool that is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// Name, description and JSON Schema of the arguments.
    pub definition: ToolDef,
    /// What it says of itself.
    pub annotations: Annotations,
}

/// Tools that a client can list and call.
pub trait ToolSource: Send + Sync {
    /// The tools, as they are now.
    fn tools(&self) -> Vec<OfferedTool>;

    /// Calls one of [`ToolSource::tools`]. Failures are results. `cancel` is set when the client withdraws the call.
    fn call<'a>(&'a self, name: &'a str, arguments: Object, cancel: &'a CancellationToken)
    -> BoxFuture<'a, ToolOutput>;
}

/// Serves over standard input and output until the client closes our input. Nothing else may write to standard output.
///
/// # Errors
/// When the client does not shake hands, or the service panics.
pub async fn serve_stdio(service: Arc<dyn ToolSource>) -> Result<(), ServeError> {
    let (from, to) = rmcp::transport::stdio_pipes();
    serve(service, from, to).await
}

/// Serves a client that writes to `from` and reads from `to`.
///
/// # Errors
/// As [`serve_stdio`].
pub async fn serve<R, W>(service: Arc<dyn ToolSource>, from: R, to: W) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (wire, writer) = Wire::<RoleServer, R>::new("client", from, to);
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn(writer.write_on(stop.clone()));
    tasks.close();
    let outcome = match serve_server(Service(service), wire).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| ServeError::Failed(error.to_string())),
        // A client that left before it said anything missed nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Handshake(error.to_string())),
    };
    if timeout(LAST_ANSWERS, tasks.wait()).await.is_err() {
        tracing::debug!("the client did not read its last answers");
    }
    stop.cancel();
    tasks.wait().await;
    outcome
}

struct Service(Arc<dyn ToolSource>);

impl ServerHandler for Service {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("pintle", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools().into_iter().map(offer).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = &*request.name;
        if !self.0.tools().iter().any(|tool| tool.definition.function.name == name) {
            return Err(ErrorData::invalid_params(format!("unknown tool: {name:?}"), None));
        }
        let arguments = exact::arguments(&request.arguments.unwrap_or_default())
            .map_err(|why| ErrorData::invalid_params(format!("arguments: {why}"), None))?;
        // Without the fence a panic would leave the client waiting.
        let called = AssertUnwindSafe(self.0.call(name, arguments, &context.ct)).catch_unwind().await;
        let output = called.map_err(|_| ErrorData::internal_error(format!("the tool {name:?} panicked"), None))?;
        Ok(CallToolResponse::Complete(result(output)))
    }
}

fn offer(tool: OfferedTool) -> Tool {
    let OfferedTool { definition, annotations } = tool;
    let function = definition.function;
    let schema = match function.parameters {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Object::from_iter([("type".to_owned(), json!("object"))])
        }
    };
    let hints = ToolAnnotations::from_raw(None, annotations.read_only, annotations.destructive, None, None);
    let meta = exact::meta(&schema);
    let tool = Tool::new(function.name, function.description, exact::theirs(schema)).with_meta(meta);
    if annotations == Annotations::default() { tool } else { tool.with_annotations(hints) }
}

/// The output as blocks: the model's text, then media that came inside of it.
fn result(output: ToolOutput) -> CallToolResult {
    let mut blocks = vec![ContentBlock::text(output.for_llm)];
    blocks.extend(output.media.iter().map(|url| medium(url)));
    if output.is_error { CallToolResult::error(blocks) } else { CallToolResult::success(blocks) }
}

fn medium(url: &str) -> ContentBlock {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((mime, data)) if mime.starts_with("image/") => ContentBlock::image(data, mime),
        Some((mime, data)) if mime.starts_with("audio/") => ContentBlock::audio(data, mime),
        Some((mime, _)) => ContentBlock::text(format!("[data of type {mime} was left out]")),
        None => ContentBlock::text(url),
    }
}
