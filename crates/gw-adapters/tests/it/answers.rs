//! Plain answers: as they came, or refused for what they are.

use gw_types::{ErrorKind, FinishReason, TokenCount};

use crate::{
    server::{Act, STREAM_HEAD, Server, chunk, json},
    setup::{ANSWER, KEY, Setup},
};

async fn error_of(act: Act, stream: bool) -> gw_types::GatewayError {
    let server = Server::always(act).await;
    let setup = Setup::at(&server.url());
    let error = setup.call(stream).await.unwrap_err();
    assert_eq!(setup.in_use(), 0);
    error
}

#[tokio::test]
async fn an_answer_comes_as_it_was_sent() {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let answer = Setup::at(&server.url()).plain().await.unwrap();
    assert_eq!(answer.raw, ANSWER.as_bytes());
    assert_eq!(answer.facts.finish, Some(FinishReason::Stop));
    assert_eq!(answer.facts.usage.unwrap().output, TokenCount::new(1));
    assert_eq!(answer.upstream_request_id.unwrap().as_str(), "up-1");
}

#[tokio::test]
async fn an_answer_in_many_pieces_is_put_together() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".as_bytes().to_vec();
    let pieces =
        ANSWER.as_bytes().chunks(7).map(|piece| chunk(std::str::from_utf8(piece).unwrap()).into_bytes());
    let pieces = std::iter::once(head).chain(pieces).chain([b"0\r\n\r\n".to_vec()]).collect();
    let server = Server::always(Act::Pieces(pieces)).await;
    let setup = Setup::at(&server.url());
    for _ in 0..2 {
        assert_eq!(setup.plain().await.unwrap().raw, ANSWER.as_bytes());
    }
    assert_eq!(server.sockets().accepted, 1);
}

#[tokio::test]
async fn errors_are_classified_with_what_the_provider_said() {
    let body = format!(r#"{{"error":{{"message":"slow down, {KEY}","code":"slow"}}}}"#);
    let answer = json("429 Too Many Requests", &body).replacen("\r\n", "\r\nretry-after: 2\r\n", 1);
    let error = error_of(Act::Answer(answer), true).await;
    assert_eq!(error.kind(), ErrorKind::ProviderRateLimited);
    assert_eq!(error.retry_after().unwrap().as_secs(), 2);
    assert_eq!(error.upstream_request_id(), Some("up-1"));
    let detail = error.detail().unwrap();
    assert_eq!((detail.message(), detail.code()), ("slow down, [redacted]", Some("slow")));
    assert!(!error.is_ambiguous());
}

#[tokio::test]
async fn an_error_in_a_200_is_an_error() {
    for stream in [false, true] {
        let body = format!(r#"{{"error":{{"message":"no {KEY}","code":"context_length_exceeded"}}}}"#);
        let error = error_of(Act::Answer(json("200 OK", &body)), stream).await;
        assert_eq!(error.kind(), ErrorKind::ContextLengthExceeded);
        assert_eq!(error.upstream_request_id(), Some("up-1"));
        assert_eq!(error.detail().unwrap().message(), "no [redacted]");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_malformed() {
    let encoded = json("200 OK", ANSWER).replacen("\r\n", "\r\ncontent-encoding: gzip\r\n", 1);
    let too_long = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", (64 << 20) + 1);
    for (act, stream) in [
        (Act::Answer(json("200 OK", "<html>")), false),
        (Act::Answer(json("200 OK", "<html>")), true),
        (Act::Answer(json("200 OK", "")), false),
        (Act::Answer(json("200 OK", ANSWER)), true),
        (Act::Answer(encoded.clone()), false),
        (Act::Answer(encoded), true),
        (Act::AnswerThenSilence(too_long), false),
    ] {
        let shown = format!("{act:?}");
        assert_eq!(error_of(act, stream).await.kind(), ErrorKind::MalformedResponse, "{shown}");
    }
}

#[tokio::test]
async fn an_encoded_error_still_counts_by_its_status() {
    let answer = json("503 Service Unavailable", "{}").replacen("\r\n", "\r\ncontent-encoding: br\r\n", 1);
    assert_eq!(error_of(Act::Answer(answer), false).await.kind(), ErrorKind::ProviderUnavailable);
}

#[tokio::test]
async fn an_error_body_is_read_up_to_64_kib() {
    let head = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 1000000000\r\n\r\n";
    let server = Server::always(Act::Endless(head.to_owned())).await;
    let setup = Setup::at(&server.url());
    let error = setup.plain().await.unwrap_err();
    assert_eq!((error.kind(), setup.in_use()), (ErrorKind::ProviderUnavailable, 0));
    server.wait_for(|sockets| sockets.open == 0).await;
}

#[tokio::test]
async fn an_answer_cut_short_is_ambiguous() {
    let half = json("200 OK", ANSWER);
    let error = error_of(Act::AnswerThenClose(half[..half.len() - 9].to_owned()), false).await;
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true));
    let cut = format!("{STREAM_HEAD}{}", chunk("data: {"));
    let error = error_of(Act::AnswerThenClose(cut), false).await;
    assert_eq!((error.kind(), error.is_ambiguous()), (ErrorKind::Transport, true));
}
