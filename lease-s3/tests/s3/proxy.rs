//! A proxy between driver and server that lets a write through and cuts its reply: what a network does.

use crate::{
    OBJECT, connected,
    rig::{R, Stepped, T, WINDOW, failed, next, renewed},
    trials,
};
use lease_core::{
    StoreErrorKind,
    fencing::Clock as _,
    machine::{Attempted, EndReason, Event},
    record::LeaseRecord,
};
use lease_s3::{
    S3Store,
    testing::{Fault, Held, Method, TestServer},
};
use libtest_mimic::Trial;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        case_08_a_cut_reply_keeps_the_lease_with_the_deadline_of_its_sending,
        case_08_a_late_reply_counts_while_a_read_looks_for_it,
        case_08_replies_that_are_cut_again_and_again_are_each_found,
        case_08_replies_that_are_all_cut_end_the_tenure_at_its_deadline,
    ]
}

/// A TCP proxy on the loopback interface. It lives as long as the runtime.
struct Proxy {
    endpoint: String,
    /// How many replies to a PUT are still to be cut.
    to_cut: Arc<AtomicUsize>,
    has_cut: Arc<AtomicUsize>,
}

impl Proxy {
    async fn before(server: &TestServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (to_cut, has_cut) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (cutting, counting) = (Arc::clone(&to_cut), Arc::clone(&has_cut));
        let server = server.endpoint().replace("http://", "");
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&cutting), Arc::clone(&counting)));
            }
        });
        Self { endpoint, to_cut, has_cut }
    }

    fn cut(&self, replies: usize) {
        self.to_cut.store(replies, SeqCst);
    }
}

/// Passes bytes both ways, up to the reply that is to be cut. A client sends its next request once it
/// has the reply to the one before, so that each begins with a packet.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    to_cut: Arc<AtomicUsize>,
    has_cut: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut asked, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    let mut cuts = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let request = &asked[..read?];
                if request.is_empty() {
                    return Ok(());
                }
                let one_less = |left: usize| left.checked_sub(1);
                if request.starts_with(b"PUT ") {
                    cuts = to_cut.fetch_update(SeqCst, SeqCst, one_less).is_ok();
                }
                server.write_all(request).await?;
            }
            read = server.read(&mut answered) => {
                let reply = &answered[..read?];
                if cuts || reply.is_empty() {
                    // It was applied, or there would be no reply.
                    has_cut.fetch_add(usize::from(cuts), SeqCst);
                    return Ok(());
                }
                client.write_all(reply).await?;
            }
        }
    }
}

/// A lease that is held through a proxy.
async fn held() -> (TestServer, Proxy, Stepped) {
    let (server, _) = connected().await;
    let proxy = Proxy::before(&server).await;
    let builder = server.builder().with_endpoint(&proxy.endpoint);
    let store = S3Store::from_builder(builder, "p").unwrap().connect().await.unwrap();
    let lease = Stepped::start(store).await;
    let _before = server.take_requests();
    (server, proxy, lease)
}

fn seq(server: &TestServer) -> u64 {
    LeaseRecord::decode(&server.content(OBJECT).unwrap()).unwrap().seq
}

