//! The Model Context Protocol, both ways: tools of foreign servers for our agents ([`McpServer`]), and tools of ours
//! for foreign clients ([`serve_stdio`]).
//!
//! This crate confines `rmcp`: none of its types is public here.
//!
//! A tool of a server is offered to models as `mcp_SERVER_TOOL`. Characters other than ASCII letters, digits, `_` and
//! `-` become `_`, and a name is at most 64 bytes long, which is what providers take; a name that had to be cut, or
//! that clashes with another one of its server, ends in eight hexadecimal digits of the SHA-256 of the server's own.
//!
//! `client` starts and supervises a server, `serve` offers our tools, `wire` carries JSON lines between `rmcp` and a pair
//! of streams, `spec` describes a server before it runs, `error` is what can go wrong while serving.

mod wire;
pub mod client;
pub mod error;
pub mod serve;
pub mod spec;

pub use client::{McpServer, ServerStatus};
pub use error::ServeError;
pub use serve::{OfferedTool, ToolSource, serve, serve_stdio};
pub use spec::{ServerSpec, Transport};
