//! Routes that answer only on the active instance. Start it in two terminals, and ask both:
//!
//! ```sh
//! cargo run --example leader_only_http -- --name a --listen 127.0.0.1:8001
//! cargo run --example leader_only_http -- --name b --listen 127.0.0.1:8002
//! curl -i -d 'one book' http://127.0.0.1:8001/orders    # 201 on the active one, 503 on the other
//! curl http://127.0.0.1:8002/healthz                    # on both: who is what, and waits for what
//! ```
//!
//! To copy into a service: `active_only` and `hold_open`, which keep the lease until the requests
//! that were let in have ended, and the two checks at the top of `order`.

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    http::{StatusCode, header::RETRY_AFTER},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use clap::Parser;
use lease_core::fencing::{Fence, FencingGate};
use lease_core::{LeaseManager, Tenure, Timing, machine::LeaseSeen};
use lease_local::LocalStore;
use serde_json::json;
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::RwLock;

/// R, with T = 3R: short enough to watch. The defaults are 10 s and 30 s.
const RENEW: Duration = Duration::from_secs(1);
/// How long a request may take, and so hold up a graceful stop: below the step-down budget.
const LIMIT: Duration = Duration::from_secs(10);

/// Takes orders on one of all the instances that share a directory.
#[derive(Parser)]
struct Args {
    /// The name of this instance alone.
    #[arg(long)]
    name: String,
    /// What all instances share. Default: in the system's directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where to listen. Default: on a free port, which is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[derive(Clone)]
struct App {
    lease: Arc<LeaseManager>,
    /// The fence while this instance is active. A request that was let in holds it for reading.
    active: Arc<RwLock<Option<Fence>>>,
    /// Stands for a database that refuses tokens of the past.
    orders: Arc<FencingGate>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init(); // what is waited for, how long
    let Args { name, dir, listen } = Args::parse();
    let dir = dir.unwrap_or_else(|| std::env::temp_dir().join("holdfast-leader-only-http"));
    std::fs::create_dir_all(&dir)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let lease = LeaseManager::builder(LocalStore::open(dir.join("store"))?, "orders")
        .timing(Timing::short(RENEW * 3, RENEW)?)
        .instance_dir(dir.join(format!("instance-{name}"))) // of this instance alone
        .instance_name(name)
        .start()
        .await?;
    let app = App { lease: Arc::new(lease), active: Arc::default(), orders: Arc::default() };
    let router = Router::new()
        .route("/orders", post(order))
        .route_layer(from_fn_with_state(app.clone(), active_only)) // all routes above this line
        .route("/healthz", get(healthz))
        .with_state(app.clone());
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let server = axum::serve(listener, router).with_graceful_shutdown(async { _ = stopped.await });
    let server = tokio::spawn(server.into_future());
    let stopping = async {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        drop(stop); // no new connections
        app.lease.stop().await; // once the requests have ended: another takes over at once
        Ok(())
    };
    tokio::try_join!(app.lease.run_while_active(|it| hold_open(it, &app.active)), stopping)?;
    // No order is under way any more; who is still connected may read its answer to the end.
    let _ = tokio::time::timeout(Duration::from_secs(1), server).await;
    Ok(())
}

/// The work of a tenure: requests are let in until it is lost, or this process is stopped.
async fn hold_open(tenure: Arc<Tenure>, active: &RwLock<Option<Fence>>) {
    *active.write().await = Some(tenure.fence());
    tenure.lost().cancelled().await;
    *active.write().await = None; // waits for the requests that were let in: then it may be released
}

/// Lets a request in on the active instance only.
async fn active_only(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let active = app.active.try_read(); // held until the request is answered
    let Some(fence) = active.as_deref().ok().and_then(Clone::clone).filter(Fence::is_open) else {
        return unavailable(&app, "this instance is not active: ask another one, or again later");
    };
    request.extensions_mut().insert(fence);
    let answered = tokio::time::timeout(LIMIT, next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

/// A handler that changes something. What it starts it has to wait for.
async fn order(State(app): State<App>, fence: Extension<Fence>, order: String) -> Response {
    if let Err(shut) = fence.check() {
        return unavailable(&app, &shut.to_string()); // right before the write: is it ours, now?
    }
    if let Err(stale) = app.orders.admit(fence.epoch()) {
        return unavailable(&app, &stale.to_string()); // the token goes with the write
    }
    (StatusCode::CREATED, Json(json!({ "order": order, "epoch": fence.epoch() }))).into_response()
}

fn unavailable(app: &App, error: &str) -> Response {
    let body = Json(json!({ "error": error, "status": status(app) }));
    let soon = RENEW.as_secs().to_string(); // about what a graceful stop takes to hand over
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, soon)], body).into_response()
}

async fn healthz(State(app): State<App>) -> Json<serde_json::Value> {
    Json(status(&app))
}

fn status(app: &App) -> serde_json::Value {
    let (status, now) = (app.lease.status().borrow().clone(), app.lease.clock().monotonic());
    let holder = match &status.lease {
        Some(LeaseSeen::Held { holder, .. }) => Some(holder.to_string()),
        _ => None,
    };
    let until = status.waiting.and_then(|it| it.until);
    json!({
        "role": format!("{:?}", status.role).to_lowercase(),
        "epoch": status.epoch,
        "holder_seen": holder,
        "waiting_for": status.waiting.map(|it| it.reason.to_string()),
        "waiting_seconds_max": until.map(|until| now.until(until).as_secs_f64()),
        "sentence": status.sentence(now),
    })
}
