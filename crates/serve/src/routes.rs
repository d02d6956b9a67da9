//! Answers: the page, its script and style, and its data as JSON.

use crate::events::events;
use crate::fleet::{Fleet, FleetPart};
use crate::guard::Pass;
use crate::library::Library;
use crate::places::ConnectionPlace;
use crate::{ServeError, Server, to_json};
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use stacklab_report::page::{Refused, SCRIPT, STYLE, shell};
use stacklab_report::prometheus;
use std::sync::Arc;
use std::time::Duration;

/// Nothing from other origins is loaded, framed or run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The same for the page that asks for the token.
const TOKEN_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const NO_TOKEN: &str = "this server requires a token: open the address that it printed";

const NOT_THERE: &str = "there is no such record or run in this folder";

/// Time limit for an answer from the fleet store: the findings of ten million runs take five seconds.
const FLEET_LIMIT: Duration = Duration::from_secs(30);

type ServerState = State<Arc<Server>>;

pub(super) fn routes(server: Arc<Server>) -> Router {
    Router::new()
        .route("/", get(|| async { page() }))
        .route("/page.js", get(|| async { text("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/page.css", get(|| async { text("text/css; charset=utf-8", STYLE) }))
        .route("/api/campaigns", get(|server| read(server, |library| Some(Ok(to_json(&library.listing()))))))
        .route(
            "/api/campaign",
            get(|server, Query(Named { name })| read(server, move |library| library.document(&name))),
        )
        .route(
            "/api/headline",
            get(|server, Query(Named { name })| read(server, move |library| library.headline(&name))),
        )
        .route(
            "/api/run",
            get(|server, Query(OneRun { name, block, position })| {
                read(server, move |library| library.detail(&name, block, position))
            }),
        )
        .route(
            "/api/compare",
            get(|server, Query(PairQuery { a, b })| read(server, move |library| library.compare(&a, &b))),
        )
        .route("/api/fleet", get(|server| read_fleet(server, |fleet| fleet.listing().map(Some))))
        .route(
            "/api/fleet/campaign",
            get(|server, Query(asked): Query<FleetPart>| {
                read_fleet(server, move |fleet| fleet.campaign(&asked))
            }),
        )
        .route("/api/events", get(changes))
        .route("/metrics", get(metrics))
        .fallback(|| async { refuse_request(StatusCode::NOT_FOUND, "there is nothing of that name here") })
        .layer(from_fn_with_state(server.clone(), guard_request))
        .with_state(server)
}

/// Rejects requests without access, and adds the security policy to every answer. Who has no access has one request on
/// a connection; who has it keeps the connection's place.
async fn guard_request(State(server): ServerState, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let pass = server.guard.pass(request.headers(), query);
    let has_access = matches!(pass, Pass::Yes | Pass::Welcome(_));
    if let Some(place) = request.extensions().get::<Arc<ConnectionPlace>>().filter(|_| has_access) {
        place.keep();
    }
    let mut response = match pass {
        Pass::Yes => next.run(request).await,
        Pass::No(why) => refuse_request(StatusCode::FORBIDDEN, why),
        Pass::Ask if is_for_a_browser(request.headers()) => ask_for_token(),
        Pass::Ask => refuse_request(StatusCode::FORBIDDEN, NO_TOKEN),
        // Redirects, so that the token does not stay visible in the address. Not to the requested path: a path that
        // begins with two slashes is another host's address.
        Pass::Welcome(cookie) => {
            (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, "/".to_owned())]).into_response()
        }
    };
    let fixed: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    if !has_access {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn is_for_a_browser(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|kinds| kinds.contains("text/html"))
}

/// A page with an input for the token, which sends it as the address does that `serve` prints.
fn ask_for_token() -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>stacklab: token</title>\n\
         </head>\n<body>\n<main>\n<h1>stacklab</h1>\n<p>{NO_TOKEN}, or enter the token here.</p>\n\
         <form action=\"/\" method=\"get\">\n<label>Token <input name=\"token\" type=\"password\" required \
         autocomplete=\"off\"></label>\n<button>Open</button>\n</form>\n</main>\n</body>\n</html>\n"
    );
    let kind = (CONTENT_TYPE, "text/html; charset=utf-8");
    (StatusCode::FORBIDDEN, [kind, (CONTENT_SECURITY_POLICY, TOKEN_POLICY)], page).into_response()
}

fn page() -> Response {
    match shell() {
        Ok(shell) => text("text/html; charset=utf-8", shell),
        Err(none) => refuse_request(StatusCode::INTERNAL_SERVER_ERROR, &none.to_string()),
    }
}

