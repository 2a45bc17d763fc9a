//! Streamed answers: relayed as they come, and never mistaken for whole when they are not.

use std::time::Duration;

use futures_util::StreamExt;
use gw_adapters::TransportConfig;
use gw_types::{ErrorKind, FinishReason};

use crate::{
    server::{Act, STREAM_HEAD, Server, chunk},
    setup::{KEY, Setup, items, limits, relayed},
};

fn event(content: &str) -> String {
    format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

const FINISH: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
                      \"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// One answer, with the last part of its framing apart.
fn pieces(events: &[&str], end: &str) -> Act {
    let mut pieces = vec![STREAM_HEAD.as_bytes().to_vec()];
    pieces.extend(events.iter().map(|event| chunk(event).into_bytes()));
    pieces.push(end.as_bytes().to_vec());
    Act::Pieces(pieces)
}

#[tokio::test]
async fn a_stream_is_relayed_and_its_connection_kept() {
    let (one, two) = (event("a"), event("é"));
    let whole = format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&format!("{one}{two}{FINISH}{DONE}")));
    for act in [pieces(&[&one, &two, FINISH, DONE], "0\r\n\r\n"), Act::Answer(whole)] {
        let server = Server::always(act).await;
        let setup = Setup::at(&server.url());
        for _ in 0..3 {
            let items = items(setup.stream().await.unwrap()).await;
            assert_eq!(relayed(&items), format!("{one}{two}{FINISH}"));
            let last = items.last().unwrap().as_ref().unwrap();
            assert!(last.facts.terminal && items.iter().all(Result::is_ok));
            assert!(items.iter().flatten().any(|item| item.facts.finish == Some(FinishReason::Stop)));
            setup.wait_until_free().await;
        }
        assert_eq!(server.sockets().accepted, 1);
    }
}

#[tokio::test]
async fn a_stream_cut_at_every_byte_is_the_same() {
    let text = format!("{}{FINISH}{DONE}", event("héllo \u{1f600}"));
    let mut pieces = vec![STREAM_HEAD.as_bytes().to_vec()];
    for byte in text.as_bytes() {
        pieces.push([b"1\r\n", &[*byte][..], b"\r\n"].concat());
    }
    pieces.push(b"0\r\n\r\n".to_vec());
    let server = Server::always(Act::Pieces(pieces)).await;
    let setup = Setup::at(&server.url());
    let items = items(setup.stream().await.unwrap()).await;
    assert_eq!(relayed(&items), text.replace(DONE, ""));
    setup.wait_until_free().await;
}

#[tokio::test]
async fn a_stream_that_breaks_is_interrupted() {
    for act in [
        Act::AnswerThenClose(format!("{STREAM_HEAD}{}", chunk(&event("a")))),
        pieces(&[&event("a")], "0\r\n\r\n"),
        pieces(&[&event("a")], "nonsense\r\n"),
    ] {
        let server = Server::always(act).await;
        let setup = Setup::at(&server.url());
        let items = items(setup.stream().await.unwrap()).await;
        let error = items.last().unwrap().as_ref().unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::StreamInterrupted, true));
        assert_eq!((relayed(&items), setup.in_use()), (event("a"), 0));
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_a_timeout() {
    let act = Act::AnswerThenSilence(format!("{STREAM_HEAD}{}", chunk(&event("a"))));
    let server = Server::always(act).await;
    let limits = TransportConfig { read_idle_timeout: Duration::from_millis(100), ..limits() };
    let setup = Setup::limited(&server.url(), limits);
    let items = items(setup.stream().await.unwrap()).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::ProviderTimeout, true));
    assert_eq!(setup.in_use(), 0);
    server.wait_for(|sockets| sockets.open == 0).await;
}

#[tokio::test]
async fn an_error_inside_a_stream_ends_it() {
    let error = format!("data: {{\"error\":{{\"message\":\"overloaded, {KEY}\",\"code\":503}}}}\n\n");
    let server = Server::always(pieces(&[&event("a"), &error, DONE], "0\r\n\r\n")).await;
    let setup = Setup::at(&server.url());
    let items = items(setup.stream().await.unwrap()).await;
    let error = items.last().unwrap().as_ref().unwrap().facts.error.clone().unwrap();
    assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
    assert_eq!(error.detail().unwrap().message(), "overloaded, [redacted]");
    assert_eq!((relayed(&items), setup.in_use()), (event("a"), 0));
}

#[tokio::test]
async fn dropping_a_stream_closes_the_connection() {
    let act = Act::AnswerThenSilence(format!("{STREAM_HEAD}{}", chunk(&event("a"))));
    let server = Server::always(act).await;
    let setup = Setup::at(&server.url());
    let mut answer = setup.stream().await.unwrap();
    assert!(answer.items.next().await.unwrap().is_ok());
    assert_eq!((setup.in_use(), server.sockets().open), (1, 1));
    drop(answer);
    assert_eq!(setup.in_use(), 0);
    server.wait_for(|sockets| sockets.open == 0).await;
}
