//! `pintle mcp proxy`: the tool door.
//!
//! Standard output belongs to the protocol; everything else goes to standard error.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use pintle_domain::shown_url::shown_url;
use pintle_doors::mcp::hub::ProxyEnd;
use pintle_doors::mcp::listener;
use pintle_doors::mcp::stdio::{self, ServerWay};
use pintle_host::config::Env;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::cli::stops::Stops;
use crate::cli::{Global, terminal};
use crate::error::{CliError, FAILED};
use crate::guard::folders::Folders;
use crate::guard::tool_door::{GuardedTools, check_name, launch};

/// Flags of `mcp proxy`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ProxyArgs {
    /// What the server is called here: rules know its tool `read` as `mcp_NAME_read`
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Listen for clients over HTTP there, such as 127.0.0.1:8788, instead of at standard input; only addresses of this
    /// machine. The path is /mcp
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// The address of a server that runs, which speaks streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<Url>,
    /// The server: a program and its arguments, which speaks over standard input and output
    #[arg(
        value_name = "COMMAND",
        required_unless_present = "url",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

pub(super) fn run(global: &Global, args: &ProxyArgs) -> Result<u8, CliError> {
    let runtime = terminal::runtime()?;
    let code = runtime.block_on(serve(global, args));
    // A read of standard input may wait for a client that is silent.
    runtime.shutdown_background();
    code
}

async fn serve(global: &Global, args: &ProxyArgs) -> Result<u8, CliError> {
    check_name(&args.name)?;
    args.listen.map_or(Ok(()), check_address)?;
    let way = match &args.url {
        Some(url) if matches!(url.scheme(), "http" | "https") => ServerWay::Url(url.clone()),
        Some(url) => {
            let shown = shown_url(url.as_str());
            return Err(CliError::usage(format!("`{shown}` cannot be reached")).hint("expected http://… or https://…"));
        }
        None => ServerWay::Command(launch(&args.command)),
    };
    let mut stops = Stops::listen(true)?;
    let env = Env::of_process()?;
    let folders = Arc::new(Folders::new(env.clone(), global.config.clone(), global.home.clone()));
    let door = GuardedTools::open((&args.name, &way), &folders, (&env, global.home.as_deref())).await?;
    let stop = CancellationToken::new();
    if let Some(address) = args.listen {
        let failed = |error: std::io::Error| CliError::failed(format!("cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        terminal::note(&format!("tool door at http://{bound}{}", listener::PATH));
        let served = listener::serve(door, way, listener, stop.clone());
        tokio::pin!(served);
        let served = tokio::select! {
            served = &mut served => served,
            _ = stops.next() => {
                stop.cancel();
                served.await
            }
        };
        folders.close().await;
        return served.map(|()| 0).map_err(failed);
    }
    let served = {
        let served = stdio::serve(door, &way, (tokio::io::stdin(), tokio::io::stdout()), stop.clone());
        tokio::pin!(served);
        loop {
            tokio::select! {
                served = &mut served => break served,
                _ = stops.next() => stop.cancel(),
            }
        }
    };
    folders.close().await;
    match served {
        Ok(ProxyEnd::ClientLeft) => Ok(0),
        Ok(ProxyEnd::ServerGone(why)) => {
            terminal::note(&format!("MCP server `{}`: {why}", args.name));
            Ok(FAILED)
        }
        Err(why) => Err(CliError::failed(format!("MCP server `{}`: {why}", args.name))),
    }
}

/// Whether only this machine reaches `address`.
fn check_address(address: SocketAddr) -> Result<(), CliError> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let message = format!("`--listen {address}` is not an address of this machine alone");
    Err(CliError::usage(message).hint("whoever reaches it may call the server's tools: use 127.0.0.1"))
}