fn text(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

fn json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

fn refuse_request(status: StatusCode, error: &str) -> Response {
    (status, json(to_json(&Refused { error: error.to_owned() }))).into_response()
}

/// Reads records on a separate thread, so that the server can still answer.
async fn read(
    State(server): ServerState,
    read: impl FnOnce(&Library) -> Option<Result<String, ServeError>> + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(move || read(&server.library)).await {
        Ok(Some(Ok(text))) => json(text),
        Ok(Some(Err(failure))) => refuse_request(StatusCode::UNPROCESSABLE_ENTITY, &failure.to_string()),
        Ok(None) => refuse_request(StatusCode::NOT_FOUND, NOT_THERE),
        Err(_) => refuse_request(StatusCode::INTERNAL_SERVER_ERROR, "this record could not be read"),
    }
}

/// Reads the fleet store on a separate thread, one request after another. Without a store the answer is `null`.
async fn read_fleet(
    State(server): ServerState,
    read: impl FnOnce(&Fleet) -> Result<Option<String>, ServeError> + Send + 'static,
) -> Response {
    if server.fleet.is_none() {
        return json("null".to_owned());
    }
    let reader = server.clone();
    let answered = async move {
        let turn = Arc::clone(&reader.fleet_turn).acquire_owned().await.expect("it is never closed");
        // A client that is gone does not end the reading, nor its turn.
        tokio::task::spawn_blocking(move || {
            let found = reader.fleet.as_ref().map(read);
            drop(turn);
            found
        })
        .await
    };
    match tokio::time::timeout(FLEET_LIMIT, answered).await {
        Ok(Ok(Some(Ok(Some(text))))) => json(text),
        Ok(Ok(Some(Err(failure)))) => refuse_request(StatusCode::UNPROCESSABLE_ENTITY, &failure.to_string()),
        Ok(Ok(_)) => refuse_request(StatusCode::NOT_FOUND, "there is no such campaign in this fleet store"),
        Ok(Err(_)) => refuse_request(StatusCode::INTERNAL_SERVER_ERROR, "this campaign could not be read"),
        Err(_) => refuse_request(StatusCode::UNPROCESSABLE_ENTITY, "the fleet store does not answer"),
    }
}

async fn metrics(State(server): ServerState) -> Response {
    let text = tokio::task::spawn_blocking(move || Some(server.exporter.as_ref()?.text(&server.library)));
    match text.await {
        Ok(Some(text)) => ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], text).into_response(),
        Ok(None) => refuse_request(StatusCode::NOT_FOUND, "start stacklab serve with --metrics for this"),
        Err(_) => refuse_request(StatusCode::INTERNAL_SERVER_ERROR, "the records could not be read"),
    }
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct OneRun {
    name: String,
    block: u32,
    position: u32,
}

#[derive(Deserialize)]
struct PairQuery {
    a: String,
    b: String,
}

#[derive(Deserialize)]
struct Followed {
    name: Option<String>,
}

async fn changes(State(server): ServerState, Query(Followed { name }): Query<Followed>) -> Response {
    if let Some(name) = name.clone() {
        let library = server.clone();
        let found = tokio::task::spawn_blocking(move || library.library.stamp(&name).is_some()).await;
        if !found.unwrap_or_default() {
            return refuse_request(StatusCode::NOT_FOUND, NOT_THERE);
        }
    }
    match server.streams.clone().try_acquire_owned() {
        Ok(place) => events(server, name, place).into_response(),
        Err(_) => refuse_request(StatusCode::SERVICE_UNAVAILABLE, "too many open connections"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STREAMS;
    use crate::answer;
    use crate::guard::Guard;
    use crate::library::tests::folder;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use tokio::sync::Semaphore;

    const TOKEN: &str = "0123456789abcdef";

    fn server(library: Library) -> Arc<Server> {
        Arc::new(Server {
            library,
            fleet: None,
            fleet_turn: Arc::new(Semaphore::new(1)),
            guard: Guard::new("127.0.0.1:8000".parse().unwrap(), Some(TOKEN)).unwrap(),
            exporter: None,
            streams: Arc::new(Semaphore::new(STREAMS)),
        })
    }

    /// What a server answers, until it closes the connection.
    fn ask(there: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(there).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn strangers_have_one_request_and_leave_owner_a_place() {
        let (_folder, _path, library) = folder();
        let server = server(library);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                answer(tokio::net::TcpListener::from_std(listener).unwrap(), routes(server)).await;
            });
        });
        let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(there).unwrap()).collect();
        let header = "GET /api/campaigns HTTP/1.1\r\nHost: localhost\r\n";
        let refused = ask(there, &format!("{header}Content-Length: 1000000\r\n\r\n"));
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("connection: close"), "{refused}");
        let owners =
            ask(there, &format!("{header}Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"));
        assert!(owners.starts_with("HTTP/1.1 200"), "{owners}");
        drop(silent);
    }

    #[test]
    fn browser_without_the_token_gets_a_page_to_enter_it() {
        let asked = ask_for_token();
        assert_eq!(asked.status(), StatusCode::FORBIDDEN);
        assert!(asked.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("form-action 'self'"));
        assert!(is_for_a_browser(&accept("text/html,application/xhtml+xml;q=0.9")));
        assert!(!is_for_a_browser(&accept("application/json")) && !is_for_a_browser(&HeaderMap::new()));
    }

    fn accept(kinds: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, kinds.parse().unwrap())])
    }

    #[test]
    fn who_follows_what_is_not_there_takes_no_place() {
        let (_folder, _path, library) = folder();
        let server = server(library);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(follow(&runtime, &server, "b.stacklab").status(), StatusCode::NOT_FOUND);
        assert_eq!(server.streams.available_permits(), STREAMS);
        let mut followed = vec![follow(&runtime, &server, "a.stacklab")];
        assert_eq!((followed[0].status(), server.streams.available_permits()), (StatusCode::OK, STREAMS - 1));
        followed.extend((1..STREAMS).map(|_| follow(&runtime, &server, "a.stacklab")));
        assert!(followed.iter().all(|answer| answer.status() == StatusCode::OK));
        assert_eq!(follow(&runtime, &server, "a.stacklab").status(), StatusCode::SERVICE_UNAVAILABLE);
        followed.pop();
        assert_eq!(follow(&runtime, &server, "a.stacklab").status(), StatusCode::OK);
    }

    fn follow(runtime: &tokio::runtime::Runtime, server: &Arc<Server>, name: &str) -> Response {
        let name = Some(name.to_owned());
        runtime.block_on(changes(State(server.clone()), Query(Followed { name })))
    }
}