async fn case_08_a_cut_reply_keeps_the_lease_with_the_deadline_of_its_sending() {
    let (server, proxy, mut lease) = held().await;
    let (before, first) = (lease.deadline(), seq(&server));
    proxy.cut(1);
    lease.clock.advance(R);
    let sent = lease.clock.monotonic();
    let attempt = failed(&mut lease.events).await;
    assert_eq!(attempt, (Attempted::Renewal, StoreErrorKind::InDoubt));
    assert_eq!((proxy.has_cut.load(SeqCst), seq(&server)), (1, first + 1), "it was applied");
    assert_eq!(lease.deadline(), before, "what is in doubt proves nothing");

    // The next try is refused, since the first was applied; a read shows that this was one's own.
    lease.clock.advance(R / 10);
    assert_eq!(renewed(&mut lease.events).await, sent + WINDOW, "not one moment later, nor less");
    let requests = server.take_requests();
    assert_eq!((requests.put, requests.get), (2, 1));
    assert_eq!(seq(&server), first + 1, "the second was not applied");

    // And the deadline stands: nothing is renewed any more, and the fence is open up to it.
    server.choose(|seen| (seen.method == Method::PUT).then_some(Fault::Drop));
    let fence = lease.tenure.fence();
    lease.clock.advance_to(sent + WINDOW - Duration::from_nanos(1));
    assert!(fence.check().is_ok());
    lease.clock.advance(Duration::from_nanos(1));
    assert!(fence.check().is_err());
    assert_eq!(lease.tenure.ended().await, EndReason::Expired);
}

/// The reply is not lost, but late: past the budget of its request, and past the next try's.
async fn case_08_a_late_reply_counts_while_a_read_looks_for_it() {
    let (server, _proxy, mut lease) = held().await;
    let (late, read) = (Held::new(), Held::new());
    server.next(Method::PUT, Fault::ApplyThenHold(late.clone()));
    server.next(Method::GET, Fault::Hold(read.clone()));
    lease.clock.advance(R);
    let sent = lease.clock.monotonic();
    late.holds_one().await;
    // The next try is refused, and the read that is to tell why hangs.
    lease.clock.advance(R);
    read.holds_one().await;
    late.release();
    assert_eq!(renewed(&mut lease.events).await, sent + WINDOW);
    read.release();
    lease.clock.advance(R);
    assert!(renewed(&mut lease.events).await > sent + WINDOW);
    assert!(lease.tenure.fence().is_open());
}

/// Of several tries whose replies are cut the first landed: it counts, with its own time of sending.
async fn case_08_replies_that_are_cut_again_and_again_are_each_found() {
    let (server, proxy, mut lease) = held().await;
    let (rounds, mut cut) = (20, 0);
    for round in 0..rounds {
        let replies = round % 3 + 1;
        proxy.cut(replies);
        lease.clock.advance(R);
        let sent = lease.clock.monotonic();
        for _ in 0..replies {
            let attempt = failed(&mut lease.events).await;
            assert_eq!(attempt, (Attempted::Renewal, StoreErrorKind::InDoubt), "round {round}");
            lease.clock.advance(R / 10);
        }
        assert_eq!(renewed(&mut lease.events).await, sent + WINDOW, "round {round}");
        cut += replies;
    }
    assert_eq!(proxy.has_cut.load(SeqCst), cut);
    assert!(lease.tenure.fence().is_open());
    // One PUT more than were cut, and a read, for each; nothing else.
    let requests = server.take_requests();
    assert_eq!((requests.put, requests.get), (rounds + cut, rounds));
    assert_eq!((requests.delete, requests.other), (0, 0));
}

async fn case_08_replies_that_are_all_cut_end_the_tenure_at_its_deadline() {
    let (server, proxy, mut lease) = held().await;
    proxy.cut(usize::MAX);
    server.choose(|seen| (seen.method == Method::GET).then_some(Fault::Drop));
    let deadline = lease.deadline();
    lease.clock.advance(R);
    assert_eq!(failed(&mut lease.events).await.1, StoreErrorKind::InDoubt);
    lease.clock.advance_to(deadline - Duration::from_nanos(1));
    assert!(lease.tenure.fence().is_open());
    lease.clock.advance(Duration::from_nanos(1));
    assert!(!lease.tenure.fence().is_open(), "at the deadline itself it is shut");
    let is_end = |event| matches!(event, Event::Ended { .. }).then_some(event);
    let ended = next(&mut lease.events, is_end).await;
    assert!(matches!(ended, Event::Ended { reason: EndReason::Expired, .. }), "{ended:?}");
    lease.clock.advance(T);
    assert!(!lease.tenure.fence().is_open(), "whatever is found out later");
}
