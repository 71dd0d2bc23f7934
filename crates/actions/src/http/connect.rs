//! From a URL to an open line: the addresses that were checked are the ones that are connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use surefoot_kernel_core::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::client::HttpClient;
use super::policy::Forbidden;

/// How many addresses of one host are tried.
const ADDRESSES_MAX: usize = 4;

/// From the name of a host to its addresses. The client checks each of them, whoever found it.
pub trait Resolve: Send + Sync {
    /// All addresses, the preferred one first. Cancel safe.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// As the system resolves names.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Why there is no line. Nothing was sent.
#[derive(Debug)]
pub(super) enum NoLine {
    Forbidden(Forbidden),
    /// No address, no connection, no TLS.
    Unreachable(String),
}

/// A stream of bytes, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(super) type Line = TokioIo<Box<dyn Stream>>;

/// Opens a line to the server of a URL.
pub(super) async fn connect(client: &HttpClient, url: &Url) -> Result<Line, NoLine> {
    client.policy().check_url(url).map_err(NoLine::Forbidden)?;
    let host = url.host().ok_or_else(|| unreachable("the URL names no host"))?;
    let port = url.port_or_known_default().ok_or_else(|| unreachable("the URL has no port"))?;
    let addresses = allowed(client, &host).await?;
    let stream = open(&addresses, port).await?;
    if url.scheme() != "https" {
        return Ok(TokioIo::new(Box::new(stream)));
    }
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.to_owned())
            .map_err(|_| unreachable(format!("`{name}` is no name that a certificate can have")))?,
        Host::Ipv4(address) => ServerName::from(IpAddr::V4(address)),
        Host::Ipv6(address) => ServerName::from(IpAddr::V6(address)),
    };
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(client.tls()));
    let encrypted = connector.connect(name, stream).await;
    let encrypted = encrypted.map_err(|error| unreachable(format!("TLS: {error}")))?;
    Ok(TokioIo::new(Box::new(encrypted)))
}

/// The addresses of a host that may be connected to. None is a refusal.
async fn allowed(client: &HttpClient, host: &Host<&str>) -> Result<Vec<IpAddr>, NoLine> {
    let found = match host {
        Host::Domain(name) => {
            let found = client.resolver().resolve(name).await;
            found.map_err(|error| unreachable(format!("`{name}` has no address: {error}")))?
        }
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
    };
    let mut refusal = None;
    let mut addresses = Vec::new();
    for address in found {
        match client.policy().check_address(address) {
            Ok(()) => addresses.push(address),
            Err(forbidden) => refusal = Some(forbidden),
        }
    }
    match refusal {
        Some(forbidden) if addresses.is_empty() => Err(NoLine::Forbidden(forbidden)),
        Some(_) | None => Ok(addresses),
    }
}

async fn open(addresses: &[IpAddr], port: u16) -> Result<TcpStream, NoLine> {
    let mut last = "its host has no address".to_owned();
    for address in addresses.iter().take(ADDRESSES_MAX) {
        match TcpStream::connect(SocketAddr::new(*address, port)).await {
            Ok(stream) => {
                // Small requests are sent at once; where that cannot be set, they are sent a little later.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Err(unreachable(last))
}

fn unreachable(why: impl Into<String>) -> NoLine {
    NoLine::Unreachable(why.into())
}
