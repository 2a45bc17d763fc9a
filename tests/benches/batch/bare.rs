//! A bare client loop: the same lines, endpoint, concurrency and HTTP library, and nothing else.

use std::{
    fs,
    io::{BufRead, BufReader, BufWriter, Write},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Line {
    request_id: String,
    prompt: String,
}

#[derive(Serialize)]
struct Asked<'a> {
    model: &'a str,
    messages: [Message<'a>; 1],
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct Kept<'a> {
    request_id: &'a str,
    text: &'a str,
    usage: &'a serde_json::Value,
}

/// Asks the endpoint once a line, and writes a line for each answer.
pub(crate) async fn run(endpoint: &str, input: &str, output: &str, workers: usize) {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let lines = Arc::new(Mutex::new(BufReader::new(fs::File::open(input).unwrap()).lines()));
    let output = Arc::new(Mutex::new(BufWriter::new(fs::File::create(output).unwrap())));
    let uri = format!("http://{endpoint}/v1/chat/completions");
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let (client, lines, output, uri) =
                (client.clone(), Arc::clone(&lines), Arc::clone(&output), uri.clone());
            tokio::spawn(async move {
                loop {
                    let Some(line) = lines.lock().unwrap().next() else { return };
                    let line: Line = serde_json::from_str(&line.unwrap()).unwrap();
                    let messages = [Message { role: "user", content: &line.prompt }];
                    let body = serde_json::to_vec(&Asked { model: "bench-model", messages }).unwrap();
                    let request = Request::post(&uri).header(header::CONTENT_TYPE, "application/json");
                    let answer = client.request(request.body(Full::from(body)).unwrap()).await.unwrap();
                    assert!(answer.status().is_success());
                    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
                    let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
                    let kept = Kept { request_id: &line.request_id, text, usage: &answer["usage"] };
                    let mut written = serde_json::to_vec(&kept).unwrap();
                    written.push(b'\n');
                    output.lock().unwrap().write_all(&written).unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    output.lock().unwrap().flush().unwrap();
}
