//! The gate of an HTTP endpoint.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

use fencing::{
    Epoch, FencingGate,
    http::{Admission, FencingLayer, Policy},
};
use futures_util::FutureExt as _;
use http::{HeaderName, Method, Request, Response, StatusCode, header};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use tower::{Layer as _, ServiceExt as _, service_fn};

/// What is behind the layer counts who gets there.
fn answers(layer: &FencingLayer, requests: Vec<Request<()>>) -> (Vec<Response<String>>, usize) {
    let reached = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reached);
    let service = layer.layer(service_fn(move |request: Request<()>| {
        counted.fetch_add(1, SeqCst);
        let admission = request.extensions().get::<Admission>();
        let told = admission.map_or("none".to_owned(), |it| it.token().to_string());
        async move { Ok::<_, Infallible>(Response::new(told)) }
    }));
    let answer = |request| service.clone().oneshot(request).now_or_never().unwrap().unwrap();
    let answers = requests.into_iter().map(answer).collect();
    (answers, reached.load(SeqCst))
}

fn put(token: &str) -> Request<()> {
    Request::put("/report").header("fencing-token", token).body(()).unwrap()
}

fn layer() -> FencingLayer {
    FencingLayer::new(Arc::new(FencingGate::new()))
}

#[test]
fn case_46_a_stale_token_is_409_with_the_highest_seen_as_json() {
    let exact = (1_u64 << 53) + 1;
    let requests = ["9", "10", "10", "9", &exact.to_string(), &(exact - 1).to_string()].map(put);
    let (answers, reached) = answers(&layer(), requests.into());
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status().as_u16()).collect();
    assert_eq!(statuses, [200, 200, 200, 409, 200, 409]);
    assert_eq!(reached, 4, "what is refused does not reach the service");
    assert_eq!(answers[1].body(), "10");
    assert_eq!(answers[3].body(), r#"{"error":"stale","presented":9,"highest":10}"#);
    assert_eq!(answers[3].headers()[header::CONTENT_TYPE], "application/json");
    let told: serde_json::Value = serde_json::from_str(answers[5].body()).unwrap();
    let highest: Epoch = serde_json::from_value(told["highest"].clone()).unwrap();
    assert_eq!(highest.as_u64(), exact);
}

#[test]
fn a_missing_or_malformed_token_is_refused_unless_configured_otherwise() {
    let bad = ["", "0", "-1", "+7", "07", "7.0", "1e3", "\"7\"", "7 8", "seven", "0x7"];
    let above = "18446744073709551616"; // 2^64
    let mut requests: Vec<_> = bad.into_iter().chain([above]).map(put).collect();
    let not_text = Request::put("/").header("fencing-token", &b"\xff7"[..]).body(()).unwrap();
    let twice = Request::put("/").header("fencing-token", "7").header("fencing-token", "8");
    requests.extend([not_text, twice.body(()).unwrap()]);
    let none = || Request::put("/").body(()).unwrap();
    let count = requests.len();
    requests.push(none());

    let strict = layer();
    let (told, reached) = answers(&strict, requests.clone());
    assert_eq!(reached, 0, "nothing is admitted");
    for (index, answer) in told.iter().enumerate() {
        let expected = if index == count { (428, "missing") } else { (400, "malformed") };
        assert_eq!(answer.status(), expected.0, "request {index}");
        let body = format!(r#"{{"error":"{}","header":"fencing-token"}}"#, expected.1);
        assert_eq!(*answer.body(), body);
    }
    let (told, _) = answers(&strict, vec![put("1")]);
    assert_eq!(told[0].status(), 200, "the mark was not raised by any of them");

    let lax = layer().missing(Policy::Pass).malformed(Policy::Refuse(StatusCode::IM_A_TEAPOT));
    let (told, reached) = answers(&lax, vec![none(), put("seven")]);
    assert_eq!((told[0].status().as_u16(), told[1].status().as_u16(), reached), (200, 418, 1));
    assert_eq!(told[0].body(), "none", "it passed without an admission");
    let (told, _) = answers(&layer().malformed(Policy::Pass), vec![put("seven")]);
    assert_eq!(told[0].body(), "none");
}

#[test]
fn safe_methods_may_pass_without_a_token() {
    let status = StatusCode::PRECONDITION_REQUIRED;
    let layer = layer().missing(Policy::PassSafe(status));
    let by = |method| Request::builder().method(method).body(()).unwrap();
    let methods = [Method::GET, Method::HEAD, Method::OPTIONS, Method::POST, Method::DELETE];
    let (told, _) = answers(&layer, methods.map(by).into());
    let statuses: Vec<_> = told.iter().map(|answer| answer.status().as_u16()).collect();
    assert_eq!(statuses, [200, 200, 200, 428, 428]);
    // A token that is there is looked at whatever the method.
    let get = Request::get("/").header("fencing-token", "7").body(()).unwrap();
    let stale = Request::get("/").header("fencing-token", "6").body(()).unwrap();
    let (told, _) = answers(&layer, vec![get, stale]);
    assert_eq!((told[0].status().as_u16(), told[1].status().as_u16()), (200, 409));
}

#[test]
fn the_header_is_the_one_that_is_configured() {
    let layer = layer().header(HeaderName::from_static("x-epoch"));
    let named = Request::put("/").header("X-Epoch", "7").body(()).unwrap();
    let (told, _) = answers(&layer, vec![named, put("8")]);
    assert_eq!((told[0].status().as_u16(), told[1].status().as_u16()), (200, 428));
    assert!(told[1].body().contains("x-epoch"));
}

#[test]
fn a_handler_is_told_of_a_larger_token_that_came_by_meanwhile() {
    let gate = Arc::new(FencingGate::new());
    let inner = Arc::clone(&gate);
    let service = FencingLayer::new(gate).layer(service_fn(move |request: Request<()>| {
        let admission = request.extensions().get::<Admission>().unwrap().clone();
        admission.check().unwrap();
        inner.raise(Epoch::new(8).unwrap()).unwrap(); // it takes its time; a takeover happens
        let stale = admission.check().unwrap_err();
        async move { Ok::<_, Infallible>(fencing::http::conflict::<String>(&stale)) }
    }));
    let answer = service.oneshot(put("7")).now_or_never().unwrap().unwrap();
    assert_eq!(answer.status(), 409);
    assert_eq!(answer.body(), r#"{"error":"stale","presented":7,"highest":8}"#);
}
