//! A network of one's own between one process and the server: what passes it, and what does not.

use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// What happens to what is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Network {
    /// It arrives.
    Up,
    /// Connections are closed, the new ones at once.
    Cut,
    /// Requests arrive; where the answer should come the connection is closed.
    CutReplies,
    /// It arrives, each part that much later, in each direction.
    Slow(Duration),
    /// Connections are accepted, and nothing is ever answered or sent on.
    HalfOpen,
}

/// What stands between one process and the server.
pub(crate) struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (network, seen) = watch::channel(Network::Up);
        let accepting = tokio::spawn(accept(listener, server, seen));
        Ok(Self { address, network, accepting })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: String, network: watch::Receiver<Network>) {
    loop {
        // Out of files, for instance: whoever connects tries again.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (server, network) = (server.clone(), network.clone());
        // A connection that breaks is what this is for.
        tokio::spawn(async move { drop(serve(client, &server, network).await) });
    }
}

async fn serve(
    mut client: TcpStream,
    server: &str,
    mut network: watch::Receiver<Network>,
) -> io::Result<()> {
    if *network.borrow_and_update() == Network::Cut {
        return Ok(());
    }
    client.set_nodelay(true)?;
    let mut server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    let (mut sent, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    let mut before = *network.borrow();
    loop {
        tokio::select! {
            biased;
            changed = network.changed() => {
                let now = *network.borrow_and_update();
                // Where something was swallowed, nothing that follows makes sense.
                let is_broken = std::mem::replace(&mut before, now) == Network::HalfOpen;
                if changed.is_err() || is_broken || now == Network::Cut {
                    return Ok(());
                }
            }
            read = client.read(&mut sent) => {
                let length = read?;
                if length == 0 || !pass(&mut server, &sent[..length], &network, false).await? {
                    return Ok(());
                }
            }
            read = server.read(&mut answered) => {
                let length = read?;
                if length == 0 || !pass(&mut client, &answered[..length], &network, true).await? {
                    return Ok(());
                }
            }
        }
    }
}

/// Sends a part on, or does not. False: the connection is to be closed.
async fn pass(
    to: &mut TcpStream,
    part: &[u8],
    network: &watch::Receiver<Network>,
    is_answer: bool,
) -> io::Result<bool> {
    let now = *network.borrow();
    match now {
        Network::HalfOpen => return Ok(true),
        Network::Cut => return Ok(false),
        Network::CutReplies if is_answer => return Ok(false),
        Network::Slow(by) => tokio::time::sleep(by).await,
        Network::Up | Network::CutReplies => {}
    }
    to.write_all(part).await?;
    Ok(true)
}

/// The server of a bucket's URL that can be reached through a proxy: `host:port`, and where it stands
/// in the URL. `None`: it speaks TLS, or no server is named.
pub(crate) fn server_of(url: &str) -> Option<(String, std::ops::Range<usize>)> {
    const OPTION: &str = "endpoint=";
    let from = url.find(&format!("?{OPTION}")).or_else(|| url.find(&format!("&{OPTION}")))?;
    let from = from + 1 + OPTION.len();
    let to = url[from..].find('&').map_or(url.len(), |at| from + at);
    let endpoint = url[from..to].replace("%3A", ":").replace("%2F", "/");
    let server = endpoint.strip_prefix("http://")?.trim_end_matches('/');
    let server = if server.contains(':') { server.to_owned() } else { format!("{server}:80") };
    Some((server, from..to))
}
