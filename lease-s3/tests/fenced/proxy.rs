//! A proxy before a real server: every request takes its time, and some meet the faults of a schedule.
//!
//! It speaks as much HTTP/1.1 as the driver does, one request on a connection.

use fastrand::Rng;
use lease_s3::testing::{Fault, Method};
use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The longest that a request, and again its answer, is on its way.
const LATENCY_MAX: Duration = Duration::from_millis(3);

pub(crate) struct Proxy {
    shared: Arc<Shared>,
    endpoint: String,
    accepting: JoinHandle<()>,
}

struct Shared {
    /// `host:port` of the server.
    server: String,
    faults: Mutex<VecDeque<(Method, Fault)>>,
    rng: Mutex<Rng>,
}

impl Proxy {
    pub(crate) async fn start(server: &str, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let rng = Mutex::new(Rng::with_seed(seed));
        let shared = Arc::new(Shared { server, faults: Mutex::default(), rng });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { shared, endpoint, accepting }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) fn next(&self, method: Method, fault: Fault) {
        self.shared.faults.lock().unwrap().push_back((method, fault));
    }

    pub(crate) fn calm(&self) {
        self.shared.faults.lock().unwrap().clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A connection that breaks is what a schedule asked for.
            drop(shared.serve(client).await);
        });
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let Some((method, request)) = read_request(&mut client).await? else { return Ok(()) };
        let fault = self.fault(&method);
        self.latency().await;
        let answer = match fault {
            None => self.forward(&request).await?,
            Some(Fault::Drop) => return Ok(()),
            Some(Fault::Answer(status, code)) => error(status, code),
            Some(Fault::ApplyThenDrop) => {
                self.forward(&request).await?;
                return Ok(());
            }
            Some(Fault::ApplyThenAnswer(status, code)) => {
                self.forward(&request).await?;
                error(status, code)
            }
            Some(Fault::ApplyThenHold(held)) => {
                let answer = self.forward(&request).await?;
                held.pass().await;
                answer
            }
            Some(Fault::Hold(held)) => {
                held.pass().await;
                self.forward(&request).await?
            }
            Some(Fault::LandLater(late)) => {
                let shared = Arc::clone(&self);
                late.push(async move { status(&shared.forward(&request).await.unwrap()) });
                return Ok(());
            }
            Some(other) => panic!("{other:?} is no fault of a schedule"),
        };
        self.latency().await;
        client.write_all(&answer).await?;
        client.shutdown().await
    }

    fn fault(&self, method: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let index = faults.iter().position(|(of, _)| of.as_str() == method)?;
        faults.remove(index).map(|(_, fault)| fault)
    }

    async fn latency(&self) {
        let nanos = self.rng.lock().unwrap().u64(0..LATENCY_MAX.as_nanos() as u64);
        tokio::time::sleep(Duration::from_nanos(nanos)).await;
    }

    /// Sends a request to the server; its whole answer, to the end of the connection.
    async fn forward(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(&self.server).await?;
        server.write_all(request).await?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer).await?;
        Ok(answer)
    }
}

/// One request, as it goes on: told to close the connection behind it, which no signature covers.
async fn read_request(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let method = text.split(' ').next().unwrap_or_default().to_owned();
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
    });
    let total = head + 4 + length.unwrap_or(0);
    while bytes.len() < total {
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    let mut request = text.into_bytes();
    request.extend_from_slice(b"\r\nConnection: close\r\n\r\n");
    request.extend_from_slice(&bytes[head + 4..total]);
    Ok(Some((method, request)))
}

fn status(answer: &[u8]) -> u16 {
    let text = std::str::from_utf8(&answer[..answer.len().min(12)]).unwrap_or_default();
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

fn error(status: u16, code: &str) -> Vec<u8> {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    let length = body.len();
    format!(
        "HTTP/1.1 {status} {code}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
